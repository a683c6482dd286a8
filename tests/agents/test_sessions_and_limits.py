"""What a tool says about its sessions and its limits, through a scheduler on the machine's own clock."""

from __future__ import annotations

import contextlib
import sys

import pytest

from tests.service.real_time import Watch, make, real
from wakeful.clock import SystemClock

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
        assert (await scheduler.agents.get("a"))["spent_today"]["runs"] == 0  # nothing was done
        others = [await scheduler.run_job(f"{name}.tick") for name in ("b", "c")]
        ended = [await scheduler.wait_for_run(run) for run in others]
        await watch.until(lambda _: len(tool.calls) >= 4)
        assert SystemClock().now() / 1000 >= ends
        assert sorted(tool.calls[1:]) == ["a", "b", "c"]  # once each, and after the limit
        assert [run.outcome for run in ended] == ["success", "success"]
        assert (await scheduler.agents.get("b"))["skips"] == {"rate_limited": 1}
