"""`add` and `edit`: what is said is what is stored, and what cannot be is refused before anything changes."""

from __future__ import annotations

import pytest

from wakeful.triggers import Cron, trigger_from_data

BACKUP = ("--cron", "0 2 * * *", "--tz", "Europe/Berlin", "--", "echo", "done")


def test_adding_prints_the_id_the_schedule_in_words_and_the_next_times_in_the_jobs_zone(wakeful):
    answer = wakeful("add", "backup", *BACKUP)
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0].startswith("Added backup (job_")
    assert lines[1] == "  runs   every day at 02:00, Europe/Berlin"
    assert lines[2] == "  what   echo done"
    assert len(lines) == 6
    assert all(" 02:00 CE" in line and " in " in line for line in lines[3:])


def test_adding_without_a_server_says_that_nothing_fires(wakeful, store):
    answer = wakeful("add", "backup", *BACKUP)
    assert answer.err == f"Note: No server is running on {store}: nothing fires until one does (wakeful serve).\n"


def test_a_job_that_runs_on_request_only_needs_no_server_to_run_by_hand(wakeful, store):
    answer = wakeful("add", "hand", "--manual", "--", "echo", "done")
    meanwhile = "it runs with wakeful run hand, and over HTTP once one does"
    assert answer.err == f"Note: No server is running on {store}: {meanwhile} (wakeful serve).\n"
    assert wakeful("run", "hand").code == 0


def test_a_job_from_the_command_line_says_so_and_runs_where_it_was_added(wakeful, here):
    job = wakeful("add", "backup", "--json", *BACKUP).json
    assert (job["source"], job["kind"]) == ("cli", "command")
    assert job["payload"] == {"argv": ["echo", "done"], "cwd": str(here)}
    assert job["trigger"] == {"type": "cron", "expression": "0 2 * * *", "tz": "Europe/Berlin"}
    assert len(job["upcoming"]) == 3
    assert job["server_running"] is False


@pytest.mark.parametrize(
    ("options", "path", "value"),
    [
        (["--every", "5m"], "trigger.interval", "5m"),
        (["--every", "5m", "--anchor", "2026-01-01T00:00Z"], "trigger.anchor", "2026-01-01T00:00:00Z"),
        (["--interval", "2h"], "trigger.type", "interval"),
        (["--at", "2999-01-01T09:00"], "trigger.at", "2999-01-01T09:00:00Z"),
        (["--at", "2999-07-01T09:00", "--tz", "Europe/Berlin"], "trigger.at", "2999-07-01T07:00:00Z"),
        (["--after", "other", "--on", "failure"], "trigger", {"type": "after", "job": "other", "on": "failure"}),
        (["--every", "5m", "--jitter", "5"], "trigger.jitter", 5.0),
        (["--every", "5m", "--jitter", "5%"], "trigger.jitter", 5.0),
        (["--every", "5m", "--stagger", "1m"], "trigger.stagger", "1m"),
        (["--every", "5m", "--start", "2999-01-01"], "trigger.start", "2999-01-01T00:00:00Z"),
        (["--every", "5m", "--until", "2999-01-01"], "trigger.until", "2999-01-01T00:00:00Z"),
        (["--every", "5m", "--max-runs", "3"], "trigger.max_runs", 3),
        (
            ["--every", "5m", "--except", "2999-12-24", "--except", "2999-12-25"],
            "trigger.except",
            ["2999-12-24", "2999-12-25"],
        ),
        (
            ["--every", "5m", "--active-hours", "09:00-17:00"],
            "trigger.active_hours",
            {"start": "09:00", "end": "17:00", "timezone": "UTC"},
        ),
        (
            ["--every", "5m", "--active-hours", "22:00-06:00", "--tz", "Asia/Tokyo"],
            "trigger.active_hours.timezone",
            "Asia/Tokyo",
        ),
        (["--every", "5m", "--timeout", "90s"], "options.timeout", "90s"),
        (["--every", "5m", "--catch-up", "skip"], "options.catch_up", "skip"),
        (["--every", "5m", "--catch-up", "2h"], "options.catch_up", {"within": "2h"}),
        (["--every", "5m", "--overlap", "cancel-other"], "options.overlap", "cancel_other"),
        (["--every", "5m", "--retry", "1"], "options.retry", {"delays": ["30s"], "on": "any"}),
        (["--every", "5m", "--max-errors", "0"], "options.max_errors", 0),
        (["--every", "5m", "--priority", "5"], "options.priority", 5),
        (["--every", "5m", "--priority", "-5"], "options.priority", -5),
        (["--every", "5m", "--on-crash", "skip"], "options.on_crash", "skip"),
        (["--every", "5m", "--lane", "gpu=1", "--lane", "team=a=2"], "options.lanes", {"gpu": 1, "team=a": 2}),
        (["--every", "5m", "--env", "A=1", "--env", "B=x=y"], "payload.env", {"A": "1", "B": "x=y"}),
        (["--every", "5m", "--pass-env", "TOKEN"], "payload.pass_env", ["TOKEN"]),
    ],
)
@pytest.mark.usefixtures("stocked")
def test_every_option_is_stored_as_it_was_said(wakeful, options, path, value):
    found = wakeful("add", "new", "--json", *options, "--", "true").json
    for part in path.split("."):
        found = found[part]
    assert found == value


