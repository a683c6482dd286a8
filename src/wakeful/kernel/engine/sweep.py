"""Slow housekeeping, a bounded bite at a time: guards against lost places in lanes, alerts about jobs nobody can
run, and retention.

Every `run_once` is one transaction and returns counts. Deletes never touch an active or waiting run, a job's last run
or a run that an open one continues.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.kernel.actions.idempotency import KEPT_MS
from wakeful.kernel.cluster.membership import served_elsewhere, take_runs
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.engine.lane_sizes import leave_lanes
from wakeful.kernel.engine.recovery import requeue_waiting
from wakeful.kernel.engine.stretches import keep_slots
from wakeful.kernel.parking import HANDLER, PLACE, is_lane, labels_of

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store, Transaction

SWEEP_MS = 60_000
NO_HANDLER_GRACE_MS = 60_000
OLD_TRANSACTION, OLD_TRANSACTION_MS = "old_transaction", 15 * 60_000
CHUNK = 200
LOOK_AT = 5_000  # jobs in one sweep, to find those that may be forgotten
SOON_MS = 1_000


class Retention(NamedTuple):
    """How long history is kept."""

    days: int = 30
    runs_per_job: int = 1000
    slot_days: int = 365  # how long it stays known which slots were run, once their runs are gone
    check_every: int = 100  # a job's history is counted once per so many of its runs


class DomainRows(NamedTuple):
    """What domains store beside jobs and runs, and how it goes."""

    job_tables: tuple[str, ...] = ()  # rows go with their job
    pruners: tuple[Callable[[Transaction, int, int], int], ...] = ()  # each deletes some rows older than a moment


NO_ROWS = DomainRows()


class Cursors(NamedTuple):
    """Where pruning goes on; 0 when a round is complete."""

    runs: int = 0
    jobs: int = 0


class Swept(NamedTuple):
    """What one sweep did; `deleted` are runs, whose log files go too."""

    deleted: list[int]
    cursors: Cursors


def guard(tx: Transaction, context: Context) -> int:
    """Offer each lane with a line once more, and alert about jobs that nobody can run; how many were put back.

    Where nodes share the store, also take over what one that left in good order could not end.
    """
    unparked = 0
    if not tx.exclusive:
        unparked = take_runs(tx, context, tx.runs.orphans())
        _tell_old_transaction(tx, context)
    for key, count in tx.jobs.parked_counts().items():
        if is_lane(key):
            unparked += tx.jobs.requeue_parked(key, tx.now, 1)
        elif context.serves(key):
            unparked += requeue_waiting(tx, key, count)
        elif tx.exclusive or not served_elsewhere(tx, key):
            _alert_unserved(tx, context, key)
    return unparked


def _tell_old_transaction(tx: Transaction, context: Context) -> None:
    found = tx.journal.oldest_transaction()
    if found is None or found.age_ms < OLD_TRANSACTION_MS:
        close_alert(tx, OLD_TRANSACTION, "database")
        return
    who = f"process {found.pid}, {found.name or 'unnamed'}" if found.pid is not None else f"prepared as {found.name}"
    message = (
        f"A transaction of {found.user} has been open for {found.age_ms // 60_000} minutes ({who}): until it ends, "
        "PostgreSQL cannot clean up and the database grows."
    )
    open_alert(tx, context, OLD_TRANSACTION, "database", message)


def _alert_unserved(tx: Transaction, context: Context, key: str) -> None:
    kind = "no_handler" if key.startswith(HANDLER) else "no_node"
    wanted = ", ".join(labels_of(key)) if key.startswith(PLACE) else key.removeprefix(HANDLER)
    why = f"nobody runs jobs of kind {wanted}" if kind == "no_handler" else f"no running node is labelled {wanted}"
    for job, state in tx.jobs.parked_on(key, tx.now - NO_HANDLER_GRACE_MS, CHUNK):
        message = f"{job.name} has been due since its time came, but {why}"
        open_alert(tx, context, kind, state.job_id, message, job_id=state.job_id)


def prune(tx: Transaction, keep: Retention, cursors: Cursors, crowded: set[int], rows: DomainRows = NO_ROWS) -> Swept:
    """Delete a chunk of what is older or more than is kept."""
    before = tx.now - keep.days * 86_400_000
    doomed, runs_cursor = tx.runs.older(ids.first_id_at(before), cursors.runs, CHUNK)
    for job_id in sorted(crowded):
        doomed += tx.runs.beyond(job_id, keep.runs_per_job, CHUNK)
    deleted = sorted({run.id for run in doomed})
    keep_slots(tx, doomed)
    tx.runs.delete(deleted)
    tx.stretches.prune(tx.now - keep.slot_days * 86_400_000, CHUNK)
    tx.journal.prune_events(before, CHUNK)
    tx.access.prune_answers(tx.now - KEPT_MS)
    gone, jobs_cursor = tx.jobs.finished_once(before, cursors.jobs, LOOK_AT, CHUNK)
    for job_id in gone:
        tx.runs.prune_job(job_id, CHUNK)
    tx.jobs.forget(gone, rows.job_tables)
    for pruner in rows.pruners:
        pruner(tx, before, CHUNK)
    leave_lanes(tx, gone)
    return Swept(deleted, Cursors(runs_cursor, jobs_cursor))


class Housekeeping:
    """When the engine sweeps, and where it has got to."""

    def __init__(self, store: Store, clock: Clock, retention: Retention) -> None:
        self._store = store
        self._clock = clock
        self._retention = retention
        self._next = 0
        self._cursors = Cursors()
        self._crowded: set[int] = set()
        self.rows = DomainRows()
        self.on_deleted: Callable[[list[int]], None] = lambda _: None

    def wait(self, ms: int = SWEEP_MS) -> None:
        """Sweep again after that long."""
        self._next = self._clock.boot() + ms

    def due(self) -> bool:
        return self._clock.boot() >= self._next

    def counted(self, job_id: int, runs: int) -> None:
        """A job has run so many times; every so often its history is looked through."""
        if runs % self._retention.check_every == 0:
            self._crowded.add(job_id)

    async def sweep(self, context: Context, *, quiet: bool) -> bool:
        """One bite of everything; True when jobs were put back. Deleting waits for a `quiet` moment."""
        self.wait()

        def work(tx: Transaction) -> int:
            tx.journal.set_meta({"alive_at": tx.now})
            return guard(tx, context)

        unparked = await self._store.write(work)
        if quiet:
            await self._prune()
        return unparked > 0

    async def _prune(self) -> None:
        crowded, self._crowded = self._crowded, set()
        cursors = self._cursors
        swept = await self._store.write(lambda tx: prune(tx, self._retention, cursors, crowded, self.rows))
        self._cursors = swept.cursors
        if swept.deleted:
            self.on_deleted(swept.deleted)
            self._crowded |= crowded
            self.wait(SOON_MS)  # more of the same: soon, but not at once
