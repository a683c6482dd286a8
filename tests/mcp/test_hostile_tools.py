"""Whatever a tool is given, it answers with data or with one sentence: types, sizes, names, and what is not allowed."""

from __future__ import annotations

import logging

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from tests.mcp.desks import Tools, in_a_run, questions
from wakeful.surfaces.mcp.tools import TOOLS

pytestmark = pytest.mark.promise("X6")

LONG = "x" * 200_001
VALUES = (
    *(None, True, False, 0, -1, 10**30, 1.5, float("nan"), "", " ", "\0", "\ud800", "../../etc/passwd", "a\nb"),
    *("job_0", "run_0000000000000", "run_", "wakeful://x", "'; DROP TABLE jobs; --", "${HOME}", "@file"),
    *(LONG, [], [1], ["a", None], {}, {"a": 1}, [[[]]], "every 1 second", "every", "in -5 minutes", "99999-01-01"),
)
GOOD = {
    "name": "thing", "when": "every day at 09:00", "cron": "0 9 * * *", "every": "1d", "at": "2027-01-01T00:00:00Z",
    "prompt": "Look", "command": ["echo"], "url": "https://example.org", "text": "Look", "run": "run_0000000000000",
    "agent": "a", "question": "Go on?", "workflow": "w", "topic": "t", "message_id": "m", "for": "7d", "timeout": 0,
}  # fmt: skip


def calls():
    """Each argument of each tool with each value; and arguments that there are not."""
    for tool in TOOLS.values():
        base = {name: GOOD[name] for name in tool.required}
        for name in tool.fields:
            for value in VALUES:
                yield tool.name, {**base, name: value}
        yield tool.name, {**base, "nmae": "x"}
        yield tool.name, {}
        for arguments in ([], "text", 5):
            yield tool.name, arguments


@virtual
async def test_every_argument_of_every_tool_is_answered_with_data_or_a_sentence(scene, agents, caplog):
    plan = {"a": agent(self_schedule={"mode": "allow", "max": 1000}), "b": agent()}
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.start()
        tools = Tools(scheduler, agents)
        many = list(calls())

        async def deed(by):
            return [(name, given, await by.raw(name, given)) for name, given in many]

        async def as_agent(by):
            return await deed(by)

        answered = await in_a_run(scene, tools, "a", as_agent)
        answered += await deed(tools.by("boss", "operator"))
        answered += await deed(tools.by("fox", "agent"))
        answered += await deed(tools.by("vic", "viewer"))
        assert len(answered) == 4 * len(many)
        for name, given, done in answered:
            assert "fault" not in done.text, (name, str(given)[:100], done.text)
            assert not done.is_refused or (done.text.endswith((".", "?", "!")) and "\n" not in done.text), done.text
            assert len(done.text) < 20_000, name
        assert all(not job.name.startswith(("b.", "..")) or job.source != "mcp" for job in await scheduler.list_jobs())
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


@virtual
async def test_a_run_that_has_ended_can_do_nothing_more(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await scheduler.start()
        tools, kept = Tools(scheduler, agents), []

        async def keep(by):
            kept.append(by)

        await in_a_run(scene, tools, "a", keep)
        (by,) = kept
        for tool, given in {
            "schedule": {"every": "1d", "prompt": "x"},
            "remind_me": {"when": "in 2 hours", "text": "x"},
            "publish_event": {"agent": "a", "text": "x"},
        }.items():
            assert "has ended" in await by.refused(tool, **given)
        assert await questions(scheduler) == {}


@virtual
async def test_a_week_of_agents_that_schedule_over_schedule_and_feed_each_other_stays_within_every_bound(scene, agents):
    bounds = {"mode": "allow", "max": 4, "min_interval": "2h", "max_ahead": "3d", "expires": "2d"}
    plan = {
        "a": agent(self_schedule=bounds, heartbeat={"every": "6h"}),
        "b": agent(self_schedule=bounds, heartbeat={"every": "9h"}),
        "shy": agent(heartbeat={"every": "8h"}),
    }
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.agents.limit(runs_per_day=200, cost_per_day=None)
        await scheduler.start()
        tools, turns = Tools(scheduler, agents), {"count": 0}

        async def greedy(by):
            turns["count"] += 1
            number, me = turns["count"], by.caller.name
            other = "b" if me == "a" else "a"
            await by("schedule", when="every 1 hour", prompt="Too often.")
            await by("schedule", every=f"{2 + number % 5}h", prompt=f"Again {number}.", name=f"s{number}")
            await by("schedule", when="in 5 days", prompt="Too far.")
            await by("remind_me", when=f"in {1 + number % 9} hours", text=f"Remember {number}.")
            await by("publish_event", agent=other, text=f"From {me}.")
            await by("run_now", name=f"s{number}")
            if number % 7 == 0:
                await by("remove_schedule", name=f"s{number}")
            await check()

        async def check():
            for name in plan:
                own = [job for job in await scheduler.list_jobs() if job.owner == name and job.source == "mcp"]
                alive = [job for job in own if job.status != "done"]
                assert len(alive) <= (10 if name == "shy" else 4), alive
                assert all(job.trigger.min_gap_ms() is None or job.trigger.min_gap_ms() >= 7_200_000 for job in own)

        tools.does = {"a": greedy, "b": greedy, "shy": greedy}
        await scene.sleep(7 * 86_400)
        mine = [job for job in await scheduler.list_jobs() if job.source == "mcp"]
        assert mine
        assert {job.owner for job in mine} == set(plan)
        for job in mine:
            assert job.trigger.type == "once" or job.trigger.until_ms is not None
        # None of the shy agent's schedules has started anything: a person said nothing all week.
        assert {turn.schedule for turn in agents.turns if turn.agent == "shy"} == {"wake"}
        assert len(await questions(scheduler)) == sum(job.owner == "shy" for job in mine) <= 10
        refused = [done.text for _, _, done in tools.said if done.is_refused]
        for word in ("too often", "the latest is", "of 4 schedules", "5 is the most"):
            assert any(word in text for text in refused), word
        assert turns["count"] < 1_500  # what the budget of days allows
