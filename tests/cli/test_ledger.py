"""`ledger`: what became of every time a job was due."""

from __future__ import annotations

import re

import pytest


@pytest.mark.promise("X25")
@pytest.mark.usefixtures("stocked")
def test_the_sums_are_one_sentence_and_plain_data(wakeful):
    answer = wakeful("ledger", "--since", "1h")
    assert answer.code == 0
    assert re.match(r"Nothing came due since [A-Z][a-z]{2} [0-9: -]+ UTC\.$", answer.out)
    found = wakeful("ledger", "job", "--json").json
    assert (found["due"], found["unaccounted"], found["jobs"][0]["job"]) == (0, 0, "job")


@pytest.mark.promise("X25")
@pytest.mark.usefixtures("stocked")
def test_one_slot_has_a_sentence_and_a_job_has_no_others(wakeful):
    assert wakeful("add", "daily", "--cron", "0 9 * * *", "--tz", "UTC", "--", "true").code == 0
    answer = wakeful("ledger", "daily", "--slot", "2099-01-01T09:00Z")
    assert (answer.code, answer.out) == (0, "The slot 2099-01-01T09:00:00Z of daily has not come yet.\n")
    assert wakeful("ledger", "daily", "--slot", "2099-01-01T09:00Z", "--json").json["fate"] == "ahead"
    answer = wakeful("ledger", "daily", "--slot", "2099-01-01T09:30Z")
    assert answer.code == 3
    assert "The next one after that is 2099-01-02T09:00:00Z" in answer.err


@pytest.mark.usefixtures("stocked")
def test_what_is_not_understood_is_refused_with_what_is(wakeful):
    for words, said in (
        (("ledger", "--since", "yesterday"), "since is a duration such as 7d"),
        (("ledger", "--slot", "2026-01-01T09:00Z"), "--slot goes with a job"),
    ):
        answer = wakeful(*words)
        assert answer.code == 2
        assert said in answer.err
    assert wakeful("ledger", "nothing").code == 3


def test_without_a_store_nothing_was_due(wakeful):
    answer = wakeful("ledger")
    assert answer.code == 0
    assert answer.out.startswith("Nothing came due since ")


@pytest.mark.usefixtures("stocked")
def test_a_job_that_is_not_started_by_time_has_no_slots_and_that_is_said(wakeful):
    wakeful("add", "second", "--after", "job", "--", "true")
    answer = wakeful("ledger", "second")
    assert answer.out.startswith("Nothing came due since ")
    assert "Note: second starts after job succeeds, not by time, so it has no slots: see wakeful runs." in answer.err
    assert "Note" not in wakeful("ledger", "job").err
