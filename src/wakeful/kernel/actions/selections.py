"""Many jobs at once: starting, pausing and resuming those that a caller names, or all that match.

Each is one transaction, and each can be previewed: what would change, what is refused and why, what will not happen.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.errors import InvalidJob, NotAllowed, SchedulerError
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.actions.authorization import own_job
from wakeful.kernel.actions.drafts import check_note
from wakeful.kernel.actions.proposing import unanswered
from wakeful.kernel.actions.recording import keep, on_record, origin_of
from wakeful.kernel.actions.stops import stopped_by_others
from wakeful.kernel.context import Context, Rights
from wakeful.kernel.rules.options import from_text
from wakeful.store.actions import SubjectChange
from wakeful.store.interface import Transaction
from wakeful.store.jobs import JobFilter
from wakeful.store.records import JobDef, JobState

#: So many jobs are started by hand at most in one request.
MOST_STARTS = 1_000


class JobSelection(NamedTuple):
    """Which jobs are meant: those named, or all that match."""

    refs: tuple[str, ...] | None = None
    wanted: JobFilter | None = None


class BulkResult(NamedTuple):
    """The result for many jobs: the names of those that changed, and why others did not."""

    changed: list[str]
    unchanged: list[str]
    refused: dict[str, str]
    action: str | None = None  # by which it can be undone, where anything changed


def pause_many(tx: Transaction, context: Context, many: JobSelection, note: str | None = None) -> BulkResult:
    rights = context.rights
    text, pairs, own = check_note(note), _meant(tx, many, rights), rights.owned is not None
    changed, action = on_record(
        tx, origin_of(context), "pause", pairs, lambda: pausing.pause_all(tx, context, pairs, text, own=own)
    )
    known = set(changed)
    return BulkResult(changed, [job.name for job, _ in pairs if job.name not in known], {}, action)


def resume_many(tx: Transaction, context: Context, many: JobSelection) -> BulkResult:
    rights = context.rights
    meant = _meant(tx, many, rights)
    against = _held(tx, many, meant, rights)
    if many.refs is not None:
        for refusal in against.values():
            raise NotAllowed(refusal)
    pairs = [pair for pair in meant if pair[0].id not in against]
    stopped = [job.name for job, state in pairs if state.paused or state.errors or not state.enabled]
    errors, action = on_record(tx, origin_of(context), "resume", pairs, lambda: pausing.resume_all(tx, context, pairs))
    refused = {name: str(error) for name, error in errors.items()}
    refused |= {job.name: against[job.id] for job, _ in meant if job.id in against}
    known = set(stopped)
    unchanged = [job.name for job, _ in pairs if job.name not in known]
    return BulkResult([name for name in stopped if name not in refused], unchanged, refused, action)


def run_many(tx: Transaction, context: Context, many: JobSelection) -> BulkResult:
    """Start them by hand, each through the same admission as everything else."""
    rights = context.rights
    meant = _startable(tx, many, rights)
    refused = {job.name: why for job, why in _against(tx, context, many, meant, rights)}
    started = []
    for job, _ in meant:
        if job.name not in refused:
            run_id = run_actions.run_now(tx, context, ids.job_text(job.id))
            started.append(SubjectChange(job.id, job.name, ("run",), (None,), (ids.run_text(run_id),)))
    keep(tx, origin_of(context), "run", started)
    return BulkResult([change.name for change in started], [], refused)


class Preview(NamedTuple):
    """What a request would do to many jobs, before it does."""

    changes: int
    """How many it would change."""
    unchanged: int
    refused: dict[str, str]
    says: list[str]
    """What else will happen, or will not, in sentences."""


def preview(tx: Transaction, context: Context, what: str, many: JobSelection) -> Preview:
    """What `run`, `pause` or `resume` would do to these jobs; nothing is changed."""
    rights = context.rights
    if what == "run":
        meant = _startable(tx, many, rights, lock=False)
        refused = {job.name: why for job, why in _against(tx, context, many, meant, rights)}
        return Preview(
            len(meant) - len(refused), 0, refused, _about_starts([p for p in meant if p[0].name not in refused])
        )
    meant = _meant(tx, many, rights, lock=False)
    if what == "pause":
        changes = [pair for pair in meant if not pair[1].paused]
        running = sum(state.run_id is not None for _, state in changes)
        says = ["Nothing of it is running."] if not running else [f"{counted(running, 'run')} will finish."]
        return Preview(len(changes), len(meant) - len(changes), {}, [*says, "They can still be started by hand."])
    against = _held(tx, many, meant, rights)
    free = [pair for pair in meant if pair[0].id not in against]
    changes = [pair for pair in free if pair[1].paused or pair[1].errors or not pair[1].enabled]
    refused = {job.name: against[job.id] for job, _ in meant if job.id in against}
    return Preview(len(changes), len(free) - len(changes), refused, ["Starts that passed meanwhile are not caught up."])


def _startable(
    tx: Transaction, many: JobSelection, rights: Rights, *, lock: bool = True
) -> list[tuple[JobDef, JobState]]:
    meant = _meant(tx, many, rights, lock=lock)
    if len(meant) > MOST_STARTS:
        message = f"That is {counted(len(meant), 'job')}: at most {MOST_STARTS:,} can be started in one request."
        raise InvalidJob(message)
    return meant


def _held(tx: Transaction, many: JobSelection, meant: list[tuple[JobDef, JobState]], rights: Rights) -> dict[int, str]:
    """The jobs that this caller may not start, and those that wait for approval unless they are named."""
    waiting = unanswered(tx, [job for job, _ in meant]) if many.refs is None else {}
    return waiting | stopped_by_others(tx, rights, meant)


def _against(
    tx: Transaction, context: Context, many: JobSelection, meant: list[tuple[JobDef, JobState]], rights: Rights
) -> list[tuple[JobDef, str]]:
    """The jobs that cannot be started by hand, and why."""
    stopped = _held(tx, many, meant, rights)
    found = []
    for job, state in meant:
        try:
            run_actions.refuse_start_by_hand(tx, context, (job, state))
            why = stopped.get(job.id)
        except SchedulerError as error:
            why = str(error)
        if why is not None:
            found.append((job, why))
    return found


def _about_starts(pairs: list[tuple[JobDef, JobState]]) -> list[str]:
    """How lanes will spread the starts."""
    lanes = Counter(lane for job, _ in pairs for lane, _ in from_text(job.options).lanes)
    says = [
        f"{counted(number, 'start')} will share lane {lane}." for lane, number in lanes.most_common(3) if number > 1
    ]
    return ["Starts cannot be undone.", *says]


def _meant(tx: Transaction, many: JobSelection, rights: Rights, *, lock: bool = True) -> list[tuple[JobDef, JobState]]:
    if many.refs is not None:
        found = {pair[0].id: pair for pair in (own_job(tx, ref, rights) for ref in many.refs)}
        return [found[job_id] for job_id in sorted(found)]
    wanted = many.wanted if many.wanted is not None else JobFilter()
    if rights.owner is not None:
        if wanted.owner not in (None, rights.owner):
            message = f"{rights.owner} may only name its own jobs."
            raise InvalidJob(message)
        wanted = wanted._replace(owned=rights.owned)
    pairs = tx.jobs.matching(wanted)
    if not lock:
        return sorted(pairs, key=lambda pair: pair[0].id)
    states = tx.jobs.states(sorted(job.id for job, _ in pairs))  # locked from here on
    return sorted(((job, states[job.id]) for job, _ in pairs if job.id in states), key=lambda pair: pair[0].id)
