"""Figures as monitoring systems take them: a name, what it means, and values by labels."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

Labels = tuple[str, ...]
"""The values of the labels of a measure, in their order."""


class Histogram:
    """How many values were no larger than each of some bounds, and their sum."""

    __slots__ = ("bounds", "counts", "sum")

    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds = tuple(bounds)
        self.counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        """How many values there were."""
        return sum(self.counts)

    def cumulative(self) -> list[tuple[str, int]]:
        """(bound, how many values were at most that), up to infinity."""
        found, so_far = [], 0
        for bound, count in zip((*map(repr, map(float, self.bounds)), "+Inf"), self.counts, strict=True):
            so_far += count
            found.append((bound, so_far))
        return found


Values = Mapping[Labels, "float | Histogram"]


class Measure(NamedTuple):
    """One figure, by labels. A counter's name ends with `_total`; it only grows while the process lives."""

    name: str
    help: str
    labels: tuple[str, ...] = ()
    values: Values = MappingProxyType({})
    counter: bool = False


class RunCost(NamedTuple):
    """What a transaction counts as the cost of a run, for those who sum it up."""

    agent: str
    cost: float


def single(name: str, meaning: str, value: float | Histogram) -> Measure:
    """A measure without labels."""
    return Measure(name, meaning, (), {(): value})
