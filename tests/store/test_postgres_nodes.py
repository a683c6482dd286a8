"""Several nodes on one PostgreSQL: the dead are taken over from once, the frozen are fenced, labels are obeyed.

Leases last a second here rather than twenty; everything else is as in life.
"""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest

from tests.service.real_time import Gate, Watch, real
from tests.store.postgres_server import postgres_url
from wakeful import Manual, Once, Scheduler, StoreLocked
from wakeful.clock import SystemClock
from wakeful.kernel.cluster.membership import take_runs
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.lease_times import LeaseTimes

PAST = datetime(2020, 1, 1, tzinfo=UTC)
SHORT = LeaseTimes(beat_ms=200, lease_ms=1500, margin_ms=700, stalled_ms=4500)


@pytest.fixture
def url():
    return postgres_url()


def node(url, name, handler, lease=SHORT, **options):
    scheduler = Scheduler(url, node=name, timezone="UTC", tuning=Tuning(lease=lease), **options)
    if handler is not None:
        scheduler.on_job_due("work", handler)
    return scheduler


class Freezer:
    """Handlers that hang until they are released, and what was started where."""

    def __init__(self):
        self.started = []
        self.begun = asyncio.Event()
        self.thaw = asyncio.Event()

    def on(self, name, *, hangs):
        async def work(run):
            self.started.append((name, run.reason, run.attempt))
            self.begun.set()
            if hangs:
                await self.thaw.wait()

        return work


async def frozen(scheduler):
    """The node's loop and its beats stop, as under SIGSTOP; its handlers hang on."""
    await scheduler._engine.end()


def thawed(scheduler):
    engine = scheduler._engine
    engine.node_lease._start_heartbeat()
    engine._task = asyncio.get_running_loop().create_task(engine._loop())


@pytest.mark.promise("X2", "H11", "X14")
@real
async def test_a_dead_nodes_run_is_recorded_as_crashed_and_run_again_elsewhere(url):
    ice = Freezer()
    async with node(url, "one", ice.on("one", hangs=True)) as one, node(url, "two", ice.on("two", hangs=False)) as two:
        watch = Watch(two)
        await one.add_job("a", Once(PAST), kind="work")
        await one.start()
        await ice.begun.wait()
        await frozen(one)
        await two.start()
        await watch.until(lambda events: any(event.data.get("outcome") == "success" for event in events), 20)
        again, cut_off = await two.get_run_log("a")
        assert (cut_off.outcome, cut_off.node) == ("crashed", "one")
        assert (again.outcome, again.node, again.reason, again.retry_of) == ("success", "two", "recovery", cut_off.id)
        assert ice.started == [("one", "schedule", 1), ("two", "recovery", 2)]
        assert [alert.kind for alert in await two.list_alerts()] == ["dead_node"]
        await two.stop()
        ice.thaw.set()
        thawed(one)


@pytest.mark.promise("X2")
@real
async def test_a_frozen_node_that_thaws_records_nothing_and_comes_back_as_another(url):
    ice = Freezer()
    async with node(url, "one", ice.on("one", hangs=True)) as one, node(url, "two", ice.on("two", hangs=False)) as two:
        watch = Watch(two)
        await one.add_job("a", Once(PAST), kind="work")
        await one.start()
        old = one._engine.context.id
        await ice.begun.wait()
        await frozen(one)
        await two.start()
        await watch.until(lambda events: any(event.data.get("outcome") == "success" for event in events), 20)
        ice.thaw.set()  # the frozen handler ends well, too late
        await two.stop()
        mine = Watch(one)
        thawed(one)
        one.on_job_due("work", ice.on("one", hangs=False))
        run_id = await two.add_job("b", Once(PAST), kind="work")
        await mine.until(lambda events: any(event.data.get("outcome") == "success" for event in events), 20)
        assert run_id
        assert one._engine.context.id != old
        assert [run.outcome for run in await two.get_run_log("a")] == ["success", "crashed"]
        assert [run.node for run in await two.get_run_log("b")] == ["one"]
        await one.stop()


@pytest.mark.promise("X13")
@real
async def test_a_job_that_asks_for_labels_runs_only_where_they_are(url):
    ice = Freezer()
    plain = node(url, "plain", ice.on("plain", hangs=False))
    gpu = node(url, "gpu", ice.on("gpu", hangs=False), labels=["gpu", "big"])
    async with plain, gpu:
        watch = Watch(gpu)
        await plain.start()
        await gpu.start()
        for number in range(5):
            await plain.add_job(f"job-{number}", Once(PAST), kind="work", labels=["gpu"])
        await watch.until(lambda events: sum(event.type == "finished" for event in events) >= 5, 20)
        assert {name for name, _, _ in ice.started} == {"gpu"}
        await gpu.stop()
        await plain.stop()


