"""Plain functions as runners: nothing stops their threads, so their runs keep their place until they return."""

from __future__ import annotations

import asyncio
import contextlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.agents import test_threaded_runners as shared
from tests.service.real_time import TO_BEGIN_S, Gate, Watch, make, real
from wakeful.domains.agents import Reply
from wakeful.domains.agents.runners import functions
from wakeful.errors import SchedulerShutdownError

PLACE = "tests.agents.test_threaded_runners:wait"
gate = None  # of the test that runs
asked = []


def wait(turn):
    """The runner. Wakeful may load this file under a name of its own."""
    shared.asked.append(turn.run.job)
    shared.gate(turn)
    return Reply("late", cost=0.25)


def raises(turn):
    raise TimeoutError("the server is slow")


async def raises_too(turn):
    raise TimeoutError("the server is slow")


@pytest.fixture(autouse=True)
def closed_gate():
    shared.gate = Gate()
    shared.asked.clear()
    yield shared.gate
    shared.gate.open.set()


def agent(**runner):
    schedules = {name: {"every": "1d", "prompt": "x"} for name in ("one", "two")}
    return {"runner": {"python": PLACE, "timeout": TO_BEGIN_S, **runner}, "schedules": schedules}


@contextlib.asynccontextmanager
async def started(tmp_path, agents):
    async with make(tmp_path) as scheduler:
        await scheduler.agents.apply(agents)
        watch = Watch(scheduler)
        await scheduler.start()
        yield scheduler, watch


def is_stuck(job):
    return lambda events: any(event.type == "opened" and job in str(event.data) for event in events)


@pytest.mark.promise("H10", "A3", "D6")
@real
async def test_a_runner_past_its_limit_keeps_its_place_until_its_thread_ends(tmp_path, closed_gate):
    async with started(tmp_path, {"a": agent()}) as (scheduler, watch):
        first, second = await scheduler.run_job("a.one"), await scheduler.run_job("a.two")
        await closed_gate.entered()
        await watch.until(is_stuck("a.one"))
        run = await scheduler.get_run(first)
        assert (run.status, run.unstoppable) == ("active", "is past its limit")
        said = "It is past its limit and cannot be stopped"
        assert said in str(await scheduler.explain(first))
        assert said in str(await scheduler.explain("a.one"))
        assert (await scheduler.agents.get("a"))["running"] == 1
        assert (await scheduler.get_run(second)).status == "queued"
        (alert,) = await scheduler.list_alerts()
        assert alert.message == f"a.one is past its limit, and its thread cannot be stopped: {first}"
        closed_gate.open.set()
        run = await scheduler.wait_for_run(first)
        assert (run.outcome, run.error) == ("timeout", f"still running after {TO_BEGIN_S}s")
        assert run.usage["cost"] == 0.25  # what it reported counts
        assert (await scheduler.wait_for_run(second)).outcome in ("success", "timeout")
        assert (asked, closed_gate.most) == (["a.one", "a.two"], 1)


@pytest.mark.promise("H10")
@real
async def test_a_cancelled_runner_keeps_its_place_until_its_thread_ends(tmp_path, closed_gate):
    async with started(tmp_path, {"a": agent(timeout="1h")}) as (scheduler, _):
        first, second = await scheduler.run_job("a.one"), await scheduler.run_job("a.two")
        await closed_gate.entered()
        await scheduler.cancel_run(first)
        await scheduler.run_job("a.wake")  # whatever asks for more
        assert [(await scheduler.get_run(run)).status for run in (first, second)] == ["active", "queued"]
        closed_gate.open.set()
        assert (await scheduler.wait_for_run(first)).outcome == "cancelled"
        assert (await scheduler.wait_for_run(second)).outcome == "success"
        assert closed_gate.most == 1


@pytest.mark.promise("H10")
@real
async def test_nothing_else_waits_for_the_threads_of_runners(tmp_path, closed_gate):
    asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(2))
    many = {f"a{number}": agent() for number in range(3)}
    async with started(tmp_path, many) as (scheduler, _):
        for name in many:
            await scheduler.run_job(f"{name}.one")
        for _ in many:
            await closed_gate.entered()
        async with asyncio.timeout(60):
            await scheduler.agents.apply(many)
            assert (await asyncio.to_thread(lambda: "at once"), closed_gate.now) == ("at once", len(many))


@pytest.mark.promise("H10")
@real
async def test_a_function_that_no_thread_was_free_for_is_not_called_after_its_limit(tmp_path, closed_gate, monkeypatch):
    monkeypatch.setattr(functions, "MAX_THREADS", 1)
    monkeypatch.setattr(functions, "_POOL", functions.Pool("test"))
    async with started(tmp_path, {"a": agent(timeout="1h"), "b": agent(timeout=0.1)}) as (scheduler, _):
        await scheduler.run_job("a.one")
        await closed_gate.entered()
        run = await scheduler.wait_for_run(await scheduler.run_job("b.one"))
        assert (run.outcome, run.error, run.unstoppable) == ("timeout", "stopped after its limit of 0.1 s", None)
        closed_gate.open.set()
        await scheduler.wait_for_run(await scheduler.run_job("a.two"))
        assert asked == ["a.one", "a.two"]


@pytest.mark.promise("H10")
def test_a_process_ends_although_a_runner_does_not(tmp_path, closed_gate):
    async def life():
        async with make(tmp_path) as scheduler:
            await scheduler.agents.apply({"a": agent(timeout="1h")})
            await scheduler.start()
            await scheduler.run_job("a.one")
            await closed_gate.entered()
            with pytest.raises(SchedulerShutdownError):
                await scheduler.stop(timeout=0.05)

    asyncio.run(life())
    assert closed_gate.now == 1


@pytest.mark.parametrize("name", ["raises", "raises_too"])
@real
async def test_a_timeout_that_a_function_meets_is_its_error_and_not_its_limit(tmp_path, name):
    plan = {"a": agent(python=f"tests.agents.test_threaded_runners:{name}", timeout="1h")}
    async with started(tmp_path, plan) as (scheduler, _):
        run = await scheduler.wait_for_run(await scheduler.run_job("a.one"))
        assert (run.outcome, run.error) == ("error", "the server is slow")
