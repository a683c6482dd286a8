"""The engine against brute force, mostly where clocks change."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.triggers.oracle import Oracle
from tests.triggers.strategies import EXPRESSIONS, NEAR, OFTEN, ZONES, places
from wakeful.triggers import Cron, to_ms

DAYS = timedelta(days=3)


def engine_times(expression, zone, after, until):
    trigger, found = Cron(expression, tz=zone), []
    slot = trigger.next_after(after)
    while slot is not None and slot <= until:
        found.append(slot)
        slot = trigger.next_after(slot)
    return found


@pytest.mark.promise("H14")
@given(place=places(), expression=OFTEN)
def test_every_time_is_the_one_found_by_looking_at_every_minute(place, expression):
    zone, after = place
    assert engine_times(expression, zone, after, after + DAYS) == Oracle(expression, zone).times(after, after + DAYS)


@pytest.mark.promise("H14")
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["30 2 * * *", "0,30 0-3 * * *", "*/20 * * * *", "15 */2 * * *", "7 1 * * 0"])
def test_every_change_of_every_clock_is_right(zone, expression):
    for change in NEAR[zone]:
        after = change - timedelta(hours=26)
        until = change + timedelta(hours=26)
        assert engine_times(expression, zone, after, until) == Oracle(expression, zone).times(after, until)


@pytest.mark.promise("H14")
@given(place=places(), expression=EXPRESSIONS)
def test_nothing_lies_between_a_moment_and_its_next_time(place, expression):
    zone, after = place
    trigger = Cron(expression, tz=zone)
    following = trigger.next_after(after)
    until = after + timedelta(days=2)
    expected = Oracle(expression, zone).times(after, until)
    assert expected[:1] == ([following] if following is not None and following <= until else [])


@pytest.mark.promise("H14")
@settings(max_examples=30)
@given(place=places(), expression=OFTEN, milliseconds=st.integers(0, 59_999))
def test_the_moment_counts_to_the_millisecond(place, expression, milliseconds):
    zone, after = place
    within = after + timedelta(milliseconds=milliseconds)
    trigger = Cron(expression, tz=zone)
    assert trigger.next_after(within) == trigger.next_after(after)
    just_before = after - timedelta(milliseconds=1)
    if trigger.next_after(just_before) != trigger.next_after(after):
        assert trigger.next_after(just_before) == after
        assert trigger.next_slot(to_ms(after) - 1) == to_ms(after)
