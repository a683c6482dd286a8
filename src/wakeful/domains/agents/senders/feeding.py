"""Runs that were given text from outside, and those that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.agents.senders.tables import Senders
from wakeful.store.owners import Proposals

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from wakeful.kernel.hooks import Showing
    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunRow

SAID_NOTHING = (None, "success", "noop")


def is_fed(tx: Transaction, run_id: int) -> bool:
    """Whether a run was given text from outside: itself, one that it tries again, or one after which it starts."""
    senders, ahead, seen = tx.of(Senders), [run_id], set[int]()
    while ahead:
        number = ahead.pop()
        if senders.is_fed(number):
            return True
        seen.add(number)
        run = tx.runs.get(number)
        before = (run.retry_of, run.caused_by) if run is not None else ()
        ahead += [one for one in before if one is not None and one not in seen]
    return False


def has_outside(tx: Transaction, jobs: Collection[int], runs: Collection[int]) -> bool:
    """Whether words of one of these jobs and runs are from outside: who is shown them is given such text."""
    rows = [tx.runs.get(one) for one in runs]  # a run shows what its job says, also before it is claimed
    made = tx.of(Proposals).of(sorted({*jobs, *(row.job_id for row in rows if row is not None)})).values()
    return any(one.outside for one in made) or any(is_fed(tx, one) for one in runs)


def shown(tx: Transaction, reader: int, showing: Showing) -> Callable[[Transaction], None] | None:
    """What to record before a run is shown these words; None where they are not from outside, or it was given some."""
    if is_fed(tx, reader):
        return None
    # What ended well says no more in a list of jobs than that; an error is what the run said.
    last = tx.jobs.parts_of_states(sorted(showing.jobs), ("last_run_id", "last_outcome"))
    erred = {run for run, outcome in last.values() if isinstance(run, int) and outcome not in SAID_NOTHING}
    if not (showing.outside or has_outside(tx, showing.jobs, showing.runs | erred)):
        return None
    return lambda tx: tx.of(Senders).feed(reader)


def join(tx: Transaction, waiting: RunRow, cause: RunRow) -> None:
    """A run that waits is also for the end of this one, and so is fed if that was."""
    if is_fed(tx, cause.id):
        tx.of(Senders).feed(waiting.id)
