"""What add, edit and doctor say about a job that may not be able to run, and about what they did."""

from __future__ import annotations

import pytest

from wakeful.surfaces.cli import doctor


@pytest.fixture
def program(here):
    """A program in a directory that is not on PATH."""
    path = here / "tools" / "report"
    path.parent.mkdir()
    path.write_text("#!/bin/sh\n")
    path.chmod(0o755)
    return path


@pytest.mark.parametrize(
    ("argv", "warning"),
    [
        (["--after", "nobody", "--", "true"], "There is no job 'nobody' yet"),
        (["--every", "1h", "--", "no-such-program"], "'no-such-program' was not found on PATH here."),
        (["--every", "1h", "--cwd", "gone", "--", "true"], "gone does not exist here."),
        (["--every", "1h", "--env", "PATH=/nowhere", "--", "true"], "'true' was not found on PATH here."),
        (["--every", "1h", "--", "tools"], "'tools' was not found on PATH here."),
        (["--every", "1h", "--", "./tools"], "'./tools' is a directory, not a program."),
        (["--every", "2s", "--", "true"], "asks for a start every 2s; starts closer than 10s are left out."),
        (["--every", "1h", "--url", "https://example.org/#top"], "The part of the url after # is not sent."),
    ],
)
@pytest.mark.usefixtures("program")
def test_what_looks_wrong_is_said_and_stored_all_the_same(wakeful, argv, warning):
    answer = wakeful("add", "job", *argv)
    assert (answer.code, warning in answer.err) == (0, True), answer.err
    options, dashes, command = (argv, [], []) if "--" not in argv else (argv[:-2], ["--"], argv[-1:])
    again = wakeful("add", "again", *options, "--json", *dashes, *command)
    assert [text for text in again.json["warnings"] if warning in text] != []
    assert wakeful("show", "job").code == 0


@pytest.mark.parametrize(
    "argv",
    [
        ["--cwd", "tools", "--", "./report"],
        ["--env", "PATH=tools", "--", "report"],
        ["--cwd", "tools", "--env", "PATH=.", "--", "report"],
        ["--url", "https://no-such-host.invalid/"],
        ["--", "true"],
    ],
)
@pytest.mark.usefixtures("program")
def test_a_program_is_looked_for_as_the_job_would(wakeful, argv):
    cut = argv.index("--") if "--" in argv else len(argv)
    answer = wakeful("add", "job", "--every", "1h", *argv[:cut], "--json", *argv[cut:])
    assert answer.json["warnings"] == []


def test_doctor_names_the_jobs_that_cannot_run(wakeful, here):
    wakeful("add", "orphan", "--after", "nobody", "--", "true")
    wakeful("add", "lost", "--every", "1h", "--", "no-such-program")
    (here / "folder").mkdir()
    wakeful("add", "moved", "--every", "1h", "--cwd", "folder", "--", "true")
    (here / "folder").rmdir()
    wakeful("add", "fine", "--after", "lost", "--", "true")
    checks = wakeful("doctor", "--json").json["checks"]
    found = sorted(check["found"] for check in checks if check["name"] == "job")
    assert found == [
        "lost: 'no-such-program' was not found on PATH here",
        f"moved: the directory {here}/folder does not exist here",
        "orphan: there is no job 'nobody' for it to start after",
    ]
    assert wakeful("doctor").code == 1


@pytest.mark.usefixtures("here")
def test_doctor_looks_at_a_bounded_number_of_jobs_and_says_so(wakeful, monkeypatch):
    for name in ("a", "b", "c"):
        wakeful("add", name, "--every", "1h", "--", "true" if name != "c" else "no-such-program")
    monkeypatch.setattr(doctor, "MOST_EXAMINED", 2)
    out = wakeful("doctor").out
    assert "looked at the first 2 of 3 by name" in out
    assert "no-such-program" not in out


@pytest.mark.parametrize(
    ("argv", "action", "changed", "said"),
    [
        (["--if-exists", "keep", "--every", "2h", "--", "false"], "kept", [], "Kept job ("),
        (["--if-exists", "update", "--every", "1h", "--", "true"], "unchanged", [], "Nothing to change in job ("),
        (["--if-exists", "update", "--every", "2h", "--timeout", "1m", "--", "false"], "updated",
         ["schedule", "command", "timeout"], "new    schedule, command, timeout"),
    ],
)  # fmt: skip
@pytest.mark.usefixtures("here")
def test_add_says_what_became_of_a_name_that_was_taken(wakeful, argv, action, changed, said):
    made = wakeful("add", "job", "--every", "1h", "--json", "--", "true").json
    assert (made["action"], made["changed"]) == ("created", [])
    cut = argv.index("--")
    answer = wakeful("add", "job", *argv[:cut], "--json", *argv[cut:]).json
    assert (answer["action"], answer["changed"], answer["id"]) == (action, changed, made["id"])
    wakeful("edit", "job", "--every", "1h", "--timeout", "none", "--", "true")
    assert said in wakeful("add", "job", *argv).out


def test_cwd_none_is_where_you_are_and_on_none_is_success(wakeful, here, monkeypatch):
    (here / "folder").mkdir()
    wakeful("add", "job", "--every", "1h", "--cwd", "folder", "--", "true")
    assert wakeful("edit", "job", "--cwd", "none", "--json").json["payload"]["cwd"] == str(here)
    monkeypatch.chdir(here / "folder")
    assert wakeful("edit", "job", "--cwd", "none", "--json").json["payload"]["cwd"] == f"{here}/folder"
    wakeful("add", "next", "--after", "job", "--on", "any", "--", "true")
    assert wakeful("edit", "next", "--on", "none", "--json").json["trigger"]["on"] == "success"


