"""Agents and workflows at a glance: cut off with their server, paused, or over budget."""

from __future__ import annotations

import asyncio
import contextlib
import threading

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.kernel.crashing import die
from wakeful import Interval, Scheduler, Workflow
from wakeful.domains.agents.commands import _state, _state_words
from wakeful.domains.agents.limits.holding import meet_limit
from wakeful.domains.workflows.views import workflow_view
from wakeful.testing import VirtualClock, run
from wakeful.triggers.moments import read_moment, spoken


@pytest.mark.promise("X26")
def test_agents_and_workflows_of_a_server_that_ended_are_shown_as_cut_off(wakeful, store):
    clock, agents = VirtualClock(), VirtualAgents()
    store.parent.mkdir(exist_ok=True)
    agents.act = lambda _: clock.sleep("1h")
    flow = Workflow("mailroom")

    @flow.producer(Interval("5m"), publishes=["mail"])
    async def poll(ctx, state):
        await clock.sleep("1h")

    async def look(scheduler):
        seen = scheduler.host.seen
        found = await scheduler.read(lambda tx: workflow_view(tx, "mailroom", seen))
        [one] = await scheduler.agents.list()
        return found["status"], found["cut_off"], one["status"], one["running"], one["cut_off"]

    async def leave_both_behind():
        async with Scheduler(f"sqlite:///{store}", clock=clock, timezone="UTC") as scheduler:
            await scheduler.agents.apply(
                {"reporter": agent(schedules={"standup": {"interval": "5m", "prompt": "Go."}})}
            )
            scheduler.add_workflow(flow)
            await scheduler.start()
            await clock.sleep("1m")
            alive = await look(scheduler)
            await die(scheduler)
        return alive

    assert run(leave_both_behind(), clock) == ("running", False, "running", 1, 0)
    [one] = wakeful("agent", "list", "--json").json
    assert (one["status"], one["running"], one["cut_off"]) == ("idle", 0, 1)
    assert "cut off" in wakeful("agent", "list").out
    shown = wakeful("agent", "show", "reporter").out
    assert "cut off: its server has ended" in shown
    assert "standup  cut off" in shown
    found = wakeful("workflow", "show", "mailroom", "--json").json
    assert (found["status"], found["cut_off"]) == ("idle", True)
    assert "Cut off: its server has ended" in wakeful("workflow", "show", "mailroom").out
    assert "Cut off" in wakeful("workflow", "list").out


@pytest.mark.promise("X7")
def test_a_listing_says_which_agents_are_paused_and_which_are_over_budget(wakeful, store):
    clock, agents = VirtualClock(), VirtualAgents()
    store.parent.mkdir(exist_ok=True)
    agents.act = lambda turn: clock.sleep("1h") if turn.agent == "busy" else "ok"
    often = {"tick": {"interval": "5m", "prompt": "Go."}}

    async def work_a_while():
        async with Scheduler(f"sqlite:///{store}", clock=clock, timezone="UTC") as scheduler:
            spent = agent(schedules=often, budget={"runs_per_day": 1})
            await scheduler.agents.apply({"busy": agent(schedules=often), "resting": agent(), "spent": spent})
            await scheduler.start()
            await clock.sleep("1m")
            await scheduler.agents.pause("busy")
            await scheduler.agents.pause("resting")
            found = [(one["status"], one["paused"], one["over_budget"]) for one in await scheduler.agents.list()]
            await die(scheduler)
        return found

    why = "spent is over budget: 1 of 1 run is used today"
    assert run(work_a_while(), clock) == [("running", True, None), ("paused", True, None), ("idle", False, why)]
    assert _state({"status": "running", "paused": True, "over_budget": None, "cut_off": 0}).text == "running, paused"
    over = {"status": "idle", "paused": False, "over_budget": why, "cut_off": 0}
    assert (_state(over).text, _state_words(over).text) == ("over budget", why)
    found = wakeful("agent", "list").out
    assert "paused" in next(line for line in found.splitlines() if line.startswith("resting"))


@contextlib.contextmanager
def served(store, plan, *, holds=None):
    """A server's engine on the store, in a thread of its own; `holds`: the limit of the account `work` in seconds."""
    begun, over, failed = threading.Event(), threading.Event(), []

    async def serve():
        async with Scheduler(f"sqlite:///{store}", timezone="UTC") as scheduler:
            await scheduler.agents.apply(plan)
            if holds is not None:
                await scheduler.transact(lambda tx, _: meet_limit(tx, "work", tx.now + holds * 1000, "usage limit"))
            await scheduler.start()
            begun.set()
            await asyncio.to_thread(over.wait)

    def run_engine():
        try:
            asyncio.run(serve())
        except Exception as error:
            failed.append(error)
            raise
        finally:
            begun.set()

    store.parent.mkdir(exist_ok=True)
    VirtualAgents()
    thread = threading.Thread(target=run_engine)
    thread.start()
    try:
        assert begun.wait(120)
        assert failed == []
        yield
    finally:
        over.set()
        thread.join(120)


WORK = {"runner": {**agent()["runner"], "account": "work"}, "schedules": {"tick": {"every": "1d", "prompt": "x"}}}


@pytest.mark.promise("X7")
def test_who_waits_for_an_agent_at_its_limit_hears_until_when_and_can_clear_it(wakeful, store):
    with served(store, {"a": WORK, "b": WORK}, holds=3600):
        [limit] = wakeful("agent", "limits", "--json").json
        assert (limit["account"], limit["agents"], limit["why"]) == ("work", ["a", "b"], "usage limit")
        until = spoken(read_moment(limit["until"], "until"))
        woken = wakeful("agent", "wake", "a", "--wait")
        assert (woken.code, woken.out.startswith("a is woken (manual): run_")) == (4, True)
        assert f"a waits until {until} (rate_limited): wakeful explain a.wake says why." in woken.err
        begun = wakeful("run", "b.tick")
        assert (begun.code, f"is queued until {until} (rate_limited): wakeful explain b.tick" in begun.out) == (0, True)
        assert wakeful("agent", "list").out.count("rate limited") == 2
        assert f"rate limited until {until}: usage limit" in wakeful("agent", "show", "a").out
        table = wakeful("agent", "limits").out
        assert "work" in table
        assert "a, b" in table
        wrong = wakeful("agent", "limits", "clear", "other")
        assert (wrong.code, "At their limit are: work." in wrong.err) == (3, True)
        assert wakeful("agent", "limits", "clear", "work").out == "The rate limit of work is cleared.\n"
        assert wakeful("agent", "limits").out == "No account is at its rate limit.\n"
        assert wakeful("agent", "wake", "a", "--wait").out == "All is well.\n"


@pytest.mark.promise("X7")
def test_a_run_that_is_queued_is_not_said_to_have_started(wakeful, store):
    with served(store, {"a": WORK}, holds=3600):
        begun = wakeful("run", "a.tick", "--json").json
        assert (begun["status"], begun["waits_for"]) == ("queued", "rate_limited")
        assert begun["waits_until"] == wakeful("agent", "limits", "--json").json[0]["until"]
        wakeful("cancel", begun["run"])
        waited = wakeful("run", "a.tick", "--wait")
        assert (waited.code, "is queued until" in waited.err) == (4, True)
    with served(store, {"a": WORK}):
        wakeful("agent", "limits", "clear", "work")
        wakeful("cancel", waited.err.split()[1])
        assert " started; follow it with " in wakeful("run", "a.tick").out
