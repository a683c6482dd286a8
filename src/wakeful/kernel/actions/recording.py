"""Actions on record: who did what, from where, and what it changed, written in the transaction that does it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple, TypeVar

from wakeful import ids
from wakeful.errors import AlertNotFound
from wakeful.kernel.context import Context
from wakeful.kernel.rules.undoing import FIELDS, KEPT, MORE, values_of
from wakeful.store import records
from wakeful.store.actions import ActionDetails, SubjectChange
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState

T = TypeVar("T")
NOTHING_MORE = (None, None)
SNOOZE = "snooze"
UNTIL, OF_JOB = "snoozed_until", "job_snoozed_until"  # of an alert, and of all messages about a job


class Origin(NamedTuple):
    """Who acts, from where, and the id of what they do: parts of one action, in several transactions, share it."""

    actor: str
    via: str
    action: int


def origin_of(context: Context) -> Origin:
    """Who acts, as their rights say it."""
    rights = context.rights
    return Origin(rights.caller, rights.via, rights.action if rights.action is not None else context.new_id())


def on_record(
    tx: Transaction, origin: Origin, what: str, pairs: Sequence[tuple[JobDef, JobState]], work: Callable[[], T]
) -> tuple[T, str | None]:
    """Do something to these jobs, and keep what it changed: its result, and the action's id if it changed anything."""
    if not pairs:
        return work(), None
    found = {job.id: values_of(state, job.removed_at) for job, state in pairs}
    more_found = _more(tx, found, [job.id for job, state in pairs if state.queued])
    result = work()
    left, queued = _left(tx, what, pairs)
    more_left = _more(tx, found, queued)
    plain = found.keys() - more_found.keys() - more_left.keys()
    changes = [
        SubjectChange(job.id, job.name, FIELDS, found[job.id], left[job.id])
        if job.id in plain
        else SubjectChange(
            job.id,
            job.name,
            (*FIELDS, *MORE),
            (*found[job.id], *more_found.get(job.id, NOTHING_MORE)),
            (*left[job.id], *more_left.get(job.id, NOTHING_MORE)),
        )
        for job, _ in pairs
        if job.id in left
    ]
    return result, keep(tx, origin, what, [change for change in changes if change.before != change.left])


def keep(tx: Transaction, origin: Origin, what: str, changes: Sequence[SubjectChange]) -> str | None:
    """Keep what an action changed; its id, where it changed anything."""
    tx.actions.add(ActionDetails(origin.action, tx.now, what, origin.actor, origin.via), changes)
    return ids.encode("act", origin.action) if changes else None


def note(tx: Transaction, origin: Origin, what: str, job: JobDef, run_id: int | None = None) -> None:
    """Keep who did something to a job that cannot be taken back, such as starting it."""
    run = None if run_id is None else ids.run_text(run_id)
    keep(tx, origin, what, [SubjectChange(job.id, job.name, ("run",), (None,), (run,))])


def note_other(tx: Transaction, origin: Origin, what: str, number: int, name: str) -> None:
    """The same of something that is no job: a node, a token, a message."""
    keep(tx, origin, what, [SubjectChange(number, name, (), (), ())])


def acknowledge(tx: Transaction, alert_id: int, origin: Origin) -> tuple[records.AlertRow, str | None]:
    """Acknowledge an alert; it stays open until the incident is over. AlertNotFound if there is none."""
    name = ids.encode("alr", alert_id)
    is_new = tx.alerts.ack(alert_id, tx.now)
    alert = tx.alerts.get(alert_id)
    if alert is None:
        message = f"There is no alert {name}: see the list of open alerts."
        raise AlertNotFound(message)
    seen = [SubjectChange(alert_id, name, ("acked_at",), (None,), (alert.acked_at,))] if is_new else []
    return alert, keep(tx, origin, "acknowledge", seen)


def snooze(
    tx: Transaction, alerts: Sequence[records.AlertRow], jobs: Sequence[JobDef], until: int, origin: Origin
) -> str | None:
    """Send no message about these alerts before that time, nor about these jobs; the action's id."""
    changes = [
        SubjectChange(alert.id, ids.encode("alr", alert.id), (UNTIL,), (alert.snoozed_until,), (until,))
        for alert in alerts
    ]
    for alert in alerts:
        tx.alerts.snooze(alert.id, until)
    for job in jobs:
        changes.append(SubjectChange(job.id, job.name, (OF_JOB,), (tx.alerts.job_snoozed_until(job.id),), (until,)))
        tx.alerts.snooze_job(job.id, until)
    return keep(tx, origin, SNOOZE, changes)


def _left(
    tx: Transaction, what: str, pairs: Sequence[tuple[JobDef, JobState]]
) -> tuple[dict[int, tuple[Any, ...]], list[int]]:
    """The current state of the jobs, and which of them have queued runs."""
    job_ids = [job.id for job, _ in pairs]
    removed = {job.id: job.removed_at for job, _ in pairs}
    if what == "remove":
        removed |= {job_id: job.removed_at for job_id, job in tx.jobs.definitions(job_ids).items()}
    parts = tx.jobs.parts_of_states(job_ids, (*KEPT, "queued"))
    left = {job_id: (*values[:-1], removed[job_id]) for job_id, values in parts.items()}
    return left, [job_id for job_id, values in parts.items() if values[-1]]


def _more(tx: Transaction, job_ids: Collection[int], queued: Sequence[int]) -> dict[int, tuple[Any, Any]]:
    """The rest of a job's state, where it has any: its queued runs, and its open alerts."""
    runs = {job_id: [run.id for run in tx.runs.open(job_id) if run.status == "queued"] for job_id in queued}
    alerts = defaultdict[int, list[int]](list)
    for alert_id, job_id in tx.alerts.open_about(list(job_ids)):
        alerts[job_id].append(alert_id)
    return {job_id: (runs.get(job_id), alerts.get(job_id)) for job_id in runs.keys() | alerts.keys()}