def test_a_relative_directory_is_stored_in_full(wakeful, here):
    (here / "sub").mkdir()
    job = wakeful("add", "job", "--every", "5m", "--cwd", "sub", "--json", "--", "true").json
    assert job["payload"]["cwd"] == str(here / "sub")


def test_what_follows_the_dashes_is_the_command_word_for_word(wakeful):
    job = wakeful("add", "job", "--every", "5m", "--json", "--", "sh", "-c", "echo -- $1", "--db", "--").json
    assert job["payload"]["argv"] == ["sh", "-c", "echo -- $1", "--db", "--"]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["new", "--every", "5m"], "Give the command to run, after --: wakeful add new --every 5m -- COMMAND"),
        (["new", "--manual"], "Give the command to run, after --: wakeful add new --every 1h -- COMMAND"),
        (["new", "--cron", "0 9 * * *"], "wakeful add new --cron '0 9 * * *' -- COMMAND"),
        (["new", "--every", "5m", "--"], "There is nothing after --"),
        (["--every", "5m", "--", "new", "true"], "Missing argument 'NAME'"),
        (["new", "--", "true"], "--when, --cron, --every, --interval, --at, --after, --ping or --manual"),
        (["new", "--every", "5m", "--cron", "* * * * *", "--", "true"], "are two schedules"),
        (["new", "--every", "5", "--", "true"], "--every '5': Missing time unit"),
        (["new", "--every", "30m1h", "--", "true"], "from long to short"),
        (["new", "--cron", "61 * * * *", "--", "true"], 'minute "61" is out of range'),
        (["new", "--cron", "0 0 30 2 *", "--", "true"], "would never run"),
        (["new", "--cron", "0 9 * * *", "--tz", "Europe/Berln", "--", "true"], 'did you mean "Europe/Berlin"'),
        (["new", "--at", "whenever", "--", "true"], "--at 'whenever' is not a time"),
        (["new", "--every", "5m", "--on", "any", "--", "true"], "--on goes with --after"),
        (["new", "--at", "now", "--anchor", "now", "--", "true"], "--anchor goes with --every"),
        (["new", "--after", "new", "--", "true"], "itself waits for"),
        (["new", "--after", "other", "--jitter", "5", "--", "true"], 'has no "jitter"'),
        (["new", "--every", "5m", "--jitter", "50", "--", "true"], "jitter must be a percentage from 0 to 10"),
        (["new", "--every", "5m", "--jitter", "x", "--", "true"], "--jitter 'x' is not a number"),
        (["new", "--every", "5m", "--priority", "high", "--", "true"], "--priority 'high' is not a whole number"),
        (["new", "--every", "5m", "--priority", "--5", "--", "true"], "--priority '--5' is not a whole number"),
        (["new", "--every", "5m", "--priority", "101", "--", "true"], "priority is a whole number from -100 to 100"),
        (["new", "--every", "5m", "--priority", "9" * 20, "--", "true"], "priority is a whole number from -100 to 100"),
        (["new", "--every", "5m", "--max-runs", "-1", "--", "true"], "--max-runs '-1' is not a whole number"),
        (["new", "--every", "5m", "--active-hours", "9", "--", "true"], "write 09:00-17:00"),
        (["new", "--every", "5m", "--active-hours", "9-17", "--", "true"], 'is not a time of day: write "09:00"'),
        (["new", "--every", "5m", "--catch-up", "nevr", "--", "true"], "write once, skip, or how late a start may be"),
        (["new", "--every", "5m", "--catch-up", "2x", "--", "true"], "--catch-up '2x': Invalid time unit"),
        (["new", "--every", "5m", "--retry", "-1", "--", "true"], "--retry '-1' is neither a number nor delays"),
        (["new", "--every", "5m", "--retry", "30s,soon", "--", "true"], "write how often, such as 2, or 30s,2m"),
        (["new", "--every", "5m", "--method", "POST", "--", "true"], "--method is for requests (--url ADDRESS)"),
        (["new", "--cron", "0 9 * * *", "--tz", "CEST", "--", "true"], "abbreviations are ambiguous, use an IANA name"),
        (["new", "--every", "5m", "--overlap", "maybe", "--", "true"], "overlap is one of"),
        (["new", "--every", "5m", "--lane", "gpu", "--", "true"], "write --lane gpu=1"),
        (["new", "--every", "5m", "--env", "SECRET", "--", "true"], "--pass-env NAME"),
        (["new", "--every", "5m", "--except", "xmas", "--", "true"], "expected a date"),
        (["new", "--every", "5m", "--corn", "x", "--", "true"], "Did you mean --cron?"),
        (["new", "--every", "5m", "--if-exists", "maybe", "--", "true"], "--if-exists is error, update or keep"),
        (["new", "extra", "--every", "5m", "--", "true"], "unexpected extra argument"),
        (["run_0000000000000", "--every", "5m", "--", "true"], "looks like an id"),
        (["", "--every", "5m", "--", "true"], "1 to 200 printable characters"),
    ],
)  # fmt: skip
def test_a_mistake_is_reported_in_one_sentence_and_changes_nothing(wakeful, stocked, argv, said):
    before = stocked.read_bytes()
    answer = wakeful("add", *argv)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err
    assert answer.err.startswith("Error: ")
    assert answer.err.count("\n") == 1
    assert stocked.read_bytes() == before


