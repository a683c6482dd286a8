"""What somebody reads who writes a first file with several agents: each sentence says what to do next."""

from __future__ import annotations

import pytest

from wakeful.surfaces.cli.agent_checks import agent_problems

FILE = """\
store: sqlite:///.wakeful/wakeful.db
defaults: {timezone: Europe/Berlin}
agents:
  defaults: {runner: {preset: scripted, args: [./agent.sh]}}
  ada:
    heartbeat: {every: 30m, active_hours: {start: "09:00", end: "09:01"}}
    schedules: {standup: {cron: "0 9 * * *", enabled: false}}
"""


@pytest.fixture
def file(here):
    (here / "wakeful.yaml").write_text(FILE)
    return here / "wakeful.yaml"


@pytest.mark.parametrize("argv", [["agent", "ask", "ada", "Hello?"], ["run", "ada.standup"], ["agent", "show", "ada"]])
def test_before_a_file_is_applied_a_command_says_to_apply_it(wakeful, file, argv):
    answer = wakeful(*argv)
    assert answer.code == 3
    assert f"{file} has not been applied: run wakeful apply, or wakeful serve." in answer.err


def test_an_empty_list_of_agents_says_to_apply_the_file(wakeful, file):
    assert "add some to agents in wakeful.yaml, and run wakeful apply or wakeful serve." in wakeful("agent", "list").out


def test_a_plan_says_which_jobs_are_disabled(wakeful, file):
    lines = wakeful("plan").out.splitlines()
    assert "+ ada.standup  every day at 09:00, Europe/Berlin, disabled" in lines
    assert "+ ada.heartbeat  every 30 minutes" in lines


@pytest.mark.promise("X3")
def test_explain_names_the_active_hours_of_a_heartbeat(wakeful, file):
    wakeful("apply")
    said = wakeful("explain", "ada.heartbeat").out
    assert "It wakes ada only between 09:00 and 09:01, Europe/Berlin: " in said
    assert "the next beat waits until " in said


def test_a_schedule_is_shown_as_it_is_written(wakeful, here):
    runner = "{preset: claude, cwd: ., timeout: 20m}"
    schedule = '{cron: "0 9 * * *", prompt: "Say hello."}'
    (here / "wakeful.yaml").write_text(f"agents: {{ada: {{runner: {runner}, schedules: {{standup: {schedule}}}}}}}\n")
    wakeful("apply")
    shown = dict(line.split(maxsplit=1) for line in wakeful("show", "ada.standup").out.splitlines() if "  " in line)
    assert shown["prompt"] == "Say hello."
    assert shown["runner"] == f"preset: claude, cwd: {here}, timeout: 20m"


def test_what_is_wrong_with_one_program_is_reported_once_for_all_its_agents(tmp_path, monkeypatch):
    program = tmp_path / "claude"
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    runner = {"preset": "claude"}
    gone = {"start": ["no-such-agent"]}
    found = agent_problems([("a", runner), ("b", gone), ("c", runner), ("d", gone)])
    assert [(name, text) for name, text, _ in found] == [
        ("a, c", "claude is not logged in (checked with claude auth status)"),
        ("b, d", "'no-such-agent' was not found on PATH here"),
    ]
    assert found[1][2] == "install it, or change agents.b.runner in wakeful.yaml"


@pytest.mark.parametrize(
    ("connectors", "hint"),
    [
        ("{}", "Add it to connectors, or use last or none."),
        ("{phone: {type: log}}", "Did you mean 'phone'?"),
        ("{disk: {type: log}}", "Add it to connectors, or use disk, last or none."),
    ],
)
def test_a_connector_that_is_missing_is_no_reason_to_deliver_nothing(wakeful, here, connectors, hint):
    agent = "{runner: {preset: scripted, args: [./x]}, deliver: fone}"
    (here / "wakeful.yaml").write_text(f"connectors: {connectors}\nagents: {{a: {agent}}}\n")
    assert f"agents.a.deliver: there is no connector named 'fone'. {hint}" in wakeful("check").out


def test_check_warns_of_programs_of_agents_and_workflow_files_that_are_missing_here(wakeful, here):
    (here / "wakeful.yaml").write_text(
        "store: sqlite:///.wakeful/wakeful.db\nworkflows: [nope.py:flow]\nagents:\n"
        "  defaults: {runner: {start: [no-such-agent], cwd: missing}}\n  a:\n  b:\n"
    )
    answer = wakeful("check")
    assert (answer.code, answer.out) == (0, f"{here}/wakeful.yaml: valid\n")
    warned = [line.partition(": warning: ")[2] for line in answer.err.splitlines()]
    assert f"workflows: there is no file {here}/nope.py here" in warned
    assert "agents a, b: 'no-such-agent' was not found on PATH here" in warned
    assert any(line.startswith("agents a, b: ") and "missing does not exist here" in line for line in warned)
