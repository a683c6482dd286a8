"""The context of transactions, of the engine and of actions by people and programs: who acts, and what they may do."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from wakeful.kernel.kinds import Kinds
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.kernel.rules.parking import FILE, Unsettled, serves
from wakeful.store.interface import Transaction
from wakeful.store.owners import Owned
from wakeful.store.records import JobDef

PayloadCheck = Callable[[Transaction, str, str, JobDef | None], None]
"""Raises when a payload (of this kind, as JSON text, in place of this job's, if any) says what it may not."""


class Rights(NamedTuple):
    """What a caller may do."""

    caller: str
    owned: Owned | None = None  # sees and changes only these jobs
    admin_kinds: bool = False  # may write jobs of kinds that are for admins, such as commands
    priority: bool = False  # may write jobs that start before others
    min_interval: int | None = None  # how close together the slots of a trigger it writes may lie
    check: PayloadCheck | None = None  # what it may say to which kind of job, where that kind has an opinion
    max_jobs: int | None = None  # how many jobs its owner may have
    max_bytes: int | None = None  # how much its owner may have stored
    stored: Owned | None = None  # which jobs count for that, where it is not those it sees
    run: int | None = None  # the run that the caller is
    via: str = "api"  # from where the caller acts
    action: int | None = None  # of which its request is a part; None: an action of its own

    @property
    def owner(self) -> str | None:
        """The name of the owner whose jobs it sees and changes; None for a caller that is not limited to its own."""
        return None if self.owned is None else self.owned.owner

    def sees(self, job: JobDef) -> bool:
        """Whether the job is one that this caller sees and changes."""
        return self.owned is None or self.owned.has(job)


OWN_RIGHTS = Rights("code", admin_kinds=True, priority=True, via="code")
"""Those of the program that holds the store."""


class Context(NamedTuple):
    """Who acts and what they may do, which node it is, what it can run, and where ids and chance come from."""

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
    rights: Rights = OWN_RIGHTS  # of the caller for whom an action is
    zone: Callable[[], str] = lambda: "UTC"  # of triggers that name none

    def serves(self, key: str) -> bool:
        """Whether this node can run what is parked on `key`."""
        if self.unsettled is not None and key == FILE + self.unsettled.fleet:
            return False
        return serves(self.kinds, self.labels, key)
