"""Slow housekeeping, a bounded bite at a time: guards against lost places in lanes, alerts about jobs that no
node can run, and retention.

Every `run_once` is one transaction and returns counts. Deletes never touch an active or waiting run, a job's last run
or a run that an open one continues.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.kernel.actions.idempotency import KEPT_MS
from wakeful.kernel.cluster.membership import own_details, served_elsewhere, take_runs
from wakeful.kernel.context import Context
from wakeful.kernel.engine.alerts import close_alert, close_forgotten, end_flapping, open_alert, send_snoozed
from wakeful.kernel.engine.lines import TOGETHER, leave_lanes, requeue_released, requeue_unreserved, requeue_waiting
from wakeful.kernel.engine.stretches import keep_slots, watch_missed
from wakeful.kernel.loop.clock_watch import is_steady
from wakeful.kernel.loop.config import DAY_MS, SWEEP_MS, Retention
from wakeful.kernel.rules.lately import PRUNED, with_pruned
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.parking import FILE, HANDLER, HOLD, PLACE, is_lane, labels_of
from wakeful.kernel.rules.pending import BY_TIME
from wakeful.kernel.rules.undoing import UNDO_MS
from wakeful.store.records import JobDef, RunRow
from wakeful.store.stretches import KEPT_FROM
from wakeful.store.troubles import Troubles
from wakeful.triggers.moments import spoken

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store, Transaction

AUDIT_MS = 3_600_000
MORE_MS = 1_000  # before the next sweep, where this one could not put all back
NO_HANDLER_GRACE_MS = 60_000
OLD_TRANSACTION, OLD_TRANSACTION_MS = "old_transaction", 15 * 60_000
NOT_LISTENING = "not_listening"
CHUNK = 200
LOOK_AT = 1_000  # jobs in one batch, to find those that may be pruned
JOBS_AT_ONCE = 10  # in one batch, to find those that have more runs than are kept
SMALLEST_BITE, FIRST_BITE, LARGEST_BITE = 50, 200, 2_000  # runs deleted in one transaction
BITE_US = 5_000  # what takes longer than this makes others wait: the next bite is smaller
REST = 4  # times what a bite took, before the next one
SHORTEST_REST_MS = 20
HELD_UP_MS = 200
PATIENCE_MS = 10_000  # after this long without quiet, pruning continues all the same


class DomainRows(NamedTuple):
    """What domains store besides jobs and runs, and how it goes."""

    job_tables: tuple[str, ...] = ()  # rows go with their job
    pruners: tuple[Callable[[Transaction, int, int], int], ...] = ()  # each deletes some rows older than a moment
    messages: Callable[[Transaction, int, int], int] | None = (
        None  # the same for messages, which have a time of their own
    )
    thinners: tuple[Callable[[Transaction, int, int], int], ...] = ()  # each deletes some that are more than so many
    runs_pruned: tuple[Callable[[Transaction, Sequence[int]], None], ...] = ()  # each gets the ids of runs that go


NO_ROWS = DomainRows()


class Cursors(NamedTuple):
    """Where a round of pruning continues, and what is finished."""

    runs: int | None = 0
    jobs: tuple[int, int] | None = (0, 0)
    records: bool = True
    crowded: bool = True


NOTHING_LEFT = Cursors(None, None, records=False, crowded=False)
ONLY_CROWDED = NOTHING_LEFT._replace(crowded=True)
OWN_RETENTION = '"retention"'  # in the options of a job that says how long its runs are kept


class Swept(NamedTuple):
    """What one bite did; `deleted` are runs, whose log files go too."""

    deleted: list[int]
    cursors: Cursors
    crowded: Sequence[int]  # jobs still to be looked at


def guard(tx: Transaction, context: Context) -> int:
    """Offer each lane with waiting jobs again, and alert about jobs that no node can run; how many were requeued.

    Where nodes share the store, also take over what one that left in good order could not end.
    """
    requeued = 0
    if not tx.exclusive:
        requeued = take_runs(tx, context, tx.runs.orphans())
        _alert_old_transaction(tx, context)
        _alert_not_listening(tx, context)
    lines = tx.jobs.parked_counts()
    watch_missed(tx, context, lines)
    send_snoozed(tx, context, CHUNK)
    end_flapping(tx, context)
    for hook in context.declared.hooks.swept:
        hook(tx, context)
    for key, count in lines.items():
        if key == HOLD:
            requeued += requeue_released(tx)
        elif is_lane(key):
            requeued += tx.jobs.requeue_parked(key, tx.now, 1)
        elif context.serves(key):
            requeued += requeue_waiting(tx, context, key, count)
        elif key.startswith(FILE):
            continue  # its own alert is open
        elif tx.exclusive or not served_elsewhere(tx, key):
            _alert_unserved(tx, context, key)
    requeued += requeue_unreserved(tx)
    tx.lanes.tidy()  # last: no transaction waits for a row while it holds the lanes
    return requeued


def _alert_old_transaction(tx: Transaction, context: Context) -> None:
    found = tx.facts.oldest_transaction()
    if found is None or found.age_ms < OLD_TRANSACTION_MS:
        close_alert(tx, context, OLD_TRANSACTION, "database")
        return
    who = f"process {found.pid}, {found.name or 'unnamed'}" if found.pid is not None else f"prepared as {found.name}"
    message = (
        f"A transaction of {found.user} has been open for {counted(found.age_ms // 60_000, 'minute')} ({who}): "
        "until it ends, PostgreSQL cannot clean up and the database grows."
    )
    open_alert(tx, context, OLD_TRANSACTION, "database", message)


def _alert_not_listening(tx: Transaction, context: Context) -> None:
    """Each node speaks for itself, and for those that are gone."""
    in_vain, names = tx.facts.listens_in_vain(), {row.id: row.name for row in tx.members.alive()}
    own = names.get(context.id)
    if in_vain and own is not None:
        why = f"Changes by other processes reach node {own} within a second, not at once: its log says why."
        open_alert(tx, context, NOT_LISTENING, own, why)
    for alert in tx.alerts.all_open():
        subject = alert.key.partition(":")[2]
        is_over = (subject == own and not in_vain) or subject not in names.values()
        if alert.kind == NOT_LISTENING and is_over:
            close_alert(tx, context, NOT_LISTENING, subject)


def _alert_unserved(tx: Transaction, context: Context, key: str) -> None:
    kind = "no_handler" if key.startswith(HANDLER) else "no_node"
    wanted = ", ".join(labels_of(key)) if key.startswith(PLACE) else key.removeprefix(HANDLER)
    why = f"no running node handles kind {wanted}" if kind == "no_handler" else f"no running node is labelled {wanted}"
    for job, state in tx.jobs.parked_on(key, tx.now - NO_HANDLER_GRACE_MS, CHUNK):
        message = f"{job.name} has been due since {spoken(state.ready_at or tx.now, exact=True)}, but {why}"
        open_alert(tx, context, kind, state.job_id, message, job_id=state.job_id)


def prune(
    tx: Transaction,
    context: Context,
    keep: Retention,
    cursors: Cursors,
    crowded: Sequence[int],
    *,
    size: int,
    rows: DomainRows = NO_ROWS,
) -> Swept:
    """Delete about `size` runs that are older or more than is kept, and as much of other records.

    While the clock may be wrong, nothing is old: a clock that is set right again brings nothing back.
    """
    now = tx.now if is_steady(tx) and not context.clock_moved() else 0
    before = max(0, now - keep.days * DAY_MS)
    doomed, runs_cursor = list[RunRow](), cursors.runs
    if runs_cursor is not None:
        doomed, following = tx.runs.older(ids.first_id_at(before), runs_cursor, size)
        runs_cursor = following or None
        doomed = _not_kept_longer(tx, doomed, now)
    crowded = _thin_out(tx, keep, doomed, crowded, size=size, now=now)
    once = {run.id: run for run in doomed}  # some are both older and more
    deleted = sorted(once)
    keep_slots(tx, list(once.values()))
    _keep_counts(tx, list(once.values()))
    tx.runs.delete(deleted)
    for hook in rows.runs_pruned if deleted else ():
        hook(tx, deleted)
    records = cursors.records and _prune_records(tx, keep, rows, now, size)
    jobs_cursor = cursors.jobs
    if jobs_cursor is not None and len(deleted) < size:
        gone, jobs_cursor = _forget_jobs(tx, context, rows, before, cursor=jobs_cursor, size=size - len(deleted))
        deleted += gone
    return Swept(deleted, Cursors(runs_cursor, jobs_cursor, records=records), crowded)


def _keep_counts(tx: Transaction, runs: Sequence[RunRow]) -> None:
    lately = with_pruned(tx.facts.get(PRUNED), runs, tx.now) if runs else None
    if lately is not None:
        tx.facts.put({PRUNED: lately})


def _not_kept_longer(tx: Transaction, doomed: list[RunRow], now: int) -> list[RunRow]:
    """Those whose job has no longer time of its own."""
    own = _own_retention(tx, {run.job_id for run in doomed})
    return [
        run
        for run in doomed
        if (kept := own.get(run.job_id)) is None or kept[0] is None or run.id < ids.first_id_at(max(0, now - kept[0]))
    ]


def _own_retention(tx: Transaction, job_ids: Collection[int]) -> dict[int, tuple[int | None, int | None]]:
    """What jobs say about their runs, of those that do: how old they may become, and how many there may be."""
    found = {job_id: from_text(job.options).retention for job_id, job in tx.jobs.definitions(sorted(job_ids)).items()}
    return {job_id: kept for job_id, kept in found.items() if kept is not None}


def _thin_out(
    tx: Transaction, keep: Retention, doomed: list[RunRow], crowded: Sequence[int], *, size: int, now: int
) -> Sequence[int]:
    """Add to `doomed` what jobs have beyond their number or their age; the jobs that are still to be looked at."""
    own = _own_retention(tx, crowded[:JOBS_AT_ONCE])
    for number, job_id in enumerate(crowded[:JOBS_AT_ONCE]):
        if len(doomed) >= size:
            return crowded[max(0, number - 1) :]  # the one before may have more
        age, runs = own.get(job_id, (None, None))
        if age is not None:
            doomed += tx.runs.older_of(job_id, ids.first_id_at(max(0, now - age)), size - len(doomed))
        most = keep.runs_per_job if runs is None else runs - 1  # the last run, which always stays, is one of its own
        doomed += tx.runs.beyond(job_id, most, max(0, size - len(doomed)))
    through = min(JOBS_AT_ONCE, len(crowded))
    return crowded[max(0, through - 1) if len(doomed) >= size else through :]  # the last may have more


def _prune_records(tx: Transaction, keep: Retention, rows: DomainRows, now: int, size: int) -> bool:
    """Whether there is more of it."""
    before, oldest = max(0, now - keep.days * DAY_MS), max(0, now - keep.slot_days * DAY_MS)
    stretches = tx.stretches.prune(oldest, size)
    if stretches:
        tx.facts.put({KEPT_FROM: oldest})
    events = tx.events.prune(before, size, keep.events)
    # What a person may still take back is kept, however many there are.
    beyond = min(tx.tables.beyond_newest("actions", "id", keep.records), ids.first_id_at(tx.now - UNDO_MS))
    actions = tx.actions.prune(max(ids.first_id_at(before), beyond), size)
    beyond = tx.tables.beyond_newest("alerts", "id", keep.records)
    alerts = tx.of(Troubles).prune_alerts(max(ids.first_id_at(before), beyond), size)
    tx.access.prune_answers(max(0, now - KEPT_MS))
    tx.access.prune_sessions(now)
    others = [pruner(tx, before, size) for pruner in rows.pruners]
    if rows.messages is not None:
        days = keep.days if keep.message_days is None else keep.message_days
        others.append(rows.messages(tx, max(0, now - days * DAY_MS), size))
    others += [thinner(tx, keep.records, size) for thinner in rows.thinners]
    return max(stretches, events, actions, alerts, *others) >= size


def _forget_jobs(
    tx: Transaction, context: Context, rows: DomainRows, before: int, *, cursor: tuple[int, int], size: int
) -> tuple[list[int], tuple[int, int] | None]:
    """Delete jobs that are over, with their last runs: those runs, and where to continue."""
    gone, following = tx.jobs.finished(before, cursor, LOOK_AT, size)
    deleted: list[int] = []
    for number, job_id in enumerate(gone):
        left = size - len(deleted)
        found = tx.runs.prune_job(job_id, left)
        deleted += found
        if len(found) == left:  # it may have more
            _forget(tx, context, rows, gone[:number])
            return deleted, cursor
    _forget(tx, context, rows, gone)
    return deleted, following


def _forget(tx: Transaction, context: Context, rows: DomainRows, job_ids: Sequence[int]) -> None:
    close_forgotten(tx, context, job_ids)
    tx.jobs.forget(job_ids, rows.job_tables)
    leave_lanes(tx, job_ids)


class Housekeeping:
    """When the engine sweeps, and where it has got to.

    Pruning is done in bites, each a transaction that holds the store for a few milliseconds, with a rest after it:
    large and soon while there is much to delete, and none while there is nothing.
    """

    def __init__(self, store: Store, clock: Clock, retention: Retention, sweep_ms: int = SWEEP_MS) -> None:
        self._store = store
        self._clock = clock
        self._retention = retention
        self._sweep_ms = sweep_ms
        self._next = 0
        self._cursors = NOTHING_LEFT
        self._crowded: dict[int, None] = {}  # a set that keeps its order
        self._next_bite = 0
        self._described: tuple[int, frozenset[str], frozenset[str]] | None = None  # as others read it
        self._held_up_since: int | None = None
        self._size = FIRST_BITE
        self.rows = DomainRows()
        self.on_deleted: Callable[[list[int]], None] = lambda _: None
        self.trim: Callable[[int, set[int]], None] = lambda *_: None  # removes output files below an id, but for some
        self.audit: Callable[[], Awaitable[None]] | None = None  # looks whether every slot has a record
        self._next_audit = clock.boot() + AUDIT_MS

    def wait(self, ms: int | None = None) -> None:
        """Sweep again after that long, or the usual time."""
        self._next = self._clock.boot() + (ms if ms is not None else self._sweep_ms)

    def due(self) -> bool:
        return self._clock.boot() >= self._next

    def next_bite(self) -> int | None:
        """When, by boot time, there is more to prune; None when nothing is left before the next sweep."""
        return None if self._cursors == NOTHING_LEFT else self._next_bite

    def started(self, run: RunRow, slot_runs: int, *, own: bool = False) -> None:
        """A job's history is looked through once per so many runs: by time they are counted, of others one in so many.

        `slot_runs`: how often the job has run by time. `own`: the job says how long its runs are kept: each time.
        """
        number = slot_runs if run.reason in BY_TIME else run.id  # the lower digits of an id are random
        if own or number % self._retention.check_every == 0:
            self._crowded[run.job_id] = None

    def ended(self, jobs: Iterable[JobDef]) -> None:
        """Runs of these jobs have ended: those that say how long theirs are kept are looked through at once."""
        own = [job.id for job in jobs if OWN_RETENTION in job.options]
        if own:
            self._crowded.update(dict.fromkeys(own))
            self._cursors = self._cursors._replace(crowded=True)

    async def ended_alone(self, context: Context, job: JobDef) -> None:
        """The same in a process that runs this job alone, and ends after it."""
        self.ended([job])
        if self._crowded:
            await self._bite(context)

    async def sweep(self, context: Context) -> bool:
        """Offer the lanes again, alert about jobs that wait for too long, and begin to prune.

        True when that made something due: jobs were requeued, or messages about what it found wait to be sent.
        """
        self.wait()
        about = (context.id, context.kinds, context.labels)

        def work(tx: Transaction) -> tuple[int, bool]:
            tx.facts.put({"alive_at": tx.now})
            if about != self._described:
                tx.members.describe(context.id, own_details(context))
            return guard(tx, context), tx.events.any

        requeued, announced = await self._store.write(work)
        self._described = about
        if requeued >= TOGETHER:  # there may be more
            self.wait(MORE_MS)
        if self._cursors in (NOTHING_LEFT, ONLY_CROWDED):
            self._cursors, self._next_bite = Cursors(), 0
        if self.audit is not None and self._clock.boot() >= self._next_audit:
            self._next_audit = self._clock.boot() + AUDIT_MS
            await self.audit()
            if self._retention.log_days is not None and not context.clock_moved():
                before = ids.first_id_at(max(0, self._clock.now() - self._retention.log_days * DAY_MS))
                self.trim(before, await self._store.read(lambda tx: tx.runs.open_below(before)))
        return requeued > 0 or announced

    async def prune(self, context: Context, *, quiet: bool) -> None:
        """Prune one batch, if it is time for one. Without `quiet` it waits, but not forever."""
        now = self._clock.boot()
        if self._cursors == NOTHING_LEFT or now < self._next_bite:
            return
        if not quiet:
            if self._held_up_since is None:
                self._held_up_since = now
            if now - self._held_up_since < PATIENCE_MS:
                self._next_bite = now + HELD_UP_MS
                return
        self._held_up_since = None
        await self._bite(context)

    async def _bite(self, context: Context) -> None:
        cursors, crowded, size = self._cursors, list(self._crowded), self._size

        def work(tx: Transaction) -> tuple[Swept, int]:
            began = self._clock.boot_us()
            return prune(
                tx, context, self._retention, cursors, crowded, size=size, rows=self.rows
            ), self._clock.boot_us() - began

        swept, took = await self._store.write(work)
        for job_id in crowded[: len(crowded) - len(swept.crowded)]:
            self._crowded.pop(job_id, None)
        self._cursors = swept.cursors._replace(crowded=bool(self._crowded))
        self._size = min(LARGEST_BITE, 2 * size) if took < BITE_US else max(SMALLEST_BITE, size // 2)
        self._next_bite = self._clock.boot() + max(SHORTEST_REST_MS, REST * took // 1000)
        if swept.deleted:
            self.on_deleted(swept.deleted)
