"""`approve` and `reject` at a terminal, with and without a server."""

from __future__ import annotations

import getpass

import pytest

pytestmark = pytest.mark.promise("X8")


@pytest.fixture
def asked(wakeful):
    """A job that asks before every start, and has."""
    assert wakeful("add", "deploy", "--every", "1d", "--approval", "yes", "--", "echo", "deployed").code == 0
    answer = wakeful("run", "deploy")
    assert (answer.code, answer.out) == (0, "Run deploy?\n")
    assert "wakeful approve run_" in answer.err
    return wakeful("runs", "--json").json[0]["id"]


def test_what_is_approved_runs_with_the_next_engine_and_shows_who_approved(wakeful, asked):
    answer = wakeful("approve", asked, "--note", "fine")
    assert answer.code == 0
    assert "No server is running" in answer.err
    again = wakeful("runs", "--json").json[0]
    assert (again["status"], again["reason"], again["retry_of"]) == ("queued", "approval", asked)
    said = again["approvals"][0]
    assert (said["verdict"], said["by"], said["note"]) == ("approved", f"cli:{getpass.getuser()}", "fine")
    assert wakeful("show", asked).code == 0


def test_what_is_rejected_is_cancelled_and_shows_who_and_why(wakeful, asked):
    assert wakeful("reject", "deploy", "--note", "not today").code == 0
    run = wakeful("runs", "--json").json[0]
    assert (run["outcome"], run["error"]) == ("cancelled", f"rejected by cli:{getpass.getuser()}: not today")


@pytest.mark.parametrize("second", ["approve", "reject"])
def test_a_question_is_answered_once(wakeful, asked, second):
    assert wakeful("approve", asked).code == 0
    answer = wakeful(second, asked)
    assert answer.code == 4
    assert "already approved" in answer.err
    assert wakeful(second, "deploy").code == 4
    assert wakeful(second, "nothing").code == 3


def test_what_waits_for_a_person_is_shown_wherever_one_looks(wakeful, asked):
    assert [(job["name"], job["status"]) for job in wakeful("list", "--json").json] == [("deploy", "waiting")]
    assert [job["name"] for job in wakeful("list", "--status", "waiting", "--json").json] == ["deploy"]
    (question,) = wakeful("approvals", "--json").json
    assert (question["job"], question["run"], question["question"]) == ("deploy", asked, "Run deploy?")
    assert (question["approve"], question["reject"]) == (f"wakeful approve {asked}", f"wakeful reject {asked}")
    assert question["asked_at"] is not None
    for command in (["approvals"], ["show", "deploy"], ["doctor"]):
        answer = wakeful(*command)
        assert "Run deploy?" in answer.out
        assert asked in answer.out
    status = wakeful("status")
    assert "1 open (wakeful approvals)" in status.out
    assert wakeful("status", "--json").json["open_approvals"] == 1
    wakeful("reject", "deploy")
    assert wakeful("approvals").out.endswith("waits for approval.\n")
    assert "approvals" not in wakeful("status").out


def test_a_question_is_no_problem_for_the_doctor(wakeful, asked):
    checks = wakeful("doctor", "--json").json["checks"]
    assert [check["name"] for check in checks if not check["ok"]] == ["server"]  # none runs here
    assert any(check["name"] == "approval" and asked in check["found"] for check in checks)


def test_starting_a_job_that_waits_for_approval_is_refused_with_how_to_approve_it(wakeful, asked):
    for command in (["run", "deploy"], ["run", "deploy", "--dry-run"]):
        answer = wakeful(*command)
        assert answer.code == 4
        assert f"wakeful approve {asked}" in answer.out + answer.err


def test_waiting_for_a_run_that_waits_for_a_person_ends_without_success(terminal):
    terminal.ask("add", "deploy", "--every", "1d", "--approval", "yes", "--", "echo", "deployed")
    terminal.serve("--port", "0")
    answer = terminal("run", "deploy", "--wait")
    assert answer.code == 1
    assert "waits for approval: wakeful approve run_" in answer.err


def test_a_running_server_goes_on_with_what_is_approved_at_a_terminal(terminal):
    terminal.ask("add", "deploy", "--every", "1d", "--approval", "yes", "--", "sh", "-c", "echo deployed > out")
    said = terminal.pipe("out")
    terminal.serve("--port", "0")
    assert "asks before it starts: wakeful approve run_" in terminal.ask("run", "deploy").out
    answer = terminal.ask("approve", "deploy")
    while "does not wait" in answer.err:  # the server has not asked yet
        answer = terminal.ask("approve", "deploy")
    assert (answer.code, said.line()) == (0, "deployed")


def test_saying_neither_yes_nor_no_is_wrong_use(wakeful):
    answer = wakeful("add", "deploy", "--every", "1d", "--approval", "maybe", "--", "true")
    assert answer.code == 2
    assert "maybe" in answer.err


@pytest.mark.usefixtures("asked")
def test_more_questions_than_are_shown_are_mentioned(wakeful):
    assert "--limit N" not in wakeful("approvals", "--limit", "1").err
    wakeful("add", "publish", "--every", "1d", "--approval", "yes", "--", "true")
    wakeful("run", "publish")
    answer = wakeful("approvals", "--limit", "1")
    assert ("publish" in answer.out, "deploy" in answer.out) == (True, False)
    assert "Use --limit N to see more" in answer.err