@pytest.mark.promise("X2", "H17")
@real
async def test_a_kind_that_only_one_node_runs_finds_its_way_there(url):
    ice = Freezer()
    one = node(url, "one", ice.on("one", hangs=False))
    two = node(url, "two", ice.on("two", hangs=False))
    two.on_job_due("special", ice.on("two", hangs=False))
    async with one, two:
        watch = Watch(two)
        await one.start()
        await two.start()
        for number in range(5):
            await one.add_job(f"job-{number}", Manual(), kind="special")
            await one.run_job(f"job-{number}")
        await watch.until(lambda events: sum(event.type == "finished" for event in events) >= 5, 20)
        assert {name for name, _, _ in ice.started} == {"two"}
        await one.stop()
        await two.stop()


@pytest.mark.promise("X2")
@real
async def test_a_second_living_node_of_one_name_is_refused_and_the_first_goes_on(url, monkeypatch):
    ice, lease = Freezer(), LeaseTimes()  # as in life: a slow machine does not end it
    async with (
        node(url, "one", ice.on("one", hangs=False), lease) as one,
        node(url, "one", ice.on("x", hangs=False), lease) as twin,
    ):
        watch = Watch(one)
        await one.start()
        with pytest.raises(StoreLocked, match="is alive"):
            await twin.start()
        with monkeypatch.context() as another_process:
            another_process.setattr(os, "getpid", lambda: 1)
            with pytest.raises(StoreLocked, match="is alive"):
                await twin.start()
        await twin.add_job("a", Once(PAST), kind="work")
        await watch.finished()
        assert ice.started == [("one", "schedule", 1)]
        await one.stop()


@pytest.mark.promise("X2")
@real
async def test_a_second_node_of_one_name_does_not_end_the_commands_of_the_first(url, tmp_path):
    lease, line = LeaseTimes(), tmp_path / "line"
    os.mkfifo(line)
    async with node(url, "one", None, lease) as one, node(url, "one", None, lease) as twin:
        watch = Watch(one)
        await one.start()
        await one.add_job("a", Once(PAST), kind="command", payload={"argv": ["cat", str(line)]})
        writing = await asyncio.to_thread(line.open, "w")  # once the command reads
        with pytest.raises(StoreLocked, match="is alive"):
            await twin.start()
        writing.write("went on")
        writing.close()
        await watch.finished()
        (run,) = await one.get_run_log("a")
        assert (run.outcome, run.output["output"]) == ("success", "went on")
        await one.stop()


@pytest.mark.promise("X2")
@real
async def test_schedulers_without_names_in_one_process_are_nodes_of_their_own_and_share_the_work(url):
    ice, lease = Freezer(), LeaseTimes()
    async with (
        node(url, None, ice.on("one", hangs=True), lease) as one,
        node(url, None, ice.on("two", hangs=False), lease) as two,
    ):
        watch = Watch(one)
        await one.start()
        await one.add_job("a", Once(PAST), kind="work")
        await ice.begun.wait()
        await two.start()
        assert [run.outcome for run in await two.get_run_log("a")] == [None]
        nodes = await two.list_nodes()
        assert [found.state for found in nodes] == ["alive", "alive"]
        assert len({found.name for found in nodes}) == 2
        ice.thaw.set()
        await watch.finished()
        assert [(run.outcome, run.attempt) for run in await two.get_run_log("a")] == [("success", 1)]
        assert ice.started == [("one", "schedule", 1)]
        await two.stop()
        await one.stop()


@pytest.mark.promise("X2")
@real
async def test_a_node_whose_loop_is_blocked_is_reported_and_not_taken_for_dead(url):
    seen = threading.Event()

    async def block(run):  # as no handler should be: nothing else runs on this loop, for three leases
        assert await_in_thread(seen)

    async with node(url, "one", block) as one:
        await one.start()
        watch = Watch(one)
        await one.add_job("a", Once(PAST), kind="work")
        with ThreadPoolExecutor(1) as pool:
            seen_alerts = pool.submit(lambda: asyncio.run(stalled_as_seen_by_another(url, seen)))
            await watch.finished()
            alerts = await asyncio.wrap_future(seen_alerts)
        assert alerts == [("stalled", "The event loop of node one has been blocked for 4 s by a handler.")]
        assert [run.outcome for run in await one.get_run_log("a")] == ["success"]
        await one.stop()


def await_in_thread(event):
    return event.wait(120)


async def stalled_as_seen_by_another(url, seen):
    async with Scheduler(url, node="two", timezone="UTC", tuning=Tuning(lease=SHORT)) as two:
        watch = Watch(two)
        await two.start()
        await watch.until(lambda events: any(event.stream == "alert" for event in events))
        alerts = await two.list_alerts()
        seen.set()
        await two.stop()
        return [(alert.kind, alert.message) for alert in alerts]


