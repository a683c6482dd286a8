"""Counting slots between many moments at once gives what counting between each two gives."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from wakeful import Cron, Every
from wakeful.triggers.moments import from_ms

BEGIN = 1_773_000_000_000  # early in March 2026: the clocks of Berlin change within the month
TRIGGERS = st.one_of(
    st.sampled_from(
        [
            Cron(f"{minute} {hour} {day} * {weekday}", tz=zone)
            for minute in ("0", "*/7", "30")
            for hour in ("*", "2", "1-3")
            for day in ("*", "31")
            for weekday in ("*", "1-5")
            for zone in ("UTC", "Europe/Berlin", "Australia/Lord_Howe")
        ]
    ),
    st.integers(1_000, 10**8).map(lambda ms: Every(ms / 1000, anchor=from_ms(BEGIN + ms))),
    st.just(Every("1h", active_hours={"start": "08:00", "end": "19:00", "timezone": "Europe/Berlin"})),
    st.just(Every("20m")),
)


@given(TRIGGERS, st.lists(st.integers(0, 70 * 86_400_000), min_size=2, max_size=40))
def test_counting_between_many_moments_is_counting_between_each_two(trigger, moments):
    bounds = [BEGIN + moment for moment in sorted(moments)]
    assert trigger.count_each(bounds) == [trigger.count_slots(after, until) for after, until in pairwise(bounds)]
