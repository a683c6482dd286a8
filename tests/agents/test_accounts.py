"""Accounts: which agents share one, and how many runs of it there are at once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from tests.agents.virtual_agents import PLACE
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.ad_hoc_schedules import added_schedule
from wakeful.domains.agents.compiling import jobs_of
from wakeful.kernel.actions.drafts import draft
from wakeful.kernel.actions.jobs import add_jobs
from wakeful.triggers import Every

CALLED = {"every": "1h", "prompt": "x"}


def lanes(**runner):
    """The lanes of the jobs of an agent that call it, and of its heartbeat."""
    agent = {"runner": runner, "schedules": {"tick": CALLED}, "heartbeat": {"enabled": True, "every": "30m"}}
    parts, wrong = jobs_of("a", agent, Path("/"), "UTC")
    assert wrong == []
    found = {part.name: part.written.get("lanes", {}) for part in parts}
    assert found["a.tick"] == found["a.wake"]
    assert found["a.heartbeat"] == {}  # it does not call the tool
    return {lane: size for lane, size in found["a.tick"].items() if lane.startswith("account:")}


@pytest.mark.parametrize("preset", ["claude", "codex"])
def test_a_tool_that_renews_its_login_runs_once_at_a_time_per_account(preset):
    assert lanes(preset=preset) == {f"account:{preset}": 1}
    assert lanes(preset=preset, account="work") == {"account:work": 1}


@pytest.mark.parametrize(
    ("preset", "key"),
    [
        ("claude", "ANTHROPIC_API_KEY"),
        ("claude", "CLAUDE_CODE_OAUTH_TOKEN=abc"),
        ("claude", "CLAUDE_CODE_USE_BEDROCK=1"),
        ("codex", "CODEX_API_KEY"),
    ],
)
def test_a_key_needs_no_turns(preset, key):
    assert lanes(preset=preset, env=[key]) == {}
    assert lanes(preset=preset, env=["PATH_TO_KEY=x"]) == {f"account:{preset}": 1}


def test_other_tools_need_no_turns():
    assert lanes(preset="gemini") == {}
    assert lanes(preset="gemini", account="work") == {}


def test_an_account_says_how_many_runs_it_takes_at_once():
    assert lanes(preset="claude", account={"max_concurrent": 3}) == {"account:claude": 3}
    assert lanes(preset="gemini", account={"name": "work", "max_concurrent": 2}) == {"account:work": 2}
    assert lanes(start=["tool"], account={"name": "work", "max_concurrent": 2}) == {"account:work": 2}
    assert lanes(preset="claude", account={"name": "work"}) == {"account:work": 1}


def test_a_limit_of_runs_needs_an_account_to_count_them():
    _, wrong = jobs_of("a", {"runner": {"start": ["tool"], "account": {"max_concurrent": 2}}}, Path("/"), "UTC")
    assert [(one.where, one.message) for one in wrong] == [
        (("runner", "account", "name"), "is missing: max_concurrent counts the runs of an account, such as name: work.")
    ]


@virtual
async def test_agents_of_one_account_take_turns(scene, agents):
    async def answer():
        await asyncio.sleep(60)
        return "ok"

    agents.act = lambda turn: answer()
    runner = {"python": PLACE, "account": {"name": "login", "max_concurrent": 1}}
    plan = {name: {"runner": runner, "schedules": {"tick": CALLED}} for name in ("a", "b", "c")}
    other = {"d": {"runner": {"python": PLACE}, "schedules": {"tick": CALLED}}}
    async with agents.scheduler_with({**plan, **other}) as scheduler:
        await scheduler.start()
        await scene.until(at(hours=1, seconds=30))
        waiting = sorted(set(plan) - {turn.agent for turn in agents.turns})
        assert len(waiting) == 2
        assert "account:login" in str(await scheduler.explain(f"{waiting[0]}.tick"))
        await scene.until(at(hours=1, minutes=30))
    assert sorted(turn.agent for turn in agents.turns) == ["a", "b", "c", "d"]
    of_login = sorted(when for when, turn in zip(agents.times, agents.turns, strict=True) if turn.agent != "d")
    assert of_login[1] - of_login[0] >= timedelta(minutes=1)
    assert of_login[2] - of_login[1] >= timedelta(minutes=1)
    assert agents.most_busy == 2


@virtual
async def test_a_schedule_that_was_added_follows_its_agent_to_another_account(scene, agents):
    async def answer():
        await asyncio.sleep(60)
        return "ok"

    agents.act = lambda turn: answer()
    login = {"python": PLACE, "account": {"name": "login", "max_concurrent": 1}}
    before = {"a": {"runner": {"python": PLACE}}, "b": {"runner": login, "schedules": {"tick": CALLED}}}
    async with agents.scheduler_with(before) as scheduler:

        def add(tx, context):
            new = added_schedule(tx, "a", "a.extra", Every("1h"), prompt="x", options={})
            add_jobs(tx, context, [draft(new, "cli", context.declared)], "error", "UTC")

        await scheduler.transact(add)
        await scheduler.agents.apply({**before, "a": {"runner": login}})
        await scheduler.start()
        await scene.until(at(hours=1, minutes=30))
    assert sorted(turn.agent for turn in agents.turns) == ["a", "b"]
    assert agents.most_busy == 1