@pytest.mark.parametrize("argv", [["job", "--every", "5", "--", "true"], ["job", "--cron", "* * * * *"]])
def test_a_mistake_in_the_first_job_makes_no_store(wakeful, store, argv):
    assert wakeful("add", *argv).code == 2
    assert not store.exists()


def test_a_name_that_is_taken_is_refused_unless_said_otherwise(wakeful):
    first = wakeful("add", "job", "--every", "5m", "--json", "--", "true").json
    answer = wakeful("add", "job", "--every", "6m", "--", "true")
    assert answer.code == 4
    assert "--if-exists update" in answer.err
    kept = wakeful("add", "job", "--every", "6m", "--if-exists", "keep", "--json", "--", "true").json
    assert (kept["id"], kept["trigger"]["interval"]) == (first["id"], "5m")
    updated = wakeful("add", "job", "--every", "6m", "--if-exists", "update", "--json", "--", "true").json
    assert (updated["id"], updated["trigger"]["interval"]) == (first["id"], "6m")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        (["no-such-program"], "'no-such-program' was not found on PATH here."),
        (["echo a | wc"], "There is no shell: for one, write -- sh -c '...'."),
        (["./missing.sh"], "'./missing.sh' does not exist in"),
        (["./plain.txt"], "'./plain.txt' is not executable: chmod +x it."),
        (["~/bin/x"], "which only a shell expands"),
    ],
)
def test_a_program_that_is_not_found_is_a_warning_not_an_error(wakeful, here, command, said):
    (here / "plain.txt").touch(mode=0o600)
    answer = wakeful("add", "job", "--every", "5m", "--", *command)
    assert answer.code == 0
    assert f"Note: {said}" in answer.err or said in answer.err


