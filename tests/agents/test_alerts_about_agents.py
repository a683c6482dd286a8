"""Alerts about agents: their titles name the agent, and their texts say when it is tried again."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import agent
from tests.alerts.phones import Phone
from tests.kernel.scene import virtual
from wakeful.domains.alerts import configure


@pytest.mark.promise("X5")
@virtual
async def test_an_alert_about_a_woken_agent_names_the_agent_and_says_when_it_is_tried_again(scene, agents):
    def fail(_):
        raise RuntimeError("no answer")

    agents.act, phone = fail, Phone(scene)
    async with agents.scheduler_with({"a": agent(deliver="none")}) as scheduler:
        scheduler.connectors.register("phone", phone)
        await configure(scheduler, to="phone", after=1)
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.sleep(0.9)
        assert phone.titles == ["a: failing"]
        (text,) = phone.texts
        assert text.count("no answer") == 1
        assert "Next: it starts again at 2026-01-01 00:00:01 UTC." in text
        await scene.sleep(5)
        assert len(agents.turns) == 2  # as the message said


@pytest.mark.promise("X7")
@virtual
async def test_an_alert_about_a_budget_has_the_agent_as_its_title(scene, agents):
    phone = Phone(scene)
    async with agents.scheduler_with({"a": agent(deliver="none", budget={"runs_per_day": 1})}) as scheduler:
        scheduler.connectors.register("phone", phone)
        await configure(scheduler, to="phone")
        await scheduler.start()
        for _ in range(2):
            await scheduler.agents.request_wake("a")
            await scene.sleep(5)
        assert phone.titles == ["a: budget"]


@pytest.mark.promise("X5")
@pytest.mark.parametrize(("to", "after", "titles"), [
    ("phone", 1, ["a.tick: failing"]), ("phone", 2, ["a.tick: error"]), ("other", 1, ["a.tick: error"]),
])  # fmt: skip
@virtual
async def test_a_failure_is_told_once_to_one_place(scene, agents, to, after, titles):
    def fail(_):
        raise RuntimeError("no answer")

    agents.act, phone = fail, Phone(scene)
    plan = {"a": agent(deliver="phone", schedules={"tick": {"manual": True, "prompt": "x", "retry": 0}})}
    async with agents.scheduler_with(plan) as scheduler:
        scheduler.connectors.register("phone", phone)
        scheduler.connectors.register("other", Phone(scene))
        await configure(scheduler, to=to, after=after)
        await scheduler.start()
        await scheduler.run_job("a.tick")
        await scene.sleep(5)
        assert phone.titles == titles
