"""The settings of an engine."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from wakeful.errors import StoreGone
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.kernel.rules.policy import MIN_INTERVAL_MS

BATCH = 256  # claimed in one turn: 512 is no faster in a file, and holds the loop and other writers twice as long
SWEEP_MS = 60_000
DAY_MS = 86_400_000
SHARED_BATCH = 512  # a turn on a server waits for a dozen answers, and no other writer waits for it


class Retention(NamedTuple):
    """How long history is kept."""

    days: int = 30
    runs_per_job: int = 1000
    slot_days: int = 365  # how long it stays known which slots were run, once their runs are gone
    check_every: int = 100  # a job's history is counted once per so many of its runs
    events: int = 50_000  # groups of events, each of one commit
    records: int = 10_000  # of each other kind: messages that are over, actions, events and actions of workflows
    log_days: int | None = None  # how long files of output are kept; None: as long as their runs
    message_days: int | None = None  # how long messages that are over are kept; None: as long as runs


class Tuning(NamedTuple):
    """Times and sizes with good defaults; tests choose others."""

    lease: LeaseTimes = LeaseTimes()
    sweep_ms: int = SWEEP_MS  # between two rounds of housekeeping
    longest_sleep_s: float = 60.0  # between two looks at the clock and at what is due
    poll_ms: int = 500  # between two looks for what other processes wrote
    max_active: int = 1024  # runs in this process at once
    batch: int | None = None  # claimed in one turn; None: what suits the store

    def batch_on(self, *, exclusive: bool) -> int:
        """How many are claimed in one turn on a store that this process has to itself, or shares."""
        if self.batch is not None:
            return self.batch
        return BATCH if exclusive else SHARED_BATCH


class EngineConfig(NamedTuple):
    """Who the engine is, what bounds it, and how it works."""

    node_name: str
    max_running: int | None = None
    labels: frozenset[str] = frozenset()
    retention: Retention = Retention()
    min_interval: int | None = MIN_INTERVAL_MS  # of bounded jobs
    virtual: bool = False  # nothing else writes to the store, and no thread may
    tuning: Tuning = Tuning()
    lost: Callable[[StoreGone], None] = lambda _: None  # called when the store is gone for good
