"""When an incident is worth a message: pure rules over an alert, the settings and a `now`.

An incident is announced once when it opens, again at most once per cooldown while it repeats, and once when it is
over. A person can acknowledge it (no repeats) or snooze it (no message before a time).
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any, NamedTuple

from wakeful.store.records import AlertRow

AFTER = 2
COOLDOWN_MS = 3_600_000
GRACE_MS = 300_000
#: Kinds that pass quiet hours where the settings name none.
URGENT = ("disabled", "failed", "missed", "down", "dead_node", "stalled")
#: So many names are written out in a message about many jobs.
NAMED = 5

#: What a person types to look closer at an incident that is not about a job; `{subject}` is what it is about.
_CLOSER = {
    "workflow": "wakeful workflow show {subject}",
    "delivery_failed": "wakeful delivery list --failed",
    "no_connector": "wakeful connector list",
    "receiving": "wakeful connector list",
    "dead_node": "wakeful node list",
    "not_listening": "wakeful node list",
    "rate_limited": "wakeful agent limits",
    "work_failed": "wakeful work list {subject} --status failed",
}

OPENED, REPEATED, CLOSED = "opened", "repeated", "closed"


class AlertRules(NamedTuple):
    """The settings of alerts, as every process that shares the store knows them."""

    to: str | None = None  # a connector, or last; None: incidents are recorded and not sent
    after: int = AFTER  # failures in a row before a job is failing
    cooldown: int = COOLDOWN_MS
    grace: int = GRACE_MS  # how late a start may be before it is missed
    urgent: tuple[str, ...] = URGENT


DEFAULTS = AlertRules()


class Notice(NamedTuple):
    """A message to write about an incident."""

    alert: AlertRow
    what: str  # opened, repeated or closed
    rules: AlertRules
    why: str | None = None  # why it is over


def closer_look(kind: str, key: str, job: str | None) -> str | None:
    """The command that shows more about an incident, where there is one besides `wakeful alert show`."""
    if kind in _CLOSER:
        return _CLOSER[kind].format(subject=shlex.quote(key.partition(":")[2]))
    return f"wakeful explain {shlex.quote(job)}" if job is not None else None


def rules_text(rules: AlertRules) -> str:
    """The settings as they are stored."""
    return json.dumps(rules._asdict())


def rules_from(text: str | None) -> AlertRules:
    """The settings from their stored form; fields that a later version added are left out."""
    if not text:
        return DEFAULTS
    found: dict[str, Any] = json.loads(text)
    known = {name: value for name, value in found.items() if name in AlertRules._fields}
    rules = AlertRules(**known)
    return rules._replace(urgent=tuple(rules.urgent))


def worth_opening(rules: AlertRules, kind: str, errors: int) -> bool:
    """Whether an incident opens; a job is failing only after so many failures in a row."""
    return kind != "failing" or errors >= rules.after


def to_send(rules: AlertRules, alert: AlertRow, *, is_new: bool, now: int) -> str | None:
    """What to send about an incident that was just noticed: opened, repeated or nothing."""
    if rules.to is None or is_snoozed(alert, now):
        return None
    if is_new or alert.notified_at is None:
        return OPENED
    if alert.acked_at is not None or now - alert.notified_at < rules.cooldown:
        return None
    return REPEATED


def to_send_at_end(rules: AlertRules, alert: AlertRow, now: int) -> str | None:
    """What to send about an incident that is over: only what was announced needs an end."""
    if rules.to is None or alert.notified_at is None or is_snoozed(alert, now):
        return None
    return CLOSED


def is_snoozed(alert: AlertRow, now: int) -> bool:
    return alert.snoozed_until is not None and alert.snoozed_until > now


def many(names: Sequence[str], count: int) -> str:
    """The first few names, and how many more there are."""
    shown = list(names[:NAMED])
    left = count - len(shown)
    if left > 0:
        return f"{', '.join(shown)} and {left} more"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
