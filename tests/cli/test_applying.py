"""`check`, `plan` and `apply` at the keyboard, and a server that watches its file."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from wakeful.config.job_schema import job_schema

SECRET = "hunter2-and-more"  # noqa: S105 - a secret that is none

JOBS = """\
store: sqlite:///.wakeful/wakeful.db
jobs:
  backup: {every: 6h, command: [echo, old]}
  nightly: {cron: "0 2 * * *", timezone: UTC, command: ["true"]}
  third: {every: 1h, command: ["true"]}
"""


@pytest.fixture
def write(here):
    def write(text):
        (here / "wakeful.yaml").write_text(text)

    return write


def test_plan_says_what_apply_then_does(wakeful, write, store):
    write(JOBS)
    planned = wakeful("plan")
    assert (planned.code, planned.err) == (5, "")
    assert planned.out.splitlines() == [
        "+ backup  every 6 hours",
        "+ nightly  every day at 02:00, UTC",
        "+ third  every hour",
        "+ 29 runs a day",
    ]
    assert not store.exists()
    applied = wakeful("apply")
    assert (applied.code, applied.out.splitlines()) == (0, planned.out.splitlines()[:-1])
    assert wakeful("plan").code == 0
    assert wakeful("plan", "--json").json == {"create": [], "update": [], "remove": [], "unchanged": 3}


def test_a_schedule_that_moves_is_shown_with_both_times(wakeful, write):
    write(JOBS)
    wakeful("apply")
    write(JOBS.replace("0 2", "0 3").replace("old", "new").replace("third:", "fourth:"))
    lines = wakeful("plan").out.splitlines()
    assert lines[0] == "+ fourth  every hour"
    assert lines[1] == '~ backup  command: ["echo", "old"] -> ["echo", "new"]'
    assert "T02:00:00Z -> " in lines[2]
    assert lines[3] == "- third"
    data = wakeful("apply", "--json").json
    assert (data["create"], data["remove"], data["unchanged"]) == (["fourth"], ["third"], 0)
    assert data["update"][0] == {"name": "backup", "changes": {"command": [["echo", "old"], ["echo", "new"]]}}


def test_a_large_removal_is_refused_until_it_is_meant(wakeful, write):
    write(JOBS)
    wakeful("apply")
    write(JOBS[: JOBS.index("  nightly")])
    refused = wakeful("apply")
    assert (refused.code, refused.out) == (4, "")
    assert "would remove 2 of its 3 jobs" in refused.err
    assert wakeful("apply", "--yes").out.splitlines() == ["- nightly", "- third"]


def test_a_broken_file_changes_nothing(wakeful, write, store):
    write(JOBS.replace("every: 1h", "evry: 1h"))
    for command in ("plan", "apply"):
        answer = wakeful(command)
        assert (answer.code, answer.out) == (1, "")
        assert "There is no key 'evry' in jobs.third. Did you mean 'every'?" in answer.err
    assert not store.exists()


def test_another_sections_secret_is_not_needed(wakeful, write):
    write(JOBS + "server: {sessions: {url: http://127.0.0.1:1, token: '${NOT_SET}'}}\n")
    assert wakeful("apply").code == 0
    assert wakeful("add", "own", "--every", "1h", "--", "true").code == 0
    assert wakeful("check").code == 1


def test_a_value_from_elsewhere_reaches_the_command_and_never_the_store(wakeful, write, store, here, monkeypatch):
    (here / ".env").write_text(f"TOKEN={SECRET}\n")
    monkeypatch.delenv("TOKEN", raising=False)
    write(
        "store: sqlite:///.wakeful/wakeful.db\nenv_file: .env\njobs:\n  job:\n    manual: true\n"
        "    env: {KEY: 'key ${TOKEN}'}\n    command: [sh, -c, 'test \"$KEY\" = \"key hunter2-and-more\"']\n"
    )
    assert wakeful("check").code == 0
    assert wakeful("apply").code == 0
    assert wakeful("run", "job").code == 0
    monkeypatch.delenv("TOKEN", raising=False)
    (here / ".env").write_text("OTHER=1\n")
    answer = wakeful("run", "job")
    assert answer.code == 1
    assert "env KEY needs ${TOKEN}, which is not set" in answer.err
    with closing(sqlite3.connect(store)) as database:
        stored = "\n".join(database.iterdump())
    assert "key ${TOKEN}" in stored
    assert f"key {SECRET}" not in stored.replace(f'\\"key {SECRET}\\"', "")


# -- a server that watches its file -----------------------------------------------------------------------------------


def jobs_of(terminal):
    return [job["name"] for job in terminal.ask("list", "--json").json]


def alerts_of(terminal):
    return [alert["message"] for alert in terminal.ask("alert", "list", "--json").json if alert["closed_at"] is None]


@pytest.mark.promise("X15")
def test_a_server_applies_its_file_at_the_start_and_whenever_it_changes(terminal):
    file = terminal.folder / "wakeful.yaml"
    file.write_text(JOBS)
    server = terminal.serve()
    server.until("wakeful.yaml applied: 3 added, 0 changed, 0 removed")
    file.write_text(JOBS.replace("every: 1h", "every: 2h"))
    server.until("wakeful.yaml applied: 0 added, 1 changed, 0 removed")
    file.write_text(JOBS + "  broken: {evry: 1h, command: [x]}\n")
    server.until("the configuration was not applied")
    assert jobs_of(terminal) == ["backup", "nightly", "third"]
    [message] = alerts_of(terminal)
    assert "wakeful.yaml, line 6: There is no key 'evry' in jobs.broken" in message
    file.write_text(JOBS + "  fourth: {every: 1h, command: ['true']}\n")
    server.until("wakeful.yaml applied: 1 added, 1 changed, 0 removed")
    assert alerts_of(terminal) == []


def test_a_large_removal_waits_for_a_person_while_the_server_goes_on(terminal):
    file = terminal.folder / "wakeful.yaml"
    file.write_text(JOBS)
    server = terminal.serve()
    server.until("3 added")
    file.write_text("store: sqlite:///.wakeful/wakeful.db\n")
    server.until("would remove 3 of its 3 jobs")
    assert len(jobs_of(terminal)) == 3
    assert len(alerts_of(terminal)) == 1
    assert terminal("apply", "--yes").code == 0
    assert jobs_of(terminal) == []
    assert alerts_of(terminal) == []


def test_included_files_are_watched_too(terminal):
    file = terminal.folder / "wakeful.yaml"
    file.write_text(f"include: ['jobs/*.yaml']\n{JOBS}")
    server = terminal.serve()
    server.until("3 added")
    (terminal.folder / "jobs").mkdir()
    (terminal.folder / "jobs" / "more.yaml").write_text("jobs: {more: {every: 1h, command: ['true']}}\n")
    server.until("1 added")
    assert "more" in jobs_of(terminal)


def test_a_server_that_was_killed_goes_on_with_what_it_applied(terminal):
    file = terminal.folder / "wakeful.yaml"
    file.write_text(JOBS)
    server = terminal.serve()
    server.until("3 added")
    before = terminal.ask("list", "--json").json
    server.kill()
    terminal.ask("edit", "third", "--every", "7h")  # a person's change stays until the file changes
    terminal.serve().until("configuration:")
    after = terminal.ask("list", "--json").json
    assert [job["next_run_at"] for job in after[:2]] == [job["next_run_at"] for job in before[:2]]
    assert after[2]["revision"] == before[2]["revision"] + 1


# -- the page ---------------------------------------------------------------------------------------------------------

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "configuration.md").read_text(encoding="utf-8")


def test_the_pages_jobs_are_planned_as_it_says(wakeful, write, monkeypatch):
    text = PAGE.partition("## Jobs")[2].partition("\n## ")[0]
    [jobs] = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    [(command, shown)] = re.findall(r"```console\n\$ wakeful (\w+)\n(.*?)```", text, re.DOTALL)
    write(jobs)
    monkeypatch.setenv("BACKUP_TOKEN", "x")
    assert wakeful("check").code == 0
    assert wakeful(command).out == shown
    assert wakeful("apply").out.splitlines() == shown.splitlines()[:-1]  # what it adds to a day is known by then


def test_the_page_and_the_schema_name_every_key_of_a_job():
    keys = job_schema()["properties"]
    table = PAGE.partition("| | keys |")[2].partition("\n\n")[0]
    assert [key for key in keys if f"`{key}`" not in table and f"`{key}:" not in table] == []


def test_check_warns_of_what_is_missing_on_this_machine_and_finds_the_file_valid(wakeful, write, here):
    write(
        "jobs:\n"
        "  a: {every: 1h, command: [echo, hi], env_file: missing.env}\n"
        "  b: {every: 1h, command: [no-such-program], cwd: gone}\n"
    )
    answer = wakeful("check")
    assert (answer.code, answer.out) == (0, f"{here / 'wakeful.yaml'}: valid\n")
    said = f"{here / 'wakeful.yaml'}: warning"
    assert [line for line in answer.err.splitlines() if "nobody is notified" not in line] == [
        f"{said}: jobs.a: The env file {here / 'missing.env'} does not exist here; it is read at every run.",
        f"{said}: jobs.b: The directory {here / 'gone'} does not exist here.",
        f"{said}: jobs.b: 'no-such-program' was not found on PATH here.",
    ]
    assert wakeful("check", "--json").json == []


@pytest.mark.promise("X7", "D1")
def test_check_plan_and_apply_say_which_budget_the_schedules_alone_exceed(wakeful, write, here):
    (here / "work").mkdir()
    often = 'agents: {a: {runner: {start: ["true"], cwd: work}, heartbeat: {every: 5m}}}\n'
    write(f"store: sqlite:///.wakeful/wakeful.db\n{often}")
    said = "agents.a.budget.runs_per_day: its schedules ask for 288 runs a day, and 100 may start: later ones"
    checked = wakeful("check")
    assert (checked.code, checked.err.startswith(f"{here / 'wakeful.yaml'}: warning: {said}")) == (0, True)
    planned = wakeful("plan")
    assert (planned.code, said in planned.err) == (5, True)
    assert wakeful("plan", "--json").json["notes"][0].startswith(said)
    assert said in wakeful("apply").err
    write(f"store: sqlite:///.wakeful/wakeful.db\nlimits: {{runs_per_day: null}}\n{often}")
    assert said not in wakeful("check").err
    assert "~ limits  default_runs_per_day: 100 -> none\n" in wakeful("plan").out


@pytest.mark.promise("X7", "D1")
def test_what_all_agents_may_use_in_a_day_is_planned_and_applied_too(wakeful, write):
    agents = """\
