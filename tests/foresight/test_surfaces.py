"""Foresight on the command line: files that are not applied, JSON that streams, and what a plan adds."""

from __future__ import annotations

import json
import re
import signal

import pytest

from tests.cli.conftest import here, wakeful
from wakeful.console.failures import INTERRUPTED
from wakeful.surfaces.cli.watching import watching

__all__ = ["here", "wakeful"]

FILE = """
store: ./jobs.db
defaults: {timezone: UTC}
jobs:
  report: {cron: "0 * * * *", command: ["touch", "never"]}
"""
MORE = '  often: {cron: "*/30 * * * *", command: ["touch", "never"]}\n'


@pytest.mark.promise("X4")
def test_a_file_that_is_not_applied_is_simulated_and_stays_so(wakeful, here):
    (here / "wakeful.yaml").write_text(FILE)
    before = sorted(path.name for path in here.iterdir())
    answer = wakeful("simulate", "--config", "wakeful.yaml", "--for", "1d", "--json")
    found = json.loads(answer.out)
    assert list(found) == ["from", "to", "seed", "runs", "jobs", "lanes", "notes", "cost", "truncated"]
    assert {run["job"] for run in found["runs"]} == {"report"}
    assert len(found["runs"]) == found["jobs"][0]["runs"] == 24
    assert sorted(path.name for path in here.iterdir()) == before
    shown = wakeful("simulate", "--config", "wakeful.yaml", "--for", "1d")
    assert ": 24 runs of 1 job." in shown.out


@pytest.mark.promise("X4")
def test_a_file_is_simulated_at_a_time_at_which_some_of_its_jobs_are_over(wakeful, here):
    ending = '  ending: {every: 1h, until: "2099-01-01T00:00:00Z", command: ["touch", "never"]}\n'
    (here / "wakeful.yaml").write_text(FILE + ending)
    answer = wakeful("simulate", "--config", "wakeful.yaml", "--for", "1d", "--from", "2100-01-01", "--json")
    found = json.loads(answer.out)
    assert {job["name"]: job["runs"] for job in found["jobs"]} == {"ending": 0, "report": 23}
    assert [(note["kind"], note["job"]) for note in found["notes"]] == [("never", "ending")]


@pytest.mark.promise("X4")
def test_an_assumption_about_an_unknown_job_leaves_no_half_of_an_answer(wakeful, here):
    (here / "wakeful.yaml").write_text(FILE)
    answer = wakeful("simulate", "--config", "wakeful.yaml", "--assume", "reprot=3s", "--json")
    assert (answer.code, answer.out) == (3, "")
    assert "Did you mean 'report'?" in answer.err


@pytest.mark.promise("X21")
def test_a_plan_says_what_it_adds_to_a_day(wakeful, here):
    (here / "wakeful.yaml").write_text(FILE)
    assert wakeful("plan").out.splitlines()[-1] == "+ 24 runs a day"
    wakeful("apply")
    (here / "wakeful.yaml").write_text(FILE + MORE)
    answer = wakeful("plan")
    assert (answer.code, answer.out.splitlines()[-1]) == (5, "+ 48 runs a day")
    assert json.loads(wakeful("plan", "--json").out)["adds"] == {"runs_per_day": 48.0, "cost_per_day": 0.0}
    (here / "wakeful.yaml").write_text(FILE.replace("0 * * * *", "0 9 * * 1"))
    assert wakeful("plan").out.splitlines()[-1] == "- 24 runs a day"


@pytest.mark.promise("X4", "X21")
def test_a_plan_is_compared_by_simulation(wakeful, here):
    (here / "wakeful.yaml").write_text(FILE)
    wakeful("apply")
    (here / "wakeful.yaml").write_text(FILE + MORE)
    said = wakeful("plan", "--simulate").out
    weeks = (
        r"Simulated for 7 days: (168|169) runs before, (504|505|506) runs after\."  # one more where an hour just began
    )
    assert re.search(weeks, said) is not None
    [often] = [line.split() for line in said.splitlines() if line.startswith("often ") and "->" in line]
    assert (often[1], often[3] in ("336", "337"), often[4:]) == ("0", True, ["0", "->", "0"])
    compared = json.loads(wakeful("plan", "--simulate", "--json").out)["simulated"]
    assert compared["before"]["runs"] in (168, 169)
    assert compared["after"]["runs"] in (504, 505, 506)


@pytest.mark.promise("X21")
def test_a_forecast_is_printed_by_day_and_as_json(wakeful, here):
    (here / "wakeful.yaml").write_text(FILE)
    assert wakeful("forecast").out == "No jobs: nothing to forecast.\n"
    wakeful("apply")
    found = json.loads(wakeful("forecast", "report", "--for", "2d", "--json").out)
    assert sum(day["runs"] for day in found["days"]) == 48
    assert found["by_job"][0]["history"] == "no history"
    assert wakeful("forecast", "nothing").code == 3
    assert ": 48 runs of 1 job, about $0.00" in wakeful("forecast", "--for", "2d").out


