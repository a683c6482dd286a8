"""The context of transactions, of the engine and of actions by people and programs."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from wakeful.kernel.kinds import Kinds
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.kernel.rules.parking import FILE, Unsettled, serves


class Context(NamedTuple):
    """Which node acts, what it knows and can run, and where ids and chance come from."""

    id: int  # of this incarnation of the node; 0 for who only edits
    declared: Kinds
    kinds: frozenset[str]  # those this process has a handler for
    max_running: int | None
    new_id: Callable[[], int]
    rng: random.Random
    only: int | None = None  # claim nothing but this job
    labels: frozenset[str] = frozenset()
    min_interval: int | None = None  # how close two slots of a bounded job may lie
    clock_moved: Callable[[], bool] = lambda: False  # whether the clock was set and deadlines were not yet
    lease: LeaseTimes = LeaseTimes()
    watching_since: Callable[[], int] = lambda: 0  # since when this process has been awake and at work
    unsettled: Unsettled | None = None  # the file of this node, where it could not be applied

    def serves(self, key: str) -> bool:
        """Whether this node can run what is parked on `key`."""
        if self.unsettled is not None and key == FILE + self.unsettled.fleet:
            return False
        return serves(self.kinds, self.labels, key)
