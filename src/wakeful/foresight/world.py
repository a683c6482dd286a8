"""The simulated server: the real scheduler on a copy in memory, in virtual time, with handlers that only wait."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from wakeful import clock as clocks
from wakeful.domains import domains
from wakeful.foresight.history import NONE, History
from wakeful.foresight.snapshot import read_spenders
from wakeful.kernel.engine.lines import Claimed
from wakeful.kernel.kinds import Kind, Kinds
from wakeful.kernel.loop.config import Retention, Tuning
from wakeful.kernel.rules.outcome import Failed, Noop, Output
from wakeful.kernel.rules.policy import next_start, trigger_of, trigger_text
from wakeful.scheduler import Scheduler
from wakeful.store.records import JobState
from wakeful.store.tables import known_tables
from wakeful.triggers import Every

if TYPE_CHECKING:
    from wakeful.foresight.question import Setup, SimulationRequest
    from wakeful.foresight.recording import Recorder
    from wakeful.foresight.snapshot import Snapshot
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Refused
    from wakeful.kernel.model.run import Run
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow
    from wakeful.virtual_time import VirtualClock

#: As little history as the engine needs, so that the memory of a long simulation stays the same.
KEPT = Retention(days=2, runs_per_job=20, check_every=20, events=100, records=100)
NODE_RUNS = Tuning().max_active
AT_ONCE = 500
SWEEP_MS = (
    600_000  # what only a sweep finds is found so much later at most; each minute, it would take most of the time
)

Prepare = Callable[[Scheduler], Awaitable[Sequence[str] | None]]
"""Changes the copy before the simulation; the names of jobs that have no time any more when it begins."""


class World(Scheduler):
    """A scheduler whose kinds keep their rules and hooks, whose handlers wait, and that can lose its power."""

    def __init__(
        self, clock: VirtualClock, snapshot: Snapshot, question: SimulationRequest, setup: Setup, recorder: Recorder
    ) -> None:
        self._recorder = recorder
        self._snapshot = snapshot
        self._question = question
        self._history_of = snapshot.histories.of
        self._owners = snapshot.owners
        self._queue_of, self._queues, self._limits = snapshot.queue_of, dict(snapshot.queues), snapshot.limits
        self.over: tuple[str, ...] = ()  # jobs of a file whose times are over when the simulation begins
        super().__init__(
            "sqlite://",
            clock=clock,
            node="simulation",
            timezone=setup.zone,
            max_running=setup.max_running,
            min_interval=setup.min_interval,
            labels=setup.labels | snapshot.labels,
            job_defaults=setup.job_defaults,
            seed=question.seed,
            retention=KEPT,
            tuning=Tuning(max_active=NODE_RUNS * question.nodes, sweep_ms=SWEEP_MS),
            kinds=_simulated_kinds(recorder, snapshot),
        )
        for kind in self._kinds.names():
            self.on_job_due(kind, self._stand_in)

    def _known_kinds(self, own: Iterable[Kind]) -> Kinds:
        """Without the hooks of domains that send messages."""
        return Kinds(own, joined=[domain.joined for domain in domains() if domain.joined is not None])

    # -- handlers -----------------------------------------------------------------------------------------------------

    async def _stand_in(self, run: Run) -> Any:
        """Take as long as the runs of the job usually do, and use as much; fail as often as was asked."""
        job_id = int(run._row.job_id)  # noqa: SLF001 - the number, without reading its text form
        history = self.history_of(job_id)
        busy = self._take_item(job_id, run)
        took = self._question.assume.get(run.job, history.expected_ms)
        limit = self._limits.get(job_id, took)
        await clocks.sleep(max(0, min(took, limit) - self._spent(run._row)) / 1000)  # noqa: SLF001
        if took > limit:
            raise Failed("it ran to the limit of its call", Output(None), "timeout")
        if not busy:
            raise Noop("nothing waits")
        output = Output(None, usage=history.usage(busy))
        if run.job in self._question.fail and chance(self._question.seed, run) < self._question.fail[run.job]:
            raise Failed("simulated failure", output)
        return output

    def _spent(self, run: RunRow) -> int:
        """How long a run has been in progress; one that continues here began before the simulation."""
        return 0 if run.started_at is None else max(0, self._clock.now() - run.started_at)

    def _take_item(self, job_id: int, run: Run) -> float:
        """How many runs of a job use anything, 0 where this one finds nothing to do.

        What waits is taken first. After that, items come as often as the job's past runs found one.
        """
        queue = self._queue_of.get(job_id)
        if queue is None:
            return 1.0
        own = self._snapshot.histories.by_job.get(job_id, NONE)
        if self._queues.get(queue, 0) > 0:
            self._queues[queue] -= 1
            return own.busy or 1.0
        return own.busy if chance(self._question.seed, run, "item") < own.busy else 0.0

    def history_of(self, job_id: int) -> History:
        """What is known about the runs of a job."""
        return self._history_of(job_id, self._owners.get(job_id))

    # -- how it begins and ends ---------------------------------------------------------------------------------------

    async def furnish(self, prepare: Prepare | None) -> None:
        """Open the store in memory, with the snapshot in it, and with what else is to be simulated."""
        await self.open()
        snapshot, now = self._snapshot, self._clock.now()
        moved = now != snapshot.at
        await self._store.write(lambda tx: _fill(tx, snapshot, moved=moved))
        self._ids.start_above(await self._store.read(lambda tx: tx.facts.highest_id()))
        if moved:
            await self._store.write(lambda tx: _place_again(tx, self._rng))
        if prepare is not None:
            self.over = tuple(await prepare(self) or ())
            spenders = await self._store.read(read_spenders)
            self._owners, self._queue_of, self._limits = spenders.owners, spenders.queue_of, spenders.limits
        await self._store.write(_switch_off_reported)
        if not moved:
            await self._adopt()

    async def _adopt(self) -> None:
        """What runs at this moment continues here."""
        running = [run for run in self._snapshot.runs if run.status == "active"]
        ids, details = [run.job_id for run in running], {one.run_id: one for one in self._snapshot.details}
        jobs, states = await self._store.read(lambda tx: (tx.jobs.definitions(ids), tx.jobs.states(ids)))
        for run in running:
            state = states.get(run.job_id)
            if state is not None and state.run_id == run.id:
                job = jobs[run.job_id]
                await self._store.write(lambda tx, job=job, run=run: self._recorder.claimed(tx, job, run))  # type: ignore[misc]
                approval = details[run.id].approval if run.id in details else None
                self._engine.start_run(Claimed(job, state, run, job.payload, approval), self._spent(run))

    async def crash(self) -> None:
        """The power is cut: nothing that runs here is heard of again."""
        running = [active.task for active in self._engine.active.values() if active.task is not None]
        self._engine.active.clear()
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        self._recorder.lost(self._clock.now())
        await self._end()
        self._engine = self._new_engine()


def chance(seed: int, run: Run, what: str = "") -> float:
    """A number that depends on the seed and the attempt alone, not on what else happens."""
    return random.Random(f"{seed} {run.job} {run.slot} {run.attempt}{what}").random()


def _simulated_kinds(recorder: Recorder, snapshot: Snapshot) -> list[Kind]:
    """All kinds as simulations have them, and those of the stored jobs that no domain declares."""
    declared = [kind for domain in domains() for kind in domain.kinds]
    table = next(table for table in known_tables() if table.name == "jobs")
    place = table.columns.index("kind")
    others = sorted({row[place] for row in snapshot.rows.get("jobs", ())} - {kind.name for kind in declared})
    return [_simulated(kind, recorder) for kind in (*declared, *map(Kind, others), Kind("job"))]


def _simulated(kind: Kind, recorder: Recorder) -> Kind:
    own = kind.simulated(kind) if kind.simulated is not None else kind
    bare = own._replace(handler=None, before_recovery=None)
    if own.internal:
        return bare
    return bare._replace(
        claimed=_claims(own, recorder), ended=_ends(own, recorder), admit=_admits(own, recorder) if own.admit else None
    )


def _claims(kind: Kind, recorder: Recorder) -> Any:
    def claimed(tx: Transaction, context: Context, job: JobDef, run: RunRow) -> Any:
        recorder.claimed(tx, job, run)
        return kind.claimed(tx, context, job, run) if kind.claimed is not None else None

    return claimed


def _ends(kind: Kind, recorder: Recorder) -> Any:
    def ended(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
        recorder.ended(tx, job, run, result)
        if kind.ended is not None:
            kind.ended(tx, context, job, run, result)

    return ended


def _admits(kind: Kind, recorder: Recorder) -> Any:
    def admit(tx: Transaction, context: Context, job: JobDef, state: JobState) -> Refused | None:
        refused = kind.admit(tx, context, job, state) if kind.admit is not None else None
        if refused is not None:
            recorder.refused(tx, job, refused)
        return refused

    return admit


# -- the copy ---------------------------------------------------------------------------------------------------------


def _fill(tx: Transaction, snapshot: Snapshot, *, moved: bool) -> None:
    """Write the snapshot into an empty store; at another time than its own, without what refers to runs."""
    if snapshot.rows:
        tx.tables.clear([table for table in known_tables() if table.name in snapshot.rows])
    for table in known_tables():
        rows = snapshot.rows.get(table.name, ())
        if moved and "run_id" in table.columns and table.name != "job_state":
            continue
        for start in range(0, len(rows), AT_ONCE):
            tx.tables.fill(table, rows[start : start + AT_ONCE])
    if not moved:
        tx.runs.add(snapshot.runs)
        tx.runs.detail(snapshot.details)


def _place_again(tx: Transaction, rng: random.Random) -> None:
    """Let every job begin at the simulated time: no run is open, and its next time is the first one from then on."""
    now, changed, jobs = tx.now, list[JobState](), tx.slots.jobs()
    definitions = tx.jobs.definitions([placed.id for placed in jobs])
    for placed in jobs:
        trigger, state = trigger_of(placed.trigger), placed.state
        if isinstance(trigger, Every) and trigger.anchor_ms is not None and trigger.anchor_ms > now:
            trigger = trigger.anchored_before(now)
        job = definitions[placed.id]
        created = min(job.created_at, now)
        tx.jobs.define(job._replace(trigger=trigger_text(trigger), created_at=created, updated_at=created))
        fresh = JobState.new(placed.id, state.notes, priority=state.priority, counted_to=now - 1)
        fresh = fresh._replace(enabled=state.enabled, paused=state.paused, slot_runs=state.slot_runs)
        coming = next_start(trigger, fresh, now - 1, rng.random())
        if state.enabled and not state.paused and state.ended_at is None:
            fresh = fresh._replace(due_at=coming.at, next_at=coming.at, slot=coming.slot)
        changed.append(fresh._replace(ended_at=state.ended_at))
    tx.jobs.save(changed)
    tx.facts.put({"alive_at": now})


def _switch_off_reported(tx: Transaction) -> None:
    """Jobs that run elsewhere and report here do nothing in a simulation: nobody reports."""
    silent = [placed.state for placed in tx.slots.jobs() if trigger_of(placed.trigger).reports]
    tx.jobs.save([state._replace(enabled=0, due_at=None) for state in silent])
