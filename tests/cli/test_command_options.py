"""What `add` and `edit` say about a command: its input, its exit codes, its variables, and starts by hand."""

from __future__ import annotations

import io
import sys

import pytest

SECRET = "hunter-two-and-more"  # noqa: S105 - of no one


def added(wakeful, *options, command=("true",)):
    answer = wakeful("add", "job", *options, "--json", "--", *command)
    assert answer.code == 0, answer.err
    return answer.json


def test_a_manual_job_is_never_due_and_runs_by_hand(wakeful):
    job = added(wakeful, "--manual", command=("echo", "done"))
    assert (job["trigger"], job["next_run_at"]) == ({"type": "manual"}, None)
    assert wakeful("run", "job", "--wait").out == "done\n"


@pytest.mark.parametrize("options", [("--every", "5m"), ("--cron", "0 2 * * *"), ("--tz", "UTC"), ("--jitter", "5")])
def test_manual_goes_with_no_time(wakeful, options):
    answer = wakeful("add", "job", "--manual", *options, "--", "true")
    assert answer.code == 2
    assert "--manual" in answer.err


def test_edit_makes_a_job_manual_and_back(wakeful):
    added(wakeful, "--cron", "0 2 * * *", "--tz", "Europe/Berlin", "--jitter", "5")
    assert wakeful("edit", "job", "--manual", "--json").json["trigger"] == {"type": "manual"}
    assert wakeful("edit", "job", "--every", "5m", "--json").json["trigger"]["interval"] == "5m"


def test_labels_are_repeated_and_taken_away(wakeful):
    assert added(wakeful, "--every", "1h", "--label", "gpu", "--label", "big")["options"]["labels"] == ["big", "gpu"]
    assert "labels" not in wakeful("edit", "job", "--label", "none", "--json").json["options"]


def test_standard_input_is_a_text_or_what_comes_in(wakeful, monkeypatch):
    assert added(wakeful, "--manual", "--stdin", "some text\n", command=("cat",))["payload"]["stdin"] == "some text\n"
    assert wakeful("run", "job", "--wait").out == "some text\n"
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"piped in\n")))
    assert wakeful("edit", "job", "--stdin", "-", "--json").json["payload"]["stdin"] == "piped in\n"
    assert "stdin" not in wakeful("edit", "job", "--stdin", "none", "--json").json["payload"]


def test_standard_input_that_is_no_text_is_refused(wakeful, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"\xff\xfe")))
    answer = wakeful("add", "job", "--manual", "--stdin", "-", "--", "cat")
    assert (answer.code, answer.err) == (2, "Error: --stdin - needs text: what came on standard input is not UTF-8.\n")


def test_success_codes_decide_what_a_success_is(wakeful):
    job = added(wakeful, "--manual", "--success-codes", "0,3", command=("sh", "-c", "exit 3"))
    assert job["payload"]["success_codes"] == [0, 3]
    assert wakeful("run", "job", "--wait").code == 0
    wakeful("edit", "job", "--success-codes", "none")
    assert wakeful("run", "job", "--wait").code == 1


@pytest.mark.parametrize("codes", ["", "0,", "256", "a", "-1", "0;3"])
def test_success_codes_are_exit_codes(wakeful, codes):
    answer = wakeful("add", "job", "--manual", f"--success-codes={codes}", "--", "true")
    assert (answer.code, answer.err) == (
        2,
        f"Error: --success-codes {codes!r} is not a list of exit codes: write 0,3.\n",
    )


def test_an_env_file_is_read_at_every_run_and_its_values_are_not_stored(wakeful, here, store):
    file = here / "job.env"
    file.write_text(f"# secrets\nexport TOKEN='{SECRET}'\nMODE=first\n")
    job = added(wakeful, "--manual", "--env-file", "job.env", command=("sh", "-c", 'test "$MODE" = "$WANTED"'))
    assert job["payload"]["env_file"] == str(file)
    wakeful("edit", "job", "--env", "WANTED=first")
    assert wakeful("run", "job", "--wait").code == 0
    file.write_text("MODE=second\n")
    assert wakeful("run", "job", "--wait").code == 1
    assert not any(SECRET.encode() in path.read_bytes() for path in store.parent.iterdir() if path.is_file())


def test_what_a_job_names_itself_comes_before_its_env_file(wakeful, here, monkeypatch):
    (here / "job.env").write_text("A=file-value\nB=file-value\nC=file-value\n")
    monkeypatch.setenv("B", "passed-value")
    script = 'test "$A $B $C" = "own-value passed-value file-value"'
    options = ("--env-file", "job.env", "--env", "A=own-value", "--pass-env", "B")
    added(wakeful, "--manual", *options, command=("sh", "-c", script))
    assert wakeful("run", "job", "--wait").code == 0


def test_values_of_an_env_file_are_hidden_in_the_output(wakeful, here):
    (here / "job.env").write_text(f"TOKEN={SECRET}\n")
    added(wakeful, "--manual", "--env-file", "job.env", command=("sh", "-c", "echo $TOKEN"))
    assert SECRET not in wakeful("run", "job", "--wait").out


@pytest.mark.parametrize(("text", "why"), [(None, "No such file"), ("not a variable\n", "line 1: This line is not")])
def test_an_env_file_that_cannot_be_used_fails_the_run(wakeful, here, text, why):
    if text is not None:
        (here / "job.env").write_text(text)
    answer = wakeful("add", "job", "--manual", "--env-file", "job.env", "--", "true")
    assert ("does not exist here; it is read at every run" in answer.err) is (text is None)
    assert wakeful("run", "job", "--wait").code == 1
    assert why in wakeful("show", "job", "--json").json["last_error"]


@pytest.mark.parametrize(
    ("words", "approval"),
    [
        (["--approval"], True),
        (["--no-approval"], False),
        (["--approval", "yes"], True),
        (["--approval=yes"], True),
        (["--approval", "no"], False),
        (["--approval=no"], False),
    ],
)
def test_approval_is_a_flag_and_takes_yes_and_no(wakeful, words, approval):
    job = added(wakeful, *words, "--every", "1d")
    assert job["options"].get("approval", False) is approval


@pytest.mark.parametrize(
    "words",
    [
        ["add", "job", "--every", "1d", "--approval", "maybe", "--", "true"],
        ["add", "job", "--every", "1d", "--approval=maybe", "--", "true"],
        ["edit", "job", "--approval", "maybe"],
    ],
)
def test_approval_is_yes_or_no(wakeful, words):
    answer = wakeful(*words)
    assert (answer.code, answer.out) == (2, "")
    assert answer.err == "Error: --approval 'maybe': write yes or no, or --approval alone for yes.\n"


def test_a_name_may_follow_approval(wakeful):
    assert wakeful("add", "--approval", "job", "--every", "1d", "--json", "--", "true").json["name"] == "job"


@pytest.mark.parametrize("option", ["--cwd", "--env-file", "--stdin", "--success-codes", "--pass-env"])
def test_options_of_commands_are_refused_for_requests(wakeful, option):
    answer = wakeful("add", "job", "--every", "1h", "--url", "https://example.org", option, "0")
    assert (answer.code, answer.err) == (2, f"Error: {option} is for commands: a request has none.\n")
