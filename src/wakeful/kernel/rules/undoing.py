"""What taking an action back means for a job: whether it can be, and the state it returns to. Pure.

An action is kept as what it found (`before`) and what it left behind (`after`). It is taken back only where what it
left behind is still so: what was changed since belongs to who changed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from operator import attrgetter
from typing import Any

from wakeful.kernel.rules.policy import alarm, next_start, rest
from wakeful.store.records import JobState
from wakeful.triggers import Trigger

#: For how long after an action it can be taken back.
UNDO_MS = 600_000
#: What is only recorded: no undo brings it back.
FINAL = frozenset(
    {"run", "retry", "cancel", "approve", "reject", "add", "edit", "drain", "undrain", "revoke_token", "cancel_message"}
)
#: Actions of domains, each with the `module:name` of what takes it back: `(tx, context, row, by) -> str | None`.
TAKEN_BACK_BY: dict[str, str] = {}
#: What of a job's state actions change, and what shows whether it ran since.
KEPT = (
    *("revision", "enabled", "paused", "ended_at", "notes", "slot", "next_at"),
    *("errors", "crashes", "failing_since", "backoff_until", "run_id", "last_run_id"),
)
_kept = attrgetter(*KEPT)
FIELDS = (*KEPT, "removed")
MORE = ("queued", "alerts")  # what few jobs have: runs that wait to be started, and open alerts
_OF_ERRORS = ("errors", "crashes", "failing_since", "backoff_until")

Values = Mapping[str, Any]
"""An earlier state of a job: the fields above, when it was `removed`, its `queued` runs and open `alerts`, if any."""


def values_of(state: JobState, removed_at: int | None) -> tuple[Any, ...]:
    """How a job stands, as far as actions change it: what FIELDS are."""
    return (*_kept(state), removed_at)


def standing_of(state: JobState, removed_at: int | None) -> dict[str, Any]:
    """The same by name."""
    return dict(zip(FIELDS, values_of(state, removed_at), strict=True))


def only_enabled(before: Values, after: Values) -> bool:
    """Whether a later action enabled a job and nothing else: a pause from before stands, and can be undone."""
    return (before.get("enabled"), after.get("enabled")) == (0, 1) and "paused" not in after and "removed" not in after


def changed_since(now: Values, left: Values, before: Values) -> str | None:
    """How the job stands otherwise than the action left it; None when it does not, or was enabled beside the action."""
    if now["removed"] != left["removed"]:
        return "was removed" if now["removed"] is not None else "was restored"
    if now["enabled"] != left["enabled"] and (not now["enabled"] or before["enabled"] != left["enabled"]):
        return "was enabled" if now["enabled"] else "was disabled"
    if now["paused"] != left["paused"]:
        return "was paused" if now["paused"] else "was resumed"
    return None


def brought_back(trigger: Trigger, state: JobState, action: tuple[Values, Values], now: int, rand: float) -> JobState:
    """The state the job returns to. Its slot is the one it had, though its time may have passed: then it is due.

    What later runs changed stays: errors are restored only if the job has not run since.
    """
    before, left = action
    fields: dict[str, Any] = {
        name: before[name] for name in ("enabled", "paused", "ended_at") if before[name] != left[name]
    }
    if (state.run_id, state.last_run_id) == (left["run_id"], left["last_run_id"]):
        fields |= {name: before[name] for name in _OF_ERRORS}
    if state.notes == left["notes"]:
        fields["notes"] = before["notes"]
    state = state._replace(**fields, parked=None, ready_at=None, slot=None, next_at=None)
    if state.run_id is not None:
        return state  # its end finds the next time
    if state.enabled and not state.paused:
        unrun = before["slot"] is not None and (state.last_slot is None or state.last_slot < before["slot"])
        coming = next_start(trigger, state, now, rand)
        ahead = unrun and coming.slot is not None and before["slot"] > coming.slot  # the clock was set back meanwhile
        if unrun and not ahead and state.revision == left["revision"]:
            state = state._replace(slot=before["slot"], next_at=before["next_at"])
        else:
            state = state._replace(slot=coming.slot, next_at=coming.at)
    return rest(trigger, state._replace(due_at=alarm(state, now if state.queued else None)), now)
