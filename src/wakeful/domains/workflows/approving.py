"""What an approval covers: the change that was prepared when it was asked for, or what prepare had seen by then. Pure.

Questions and answers are passed on to the runs that continue the one that asked. Each question is stored with what it
was about, so that an answer counts only for an attempt that is about the same, with the same code:

- one that was asked in `prepare` is about the events that it had seen. The next attempt is shown no later ones, and
  what it then prepares is what was approved: `mutate` does it;
- one that was asked in `mutate` or `next` is about a fingerprint of the reservations and the data, and answers that
  phase alone;
- one that was asked by a producer is about its next call. What that finds outside is not known here;
- one that was made out of a refusal is about that alone: its answer approves no change.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wakeful.kernel.rules.approval import APPROVED, approvals
from wakeful.kernel.rules.outcome import ApprovalNeeded

if TYPE_CHECKING:
    from wakeful.domains.workflows.topics.tables import EventRow

PHASE, VERSION = "phase", "version"
SEEN, UNTIL, REVISED, PREPARED, REFUSED = "seen", "until", "revised", "prepared", "refused"
#: The phases in which an answer counts, by the one that asked.
COVERED = {
    "producer": ("producer",),
    "prepare": ("prepare", "mutate", "reconcile"),
    "mutate": ("mutate", "reconcile"),
    "next": ("next",),
    "steps": ("steps",),
    "step": ("step",),
}


class AccessRefused(ApprovalNeeded):
    """The other side refused: the yes of a person says that it works again, and approves nothing."""

    def __init__(self, said: str) -> None:
        super().__init__(f"{said} (access was refused: restore it, then approve)")
        self.about = {REFUSED: True}


def fingerprint(text: str) -> str:
    """A short text that only the same text has."""
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def about_prepared(prepared: str | None) -> dict[str, Any]:
    """What a question is about that was asked for a change that was prepared."""
    return {PREPARED: fingerprint(prepared or "")}


def only_approved(record: str | None) -> str | None:
    """The record for a run that continues after another one: what was approved."""
    found = [entry for entry in approvals(record) if entry["verdict"] == APPROVED and entry.get("about")]
    return json.dumps(found) if found else None


class Approval:
    """The answers that one attempt was given; `is_answer`: it is the first one after the last answer."""

    def __init__(self, record: str | None = None, version: str | None = None, *, is_answer: bool = False) -> None:
        self._entries = approvals(record)
        self._version = version
        self._is_answer = is_answer

    def of_prepared(self, prepared: str | None, phase: str) -> str | None:
        """Who approved this change last, for that phase."""
        wanted = fingerprint(prepared or "")
        found = [entry for entry in self._approved(phase) if entry["about"].get(PREPARED) == wanted]
        return str(found[-1]["by"]) if found else None

    def of_choice(self, phase: str) -> dict[str, Any] | None:
        """The last approved question that was asked in prepare, or by a producer."""
        if not self._entries:
            return None
        found = [entry for entry in self._approved(phase) if SEEN in entry["about"]]
        if phase == "producer" and not (self._is_answer and found[-1:] == self._entries[-1:]):
            return None
        return found[-1] if found else None

    def bound(self, prepared: str) -> str:
        """The record, with what was asked in prepare bound to what was prepared then."""
        entry = self.of_choice("prepare")
        if entry is not None:
            entry["about"] = {**entry["about"], **about_prepared(prepared)}
        return json.dumps(self._entries)

    def _approved(self, phase: str) -> list[dict[str, Any]]:
        found = [entry for entry in self._entries if entry["verdict"] == APPROVED and entry.get("about")]
        return [entry for entry in found if self._is_for(entry["about"], phase)]

    def _is_for(self, about: dict[str, Any], phase: str) -> bool:
        return about.get(VERSION) == self._version and phase in COVERED.get(about.get(PHASE, ""), ())


class SeenEvents:
    """The events that a call has seen which chooses a change, and whether an approval that it was given covers them."""

    def __init__(self, approval: Approval, phase: str, watermark: int) -> None:
        self._entry = approval.of_choice(phase)
        self._about: dict[str, Any] = self._entry["about"] if self._entry is not None else {}
        self._peeks: list[Sequence[EventRow]] = []
        self._latest = self._revised = watermark
        self._is_replaced = False  # an event that was found has another payload since it was asked
        self.used = False  # whether the handler was told of the approval

    @property
    def until(self) -> int | None:
        """The number of the last event to show: what is approved was chosen without those after it."""
        return self._about.get(UNTIL) if PREPARED not in self._about else None

    def note(self, events: Sequence[EventRow]) -> None:
        """What a peek has found."""
        self._peeks.append(events)
        known = self._about.get(REVISED)
        self._is_replaced |= known is not None and any(event.revision > known for event in events)
        self._latest = max([self._latest, *(event.seq for event in events)])
        self._revised = max([self._revised, *(event.revision for event in events)])

    def approved_by(self) -> str | None:
        """Who approved what prepare is about to choose, as far as it has looked.

        Nobody has, once it has looked further than when it asked: what it asks then is another question.
        """
        has_seen = len(self._peeks) <= len(self._about.get(SEEN, ()))
        if self._entry is None or not (PREPARED in self._about or (has_seen and self._is_same_so_far())):
            return None
        self.used = True
        return str(self._entry["by"])

    def covers(self, prepared: str) -> bool:
        """Whether the approval, if the handler relied on one, is of what it has prepared."""
        if not self.used:
            return True
        known = self._about.get(PREPARED)
        return known == fingerprint(prepared) if known is not None else self._is_same_so_far()

    def about(self) -> dict[str, Any]:
        """What a question is about that is asked now."""
        until = self.until if self.until is not None else self._latest
        return {SEEN: [_of(events) for events in self._peeks], UNTIL: until, REVISED: self._revised}

    def _is_same_so_far(self) -> bool:
        seen = zip(self._peeks, self._about.get(SEEN, ()), strict=False)
        return not self._is_replaced and all(_of(now) == then for now, then in seen)


def _of(events: Sequence[EventRow]) -> str:
    """A fingerprint of what a peek has found."""
    return fingerprint(json.dumps([(event.id, event.payload) for event in events]))
