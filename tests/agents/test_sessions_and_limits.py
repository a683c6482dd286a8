"""What a tool says about its sessions and its limits, through a scheduler on the machine's own clock."""

from __future__ import annotations

import contextlib
import sys

import pytest

from tests.service.real_time import Watch, make, real
from wakeful.clock import SystemClock
from wakeful.triggers.moments import read_moment

TOOL = f"""#!{sys.executable}
import json, os, sys, time
from pathlib import Path

sys.stdin.read()
with open("calls", "a") as calls:
    calls.write(os.environ["WAKEFUL_AGENT"] + "\\n")
limit = Path("limit")
if limit.exists() and time.time() < float(limit.read_text()):
    print(json.dumps({{"error": "limit reached", "resets_at": float(limit.read_text())}}))
    sys.exit(1)
session = sys.argv[1] if len(sys.argv) > 1 else Path("next").read_text()
if session == "old" and Path("gone").exists():
    print("no conversation found", file=sys.stderr)
    sys.exit(1)
print(json.dumps({{"reply": "hi", "session": session}}))
"""


class Tool:
    """A program in a folder, and agents that are it."""

    def __init__(self, folder):
        self.folder = folder
        path = folder / "tool"
        path.write_text(TOOL)
        path.chmod(0o755)
        (folder / "next").write_text("old")

    def agent(self, **settings):
        runner = {
            "start": ["./tool"],
            "resume": ["./tool", "{session}"],
            "cwd": str(self.folder),
            "account": "work",
            "output": {"format": "json", "reply": "reply", "session": "session", "error": "error"},
            "rate_limit": {"pattern": "limit reached", "resets_at": "resets_at"},
            "session_gone": {"pattern": "no conversation found"},
        }
        return {"runner": runner, "schedules": {"tick": {"every": "1d", "prompt": "x"}}, **settings}

    @property
    def calls(self):
        path = self.folder / "calls"
        return path.read_text().split() if path.exists() else []


@pytest.fixture
def tool(tmp_path):
    return Tool(tmp_path)


@contextlib.asynccontextmanager
async def started(tmp_path, agents):
    async with make(tmp_path) as scheduler:
        await scheduler.agents.apply(agents)
        watch = Watch(scheduler)
        await scheduler.start()
        yield scheduler, watch


@real
async def test_a_session_that_is_gone_is_replaced_once_within_the_run(tool, tmp_path):
    async with started(tmp_path, {"a": tool.agent()}) as (scheduler, _):
        first = await scheduler.wait_for_run(await scheduler.run_job("a.tick"))
        assert (first.outcome, first.output["session"]) == ("success", "old")
        (tool.folder / "gone").touch()
        (tool.folder / "next").write_text("new")
        second = await scheduler.wait_for_run(await scheduler.run_job("a.tick"))
        assert (second.outcome, second.output["session"], len(tool.calls)) == ("success", "new", 3)
        assert second.output["notes"] == ["the session old was gone (no conversation found); a new one began"]


@pytest.mark.promise("X7")
@real
async def test_a_rate_limit_defers_every_agent_of_the_account_from_the_first_that_meets_it(tool, tmp_path):
    names = ("a", "b", "c")
    async with started(tmp_path, {name: tool.agent() for name in names}) as (scheduler, watch):
        ends = SystemClock().now() / 1000 + 2
        (tool.folder / "limit").write_text(str(ends))
        met = await scheduler.wait_for_run(await scheduler.run_job("a.tick"))
        assert (met.outcome, tool.calls) == ("deferred", ["a"])
        assert (await scheduler.agents.get("a"))["spent_today"]["runs"] == 1  # it was called
        others = [await scheduler.run_job(f"{name}.tick") for name in ("b", "c")]
        ended = [await scheduler.wait_for_run(run) for run in others]
        await watch.until(lambda _: len(tool.calls) >= 4)
        assert SystemClock().now() / 1000 >= ends
        assert sorted(tool.calls[1:]) == ["a", "b", "c"]  # once each, and after the limit
        assert [run.outcome for run in ended] == ["success", "success"]
        assert (await scheduler.agents.get("b"))["skips"] == {"rate_limited": 1}


@pytest.mark.promise("X7")
@real
async def test_words_about_a_limit_stop_nobody_and_an_error_without_proof_for_an_hour_at_most(tmp_path):
    words = tmp_path / "words.sh"
    words.write_text('echo called >> calls\necho "Our limit reached the moon; try again in 30 days"\n[ ! -e fails ]\n')
    runner = {"start": ["sh", "words.sh"], "cwd": str(tmp_path), "account": "work"}
    runner["rate_limit"] = {"pattern": "limit reached"}
    plan = {"runner": runner, "schedules": {"tick": {"every": "1d", "prompt": "x"}}, "budget": {"runs_per_day": 3}}
    async with started(tmp_path, {"a": plan, "b": plan}) as (scheduler, _):
        for name in ("a", "b"):
            run = await scheduler.wait_for_run(await scheduler.run_job(f"{name}.tick"))
            assert run.outcome == "success"
        assert await scheduler.agents.rate_limits() == []
        (tmp_path / "fails").touch()
        began = SystemClock().now()
        run = await scheduler.wait_for_run(await scheduler.run_job("a.tick"))
        [limit] = await scheduler.agents.rate_limits()
        assert (run.outcome, limit["account"]) == ("deferred", "work")
        assert 0 < read_moment(limit["until"], "until") - began <= 3_600_000 + 60_000
        spent = [(await scheduler.agents.get(name))["spent_today"]["runs"] for name in ("a", "b")]
        assert spent == [2, 1]  # what was started counts
        (tmp_path / "fails").unlink()
        await scheduler.agents.clear_rate_limit("work")
        run = await scheduler.wait_for_run(await scheduler.run_job("b.tick"))
        assert (run.outcome, await scheduler.agents.rate_limits()) == ("success", [])