store: sqlite:///.wakeful/wakeful.db
connectors: {phone: {url: "${UNSET_HERE}"}}
agents: {a: {runner: {start: ["true"]}, schedules: {tick: {every: 1h, prompt: x}}}}
"""
    write(f"{agents}limits: {{runs_per_day: 7, cost_per_day: 1.5}}\n")
    said = "~ limits  runs_per_day: none -> 7; cost_per_day: 20.0 -> 1.5"
    assert said in wakeful("plan").out.splitlines()
    assert said in wakeful("apply").out.splitlines()
    assert "of 7 runs, cost 0.00 of 1.50" in wakeful("explain", "a.tick").out
    assert wakeful("plan").code == 0
    write(f"{agents}limits: {{runs_per_day: 9, tokens_per_day: 1000}}\n")
    changes = {"runs_per_day": [7, 9], "cost_per_day": [1.5, 20.0], "tokens_per_day": [None, 1000]}
    assert wakeful("plan", "--json").json["update"] == [{"name": "limits", "changes": changes}]
    assert wakeful("apply", "--json").json["update"] == [{"name": "limits", "changes": changes}]
    assert "of 9 runs" in wakeful("explain", "a.tick").out
    write(JOBS)  # says nothing about it, and has no agents
    assert "limits" not in wakeful("apply", "--yes").out