@pytest.mark.promise("X2")
@real
async def test_a_draining_node_finishes_what_runs_and_starts_nothing_more(url):
    ice = Freezer()
    async with node(url, "one", ice.on("one", hangs=True)) as one, node(url, "two", ice.on("two", hangs=False)) as two:
        watch = Watch(one)
        await one.start()
        await one.add_job("a", Once(PAST), kind="work")
        await ice.begun.wait()
        await two.drain_node("one")
        await one.add_job("b", Once(PAST), kind="work")
        ice.thaw.set()
        await watch.finished()
        assert [run.outcome for run in await two.get_run_log("a")] == ["success"]
        assert await two.get_run_log("b") == []
        assert one.get_state().draining
        others = Watch(two)
        await two.start()
        await others.finished()
        assert [run.node for run in await two.get_run_log("b")] == ["two"]
        await two.stop()
        await two.drain_node("one", drain=False)
        await one.add_job("c", Once(PAST), kind="work")
        await watch.finished(2)
        assert [run.node for run in await two.get_run_log("c")] == ["one"]
        await one.stop()


class AnotherClock(SystemClock):
    """A machine whose clock is five minutes fast."""

    def now(self):
        return super().now() + 300_000

    def until(self, wall_ms):
        return super().until(wall_ms) - 300


@pytest.mark.promise("X2")
@real
async def test_a_node_whose_clock_is_wrong_starts_nothing_early(url):
    started = []

    async def work(run):
        started.append(run.job)

    async with Scheduler(url, node="fast", clock=AnotherClock(), timezone="UTC", tuning=Tuning(lease=SHORT)) as fast:
        fast.on_job_due("work", work)
        watch = Watch(fast)
        await fast.start()
        now = datetime.now(UTC)
        await fast.add_job("in-a-minute", Once(now + timedelta(minutes=1)), kind="work")
        await fast.add_job("now", Once(now), kind="work")
        await watch.finished()
        assert started == ["now"]
        job = await fast.get_job("now")
        assert abs(job.last_run_at - now) < timedelta(minutes=2)
        await fast.stop()


@pytest.mark.promise("X2")
@real
async def test_a_thread_that_outlives_a_stop_keeps_its_run_when_its_process_comes_back(url):
    gate = Gate()
    async with node(url, "one", gate) as one, node(url, "two", gate) as two:
        await one.start()
        await one.add_job("a", Once(PAST), kind="work")
        await asyncio.to_thread(gate.inside.acquire, timeout=120)
        await one.stop(wait_for_jobs=False)  # the thread goes on, in a process that is no node any more
        await one.start()
        assert await two._store.read(lambda tx: tx.runs.orphans()) == []
        watch = Watch(one)
        gate.open.set()
        await watch.finished()
        await one.stop()
        assert [run.outcome for run in await two.get_run_log("a")] == ["success"]


@pytest.mark.promise("X2")
@real
async def test_what_a_node_left_behind_is_taken_over_by_another(url):
    gate = Gate()
    async with node(url, "one", gate) as one, node(url, "two", gate) as two:
        await one.start()
        await one.add_job("a", Once(PAST), kind="work")
        await asyncio.to_thread(gate.inside.acquire, timeout=120)
        await one.stop(wait_for_jobs=False)
        watch = Watch(two)
        await two.start()
        two._engine.housekeeping.wait(0)
        await asyncio.to_thread(gate.inside.acquire, timeout=120)
        gate.open.set()
        await watch.until(lambda events: any(event.data.get("outcome") == "success" for event in events))
        assert [(run.outcome, run.node) for run in await two.get_run_log("a")] == [
            ("success", "two"),
            ("crashed", "one"),
        ]
        await two.stop()


@pytest.mark.promise("X2")
@real
async def test_a_run_that_is_settled_while_it_is_being_taken_over_is_settled_once(url):
    ice = Freezer()
    async with node(url, "one", ice.on("one", hangs=True)) as one, node(url, "two", ice.on("two", hangs=False)) as two:
        await one.start()
        await one.add_job("a", Once(PAST), kind="work")
        await ice.begun.wait()
        here = two._engine.identify()._replace(id=two._engine.context.new_id())
        (run,) = await two._store.read(lambda tx: tx.runs.of_nodes([one._engine.context.id]))
        watch = Watch(one)
        ice.thaw.set()  # between their reading of the run and their taking it
        await watch.finished()
        await two._store.write(lambda tx: take_runs(tx, here, [run]))
        assert [(run.outcome, run.status) for run in await two.get_run_log("a")] == [("success", "done")]
        assert (await two.get_job("a")).last_outcome == "success"
        await one.stop()