def test_secrets_are_passed_on_by_name_and_never_stored(wakeful, store, monkeypatch):
    monkeypatch.setenv("TOKEN", "hunter2hunter2")
    wakeful("add", "job", "--at", "now", "--pass-env", "TOKEN", "--", "sh", "-c", 'echo "${#TOKEN} letters"')
    assert wakeful("run", "job").out == "14 letters\n"
    assert b"hunter2" not in store.read_bytes()


# -- edit -------------------------------------------------------------------------------------------------------------


@pytest.fixture
def job(wakeful, stocked):
    """A job with a bit of everything, as it is now."""
    return lambda: wakeful("show", "job", "--json").json


def test_editing_changes_what_is_named_and_leaves_the_rest(wakeful, job):
    before = job()
    answer = wakeful("edit", "job", "--cron", "30 9 * * *")
    assert answer.code == 0
    assert answer.out.startswith("Changed job (job_")
    after = job()
    assert after["trigger"] == {**before["trigger"], "expression": "30 9 * * *"}
    assert (after["options"], after["payload"]) == (before["options"], before["payload"])
    assert after["revision"] == before["revision"] + 1


@pytest.mark.parametrize(
    ("argv", "path", "value"),
    [
        (["--every", "2h"], "trigger.type", "every"),
        (["--every", "2h"], "trigger.jitter", 5.0),
        (["--jitter", "2"], "trigger.expression", "0 9 * * *"),
        (["--jitter", "none"], "trigger.jitter", None),
        (["--until", "none"], "trigger.until", None),
        (["--tz", "Asia/Tokyo"], "trigger.tz", "Asia/Tokyo"),
        (["--timeout", "none"], "options.timeout", None),
        (["--lane", "none"], "options.lanes", None),
        (["--lane", "cpu=2"], "options.lanes", {"cpu": 2}),
        (["--env", "B=2"], "payload.env", {"B": "2"}),
        (["--env", "none"], "payload.env", None),
        (["--", "echo", "new"], "payload.argv", ["echo", "new"]),
        (["--", "echo", "new"], "payload.env", {"A": "1"}),
        (["--after", "other"], "trigger", {"type": "after", "job": "other", "on": "success"}),
    ],
)
def test_every_part_of_a_job_can_be_edited(wakeful, job, argv, path, value):
    assert wakeful("edit", "job", *argv).code == 0
    found = job()
    for part in path.split("."):
        found = found.get(part)
    assert found == value


def test_active_hours_follow_the_jobs_zone(wakeful, job):
    wakeful("edit", "job", "--active-hours", "08:00-18:00")
    assert job()["trigger"]["active_hours"]["timezone"] == "Europe/Berlin"
    wakeful("edit", "job", "--tz", "Asia/Tokyo")
    assert job()["trigger"]["active_hours"]["timezone"] == "Asia/Tokyo"


def test_a_job_can_be_renamed(wakeful, job):
    before = job()
    assert wakeful("edit", "job", "--name", "better").code == 0
    assert wakeful("show", "better", "--json").json["id"] == before["id"]


