"""Whatever a tool is given, it answers with data or with one sentence: types, sizes, names, and what is not allowed."""

from __future__ import annotations

import logging
from collections import Counter

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from tests.mcp.desks import Tools, in_a_run, questions
from wakeful import Every
from wakeful.surfaces.mcp.tools import TOOLS

pytestmark = pytest.mark.promise("X6")

DAY_MS = 86_400_000
LONG = "x" * 200_001
VALUES = (
    *(None, True, False, 0, -1, 10**30, 1.5, float("nan"), "", " ", "\0", "\ud800", "../../etc/passwd", "a\nb"),
    *("job_0", "run_0000000000000", "run_", "wakeful://x", "'; DROP TABLE jobs; --", "${HOME}", "@file"),
    *(LONG, [], [1], ["a", None], {}, {"a": 1}, [[[]]], "every 1 second", "every", "in -5 minutes", "99999-01-01"),
    *(
        "b.own",
        "b",
        "backup",
        "a.wake",
        "wake",
        "a.tick",
        "tick",
        "a.a.x",
        "own",
        "x" * 64,
        "phone",
        "last",
        "7d",
        "1s",
    ),
    *("every 59 minutes", "every 61 minutes", "*/59 * * * *", "* * * * * *", "0 9,10 * * *", "59m", "61m", "36500d"),
    *(
        "in 89 days",
        "in 91 days",
        "every 40 days",
        "after b.own",
        "manually",
        "every hour by the clock in Pacific/Apia",
    ),
    *("2026-01-20T00:00:00Z", "2099-01-01T00:00:00Z", "2001-01-01T00:00:00Z", "Europe/Berlin", "Nowhere/At_All"),
)
GOOD = {
    "name": "own", "when": "every day at 09:00", "cron": "0 9 * * *", "every": "1d", "at": "2026-01-20T00:00:00Z",
    "prompt": "Look", "command": ["echo"], "url": "https://example.org", "text": "Look", "run": "run_0000000000000",
    "agent": "b", "question": "Go on?", "workflow": "w", "topic": "t", "message_id": "m", "for": "7d", "timeout": 0,
}  # fmt: skip
ALONE = (("when", "cron", "every", "at"), ("prompt", "command", "url"))  # one of each
BOUNDS = {"mode": "allow", "max": 5, "min_interval": "1h", "max_ahead": "90d", "expires": "30d"}
AT_ONCE = 40  # calls in one run, which may change something 100 times


def base(tool, argument):
    """Arguments with which the tool does its work, but for one that is tried."""
    if tool.name == "schedule":
        return {"when": GOOD["when"], "prompt": "Look"} | {"name": "new"}
    if tool.name == "change_schedule":
        return {"name": "own"} | ({} if argument in ALONE[0] else {"when": "every day at 10:00"})
    if tool.name == "publish_event" and argument in ("agent", "text", "context_key"):
        return {"agent": "b", "text": "Look"}
    return {name: GOOD[name] for name in tool.required}


def calls():
    """Each argument of each tool with each value; and arguments that there are not."""
    for tool in TOOLS.values():
        for name in tool.fields:
            beside = {other for group in ALONE if name in group for other in group}
            known = {key: value for key, value in base(tool, name).items() if key not in beside}
            for value in VALUES:
                yield tool.name, {**known, name: value}
        yield tool.name, {**base(tool, None), "nmae": "x"}
        yield tool.name, {}
        for arguments in ([], "text", 5):
            yield tool.name, arguments


async def each(by, many):
    """What each call is answered; what one of them made goes again, and what it removed comes back."""
    found = []
    for tool, given in many:
        done = await by.raw(tool, given)
        found.append((tool, given, done))
        if done.is_refused:
            continue
        if tool in ("schedule", "remind_me"):
            await by("remove_schedule", name=done.data["name"])
        elif tool == "remove_schedule":
            await by("schedule", name="own", when=GOOD["when"], prompt="Look")
    return found


async def definitions(scheduler):
    """All jobs that the agent has not made itself."""
    return {
        job.name: (job.schedule, job.payload, job.status, job.owner)
        for job in await scheduler.list_jobs()
        if job.owner != "a" or job.source != "mcp"
    }


@virtual
async def test_every_argument_of_every_tool_is_answered_within_the_bounds_or_refused(scene, agents, caplog):
    plan = {
        "a": agent(self_schedule=BOUNDS, schedules={"tick": {"every": "300d", "prompt": "x"}}),
        "b": agent(self_schedule="allow"),
    }
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.agents.limit(runs_per_day=None, cost_per_day=None)
        await scheduler.start()
        tools, many, answered = Tools(scheduler, agents, min_interval_ms=0), list(calls()), []
        await scheduler.add_job("backup", Every("300d"), kind="job")
        for who in ("a", "b"):
            await in_a_run(scene, tools, who, lambda by: by.ok("schedule", name="own", when="mondays at 9", prompt="x"))
        before = await definitions(scheduler)
        for start in range(0, len(many), AT_ONCE):
            part = many[start : start + AT_ONCE]
            answered += await in_a_run(scene, tools, "a", lambda by, part=part: each(by, part))
            await within_bounds(scheduler)
            for run, _ in (await questions(scheduler)).values():  # of ask_approval: the agent waits for the answer
                await scheduler.reject_run(run, by="ada")
        assert await definitions(scheduler) == before
        accepted = Counter(tool for tool, _, done in answered if not done.is_refused)
        assert set(TOOLS) - set(accepted) == {"cancel_run", "get_run", "wait_for_run"}  # of a run that there is not
        refused = " ".join(done.text for _, _, done in answered if done.is_refused)
        for words in BOUNDED:
            assert words in refused, words
        for by in (tools.by("boss"), tools.by("fox", "agent"), tools.by("vic", "viewer")):
            answered += [(name, given, await by.raw(name, given)) for name, given in many]
        assert len(answered) == 4 * len(many)
        for name, given, done in answered:
            assert "fault" not in done.text, (name, str(given)[:100], done.text)
            assert not done.is_refused or (done.text.endswith((".", "?", "!")) and "\n" not in done.text), done.text
            assert len(done.text) < 20_000, name
        assert [record for record in caplog.records if record.levelno >= logging.ERROR] == []


BOUNDED = (
    *("your schedules are at least 1h apart", "90d ahead", "30d after you make it", "still to come", "has times: give"),
    *(
        "already exists",
        "may not schedule commands",
        "may not schedule requests",
        "for others",
        "one of the agent's own",
    ),
    *("each item of command is text", "for is a duration such as 24h", "timeout is a duration such as 2d"),
    *("There is no job 'b.own' of a", "There is no job 'backup' of a", "tick was not made by a", "Unknown time zone"),
)


async def within_bounds(scheduler):
    """Whatever was asked for, what there is keeps to the bounds."""
    now = scheduler.clock.now()
    own = [job for job in await scheduler.list_jobs() if job.owner == "a" and job.source == "mcp"]
    assert len([job for job in own if job.status != "done"]) <= BOUNDS["max"]
    for job in own:
        trigger, first = job.trigger, job.trigger.upcoming_slots(now, 1)
        assert (job.kind, job.payload["agent"]) == ("agent", "a")
        assert trigger.min_gap_ms() is None or trigger.min_gap_ms() >= 3_600_000
        assert not first or first[0] <= now + 90 * DAY_MS
        assert trigger.type == "once" or trigger.until_ms <= now + 30 * DAY_MS


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
