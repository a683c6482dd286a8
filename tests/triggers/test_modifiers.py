"""Modifiers: which slots exist, and when their runs start."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import IntervalParseError, InvalidTrigger
from wakeful.triggers import ActiveHours, Cron, Every, to_ms

START = datetime(2026, 1, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
RANDS = st.floats(0, 1, exclude_max=True)


def hourly(**modifiers):
    return Every("1h", anchor=START, **modifiers)


@pytest.mark.promise("X9")
def test_start_and_until_both_belong_to_the_span():
    trigger = hourly(start=START + 2 * HOUR, until=START + 4 * HOUR)
    assert trigger.upcoming(START - HOUR, 9) == [START + 2 * HOUR, START + 3 * HOUR, START + 4 * HOUR]
    assert trigger.next_after(START + 4 * HOUR) is None


@pytest.mark.promise("X9")
def test_max_runs_bounds_what_is_shown():
    assert len(hourly(max_runs=3).upcoming(START, 10)) == 3
    assert hourly(max_runs=3).max_runs == 3


@pytest.mark.promise("X9")
def test_except_dates_are_dates_in_the_zone_of_the_trigger():
    berlin = Cron("0 0 * * *", tz="Europe/Berlin", except_dates=["2026-01-02", date(2026, 1, 3)])
    assert [f"{moment:%d %H}" for moment in berlin.upcoming(START, 2)] == ["03 23", "04 23"]
    grid = hourly(except_dates=["2026-01-01"], tz="America/New_York")
    assert grid.next_after(START + 4 * HOUR) == datetime(2026, 1, 2, 5, tzinfo=UTC)
    assert grid.next_after(START) == START + HOUR  # still the last day of the year over there


@pytest.mark.promise("X9")
def test_the_zone_of_except_dates_is_settled_when_the_job_is_stored():
    stored = hourly(except_dates=["2026-01-01"]).resolved(0, "Asia/Tokyo")
    assert stored.tz == "Asia/Tokyo"
    assert stored.next_after(START) == datetime(2026, 1, 1, 15, tzinfo=UTC)
    assert hourly().resolved(0, "Asia/Tokyo").tz is None


@pytest.mark.promise("X9")
def test_slots_outside_the_hours_are_passed_over_and_the_grid_stays():
    trigger = hourly(active_hours={"start": "09:30", "end": "12:00", "timezone": "UTC"})
    assert [f"{moment:%d %H:%M}" for moment in trigger.upcoming(START, 3)] == ["01 10:00", "01 11:00", "02 10:00"]
    assert trigger.closed_slots(to_ms(START), to_ms(START + 24 * HOUR)) == 22


@pytest.mark.promise("X9")
@pytest.mark.parametrize("expression", ["0 3 * * *", "0 3 29 2 *"])
def test_hours_that_never_meet_the_times_end_the_search(expression):
    trigger = Cron(expression, tz="UTC", active_hours={"start": "09:00", "end": "17:00", "timezone": "UTC"})
    assert trigger.next_after(START) is None


@pytest.mark.promise("X9")
@given(job_id=st.integers(0, 2**63 - 1), rand=RANDS)
def test_stagger_is_always_the_same_for_a_job_and_never_early(job_id, rand):
    trigger = hourly(stagger="10m")
    slot = to_ms(START)
    due = trigger.due_ms(slot, job_id=job_id, rand=rand)
    assert slot <= due < slot + 600_000
    assert due - slot == trigger.due_ms(slot + 3_600_000, job_id=job_id, rand=0) - slot - 3_600_000


@pytest.mark.promise("X9")
def test_stagger_spreads_jobs_evenly_even_when_their_ids_are_neighbours():
    trigger = hourly(stagger="10m")
    minutes = [trigger.due_ms(0, job_id=7_000_000 + n, rand=0) // 60_000 for n in range(5_000)]
    counts = [minutes.count(minute) for minute in range(10)]
    assert min(counts) > 400
    assert max(counts) < 600


@given(percent=st.floats(0, 10), rand=RANDS)
def test_jitter_is_a_part_of_the_gap_to_the_next_slot(percent, rand):
    trigger = Cron("0 9,10 * * *", tz="UTC", jitter=percent)
    nine, ten = trigger.upcoming_slots(to_ms(START), 2)
    assert 0 <= trigger.due_ms(nine, job_id=1, rand=rand) - nine <= 3_600_000 * percent / 100
    assert 0 <= trigger.due_ms(ten, job_id=1, rand=rand) - ten <= 23 * 3_600_000 * percent / 100
    assert trigger.period_at(nine) == 3_600_000


def test_a_run_without_modifiers_starts_at_its_slot():
    assert hourly().due_ms(5, job_id=1, rand=0.9) == 5


@pytest.mark.parametrize(
    ("modifiers", "field", "words"),
    [
        ({"jitter": 11}, "jitter", "percentage from 0 to 10"),
        ({"jitter": True}, "jitter", "percentage from 0 to 10"),
        ({"jitter": "5"}, "jitter", "percentage from 0 to 10"),
        ({"stagger": True}, "stagger", 'a duration such as "10m", not True'),
        ({"max_runs": 0}, "max_runs", "whole number from 1"),
        ({"max_runs": 1.0}, "max_runs", "whole number from 1"),
        ({"max_runs": True}, "max_runs", "whole number from 1"),
        ({"start": datetime(2026, 1, 1)}, "start", "has no time zone"),  # noqa: DTZ001
        ({"until": "2026-01-01"}, "until", "has no time zone"),
        ({"start": START, "until": START - HOUR}, "until", "lies before start"),
        ({"except_dates": "2026-12-25"}, "except_dates", "must be a list of dates"),
        ({"except_dates": ["25.12.2026"]}, "except_dates", "expected a date such as"),
        ({"except_dates": ["2026-02-30"]}, "except_dates", "expected a date such as"),
        ({"except_dates": [START]}, "except_dates", "expected a date such as"),
        ({"except_dates": [5]}, "except_dates", "expected a date such as"),
        ({"active_hours": "9-17"}, "active_hours", 'must have "start" and "end"'),
        ({"active_hours": {"start": "09:00"}}, "active_hours", 'must have "start" and "end"'),
        ({"active_hours": {"start": "09:00", "end": "17:00", "zone": "UTC"}}, "active_hours", "may have"),
        ({"tz": "Europe/Berlinn"}, "tz", 'did you mean "Europe/Berlin"'),
    ],
)
def test_a_wrong_modifier_is_refused_by_name(modifiers, field, words):
    with pytest.raises(InvalidTrigger, match=words) as caught:
        hourly(**modifiers)
    assert caught.value.field == field


def test_a_stagger_that_is_no_duration_is_refused():
    with pytest.raises(IntervalParseError, match="Missing time unit"):
        hourly(stagger="10")


def test_an_unknown_modifier_is_an_error():
    with pytest.raises(TypeError):
        hourly(jiter=5)


def test_no_modifier_is_the_same_as_an_empty_one():
    plain = Every("1h", anchor=START, jitter=0, stagger=None, active_hours=None, max_runs=None, except_dates=[])
    assert plain == hourly()
    assert plain.active_hours is None
    assert hourly(stagger=0) == hourly()
    assert ActiveHours("09:00", "17:00").timezone is None
