"""What past runs say about the next one: how long it takes and what it uses."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.runs import Used

LASTED = 20  # runs whose median is how long one takes
COUNTED = 30  # runs whose mean is what one uses
UNKNOWN_MS = 1_000  # how long a run takes that has no history


class History(NamedTuple):
    """The last runs of a job, in figures; those of none of them are 0 and None."""

    runs: int = 0
    took_ms: int | None = None
    succeeded: float = 1.0  # from 0 to 1
    busy: float = 0.0  # from 0 to 1: how many found something to do
    priced: int = 0  # runs that reported a cost
    cost: float = 0.0
    variance: float = 0.0  # of the cost
    tokens: float = 0.0
    tokens_in: float = 0.0

    @property
    def runs_cost(self) -> bool:
        """Whether runs are known to use money or tokens."""
        return bool(self.cost or self.tokens)

    @property
    def expected_ms(self) -> int:
        """How long the next run takes."""
        return UNKNOWN_MS if self.took_ms is None else self.took_ms

    def usage(self, share: float = 1.0) -> dict[str, Any] | None:
        """What the next run uses, as a handler reports it; None where no run reported anything.

        `share`: how many runs use anything, where those that use nothing are simulated as such.
        """
        if not self.priced and not self.tokens:
            return None
        tokens_in, tokens = self.tokens_in / share, self.tokens / share
        used = {"tokens_in": round(tokens_in), "tokens_out": round(tokens - tokens_in)}
        return {**used, "cost": self.cost / share} if self.priced else used


NONE = History()


def history_of(runs: Sequence[Used]) -> History:
    """A job's last runs, the newest first, in figures."""
    if not runs:
        return NONE
    took = sorted([run.took for run in runs[:LASTED]])
    good = sum(run.outcome not in ("error", "timeout", "crashed") for run in runs) / len(runs)
    busy = sum(run.outcome != "noop" for run in runs) / len(runs)
    history = History(len(runs), max(0, (took[(len(took) - 1) // 2] + took[len(took) // 2]) // 2), good, busy)
    reported = [json.loads(run.usage) for run in runs if run.usage is not None]
    return _with_usage(history, reported) if reported else history


def _with_usage(history: History, reported: Sequence[Any]) -> History:
    costs = [cost for used in reported if (cost := _number(used, "cost")) is not None]
    # A run that reports nothing, such as one that found nothing to do, used nothing: it counts in the mean.
    costs += [0.0] * (history.runs - len(reported)) if costs else []
    tokens_in = sum(_number(used, "tokens_in") or 0 for used in reported) / history.runs
    tokens_out = sum(_number(used, "tokens_out") or 0 for used in reported) / history.runs
    return history._replace(
        priced=len(costs),
        cost=_mean(costs),
        variance=_variance(costs),
        tokens=tokens_in + tokens_out,
        tokens_in=tokens_in,
    )


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0


def _variance(numbers: Sequence[float]) -> float:
    mean = _mean(numbers)
    return _mean([(number - mean) ** 2 for number in numbers])


def _number(used: Any, name: str) -> float | None:
    value = used.get(name) if isinstance(used, dict) else None
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def together(histories: Iterable[History]) -> History:
    """What the runs of several jobs say about one that has none of its own; the one with most runs says how long."""
    known = [one for one in histories if one.priced or one.tokens]
    if not known:
        return NONE
    longest = max(known, key=lambda one: one.runs)
    return longest._replace(
        runs=0,
        cost=_mean([one.cost for one in known]),
        variance=_mean([one.variance for one in known]) + _variance([one.cost for one in known]),
        tokens=_mean([one.tokens for one in known]),
        tokens_in=_mean([one.tokens_in for one in known]),
    )


class Histories(NamedTuple):
    """Of jobs by id, and of all jobs of an owner by its name, for jobs that have none of their own."""

    by_job: Mapping[int, History] = {}
    by_owner: Mapping[str, History] = {}

    def of(self, job_id: int, owner: str | None) -> History:
        """What is known about a job's next run."""
        own = self.by_job.get(job_id, NONE)
        return own if own.runs or owner is None else self.by_owner.get(owner, NONE)
