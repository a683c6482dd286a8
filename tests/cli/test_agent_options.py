"""Schedules of agents on the command line take the options of jobs."""

from __future__ import annotations

import pytest

FILE = "agents: {a: {runner: {start: ['true']}, labels: [here]}}\n"

pytestmark = pytest.mark.promise("D1")


@pytest.fixture
def agent(here, wakeful):
    (here / "wakeful.yaml").write_text(FILE)
    assert wakeful("apply").code == 0
    return wakeful


def job(wakeful):
    return wakeful("show", "a.tick", "--json").json


def test_a_schedule_of_an_agent_is_added_with_every_option_of_a_job(agent):
    options = [
        *("--jitter", "5", "--active-hours", "09:00-17:00", "--until", "2030-01-01", "--max-runs", "9"),
        *("--except", "2027-12-24", "--stagger", "10m", "--start", "2026-01-01"),
        *("--catch-up", "2h", "--overlap", "queue", "--retry", "1m", "--priority", "7", "--timeout", "10m"),
        *("--approval", "--lane", "gpu=2", "--label", "big", "--max-errors", "3", "--on-crash", "skip"),
        *("--deliver", "phone", "--tz", "Europe/Berlin"),
    ]
    assert agent("add", "tick", "--agent", "a", "--prompt", "x", "--every", "1h", *options).code == 0
    found = job(agent)
    trigger, chosen = found["trigger"], found["options"]
    modifiers = {"jitter", "active_hours", "until", "max_runs", "except", "stagger", "start", "tz"}
    assert modifiers <= set(trigger)
    assert (chosen["catch_up"], chosen["overlap"], chosen["priority"]) == ({"within": "2h"}, "queue", 7)
    assert (chosen["retry"]["delays"], chosen["approval"], chosen["timeout"]) == (["1m"], True, "11m")
    assert (chosen["lanes"]["gpu"], chosen["labels"], chosen["max_errors"]) == (2, ["big", "here"], 3)
    assert (chosen["on_crash"], "deliver" in chosen) == ("skip", False)
    assert (found["payload"]["deliver"], found["payload"]["timeout"]) == ("phone", 600_000)


def test_a_schedule_of_an_agent_starts_after_another_job(agent):
    assert agent("add", "tick", "--agent", "a", "--prompt", "x", "--after", "backup", "--on", "failure").code == 0
    assert job(agent)["trigger"] == {"type": "after", "job": "backup", "on": "failure"}


def test_an_edit_changes_where_its_reply_goes_how_long_it_takes_and_which_results_are_sent(agent):
    assert agent("add", "tick", "--agent", "a", "--prompt", "x", "--every", "1h", "--timeout", "10m").code == 0
    assert agent("edit", "a.tick", "--deliver", "phone", "--timeout", "2h", "--jitter", "5").code == 0
    found = job(agent)
    assert (found["payload"]["deliver"], found["payload"]["timeout"], found["payload"]["prompt"]) == (
        "phone",
        7_200_000,
        "x",
    )
    assert (found["options"]["timeout"], "deliver" in found["options"]) == ("121m", False)
    assert agent("edit", "a.tick", "--deliver", "ci", "--deliver-on", "failure").code == 0
    assert job(agent)["options"]["deliver"] == {"to": "ci", "on": "failure"}
    assert job(agent)["payload"]["deliver"] == "phone"
    assert agent("edit", "a.tick", "--deliver", "none", "--timeout", "none", "--prompt", "none").code == 0
    assert {"deliver", "timeout", "prompt"}.isdisjoint(job(agent)["payload"])
    assert (
        "does not go"
        not in agent("add", "b", "--agent", "a", "--every", "1h", "--deliver", "ci", "--deliver-on", "any").err
    )


def test_an_edit_of_lanes_leaves_those_of_the_agent(agent):
    assert agent("add", "tick", "--agent", "a", "--prompt", "x", "--every", "1h", "--lane", "gpu=2").code == 0
    own = {lane: size for lane, size in job(agent)["options"]["lanes"].items() if lane != "gpu"}
    assert list(own) == ["agent:a"]
    assert agent("edit", "a.tick", "--lane", "cpu=3").code == 0
    assert job(agent)["options"]["lanes"] == {**own, "cpu": 3}


def test_a_schedule_stays_with_its_agent_and_other_jobs_have_no_prompt(agent):
    assert agent("add", "tick", "--agent", "a", "--prompt", "x", "--every", "1h").code == 0
    assert agent("add", "plain", "--every", "1h", "--", "true").code == 0
    assert "A schedule stays with its agent" in agent("edit", "a.tick", "--agent", "b").err
    assert "only schedules of agents have a prompt" in agent("edit", "plain", "--prompt", "x").err
