"""`next` and `explain`."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import datetime
from itertools import pairwise

import pytest

from wakeful.console.humanize import need_seconds

SUNDAY = ("--after", "2026-11-15T10:30Z")


def test_the_next_times_of_an_expression_have_exactly_this_shape(wakeful):
    answer = wakeful("next", "0 9 * * 1-5", "--tz", "Europe/Berlin", *SUNDAY, "-n", "2", "--json")
    assert answer.json == {
        "expression": "0 9 * * 1-5",
        "tz": "Europe/Berlin",
        "description": "weekdays at 09:00",
        "times": ["2026-11-16T08:00:00Z", "2026-11-17T08:00:00Z"],
    }
    assert answer.err == ""


def test_five_times_are_printed_by_default(wakeful):
    assert len(wakeful("next", "* * * * *", "--json").json["times"]) == 5
    assert len(wakeful("next", "* * * * *", "-n", "12", "--json").json["times"]) == 12


def test_without_a_zone_the_systems_counts(wakeful):
    assert wakeful("next", "@daily", *SUNDAY, "--json").json["tz"] == "UTC"


def test_people_read_it_in_the_zone_they_asked_for(wakeful):
    lines = wakeful("next", "0 9 * * 1-5", "--tz", "Europe/Berlin", *SUNDAY).out.splitlines()
    assert lines[0] == "weekdays at 09:00 (Europe/Berlin)"
    assert lines[1].startswith("  Mon 2026-11-16 09:00 CET (08:00 UTC)  ")
    assert len(lines) == 6


def test_the_times_of_one_list_all_have_seconds_or_none_has(wakeful):
    lines = wakeful("next", "90s", *SUNDAY, "-n", "4").out.splitlines()[1:]
    assert [line.split()[2] for line in lines] == ["10:31:30", "10:33:00", "10:34:30", "10:36:00"]
    lines = wakeful("next", "90m", *SUNDAY, "-n", "2").out.splitlines()[1:]
    assert [line.split()[2] for line in lines] == ["12:00", "13:30"]
    assert [need_seconds(times) for times in ([60_000, None], [60_000, 61_000], [60_999], [])] == [
        False,
        True,
        False,
        False,
    ]


@pytest.mark.parametrize("text", ["90m", "every 90m"])
def test_a_duration_will_do(wakeful, text):
    data = wakeful("next", text, *SUNDAY, "-n", "2", "--json").json
    assert data["times"] == ["2026-11-15T12:00:00Z", "2026-11-15T13:30:00Z"]
    assert data["description"] == "every 90 minutes"


def test_an_expression_that_never_fires_says_so(wakeful):
    assert wakeful("next", "0 0 30 2 *", "--json").json["times"] == []
    assert wakeful("next", "0 0 30 2 *").out.endswith("  never\n")


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["61 * * * *"], 'minute "61" is out of range'),
        (["* * * *"], "fields"),
        (["@reboot"], "@reboot"),
        (["0 9 * * *", "--tz", "Mars"], "Unknown time zone"),
        (["0 9 * * *", "--after", "then"], "--after 'then' is not a time"),
        (["0 9 * * *", "-n", "0"], "--limit"),
        (["--tz", "Europe/Berlin"], "go with an expression"),
    ],
)
def test_a_wrong_question_is_wrong_use(wakeful, argv, said):
    answer = wakeful("next", *argv)
    assert (answer.code, answer.out) == (2, "")
    assert said in answer.err


def test_an_expression_needs_no_store_no_colours_and_no_time(here):
    program = (
        "import sys; from wakeful.cli import main; code = main(['next', '*/5 * * * *', '--json']);"
        "loaded = {'rich', 'sqlite3'} & set(sys.modules); print(loaded, file=sys.stderr); sys.exit(code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, cwd=here)
    assert done.stderr == "set()\n"
    assert len(json.loads(done.stdout)["times"]) == 5


@pytest.mark.usefixtures("stocked")
def test_the_next_starts_of_everything_come_in_order_of_time(wakeful):
    wakeful("add", "first", "--at", "in 1m", "--", "true")
    wakeful("add", "paused", "--every", "5m", "--", "true")
    wakeful("pause", "paused")
    starts = wakeful("next", "-n", "30", "--json").json
    assert starts[0]["job"] == "first"
    assert [start["at"] for start in starts] == sorted(start["at"] for start in starts)
    assert {start["job"] for start in starts} == {"first", "job", "other"}
    lines = wakeful("next", "-n", "3").out.splitlines()
    assert lines[0].split() == ["WHEN", "TIME", "JOB", "SCHEDULE"]
    assert len(lines) == 4


@pytest.mark.promise("X3")
@pytest.mark.usefixtures("stocked")
def test_explain_says_when_a_job_will_run_and_how_it_last_ended(wakeful):
    wakeful("run", "job")
    text = wakeful("explain", "job").out
    assert "job runs every day at 09:00, Europe/Berlin" in text
    assert "It will run next at " in text
    assert "because a person or program asked for it, and ended as success" in text
    data = wakeful("explain", "job", "--json").json
    assert data["subject"] == "job"
    assert data["sentences"] == text.splitlines()
    assert data["facts"]["job"]["name"] == "job"


@pytest.mark.promise("X3")
@pytest.mark.usefixtures("stocked")
def test_explain_says_why_a_run_was_and_how_it_ended(wakeful):
    wakeful("run", "job")
    run = wakeful("runs", "--json").json[0]["id"]
    text = wakeful("explain", run).out
    assert f"{run} of job was started because a person or program asked for it." in text
    assert "It ended as success" in text


@pytest.mark.promise("X3")
@pytest.mark.usefixtures("stocked")
def test_explain_says_why_a_job_does_not_run(wakeful):
    wakeful("pause", "job", "--note", "until Monday")
    text = wakeful("explain", "job").out
    assert "It will not run by time: it is paused." in text
    assert "until Monday" in text


@pytest.mark.promise("H3")
def test_what_is_shown_is_no_closer_than_starts_can_be(wakeful):
    wakeful("add", "often", "--every", "3s", "--", "true")
    shown = [
        wakeful("show", "often", "--json").json["upcoming"],
        [start["at"] for start in wakeful("next", "-n", "5", "--json").json],
        wakeful("next", "3s", "--json").json["times"],
        wakeful("next", "*/3 * * * * *", "--json").json["times"],
    ]
    for times in shown:
        moments = [datetime.fromisoformat(text) for text in times]
        assert len(moments) == 5
        assert all((later - earlier).total_seconds() >= 10 for earlier, later in pairwise(moments)), times
    assert "starts closer than 10s are left out" in wakeful("next", "3s").err


@pytest.mark.usefixtures("stocked")
def test_the_next_times_of_a_job_are_shown_by_its_name(wakeful):
    wakeful("edit", "job", "--jitter", "none", "--until", "none")
    first, *times = wakeful("next", "job", "-n", "2").out.splitlines()
    assert first == "job: every day at 09:00, Europe/Berlin"
    assert [" 09:00 CE" in line for line in times] == [True, True]
    starts = wakeful("next", "job", "-n", "2", "--json").json
    assert [start["at"] for start in starts] == wakeful("show", "job", "--json").json["upcoming"][:2]
    wakeful("pause", "job")
    assert wakeful("next", "job").out.endswith("\n  no next time: it is paused\n")


@pytest.mark.usefixtures("stocked")
def test_a_word_that_is_neither_an_expression_nor_a_job_says_so(wakeful, store):
    answer = wakeful("next", "jb")
    assert answer.code == 2
    assert answer.err == f"Error: 'jb' is not a schedule, a cron expression, a duration or a job in {store}.\n"
    assert "go with an expression" in wakeful("next", "job", "--tz", "UTC").err
    for word, sentence in (("weekdays", "weekdays at 09:00"), ("monthly", "monthly on the 1st at 09:00")):
        assert wakeful("next", word).err.endswith(f'a job in {store}. Did you mean "{sentence}"?\n')


@pytest.mark.promise("X29")
def test_the_next_times_of_a_schedule_in_words_are_shown_with_the_sentence_that_is_understood(wakeful):
    answer = wakeful("next", "Weekdays at 9am in europe/berlin", "-n", "2")
    assert answer.out.splitlines()[0] == "weekdays at 09:00, Europe/Berlin"
    assert len(answer.out.splitlines()) == 3
    assert wakeful("next", "weekdays at 09:00, Europe/Berlin", "-n", "2").out == answer.out
    refused = wakeful("next", "wekdays at 9am")
    assert (refused.code, refused.out) == (2, "")
    assert 'did you mean "weekdays at 9am"?' in refused.err


def test_a_word_that_is_a_schedule_and_a_job_is_the_job(wakeful):
    assert wakeful("next", "daily", "-n", "1").out.startswith("every day (")
    wakeful("add", "daily", "--cron", "30 2 * * *", "--tz", "UTC", "--", "true")
    assert wakeful("next", "daily", "-n", "1").out.startswith("daily: every day at 02:30, UTC")
