"""Actions on record: who did what, from where, and what it changed, written in the transaction that does it."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeVar

from wakeful import ids
from wakeful.errors import AlertNotFound
from wakeful.kernel.actions.authorization import Rights
from wakeful.kernel.context import Context
from wakeful.kernel.rules.undoing import standing_of
from wakeful.store import records
from wakeful.store.actions import ActionRow
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState

T = TypeVar("T")
_WRITE = json.JSONEncoder(separators=(",", ":")).encode


class Origin(NamedTuple):
    """Who acts, from where, and the id of what they do: parts of one action, in several transactions, share it."""

    actor: str
    via: str
    action: int


def origin_of(context: Context, rights: Rights) -> Origin:
    """Who acts, as their rights say it."""
    return Origin(rights.caller, rights.via, rights.action if rights.action is not None else context.new_id())


def on_record(
    tx: Transaction, origin: Origin, what: str, pairs: Sequence[tuple[JobDef, JobState]], work: Callable[[], T]
) -> tuple[T, str | None]:
    """Do something to these jobs, and keep what it changed: its result, and the action's id if it changed anything."""
    found = _standings(tx, pairs)
    result = work()
    job_ids = [job.id for job, _ in pairs]
    states = tx.jobs.states(job_ids)
    jobs = tx.jobs.definitions(job_ids) if what == "remove" else {job.id: job for job, _ in pairs}
    left = _standings(tx, [(jobs[job_id], states[job_id]) for job_id in job_ids if job_id in states])
    written = _Written()
    rows = [
        _row(tx, origin, what, _Subject(job.id, job.name, found[job.id], left[job.id]), written)
        for job, _ in pairs
        if job.id in left and found[job.id] != left[job.id]
    ]
    tx.actions.add(rows)
    return result, ids.encode("act", origin.action) if rows else None


def acknowledge(tx: Transaction, alert_id: int, origin: Origin) -> tuple[records.Alert, str | None]:
    """A person has seen an alert; it stays open until what it is about is over. AlertNotFound where there is none."""
    name = ids.encode("alr", alert_id)
    is_new = tx.journal.ack_alert(alert_id, tx.now)
    alert = tx.journal.alert(alert_id)
    if alert is None:
        message = f"There is no alert {name}: see the list of open alerts."
        raise AlertNotFound(message)
    if is_new:
        seen = _Subject(alert_id, name, {"acked_at": None}, {"acked_at": alert.acked_at})
        tx.actions.add([_row(tx, origin, "acknowledge", seen)])
    return alert, ids.encode("act", origin.action) if is_new else None


def _standings(tx: Transaction, pairs: Sequence[tuple[JobDef, JobState]]) -> dict[int, dict[str, Any]]:
    found = {job.id: standing_of(state, job.removed_at) for job, state in pairs}
    for job, state in pairs:
        if state.queued:
            found[job.id]["queued"] = [run.id for run in tx.runs.open(job.id) if run.status == "queued"]
    alerts = defaultdict[int, list[int]](list)
    for alert in tx.journal.open_alerts():
        if alert.job_id in found:
            alerts[alert.job_id].append(alert.id)
    for job_id, numbers in alerts.items():
        found[job_id]["alerts"] = numbers
    return found


class _Subject(NamedTuple):
    """What is acted upon, as it was found and as it was left."""

    number: int
    name: str
    before: dict[str, Any]
    left: dict[str, Any]


class _Written(dict[tuple[Any, ...], str]):
    """JSON that was written before: what an action leaves behind is mostly the same for all its subjects."""

    def text(self, value: dict[str, Any]) -> str:
        key = (*value, *map(str, value.values()))
        found = self.get(key)
        if found is None:
            found = self[key] = _WRITE(value)
        return found


def _row(tx: Transaction, origin: Origin, what: str, subject: _Subject, written: _Written | None = None) -> ActionRow:
    number, name, before, left = subject
    after = {key: value for key, value in left.items() if value != before.get(key)}
    if before.keys() != left.keys():
        after |= dict.fromkeys(before.keys() - left.keys())
    text = _WRITE(after) if written is None else written.text(after)
    return ActionRow(origin.action, number, tx.now, what, origin.actor, origin.via, name, _WRITE(before), text)
