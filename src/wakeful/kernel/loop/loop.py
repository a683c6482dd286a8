"""The engine: sleep until something is due, take a turn, start what was claimed.

One loop, one transaction per turn, nothing that costs per stored job. While a turn is being committed, the handlers
of the one before run; what they end with is settled by the next. An error is logged and the loop continues.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.counting import counted
from wakeful.errors import StoreError
from wakeful.kernel.cluster.heartbeat import NodeLease
from wakeful.kernel.cluster.membership import join, own_details
from wakeful.kernel.context import Context
from wakeful.kernel.engine.admission import DrainWatch
from wakeful.kernel.engine.lines import Claimed
from wakeful.kernel.engine.sleeps import note_sleep
from wakeful.kernel.engine.stretches import OutageWatch
from wakeful.kernel.engine.turn import FinishedRun, TurnResult
from wakeful.kernel.loop.clock_watch import ClockWatch, way
from wakeful.kernel.loop.config import EngineConfig
from wakeful.kernel.loop.deadlines import Deadlines
from wakeful.kernel.loop.handlers import Active, Drive, Threads, drive
from wakeful.kernel.loop.loop_state import (
    Counters,
    LoopState,
    OtherProcesses,
    Sleeper,
    note_recovery,
    note_trouble,
    release_unknown,
)
from wakeful.kernel.loop.run_turn import run_turn
from wakeful.kernel.loop.sweep import Housekeeping
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import MAX_OUTPUT, Result, from_exception, shortened

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.interface import Store
    from wakeful.store.records import RunRow

log = logging.getLogger("wakeful.engine")

CUT_OFF = Result("cancelled", error="cut off by shutdown", interrupted=True)
RETRY_S = 1.0
ASLEEP = 2  # no loop that is awake takes so many times its longest sleep from one look to the next
#: The turn for an alarm is handed to the store this much early, and waits there for the exact moment: timers of the
#: event loop are a millisecond coarse, and the hand-over takes its time too.
LEAD_MS = 2


class Engine:
    """Runs due jobs. `start` and `stop` belong to its owner; `wake` may be called at any time on its loop."""

    def __init__(self, store: Store, clock: Clock, context: Context, config: EngineConfig) -> None:
        self._store = store
        self._clock = clock
        self._kinds, self._config = context.declared, config
        self.clock_watch = ClockWatch(clock)
        self.context = context._replace(clock_moved=self.clock_watch.moved, watching_since=lambda: self._watching_since)
        self.counters = Counters()
        self.active: dict[int, Active] = {}
        self.housekeeping = Housekeeping(store, clock, config.retention, config.tuning.sweep_ms)
        self.shorten: Callable[[str, Result], Result] = lambda _, result: shortened(result, None)
        self._ended: list[FinishedRun] = []
        self._deadlines = Deadlines(clock, self.active)
        self._threads = Threads(inline=config.virtual)
        self._outages = OutageWatch(clock)
        self._refused = DrainWatch(clock)
        self.node_lease = NodeLease(store, clock, config.tuning.lease, virtual=config.virtual)
        self._alarm: int | None = None
        self._longest_s = config.tuning.longest_sleep_s
        self._batch = config.tuning.batch_on(exclusive=store.exclusive)
        self._lead_ms = 0 if config.virtual else LEAD_MS
        self._state = LoopState()
        self._sleeper = Sleeper()
        self._others = OtherProcesses(store, clock, config)
        self._idle = asyncio.Event()
        self._hurried = False
        self._task: asyncio.Task[None] | None = None
        self._watching_since = 0
        self._later: list[FinishedRun] = []  # what the store did not take; tried again with the next sweep
        self.drive: Drive = drive  # how a handler is run; traces put theirs in its place
        self._behind = False  # whether the last turn left due jobs for the next

    @property
    def trouble(self) -> str | None:
        """What is wrong with the store right now."""
        return self._state.trouble

    # -- life ---------------------------------------------------------------------------------------------------------

    def begin(self, node_id: int) -> None:
        """Start the loop, with the store already recovered."""
        self.context = self.context._replace(id=node_id, kinds=self._kinds.handled())
        self.counters = Counters()
        self._idle, self._hurried = asyncio.Event(), False
        self._watching_since = self._clock.now()
        self.node_lease.begin(node_id, self._wake)
        self._state.begin()
        self.housekeeping.wait()
        self._task = asyncio.get_running_loop().create_task(self._loop(), name="wakeful-engine")

    def identify(self) -> Context:
        """A context that makes ids and chances for edits made alongside the loop."""
        handled = self._kinds.handled()
        return self.context if self.context.kinds == handled else self.context._replace(kinds=handled)

    def wake(self, *, recheck_store: bool = False) -> None:
        """Something changed: look again now; `recheck_store` when it may be about a run, or come from elsewhere."""
        self._state.note_change(recheck_store=recheck_store)
        self._wake()

    def handlers_changed(self) -> None:
        """A handler was registered while running: a sweep requeues the jobs that wait for it."""
        self.context = self.context._replace(kinds=self._kinds.handled())
        self.housekeeping.wait(0)
        self._wake()

    def offer_labels(self, more: frozenset[str] = frozenset(), without: frozenset[str] = frozenset()) -> None:
        """This node's labels change: a sweep requeues the jobs that wait for new ones."""
        self.context = self.context._replace(labels=(self.context.labels | more) - without)
        if self._task is not None:
            self.housekeeping.wait(0)
            self._wake()

    def stop_admitting(self) -> None:
        self._state.stop_admitting()
        self._wake()

    async def finish_turn(self) -> None:
        """Wait until no turn is under way: what it claimed is then known."""
        while self._state.turning:
            self._idle.clear()
            await self._idle.wait()

    async def wait_idle(self, seconds: float, *, but_for_threads: bool = False) -> bool:
        """Wait until nothing runs and everything is settled; False when that took too long.

        `but_for_threads`: do not wait for runs that are known not to stop.
        """
        self._wake()
        try:
            async with asyncio.timeout(seconds):
                while (
                    self._busy(but_for_threads=but_for_threads or self._hurried) or self._ended or self._state.turning
                ):
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            return False
        return True

    def _busy(self, *, but_for_threads: bool) -> bool:
        return any(
            not (but_for_threads and (active.threaded or active.reported_phase)) for active in self.active.values()
        )

    def interrupt_all(self, but: Active | None = None) -> None:
        """Cancel what still runs because we are going down; its slots are run again at the next start."""
        self._hurried = but is None  # stop waiting for threads, which cannot be stopped
        self._deadlines.cancel_all(CUT_OFF, lambda active: active is not but)
        self._idle.set()

    def interrupt_internal(self) -> None:
        """The same for what is part of the machinery, and no job of anybody."""
        self._deadlines.cancel_all(CUT_OFF, self._is_internal)

    def others_left(self) -> int:
        """How many runs have not ended, without those of the machinery."""
        return sum(not self._is_internal(active) for active in self.active.values())

    def _is_internal(self, active: Active) -> bool:
        return active.claimed.job.kind in self._kinds.hooks.internal

    async def record_left(self) -> None:
        """Record the runs that continue although they were asked to end, with an alert for each."""
        self._deadlines.note_left()
        await self._deadlines.alert_stuck(self._store, self.context)

    def release_unstarted(self) -> list[RunRow]:
        """Drop claimed runs whose handler has not been called; it will not be called."""
        back = [active for active in self.active.values() if active.release()]
        for active in back:
            del self.active[active.claimed.run.id]
            if active.task is not None:
                active.task.cancel()
        return [active.claimed.run for active in back]

    async def end(self) -> None:
        """Stop the loop at once."""
        self.node_lease.end()
        self._threads.end()
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    # -- the loop -----------------------------------------------------------------------------------------------------

    async def _loop(self) -> None:
        while True:
            try:
                if self._state.unsure:
                    known = self.active.keys() | {ended.run.id for ended in [*self._ended, *self._later]}
                    await release_unknown(self._store, self._state, self.context, known)
                await self._check()
                self._outages.fine()
                note_recovery(self._state)
            except StoreError as error:
                note_trouble(self._state, error, self._config.lost)
                await self._sleeper.sleep(RETRY_S)
                continue
            except Exception:
                log.exception("unexpected error in the engine loop; retrying")
                await self._sleeper.sleep(RETRY_S)
                continue
            delay = self._delay()
            if delay > 0:
                await self._sleeper.sleep(delay)

    async def _check(self) -> None:
        """One pass: the clock, deadlines, other nodes and processes; a turn and housekeeping if it is time for them."""
        now, last = self._clock.now(), self.counters.last_check
        asleep = now - last if last is not None and now - last > ASLEEP * 1000 * self._longest_s else 0
        if last is None or asleep:
            self._watching_since = now  # the machine slept, or the store was away: what came meanwhile was not heard
        self._watching_since = min(self._watching_since, now)  # by the clock as it is set now
        self.counters.checks, self.counters.last_check = self.counters.checks + 1, now
        stepped = await self._check_clock(asleep)
        self._deadlines.enforce()
        if await self.node_lease.tick(self.context):
            self._state.note_change()
        if self.node_lease.fenced:
            await self._rejoin()
        self._state.note_admission(admitted=self._may_admit())
        if await self._deadlines.alert_stuck(self._store, self.context):
            self._state.note_change()
        if await self._others.wrote():
            self.wake(recheck_store=True)
        if self._state.admitted and not self._behind and not stepped and self._outages.is_late(self._alarm):
            await self._outages.look(self._store, self.context)
        if self._ended or (self._state.admitted and (self._state.news or self._alarm_within(now))):
            await self._turn()
        if self._state.admitted:
            await self._keep_house()
        if self.node_lease.draining:
            await self._refused.look(self._store, self.context)
        else:
            self._refused.over()

    async def _keep_house(self) -> None:
        if self.housekeeping.due():
            self._ended, self._later = self._ended + self._later, []
            if await self.housekeeping.sweep(self.context):
                self._state.note_change()
        await self.housekeeping.prune(self.context, quiet=not self._behind)

    def _may_admit(self) -> bool:
        return self._state.admitting and self.node_lease.may_admit()

    def _alarm_within(self, now: int) -> bool:
        return self._alarm is not None and self._alarm <= now + self._lead_ms

    def _delay(self) -> float:
        """Seconds to sleep: until the next alarm or deadline, never long."""
        if self._ended or (self._state.news and self._state.admitted):
            return 0.0
        delay = self._others.delay(self._longest_s)
        look = self.node_lease.next_look()
        if look is not None:
            delay = min(delay, max(0.0, (look - self._clock.boot()) / 1000))
        if self._alarm is not None and self._state.admitted:
            full = len(self.active) >= self._config.tuning.max_active
            delay = min(delay, self._longest_s if full else self._clock.until(self._alarm) - self._lead_ms / 1000)
        bite = self.housekeeping.next_bite()
        if bite is not None and self._state.admitted:
            delay = min(delay, (bite - self._clock.boot()) / 1000)
        deadline = self._deadlines.next()
        if deadline is not None:
            delay = min(delay, (deadline - self._clock.boot()) / 1000)
        return max(0.0, delay)

    def _wake(self) -> None:
        self._sleeper.wake()

    # -- a turn -------------------------------------------------------------------------------------------------------

    async def _turn(self) -> None:
        ended, self._ended = self._ended, []
        limit = min(self._batch, self._config.tuning.max_active - len(self.active)) if self._may_admit() else 0
        # What it claims must be started or released, also when we are asked to stop meanwhile.
        recheck_store = self._state.begin_turn()
        try:
            result = await run_turn(
                self._store,
                self.context,
                ended,
                limit,
                recheck_store=recheck_store,
                idle=not self.active,
                not_before=self._alarm,
            )
        except BaseException:
            self._ended = ended + self._ended  # results are kept until they are on disk
            self._state.note_change(recheck_store=recheck_store)
            raise
        finally:
            self._state.end_turn()
            self._idle.set()
        self._behind = 0 < limit <= len(result.claimed)
        self.housekeeping.ended(item.job for item in ended)
        self._apply(result)
        self.node_lease.draining = self.node_lease.draining or result.draining
        if result.fenced:
            await self._rejoin()

    def _apply(self, result: TurnResult) -> None:
        self._alarm = result.next_alarm
        for run_id in result.lost:
            self.counters.lost += 1
            log.warning("%s was already settled by another node; its result is discarded", ids.run_text(run_id))
        self._later += result.unsettled
        if result.claimed and not self.node_lease.holds():
            # The answer came so late that others may have taken over from us: nothing of it may be started.
            log.warning("the lease ran out during a claim; not starting %s", counted(len(result.claimed), "run"))
            self._state.lose_claims()
        else:
            for claimed in result.claimed:
                self.start_run(claimed)
        for run_id in result.to_cancel:
            active = self.active.get(run_id)
            if active is not None:
                self._deadlines.cancel(active, Result("cancelled", error="cancelled"))

    def start_run(self, claimed: Claimed, spent_ms: int = 0) -> None:
        """Call the handler of a run that is on record as active; `spent_ms` of its time limit are used already."""
        run, options = claimed.run, from_text(claimed.job.options)
        deadline = self._clock.boot() + options.timeout - spent_ms
        active = Active(claimed, self._config.node_name, deadline)
        self.active[run.id] = active
        self._deadlines.add(active)
        active.on_limit = lambda limit_ms: self._limit(active, limit_ms)
        self.counters.starts += 1
        self.housekeeping.started(run, claimed.state.slot_runs, own=options.retention is not None)
        active.task = asyncio.get_running_loop().create_task(self._drive(active))

    def _limit(self, active: Active, limit_ms: int) -> None:
        self._deadlines.limit(active, limit_ms)
        self._wake()

    async def _drive(self, active: Active) -> None:
        handler, awaits = self._kinds.handler(active.claimed.run.kind)
        try:
            result = await self.drive(active, handler, self._threads, awaits=awaits)
            if result.output is not None and len(result.output) > MAX_OUTPUT:
                result = self.shorten(active.run.id, result)
        except Exception as error:  # a fault of ours: without an end, its job would count as running for ever
            log.exception("the result of %s cannot be kept", active.run.id)
            result = from_exception(error)
        claimed = active.claimed
        if self.active.pop(claimed.run.id, None) is None:
            return  # returned or lost meanwhile
        run = claimed.run if active.reported_phase is None else claimed.run._replace(phase=active.reported_phase)
        self._ended.append(FinishedRun(claimed.job, claimed.state.revision, run, result))
        self._wake()

    # -- other nodes --------------------------------------------------------------------------------------------------

    async def _rejoin(self) -> None:
        """Other nodes took over our runs. Drop them, and come back as a new incarnation."""
        log.warning("this node lost its lease; other nodes took over its %s", counted(len(self.active), "run"))
        self._deadlines.cancel_all(Result("cancelled", error="the node lost its lease"))
        asked_at = self._clock.boot()
        node_id, details = self.context.new_id(), own_details(self.identify())
        context = self.context._replace(id=node_id)
        await self._store.write(lambda tx: join(tx, context, self._config.node_name, details))
        self.context = context
        self.node_lease.came_back(node_id, asked_at)
        self._state.note_change()

    # -- the clock and housekeeping -----------------------------------------------------------------------------------

    async def _check_clock(self, asleep: int) -> bool:
        """Whether the clock was set; if not, and it went on for long without a look, the machine slept."""
        step, now = await self.clock_watch.record(self._store, self.context), self._clock.now()
        if asleep and not step:
            await self._store.write(lambda tx: note_sleep(tx, now - asleep, now))
        if step:
            self.counters.clock_steps += 1
            log.warning("the system clock was set %s", way(step))
            self._state.note_change()
        await self.clock_watch.carry_on(self._store, self.context)
        return bool(step)
