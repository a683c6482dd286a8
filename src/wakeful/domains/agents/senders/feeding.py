"""Runs that were given text from outside, and those that follow from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.agents.senders.tables import Senders
from wakeful.store.proposals import Proposals

if TYPE_CHECKING:
    from collections.abc import Collection

    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunRow


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
    made = tx.of(Proposals).of(list(jobs)).values()
    return any(one.outside for one in made) or any(is_fed(tx, one) for one in runs)


def join(tx: Transaction, waiting: RunRow, cause: RunRow) -> None:
    """A run that waits is also for the end of this one, and so is fed if that was."""
    if is_fed(tx, cause.id):
        tx.of(Senders).feed(waiting.id)
