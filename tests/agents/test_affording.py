"""What the schedules of agents ask for, beside what their budgets allow."""

from __future__ import annotations

import contextlib

import pytest

from tests.kernel.scene import START
from wakeful.config.loading import load
from wakeful.config.reading import ConfigError
from wakeful.domains.agents.budgets.affording import never_affordable, too_much, uncounted
from wakeful.domains.agents.budgets.rules import BudgetLimits, Caps
from wakeful.domains.agents.runners.spec import command_form, reports_cost
from wakeful.errors import InvalidJob
from wakeful.surfaces.cli.checking import budget_notes
from wakeful.triggers.moments import to_ms

NOW = to_ms(START)


@pytest.fixture
def notes(tmp_path):
    """What is said about the budgets of a file: places and sentences."""

    def read(text):
        path = tmp_path / "wakeful.yaml"
        path.write_text(f"defaults: {{timezone: UTC}}\n{text}")
        return dict(budget_notes(load(path), NOW))

    return read


def agent(rest, runner="{preset: claude}"):
    return f"agents:\n  a:\n    runner: {runner}\n    {rest}\n"


@pytest.mark.promise("X7", "D1")
@pytest.mark.parametrize(
    ("rest", "asks"),
    [
        ("heartbeat: {enabled: true}", None),  # 48, within 100
        ("heartbeat: {enabled: true, every: 10m}", "ask for 144 runs a day, and 100 may start: later ones"),
        ("heartbeat: {enabled: true, every: 10m}\n    budget: {runs_per_day: 144}", None),
        ("heartbeat: {enabled: true, every: 10m}\n    budget: {runs_per_day: null}", None),
        ("heartbeat: {enabled: true, every: 10m, active_hours: {start: '09:00', end: '17:00'}}", None),  # 48
        ("heartbeat: {enabled: false, every: 1m}", None),
        ("heartbeat: {enabled: true}\n    budget: {runs_per_day: 47}", "ask for 48 runs a day, and 47 may start"),
        ("schedules: {s: {interval: 5m, prompt: x}}", "ask for 288 runs a day"),
        ("schedules: {s: {every: 5m, prompt: x, target: main}}", "ask for 288 runs a day"),
        ("schedules: {s: {every: 5m, prompt: x, enabled: false}}", None),
        ("schedules: {s: {cron: '*/10 * * * 6', prompt: x}}", "ask for 144 runs a day"),  # on Saturdays
        ("schedules: {s: {at: '2030-01-01T00:00', prompt: x}}\n    budget: {runs_per_day: 0}", None),
        ("work: queue\n    schedules: {s: {every: 1m, work: true, prompt: x}}", None),  # only where items wait
        ("schedules: {s: {every: 20m, prompt: x}, t: {every: 20m, prompt: x}}", "ask for 144 runs a day"),
    ],
)
def test_schedules_that_ask_for_more_runs_than_an_agent_may_have_are_named(notes, rest, asks):
    found = notes(agent(rest))
    assert list(found) == ([] if asks is None else ["agents.a.budget.runs_per_day"])
    assert asks is None or asks in found["agents.a.budget.runs_per_day"]


@pytest.mark.promise("X7", "D1")
def test_all_agents_together_are_counted_beside_what_they_may_use(notes):
    two = "".join(f"  {name}: {{runner: {{preset: claude}}, heartbeat: {{enabled: true}}}}\n" for name in "ab")
    assert notes(f"limits: {{runs_per_day: 96}}\nagents:\n{two}") == {}
    assert notes(f"limits: {{runs_per_day: 95}}\nagents:\n{two}") == {
        "limits.runs_per_day": "the schedules of all agents ask for 96 runs a day, and 95 may start: later ones are "
        "passed over or wait for the next day. Raise it, or run them less often."
    }


