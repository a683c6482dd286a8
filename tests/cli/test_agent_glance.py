"""Agents and workflows at a glance: cut off with their server, paused, or over budget."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from tests.kernel.crashing import die
from wakeful import Interval, Scheduler, Workflow
from wakeful.agents.commands import _state, _state_words
from wakeful.testing import VirtualClock, run
from wakeful.workflows.views import workflow_view


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
        seen = scheduler.seen
        found = await scheduler.look(lambda tx: workflow_view(tx, "mailroom", seen))
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

    why = "spent is over budget: 1 of 1 runs are used today"
    assert run(work_a_while(), clock) == [("running", True, None), ("paused", True, None), ("idle", False, why)]
    assert _state({"status": "running", "paused": True, "over_budget": None, "cut_off": 0}).text == "running, paused"
    over = {"status": "idle", "paused": False, "over_budget": why, "cut_off": 0}
    assert (_state(over).text, _state_words(over).text) == ("over budget", why)
    found = wakeful("agent", "list").out
    assert "paused" in next(line for line in found.splitlines() if line.startswith("resting"))
