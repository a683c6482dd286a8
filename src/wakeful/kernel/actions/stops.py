"""Who stopped a job: what others paused or disabled, a caller that is limited to its own jobs does not start again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.errors import NotAllowed
from wakeful.store.owners import Stops

if TYPE_CHECKING:
    from wakeful.kernel.context import Rights
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

Pair = tuple["JobDef", "JobState"]


def note_stops(tx: Transaction, pairs: Sequence[Pair], *, own: bool) -> None:
    """Keep who stops these jobs, which are as they were before; `own`: their owner. Jobs without an owner need none.

    What others have stopped stays stopped by them, and what they stop as well becomes theirs.
    """
    owned = [pair for pair in pairs if pair[0].owner is not None]
    tx.of(Stops).put([job.id for job, state in owned if not (own and is_stopped(state))], by_owner=own)


def note_going_on(tx: Transaction, jobs: Sequence[JobDef]) -> None:
    """These jobs were resumed."""
    tx.of(Stops).drop([job.id for job in jobs if job.owner is not None])


def note_given(tx: Transaction, job: JobDef, state: JobState) -> None:
    """The job has another owner, who did not stop it: if it stands still, it was stopped by others."""
    if job.owner is not None and is_stopped(state):
        tx.of(Stops).put([job.id], by_owner=False)


def is_stopped(state: JobState) -> bool:
    return bool(state.paused or not state.enabled)


def stopped_by_others(tx: Transaction, rights: Rights, pairs: Sequence[Pair]) -> dict[int, str]:
    """Of these jobs, those that this caller may not start, and why.

    A job that errors disabled, or that came to its end, was stopped by nobody. A pause of which it is not known whose
    it is counts as another's.
    """
    stopped = [pair for pair in pairs if is_stopped(pair[1])] if rights.owned is not None else []
    by_owner = tx.of(Stops).of([job.id for job, _ in stopped]) if stopped else {}
    return {
        job.id: f"{job.name} was {'paused' if state.paused else 'disabled'} by an operator: only an operator can "
        "start, remove or rename it."
        for job, state in stopped
        if not by_owner.get(job.id, not state.paused)
    }


def refuse_stopped(tx: Transaction, rights: Rights, pair: Pair) -> None:
    """NotAllowed where somebody else than this caller has stopped the job."""
    for refusal in stopped_by_others(tx, rights, [pair]).values():
        raise NotAllowed(refusal)