@pytest.mark.promise("X21")
def test_an_agent_is_shown_with_when_its_budget_is_reached(wakeful, here):
    (here / "wakeful.yaml").write_text(
        """
store: ./jobs.db
defaults: {timezone: UTC}
agents:
  a:
    runner: {start: ["true"]}
    budget: {runs_per_day: 12}
    schedules:
      tick: {cron: "0 * * * *", prompt: hello}
"""
    )
    wakeful("apply")
    said = wakeful("agent", "show", "a").out
    assert "reached on " in said
    (here / "wakeful.yaml").write_text((here / "wakeful.yaml").read_text().replace("12", "30"))
    wakeful("apply")
    assert "reached on " not in wakeful("agent", "show", "a").out


@pytest.mark.promise("X21")
def test_a_forecast_says_what_it_knows_of_costs_and_where_a_budget_ends_the_day(wakeful, here):
    (here / "replying.py").write_text(
        "from wakeful.agents import Reply\n\n\nasync def reply(turn):\n    return Reply('ok', cost=0.25)\n"
    )
    (here / "wakeful.yaml").write_text(
        """
store: ./jobs.db
defaults: {timezone: UTC}
agents:
  defaults: {runner: {python: "replying:reply"}}
  known:
    budget: {runs_per_day: 5}
    schedules:
      ran: {every: 2h, prompt: hello}
      new: {every: 1d, prompt: hello}
      asked: {manual: true, prompt: hello}
  unknown:
    schedules: {tick: {every: 1d, prompt: hello}}
"""
    )
    wakeful("apply")
    assert wakeful("run", "known.ran", "--wait").code == 0
    answer = wakeful("forecast", "--for", "4d")
    notes = [line.removeprefix("Note: ") for line in answer.err.splitlines() if line.startswith("Note: ")]
    assert notes[:2] == [
        "no history, so no cost: unknown.tick",
        "no history, so the costs of other jobs of the same agent: known.new",
    ]
    assert notes[2].startswith("the budget of known is used up for the first time at about ")
    assert len(notes) == 3


@pytest.mark.promise("X21")
def test_a_plan_counts_the_beats_of_a_heartbeat_within_its_hours(wakeful, here):
    (here / "wakeful.yaml").write_text(
        """
store: ./jobs.db
defaults: {timezone: UTC}
agents:
  a: {runner: {start: ["true"]}, heartbeat: {every: 30m, active_hours: "09:00-17:00"}}
"""
    )
    assert wakeful("plan").out.splitlines()[-1] == "+ 32 runs a day"  # each beat wakes the agent
    wakeful("apply")
    found = json.loads(wakeful("forecast", "--for", "1d", "--json").out)
    assert 32 <= sum(day["runs"] for day in found["days"]) <= 36  # one more may wait for the hours to begin


@pytest.fixture
def ctrl_c():
    """Presses Ctrl-C once, as soon as somebody else than Python hears it."""
    before = signal.getsignal(signal.SIGINT)

    def look(*_):
        if signal.getsignal(signal.SIGINT) is not before:
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.raise_signal(signal.SIGINT)

    was = signal.signal(signal.SIGALRM, look)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, was)


@pytest.mark.promise("X4")
def test_ctrl_c_ends_a_simulation_with_what_there_is_and_a_second_one_ends_it_all(wakeful, here, ctrl_c):
    with watching() as watch:
        assert watch(0.1)
        signal.raise_signal(signal.SIGINT)
        assert not watch(0.2)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    (here / "wakeful.yaml").write_text(FILE.replace("0 * * * *", "* * * * *"))
    ctrl_c()
    answer = wakeful("simulate", "--config", "wakeful.yaml", "--for", "366d")
    assert answer.code == INTERRUPTED
    assert " of 1 job." in answer.out
    assert "Note: ended by Ctrl-C: what is shown happened before " in answer.err
    ctrl_c()
    answer = wakeful("simulate", "--config", "wakeful.yaml", "--for", "366d", "--json")
    assert (answer.code, json.loads(answer.out)["truncated"]) == (INTERRUPTED, True)


@pytest.mark.promise("X21")
def test_a_schedule_that_runs_only_so_often_counts_no_more_than_that(wakeful, here):
    (here / "wakeful.yaml").write_text(
        """
store: ./jobs.db
defaults: {timezone: UTC}
agents:
  a:
    runner: {start: ["true"]}
    budget: {runs_per_day: 10}
    schedules: {few: {every: 1m, max_runs: 7, prompt: hello}}
"""
    )
    assert "ask for" not in wakeful("check").err
    planned = wakeful("plan")
    assert "+ 2 runs a week" in planned.out.splitlines()
    (here / "wakeful.yaml").write_text((here / "wakeful.yaml").read_text().replace("max_runs: 7", "max_runs: 70"))
    assert "its schedules ask for 70 runs a day, and 10 may start" in wakeful("check").err
