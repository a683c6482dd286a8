"""The event bus: in order, without gaps, and unable to change anything."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, JobExists, Manual, NewJob, Once, Scheduler, SchedulerError, Wait
from wakeful.kernel.views.bus import MOST_WAITING


@pytest.mark.promise("A7")
@virtual
async def test_each_stream_has_its_own_sequence_without_gaps_over_restarts(scene):
    heard = []
    for _ in range(3):
        scheduler = scene.scheduler()
        scheduler.subscribe(heard.append)
        async with scheduler:
            await scheduler.add_jobs([NewJob(f"j{n}", Every("1m")) for n in range(3)], if_exists="keep")
            with pytest.raises(JobExists):
                await scheduler.add_job("j1", Manual())
            await scheduler.start()
            await scene.sleep("10m")
            await scheduler.update_job("j0", payload=scene.lives)
            await scheduler.pause_job("j1")
            await scheduler.resume_job("j1")
    streams = {event.stream for event in heard}
    assert streams >= {"run", "job"}
    for stream in streams:
        numbers = [event.seq for event in heard if event.stream == stream]
        assert numbers == list(range(1, len(numbers) + 1)), stream
    groups = [event.id for event in heard]
    assert groups == sorted(groups)


@pytest.mark.promise("A7")
@virtual
async def test_a_run_is_reported_as_started_and_finished_in_that_order(scene):
    heard = []
    async with scene.scheduler() as scheduler:
        scheduler.subscribe(heard.append, "run")
        job_id = await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(2))
        run = scene.runs[0].id
        assert [(event.type, event.data) for event in heard] == [
            ("started", {"run": run, "job_id": job_id, "job": "a", "reason": "schedule"}),
            ("finished", {"run": run, "job_id": job_id, "job": "a", "outcome": "success"}),
        ]
        assert [event.at for event in heard] == [at(1), at(1)]


@pytest.mark.promise("A7")
@virtual
async def test_a_run_that_only_waits_is_not_reported_as_finished(scene):
    async def act(run):
        raise Wait

    scene.act = act
    heard = []
    async with scene.scheduler() as scheduler:
        scheduler.subscribe(heard.append, "run")
        await scheduler.add_job("a", Once(at(0)))
        await scheduler.start()
        await scene.sleep("1m")
        assert [event.type for event in heard] == ["started", "waiting"]
        await scheduler.complete_run(scene.runs[0].id)
        assert [event.type for event in heard] == ["started", "waiting", "finished"]


@pytest.mark.promise("A7")
@virtual
async def test_jobs_and_alerts_are_reported_and_a_subscription_ends(scene):
    heard, alerts = [], []
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        leave = scheduler.subscribe(lambda event: heard.append((event.type, event.data["job"])), "job")
        scheduler.subscribe(lambda event: alerts.append((event.type, event.data["kind"], event.data["job"])), "alert")
        await scheduler.add_job("a", Every("10s"), max_errors=1)
        await scheduler.update_job("a", payload=1)
        await scheduler.pause_job("a")
        await scheduler.resume_job("a")
        await scheduler.start()
        await scene.sleep("1m")
        await scheduler.resume_job("a")
        await scheduler.remove_job("a")
        assert heard == [(what, "a") for what in ("added", "changed", "paused", "resumed", "resumed", "removed")]
        assert alerts == [("opened", "disabled", "a"), ("closed", "disabled", "a")]
        leave()
        leave()
        await scheduler.add_job("b", Every("10s"))
        assert len(heard) == 6


@pytest.mark.promise("A7")
@pytest.mark.parametrize("error", [RuntimeError("deaf"), KeyError("x"), AssertionError()], ids=repr)
@virtual
async def test_a_failing_subscriber_changes_nothing(scene, error, caplog):
    heard = []

    def listener(event):
        raise error

    async with scene.scheduler() as scheduler:
        scheduler.subscribe(listener)
        scheduler.subscribe(heard.append)
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("5m")
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["success"] * 5
        assert len(heard) == 11


@pytest.mark.promise("A7")
@virtual
async def test_what_was_undone_is_not_reported(scene):
    heard = []
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"))
        scheduler.subscribe(heard.append)
        with pytest.raises(JobExists):
            await scheduler.add_jobs([NewJob("b", Manual()), NewJob("a", Manual())])
        assert heard == []


@pytest.mark.promise("A7")
@virtual
async def test_an_async_listener_gets_all_events_in_order(scene):
    heard = []

    async def listener(event):
        await scene.clock.sleep("3s")
        heard.append(event)

    async with scene.scheduler() as scheduler:
        leave = scheduler.events.subscribe(listener, stream="run")
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("5m")
        await scene.sleep("10s")
        assert [event.type for event in heard] == ["started", "finished"] * 5
        assert [event.seq for event in heard] == list(range(1, 11))
        assert heard[0].to_dict() == {
            "stream": "run",
            "seq": 1,
            "at": "2026-01-01T00:01:00Z",
            "type": "started",
            "data": heard[0].data,
        }
        leave()
        await scene.sleep("5m")
        assert len(heard) == 10


@pytest.mark.promise("A7")
@virtual
async def test_a_slow_async_listener_changes_nothing_and_learns_what_it_lost(scene, caplog):
    heard, never = [], asyncio.Event()

    async def listener(event):
        heard.append(event)
        await never.wait()

    names = [f"j{n}" for n in range(300)]
    async with scene.scheduler() as scheduler:
        scheduler.events.subscribe(listener)
        await scheduler.add_jobs([NewJob(name, Every("1m")) for name in names])
        await scheduler.start()
        await scene.sleep("4m")
        assert sum(run.outcome == "success" for run in await scheduler.get_run_log(limit=5_000)) == 1_200
        assert len(heard) == 1
        never.set()
        await scene.sleep("1s")
        assert len(heard) == 1 + MOST_WAITING + 1
        assert (heard[-1].type, heard[-1].data) == ("dropped", {"count": 300 + 2 * 1_200 - 1 - MOST_WAITING})
        await scheduler.pause_job("j0")
        await scene.sleep("1s")
        assert (heard[-1].type, heard[-1].data["job"]) == ("paused", "j0")
    (said,) = [record.getMessage() for record in caplog.records if "too slow" in record.getMessage()]
    assert said.endswith("learns_what_it_lost.<locals>.listener): events are dropped for it")


@pytest.mark.promise("A7")
@virtual
async def test_a_listener_that_left_hears_neither_what_waited_for_it_nor_that_it_lost_something(scene):
    heard, other = [], []

    async def slow(event):
        heard.append(event.type)
        await scene.sleep("10s")

    async def leaving(event):
        other.append(event.type)

    async with scene.scheduler() as scheduler:
        leave = scheduler.events.subscribe(slow, "job")
        for name in ("a", "b", "c"):
            await scheduler.add_job(name, Every("1h"))
        await scene.sleep("1s")
        leave()
        await scene.sleep("1m")
        assert heard == ["added"], "the one that it was called with"
        leaves = []
        scheduler.events.subscribe(lambda event: leaves.pop()() if leaves else None, "job")
        leaves.append(scheduler.events.subscribe(leaving, "job"))  # it is ended while this very event is handed on
        await scheduler.pause_job("a")
        await scene.sleep("1m")
        assert other == []


@pytest.mark.promise("A7")
@virtual
async def test_a_failing_async_listener_changes_nothing_and_is_logged_once(scene, caplog):
    heard = []

    async def listener(event):
        raise RuntimeError("deaf")

    async with scene.scheduler() as scheduler:
        scheduler.events.subscribe(listener)
        scheduler.events.subscribe(heard.append)
        scheduler.events.subscribe(lambda event: listener(event))  # noqa: PLW0108 - not a coroutine function itself
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("5m")
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["success"] * 5
        assert len(heard) == 11
    failed = [str(record.exc_info[1]) for record in caplog.records if record.name == "wakeful.events"]
    assert len(failed) == 2
    assert set(failed) == {"deaf", "it returns a coroutine that nothing awaits: subscribe the async function itself"}


@pytest.mark.promise("A7")
def test_a_function_that_holds_up_the_loop_is_called_in_a_thread(tmp_path, caplog):
    threads, done, last = [], threading.Event(), threading.Event()

    def listener(event):
        threads.append(threading.current_thread())
        if len(threads) == 6:
            last.set()
        elif len(threads) > 2:
            done.wait(60)
        else:
            threading.Event().wait(0.12)

    async def main():
        async with Scheduler(f"sqlite:///{tmp_path}/wakeful.db") as scheduler:
            scheduler.events.subscribe(listener, "job")
            async with asyncio.timeout(50):
                await scheduler.add_jobs([NewJob(f"j{n}", Manual()) for n in range(5)])
                await scheduler.pause_job("j0")  # the loop goes on, though the listener waits
            done.set()
            assert await asyncio.to_thread(last.wait, 60)

    asyncio.run(main())
    assert threads[0] is threads[1] is threading.main_thread()
    assert set(threads[2:]) == {threads[2]} != {threading.main_thread()}
    assert "it is called in a thread from now on" in caplog.text


@virtual
async def test_a_stream_there_is_none_of_and_a_listener_that_is_none_are_refused(scene):
    async with scene.scheduler() as scheduler:
        with pytest.raises(SchedulerError, match="There is no stream 'runs': there are run, job"):
            scheduler.events.subscribe(print, "runs")
        with pytest.raises(SchedulerError, match="A listener is a function of an event"):
            scheduler.events.subscribe("print")
