"""Times as people type them."""

from __future__ import annotations

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from wakeful.console.failures import WrongUse
from wakeful.surfaces.cli.when import read_when

BERLIN = ZoneInfo("Europe/Berlin")
NOW = datetime(2026, 11, 15, 10, 30, tzinfo=UTC)  # a Sunday, 11:30 in Berlin


def when(text, now=NOW, zone=BERLIN):
    return read_when(text, now=now, zone=zone, option="--at").isoformat().removesuffix("+00:00")


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("now", "2026-11-15T10:30:00"),
        ("2026-12-24T18:00", "2026-12-24T17:00:00"),
        ("2026-12-24 18:00", "2026-12-24T17:00:00"),
        ("2026-12-24", "2026-12-23T23:00:00"),
        ("2026-12-24T18:00:30Z", "2026-12-24T18:00:30"),
        ("2026-12-24T18:00-05:00", "2026-12-24T23:00:00"),
        ("2020-01-01T00:00Z", "2020-01-01T00:00:00"),
        ("in 20m", "2026-11-15T10:50:00"),
        ("in 45s", "2026-11-15T10:30:45"),
        ("in 0m", "2026-11-15T10:30:00"),
        ("in 3 secs", "2026-11-15T10:30:03"),
        ("in 2 hours", "2026-11-15T12:30:00"),
        ("in 1 day", "2026-11-16T10:30:00"),
        ("in 2 weeks", "2026-11-29T10:30:00"),
        ("IN  90  Minutes", "2026-11-15T12:00:00"),
        ("12:00", "2026-11-15T11:00:00"),
        ("09:00", "2026-11-16T08:00:00"),
        ("11:30", "2026-11-16T10:30:00"),
        ("9am", "2026-11-16T08:00:00"),
        ("12am", "2026-11-15T23:00:00"),
        ("12pm", "2026-11-15T11:00:00"),
        ("9:15 pm", "2026-11-15T20:15:00"),
        ("today 18:30", "2026-11-15T17:30:00"),
        ("tomorrow 09:00", "2026-11-16T08:00:00"),
        ("tomorrow at 9:00", "2026-11-16T08:00:00"),
        ("Monday 9:00", "2026-11-16T08:00:00"),
        ("mon 9:00", "2026-11-16T08:00:00"),
        ("sunday 12:00", "2026-11-15T11:00:00"),
        ("sunday 11:00", "2026-11-22T10:00:00"),
        ("sat 23:59:59", "2026-11-21T22:59:59"),
        ("tomorrow noon", "2026-11-16T11:00:00"),
        ("tomorrow at 9", "2026-11-16T08:00:00"),
        ("in five minutes", "2026-11-15T10:35:00"),
        ("in 1h30m", "2026-11-15T12:00:00"),
        ("next sunday at 12:00", "2026-11-22T11:00:00"),
        ("december 24 at 18:00", "2026-12-24T17:00:00"),
        ("tomorrow 09:00 in Asia/Tokyo", "2026-11-16T00:00:00"),
    ],
)
def test_a_time_is_read_as_it_is_said(text, moment):
    assert when(text) == moment


@pytest.mark.parametrize(
    "text",
    [
        "",
        "soon",
        "yesterday",
        "25:00",
        "12:60",
        "13pm",
        "0am",
        "9",
        "tomorrow",
        "monday",
        "m 9:00",
        "in",
        "in 5",
        "in -5m",
        "in 999999999d",
        "0001-01-01T00:00+09:00",
        "2026-13-01",
        "2026-02-30T09:00",
        "\u0669:\u0660\u0660",
        "2026-12-24T25:00",
        "today 09:00",
        "next week",
    ],
)
def test_what_is_no_time_is_refused_in_one_sentence(text):
    with pytest.raises(WrongUse, match=r"\A--at .*\.\Z"):
        when(text)


def test_the_refusal_says_what_is_understood():
    with pytest.raises(WrongUse, match=r"in 20m, today 18:30, tomorrow 09:00"):
        when("gestern")


def test_a_time_of_today_that_has_passed_says_what_time_it_is():
    with pytest.raises(WrongUse, match=r"has passed: it is 11:30 now; write tomorrow 09:00"):
        when("today 9:00")


def test_a_time_the_clock_passes_over_is_refused():
    with pytest.raises(WrongUse, match=r"2026-03-29 02:30 does not exist in Europe/Berlin"):
        when("2026-03-29T02:30")


def test_of_a_time_that_comes_twice_the_first_is_meant():
    assert when("2026-10-25T02:30") == "2026-10-25T00:30:00"


def test_tomorrow_is_a_day_of_the_calendar_not_24_hours():
    before_the_change = datetime(2026, 3, 28, 20, 0, tzinfo=UTC)
    assert when("tomorrow 09:00", now=before_the_change) == "2026-03-29T07:00:00"
