"""Listings fold what agents do by themselves and that came to nothing; `--all` and JSON have everything."""

from __future__ import annotations

import logging

import pytest

from tests.agents.virtual_agents import VirtualAgents, agent
from wakeful import Scheduler
from wakeful.surfaces.cli.serve_log import _level
from wakeful.testing import VirtualClock, run


@pytest.fixture
def beaten(store):
    """An agent whose heart has beaten three times, and that found no work."""
    clock, _ = VirtualClock(), VirtualAgents()
    store.parent.mkdir(exist_ok=True)

    async def live():
        async with Scheduler(f"sqlite:///{store}", clock=clock, timezone="UTC") as scheduler:
            work = {"next": {"every": "10m", "work": True}}
            await scheduler.agents.apply(
                {"reporter": agent(heartbeat={"every": "1h"}, schedules=work, work={"source": "queue"})}
            )
            await scheduler.start()
            await clock.sleep("3h30m")

    run(live(), clock)


@pytest.mark.usefixtures("beaten")
def test_one_beat_is_one_run_and_runs_without_work_are_folded(wakeful):
    shown = wakeful("runs")
    jobs = [line.split()[1] for line in shown.out.splitlines()[1:]]
    assert jobs == ["reporter.wake"] * 3
    assert "24 runs of agents with nothing to do not shown: use --all." in shown.err.replace("\n", " ")
    every = wakeful("runs", "--all", "-n", "100").out
    assert every.count("reporter.heartbeat") == 3
    assert every.count("noop") == 21
    assert len(wakeful("runs", "-n", "100", "--json").json) == 27
    assert wakeful("runs", "reporter.heartbeat").out.count("success") == 3  # who asks for them by name gets them


@pytest.mark.usefixtures("beaten")
def test_the_job_that_wakes_an_agent_is_listed_when_there_is_something_to_say(wakeful):
    shown = wakeful("list")
    assert [line.split()[0] for line in shown.out.splitlines()[1:]] == ["reporter.heartbeat", "reporter.next"]
    assert "1 wake job of agents not shown: use --all." in shown.err
    assert "reporter.wake" in wakeful("list", "--all").out
    assert "reporter.wake" in wakeful("list", "--match", "wake").out
    assert len(wakeful("list", "--json").out.splitlines()) >= 3
    wakeful("pause", "reporter.wake")
    assert "reporter.wake" in wakeful("list").out


def test_the_log_has_no_line_for_a_beat_and_for_a_run_that_had_nothing_to_do():
    assert _level("reporter.heartbeat", "success") == _level("reporter.next", "noop") == logging.DEBUG
    assert _level("reporter.wake", "success") == logging.INFO
    assert _level("reporter.heartbeat", "error") == logging.WARNING