@pytest.mark.parametrize(
    ("argv", "right"),
    [
        (["x", "--every", "1h", "echo", "hi"], "wakeful add x --every 1h -- echo hi"),
        (["x", "--every", "1h", "ls", "-l", "--all"], "wakeful add x --every 1h -- ls -l --all"),
        (["--every", "1h", "x", "echo", "a b"], "wakeful add x --every 1h -- echo 'a b'"),
        (["x", "echo", "hi", "--every", "1h"], "wakeful add x --every 1h -- echo hi"),
        (["x", "--json", "echo", "--every", "1h"], "wakeful add x --json --every 1h -- echo"),
    ],
)
@pytest.mark.usefixtures("here")
def test_a_forgotten_double_dash_is_put_where_it_belongs(wakeful, argv, right):
    answer = wakeful("add", *argv)
    assert (answer.code, answer.err) == (2, f"Error: The command to run goes after --: {right}\n")


@pytest.mark.usefixtures("here")
def test_a_misspelled_option_is_what_is_wrong_and_no_forgotten_double_dash(wakeful):
    answer = wakeful("add", "x", "--evry", "5m", "echo", "hi")
    wrong = "Error: No such option: --evry. Did you mean --every? See wakeful add --help.\n"
    assert (answer.code, answer.err) == (2, wrong)


@pytest.mark.usefixtures("here")
def test_every_five_minutes_is_no_cron_expression_and_the_right_way_is_named(wakeful):
    answer = wakeful("add", "x", "--cron", "@every 5m", "--", "true")
    assert (answer.code, answer.err) == (2, "Error: --cron '@every 5m' is not a cron expression: write --every 5m.\n")
    assert wakeful("next", "@every 5m", "--json").json["description"] == "every 5 minutes"


def test_an_edit_says_what_takes_it_back(wakeful, here):
    (here / "wakeful.yaml").write_text(
        "store: sqlite:///.wakeful/wakeful.db\njobs:\n  tick: {every: 1h, command: [echo]}\n"
    )
    wakeful("apply")
    wakeful("add", "mine", "--every", "1h", "--", "true")
    note = "tick is from a configuration file, which overwrites this when it is applied again: change it there."
    assert note in wakeful("edit", "tick", "--every", "2h").err
    assert wakeful("edit", "tick", "--every", "3h", "--json").json["warnings"] == [note]
    assert "overwrites" not in wakeful("edit", "tick", "--every", "3h").err, "nothing was changed"
    assert "overwrites" not in wakeful("edit", "mine", "--every", "2h").err


def test_a_removal_says_what_brings_the_job_back(wakeful, here):
    (here / "wakeful.yaml").write_text(
        "store: sqlite:///.wakeful/wakeful.db\njobs:\n  tick: {every: 1h, command: [echo]}\n"
    )
    wakeful("apply")
    wakeful("add", "mine", "--every", "1h", "--", "true")
    answer = wakeful("remove", "tick", "mine")
    note = "Note: tick is from a configuration file, which adds it again when it is applied: remove it there.\n"
    assert answer.code == 0
    assert answer.err.splitlines(keepends=True)[1:] == [note], "after the line about undo"
    wakeful("apply")
    assert [job["name"] for job in wakeful("list", "--json").json] == ["tick"], "and so it is"


def test_retries_that_the_schedule_leaves_no_room_for_are_noticed(wakeful, here):
    said = "leaves out the retry after 2m where the next scheduled time comes first: its times are 1m apart."
    assert f"a {said}" in wakeful("add", "a", "--every", "1m", "--retry", "30s,2m", "--", "true").err
    assert "leaves out" not in wakeful("add", "b", "--every", "5m", "--retry", "30s,2m", "--", "true").err
    (here / "wakeful.yaml").write_text("jobs: {a: {every: 1m, retry: [30s, 2m], command: ['true']}}\n")
    assert f"jobs.a: it {said}" in wakeful("check").err


def test_starts_that_come_too_close_are_noticed_in_a_file_too(wakeful, here):
    said = "asks for a start every 5s; starts closer than 10s are left out."
    assert f"a {said}" in wakeful("add", "a", "--every", "5s", "--", "true").err
    agent = "{runner: {start: [cat]}, schedules: {s: {every: 5s, prompt: x}, t: {every: 1m, prompt: x}}}"
    (here / "wakeful.yaml").write_text(f"jobs: {{a: {{every: 5s, command: ['true']}}}}\nagents: {{r: {agent}}}\n")
    found = wakeful("check").err
    assert f"jobs.a: it {said}" in found
    assert f"jobs.r.s: it {said}" in found
    assert "leaves out the retry" not in found, "nobody wrote the retries of agents"


def test_retries_of_an_agent_that_somebody_wrote_are_noticed(wakeful, here):
    agent = "{runner: {start: [cat]}, schedules: {s: {every: 1m, prompt: x, retry: [2m]}}}"
    (here / "wakeful.yaml").write_text(f"agents: {{r: {agent}}}\n")
    assert (
        "jobs.r.s: it leaves out the retry after 2m where the next scheduled time comes first" in wakeful("check").err
    )


def test_check_names_a_job_that_starts_after_none_of_the_file(wakeful, here):
    after = "  {}: {{after: {}, command: ['true']}}\n"
    jobs = "jobs:\n  nightly: {every: 1d, command: ['true']}\n" + after.format("report", "nihgtly")
    (here / "wakeful.yaml").write_text(jobs + after.format("other", "nightly"))
    answer = wakeful("check")
    assert (answer.code, "jobs.other" in answer.err) == (0, False)
    sentence = "jobs.report: it starts after 'nihgtly', which is no job of this file. Did you mean 'nightly'?"
    assert sentence in answer.err
