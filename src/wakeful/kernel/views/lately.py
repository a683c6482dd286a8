"""How jobs have fared lately: their last runs, how many were good, how long one usually takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.runs import Ended

SHOWN = 20
GOOD = ("success", "noop", "skipped", "deferred")


class Lately(NamedTuple):
    """The last runs of a job, the oldest first."""

    runs: tuple[Ended, ...] = ()

    @property
    def good(self) -> float | None:
        """How many of those that ended were good, from 0 to 1; None where none has ended."""
        ended = [run for run in self.runs if run.outcome is not None]
        return sum(run.outcome in GOOD for run in ended) / len(ended) if ended else None

    @property
    def usually_ms(self) -> int | None:
        """How long one usually takes."""
        took = [run.took for run in self.runs if run.took is not None and run.outcome == "success"]
        return int(median(took)) if took else None


def lately(tx: Transaction, job_ids: Sequence[str], number: int = SHOWN) -> Mapping[str, Lately]:
    """The last runs of these jobs, by id."""
    numbers = {ids.number_of("job", text): text for text in job_ids}
    found = tx.runs.last_of([one for one in numbers if one is not None], number)
    return {text: Lately(tuple(reversed(found.get(one or 0, ())))) for one, text in numbers.items()}
