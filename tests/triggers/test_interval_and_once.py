"""Interval counts from the end of the last run; Once happens one time."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import InvalidTrigger
from wakeful.triggers import Interval, Once, to_ms

NOW = datetime(2025, 1, 19, 10, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)


@pytest.mark.promise("D2")
@pytest.mark.parametrize(
    ("last_completed", "expected"),
    [
        (None, NOW),
        (NOW, NOW + 5 * MINUTE),
        (NOW - 4 * MINUTE, NOW + MINUTE),
        (NOW - 5 * MINUTE, NOW),
        (NOW - timedelta(hours=2), NOW),
    ],
)
def test_an_interval_counts_from_the_last_completion(last_completed, expected):
    assert Interval("5m").next_after(NOW, last_completed) == expected


@pytest.mark.promise("D2")
@given(percent=st.floats(0, 10), rand=st.floats(0, 1, exclude_max=True), job_id=st.integers(0, 2**63))
def test_jitter_is_at_most_its_percentage_of_the_interval(percent, rand, job_id):
    trigger = Interval("1h", percent)
    late = trigger.due_ms(5_000, job_id=job_id, rand=rand) - 5_000
    assert 0 <= late <= 3_600_000 * percent / 100


@pytest.mark.promise("D2")
@pytest.mark.parametrize("jitter", [-1, 10.5, 11, "5", None, float("nan")])
def test_jitter_beyond_ten_percent_is_refused(jitter):
    with pytest.raises(InvalidTrigger, match="jitter must be a percentage from 0 to 10") as caught:
        Interval("1h", jitter)
    assert caught.value.field == "jitter"


@pytest.mark.promise("H4")
def test_an_interval_has_no_slots_to_miss():
    trigger = Interval("5m")
    assert trigger.latest_slot(0, to_ms(NOW)) is None
    assert trigger.count_slots(0, to_ms(NOW)) == trigger.closed_slots(0, to_ms(NOW)) == 0
    assert trigger.period_at(0) == trigger.min_gap_ms() == 300_000


def test_upcoming_shows_an_interval_as_if_its_runs_took_no_time():
    assert Interval("5m").upcoming(NOW, 3) == [NOW, NOW + 5 * MINUTE, NOW + 10 * MINUTE]


@pytest.mark.promise("X9")
def test_start_until_hours_and_except_dates_only_delay_an_interval():
    later = NOW + timedelta(hours=3)
    assert Interval("5m", start=later).next_after(NOW) == later
    assert Interval("5m", until=NOW).next_after(NOW) == NOW
    assert Interval("5m", until=NOW - MINUTE).next_after(NOW) is None
    hours = {"start": "12:00", "end": "13:00", "timezone": "UTC"}
    assert Interval("5m", active_hours=hours).next_after(NOW) == NOW + timedelta(hours=2)
    excepted = Interval("5m", except_dates=["2025-01-19", "2025-01-20"], tz="UTC", active_hours=hours)
    assert excepted.next_after(NOW) == datetime(2025, 1, 21, 12, tzinfo=UTC)


@pytest.mark.promise("H13")
def test_once_has_one_time_and_then_none():
    trigger = Once(NOW)
    assert trigger.next_after(NOW - MINUTE) == NOW
    assert trigger.next_after(NOW) is None
    assert trigger.upcoming(NOW - MINUTE, 5) == [NOW]
    assert (trigger.at, trigger.at_ms) == (NOW, to_ms(NOW))
    assert trigger.count_slots(0, to_ms(NOW)) == 1
    assert trigger.count_slots(to_ms(NOW), to_ms(NOW) + 1) == 0
    assert trigger.latest_slot(0, to_ms(NOW)) == to_ms(NOW)
    assert trigger.min_gap_ms() is None
    assert trigger.period_at(to_ms(NOW)) is None


@pytest.mark.promise("H13")
def test_closed_hours_and_except_dates_delay_once_and_never_drop_it():
    trigger = Once(
        NOW,
        active_hours={"start": "12:00", "end": "13:00", "timezone": "Europe/Berlin"},
        except_dates=["2025-01-19"],
        tz="Europe/Berlin",
    )
    assert trigger.next_after(NOW - MINUTE) == NOW
    due = trigger.due_ms(to_ms(NOW), job_id=1, rand=0.5)
    assert due == to_ms(datetime(2025, 1, 20, 11, tzinfo=UTC))
    assert trigger.closed_slots(0, 2**50) == 0


@pytest.mark.parametrize("text", ["2025-01-19T10:00:00Z", "2025-01-19T11:00:00+01:00", "2025-01-19 10:00:00+00:00"])
def test_once_reads_iso_text_with_an_offset(text):
    assert Once(text) == Once(NOW)


@pytest.mark.parametrize(
    ("at", "words"),
    [
        (datetime(2026, 1, 1), "has no time zone"),  # noqa: DTZ001
        ("2026-01-01T09:00:00", "has no time zone"),
        ("2026-01-01", "has no time zone"),
        ("tomorrow", "is not a time"),
        (None, "must be an aware datetime"),
        (1_700_000_000, "must be an aware datetime"),
        ("9999-12-31T23:00:00Z", "out of reach"),
        ("0001-01-01T00:00:00+14:00", "out of reach"),
    ],
)
def test_a_time_that_could_mean_several_moments_is_refused(at, words):
    with pytest.raises(InvalidTrigger, match=words) as caught:
        Once(at)
    assert caught.value.field == "at"


@pytest.mark.parametrize("moment", [datetime(2026, 1, 1), "2026-01-01T00:00:00Z", None, 5])  # noqa: DTZ001
def test_now_must_be_an_aware_datetime(moment):
    with pytest.raises(InvalidTrigger, match="aware datetime"):
        Interval("5m").next_after(moment)
