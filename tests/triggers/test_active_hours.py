"""Active hours: start inclusive, end exclusive, by the clock on the wall."""

from __future__ import annotations

from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triggers.strategies import places
from wakeful.errors import InvalidTrigger
from wakeful.triggers import ActiveHours, to_ms


@pytest.mark.promise("A2")
@pytest.mark.parametrize(
    ("hours", "clock", "is_open"),
    [
        (("09:00", "22:00"), "08:59", False),
        (("09:00", "22:00"), "09:00", True),
        (("09:00", "22:00"), "21:59", True),
        (("09:00", "22:00"), "22:00", False),
        (("22:00", "06:00"), "21:59", False),
        (("22:00", "06:00"), "22:00", True),
        (("22:00", "06:00"), "00:00", True),
        (("22:00", "06:00"), "05:59", True),
        (("22:00", "06:00"), "06:00", False),
        (("09:00", "24:00"), "23:59", True),
        (("09:00", "24:00"), "00:00", False),
        (("00:00", "24:00"), "00:00", True),
        (("00:00", "24:00"), "23:59", True),
    ],
)
def test_the_start_belongs_to_the_hours_and_the_end_does_not(hours, clock, is_open):
    shanghai = ZoneInfo("Asia/Shanghai")
    moment = datetime.combine(datetime(2026, 5, 5, tzinfo=UTC), time.fromisoformat(clock), tzinfo=shanghai)
    assert ActiveHours(*hours, "Asia/Shanghai").contains(moment) is is_open


@pytest.mark.promise("A2")
@given(
    place=places(),
    start=st.integers(0, 1439),
    length=st.integers(1, 1439),
    milliseconds=st.integers(0, 59_999),
)
def test_opening_and_closing_are_where_the_wall_clock_says(place, start, length, milliseconds):
    zone, moment = place
    end = (start + length) % 1440
    hours = ActiveHours(f"{start // 60}:{start % 60:02}", f"{end // 60}:{end % 60:02}", zone)
    ms = to_ms(moment) + milliseconds

    def by_the_wall(at):
        local = datetime.fromtimestamp(at // 1000, ZoneInfo(zone))
        minute = local.hour * 60 + local.minute
        return start <= minute < end if start < end else minute >= start or minute < end

    assert hours.is_open(ms) is by_the_wall(ms)
    opens, closes = hours.opens(ms), hours.closes(ms)
    assert by_the_wall(opens)
    assert not by_the_wall(closes)
    for change, wanted in ((opens, True), (closes, False)):
        minutes = range(ms, change, 60_000)
        assert [by_the_wall(minute) for minute in minutes] == [not wanted] * len(minutes)
        assert change == ms or by_the_wall(change - 1) is not wanted


@pytest.mark.promise("A2")
def test_hours_that_the_clock_jumps_over_open_after_the_gap():
    hours = ActiveHours("02:15", "02:45", "Europe/Berlin")
    before = datetime(2024, 3, 31, 1, 59, tzinfo=ZoneInfo("Europe/Berlin"))
    assert hours.opens(to_ms(before)) == to_ms(datetime(2024, 4, 1, 2, 15, tzinfo=ZoneInfo("Europe/Berlin")))
    across = ActiveHours("02:15", "09:00", "Europe/Berlin")
    assert across.opens(to_ms(before)) == to_ms(before + timedelta(minutes=1))


@pytest.mark.promise("A2")
def test_local_is_the_zone_of_this_machine(monkeypatch):
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    noon_in_tokyo = datetime(2026, 1, 1, 3, tzinfo=UTC)
    assert ActiveHours("12:00", "12:01", "local").contains(noon_in_tokyo)
    assert ActiveHours("12:00", "12:01").contains(noon_in_tokyo)
    assert ActiveHours("12:00", "12:01", "local").resolved("Europe/Berlin").timezone == "Asia/Tokyo"
    assert ActiveHours("12:00", "12:01").resolved("Europe/Berlin").timezone == "Europe/Berlin"


@pytest.mark.parametrize(
    ("start", "end", "words"),
    [
        ("9", "17:00", '"9" is not a time of day: write "09:00"'),
        ("09:00", "17", 'active_hours end "17" is not a time of day: write "17:00"'),
        ("25:00", "17:00", "is not a time of day"),
        ("09:60", "17:00", "is not a time of day"),
        ("24:01", "17:00", "is not a time of day"),
        ("09:5", "17:00", "is not a time of day"),
        ("\u0660\u0669:00", "17:00", "is not a time of day"),
        ("09:00", 1320, 'active_hours end 1320 is not a time of day: write "HH:MM" in quotes'),
        ("09:00", None, "is not a time of day"),
        (time(9, 0, 30), "17:00", "is not a time of day"),
        ("09:00", "09:00", "the same: leave active_hours out"),
        ("24:00", "09:00", "cannot start at 24:00"),
    ],
)
def test_a_wrong_time_of_day_is_refused(start, end, words):
    with pytest.raises(InvalidTrigger, match=words) as caught:
        ActiveHours(start, end)
    assert caught.value.field == "active_hours"


def test_hours_are_values():
    hours = ActiveHours("9:00", time(22), "Europe/Berlin")
    assert hours == ActiveHours("09:00", "22:00", "Europe/Berlin")
    assert ActiveHours.read(hours.to_data()) == hours
    assert repr(hours) == "ActiveHours('09:00', '22:00', 'Europe/Berlin')"
    assert len({hours, ActiveHours("09:00", "22:00", "Europe/Berlin")}) == 1
    with pytest.raises(AttributeError, match="never changes"):
        hours.start = 5