def test_writing_the_same_again_changes_nothing(wakeful, job):
    before = job()
    assert wakeful("edit", "job", "--cron", "0 9 * * *").out.startswith("Nothing to change in job")
    assert job() == before


@pytest.mark.parametrize(
    ("argv", "code"),
    [
        (["job"], 2),
        (["job", "--cron", "nonsense"], 2),
        (["job", "--every", "1m", "--cron", "* * * * *"], 2),
        (["job", "--anchor", "now"], 2),
        (["job", "--"], 2),
        (["job", "--timeout", "5x"], 2),
        (["job", "--name", "other"], 4),
        (["jb", "--every", "1m"], 3),
    ],
)
def test_an_edit_that_cannot_be_changes_nothing(wakeful, stocked, argv, code):
    before = stocked.read_bytes()
    answer = wakeful("edit", *argv)
    assert (answer.code, answer.out) == (code, "")
    assert answer.err.count("\n") == 1
    assert stocked.read_bytes() == before


def test_what_a_job_does_not_say_the_configuration_says(wakeful, here):
    (here / "wakeful.yaml").write_text("defaults: {timezone: Asia/Tokyo, catch_up: {within: 2h}}\n")
    job = wakeful("add", "backup", "--json", "--cron", "0 2 * * *", "--", "echo").json
    assert (job["trigger"]["tz"], job["options"]) == ("Asia/Tokyo", {"catch_up": {"within": "2h"}})
    own = wakeful("add", "own", "--json", *BACKUP).json
    assert own["trigger"]["tz"] == "Europe/Berlin"


def test_a_broken_configuration_does_not_prevent_a_pause(wakeful, here):
    wakeful("add", "backup", *BACKUP)
    (here / "wakeful.yaml").write_text("defaults: {timezone: nowhere}\n")
    assert wakeful("add", "other", *BACKUP).code == 2
    assert wakeful("pause", "backup").code == 0


def trigger_shown(wakeful, name):
    return trigger_from_data(wakeful("show", name, "--json").json["trigger"])


@pytest.mark.promise("X29")
def test_a_job_is_added_in_words_and_what_is_printed_for_it_adds_the_same(wakeful):
    words = "mondays and thursdays at 18:30 in Europe/Berlin until 2999-12-24"
    answer = wakeful("add", "a", "--when", words, "--", "true")
    assert answer.code == 0
    sentence = "Mondays and Thursdays at 18:30, Europe/Berlin, until 2999-12-24 00:00 CET (2999-12-23 23:00 UTC)"
    assert f"  runs   {sentence}\n" in answer.out
    assert wakeful("add", "b", "--when", sentence, "--", "true").code == 0
    assert trigger_shown(wakeful, "b") == trigger_shown(wakeful, "a")


@pytest.mark.promise("X29")
def test_words_change_the_schedule_of_a_job_and_flags_beside_them_hold(wakeful):
    wakeful("add", "a", "--every", "1h", "--max-runs", "9", "--", "true")
    assert wakeful("edit", "a", "--when", "every day at 9", "--tz", "Asia/Tokyo").code == 0
    assert trigger_shown(wakeful, "a") == Cron("0 9 * * *", tz="Asia/Tokyo", max_runs=9)
    assert wakeful("edit", "a", "--when", "weekdays at 9, at most 3 runs").code == 0
    assert trigger_shown(wakeful, "a") == Cron("0 9 * * 1-5", tz="Asia/Tokyo", max_runs=3)
    refused = wakeful("edit", "a", "--when", "wekdays at 9")
    assert (refused.code, "did you mean" in refused.err) == (2, True)
    assert "are two schedules" in wakeful("edit", "a", "--when", "every hour", "--every", "2h").err
    assert "see --ping" in wakeful("edit", "a", "--when", "when it reports in").err
    assert trigger_shown(wakeful, "a") == Cron("0 9 * * 1-5", tz="Asia/Tokyo", max_runs=3)