@pytest.mark.promise("X7", "D1")
def test_a_cost_is_added_up_where_each_run_counts_the_same(notes):
    beat = "heartbeat: {enabled: true}\n    budget: {cost_per_day: 10}"
    found = notes(agent(beat, "{preset: codex, max_cost: 0.5}"))
    assert found["agents.a.budget.cost_per_day"].startswith(
        "its schedules ask for 48 runs a day, which count 24.00, and 10.00 may be spent: later ones"
    )
    assert "which count 24.00, and 20.00 may be spent" in found["limits.cost_per_day"]
    may = notes(agent(beat, "{preset: claude, max_cost: 0.5}"))  # it reports what each cost
    assert list(may) == ["agents.a.budget.cost_per_day"]
    assert "48 runs a day, which may cost up to 24.00 (max_cost), and 10.00 may be spent" in str(may)
    assert notes(agent(beat, "{preset: claude, max_cost: 0.2}")) == notes(agent(beat)) == {}


@pytest.mark.promise("X7")
def test_an_agent_that_a_budget_in_money_does_not_reach_is_named(notes):
    said = "limits: {cost_per_day: 5}\n"
    (place, sentence), *more = notes(said + agent("max_concurrent: 1", "{preset: codex}")).items()
    assert (place, more) == ("agents.a.runner", [])
    assert sentence.endswith("so limits.cost_per_day does not apply to it: give max_cost, 0 if runs are free.")
    assert notes(said + agent("max_concurrent: 1", "{preset: codex, max_cost: 0}")) == {}
    assert notes(said + agent("max_concurrent: 1", "{preset: claude}")) == {}
    assert notes(agent("max_concurrent: 1", "{preset: codex}")) == {}  # nobody asked for one


def test_nothing_is_said_where_there_are_no_agents():
    assert list(too_much([], BudgetLimits(Caps(0, 0), "UTC"), NOW)) == list(uncounted([])) == []


@pytest.mark.parametrize(
    ("runner", "reports"),
    [
        ({"preset": "claude"}, True),
        ({"preset": "codex"}, False),
        ({"preset": "scripted", "args": ["x"]}, False),
        ({"start": ["x"]}, False),
        ({"start": ["x"], "output": "json"}, True),
        ({"start": ["x"], "output": {"format": "json", "reply": "r"}}, False),
        ({"start": ["x"], "output": {"format": "json", "reply": "r", "cost": "c"}}, True),
        ({"url": "http://x"}, True),
        ({"python": "a:b"}, True),
    ],
)
def test_a_runner_reports_costs_where_its_output_has_a_place_for_them(runner, reports):
    assert reports_cost(runner) is reports


@pytest.mark.promise("X7", "D1")
@pytest.mark.parametrize(
    ("settings", "where"),
    [
        ({"runner": {"max_cost": 20}}, None),
        ({"runner": {"max_cost": 20.01}}, ("runner", "max_cost")),
        ({"runner": {"max_cost": 1}, "untrusted": {"max_cost": 21}}, ("untrusted", "max_cost")),
        ({"runner": {"max_cost": 21}, "untrusted": {"max_cost": 1}}, ("runner", "max_cost")),
        ({"runner": {}}, None),
        ({"runner": {}, "untrusted": {"max_cost": 21}}, None),  # runs start without a limit
    ],
)
def test_a_run_that_may_cost_more_than_all_agents_may_in_a_day_can_never_start(settings, where):
    found = never_affordable(settings, 20.0)
    assert (found[0] if found is not None else None) == where
    assert never_affordable(settings, None) is None


def test_a_runner_that_cannot_be_used_is_one_mistake_also_with_a_budget(tmp_path):
    path = tmp_path / "wakeful.yaml"
    path.write_text(agent("budget: {cost_per_day: 1}", "{preset: nope}"))
    with pytest.raises(ConfigError) as found:
        load(path)
    assert [fault.key for fault in found.value.faults] == ["agents.a.runner.preset"]


@pytest.mark.parametrize(
    ("more", "fits"),
    [
        ({"resume": ["x", "{session}"]}, False),
        ({"resume": ["x", "{session}", "{prompt}"]}, True),
        ({"resume": ["x", "{session}"], "prompt": "argument"}, True),  # it is appended to both
        ({}, True),
    ],
)
def test_a_prompt_that_is_written_into_start_must_reach_a_resumed_session_too(more, fits):
    with contextlib.nullcontext() if fits else pytest.raises(InvalidJob, match="resume does not"):
        assert command_form({"start": ["x", "{prompt}"], **more}).start == ("x", "{prompt}")
