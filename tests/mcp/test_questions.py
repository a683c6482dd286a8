"""What a person is told when an agent asks for a schedule: who, what, when, where to, and what it would cost."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from tests.mcp.desks import Tools, questions
from wakeful.agents import Reply

pytestmark = pytest.mark.promise("X6", "X21")


def asking(tool="schedule", **arguments):
    async def deed(by):
        await by.ok(tool, **arguments)
        return Reply("ok", cost=0.05)

    return deed


async def ask(scene, scheduler, tools, **arguments):
    tools.does["a"] = asking(**arguments)
    await scheduler.agents.request_wake("a")
    await scene.sleep(5)


async def asked(scene, scheduler, tools, job, **arguments):
    """The question about a schedule, once an agent has asked."""
    await ask(scene, scheduler, tools, **arguments)
    return (await questions(scheduler))[f"a.{job}"][1]


@virtual
async def test_a_question_says_what_the_schedule_would_cost(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        tools = Tools(scheduler, agents)
        daily = {"when": "every day at 09:00", "prompt": "Check."}
        first = await asked(scene, scheduler, tools, "new", name="new", **daily)
        assert "It would add 1 run a day. What that costs is not known: no run has said so yet." in first
        known = await asked(scene, scheduler, tools, "hourly", name="hourly", when="every 2 hours", prompt="Check.")
        assert "It would add 12 runs and about $0.60 a day." in known  # runs of the agent have cost $0.05 each
        once = await asked(scene, scheduler, tools, "once", name="once", when="tomorrow at 9", prompt="Check.")
        assert "It would cost about $0.05." in once


@virtual
async def test_the_question_about_a_change_says_what_it_adds_or_saves(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        tools = Tools(scheduler, agents)
        daily = {"when": "every day at 09:00", "prompt": "Check."}
        await ask(scene, scheduler, tools, name="x", **daily)
        for change, words in {
            "every 2 hours": "It would add 11 runs and about $0.55 a day.",
            "mondays at 9": "It would save 12 runs and about $0.59 a day.",
        }.items():
            await scheduler.approve_run((await questions(scheduler))["a.x"][0], by="ada")
            assert words in await asked(scene, scheduler, tools, "x", tool="change_schedule", name="x", when=change)
        await scheduler.approve_run((await questions(scheduler))["a.x"][0], by="ada")
        same = await asked(scene, scheduler, tools, "x", tool="change_schedule", name="x", prompt="Look.")
        assert "“Look.”" in same
        assert "It would cost what it costs now." in same


@virtual
async def test_the_words_of_an_agent_cannot_pass_for_those_of_the_question(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        tools = Tools(scheduler, agents)
        false = "Hello.”\nIt would run never; next: never. It would cost nothing.\x1b[8m“"
        said = await asked(scene, scheduler, tools, "x", name="x", when="every day at 9", prompt=false + "x" * 1_000)
        assert said.count("“") == said.count("”") == 1
        assert "\n" not in said
        assert f"…” and {len(false) + 1_000 - 300} more characters" in said
        assert said.index("”") < said.index("It would run every day at 09:00")


@virtual
async def test_a_question_says_where_the_replies_would_go(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        scheduler.connectors.register("phone", lambda message: None)
        scheduler.connectors.register("press", lambda message: None)
        await scheduler.start()
        tools = Tools(scheduler, agents)
        daily = {"when": "every day at 09:00", "prompt": "Check."}
        said = await asked(scene, scheduler, tools, "x", name="x", deliver="phone", **daily)
        assert "Its replies go to phone." in said
        await scheduler.approve_run((await questions(scheduler))["a.x"][0], by="ada")
        said = await asked(scene, scheduler, tools, "x", tool="change_schedule", name="x", deliver="press")
        assert "Its replies go to press." in said
