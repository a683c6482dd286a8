"""Counting slots and finding the latest one must say the same as walking from slot to slot."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.triggers.strategies import NEAR, OFTEN, ZONES, places
from wakeful.triggers import Cron, Every, to_ms

DAY = 86_400_000

HOURS = st.tuples(st.integers(0, 23), st.integers(1, 23), st.sampled_from(ZONES)).map(
    lambda x: {"start": f"{x[0]:02}:00", "end": f"{(x[0] + x[1]) % 24:02}:30", "timezone": x[2]}
)


@st.composite
def modifiers(draw, after, until):
    """Any mixture of what decides which slots exist, within reach of the span."""
    moments = st.integers(to_ms(after) // 1000, to_ms(until) // 1000).map(lambda s: datetime.fromtimestamp(s, UTC))
    dates = st.integers(-1, 6).map(lambda n: (after + timedelta(days=n)).date())
    options = {}
    if draw(st.booleans()):
        options["active_hours"] = draw(HOURS)
    if draw(st.booleans()):
        options["except_dates"] = draw(st.lists(dates, max_size=3))
    bounds = sorted(draw(st.lists(moments, min_size=2, max_size=2)))
    if draw(st.booleans()):
        options["start"] = bounds[0]
    if draw(st.booleans()):
        options["until"] = bounds[1]
    return options


def walk(trigger, after, until):
    slots = []
    slot = trigger.next_slot(after)
    while slot is not None and slot <= until:
        slots.append(slot)
        slot = trigger.next_slot(slot)
    return slots


def check(trigger, after, until):
    slots = walk(trigger, after, until)
    assert trigger.count_slots(after, until) == len(slots)
    assert trigger.latest_slot(after, until) == (slots[-1] if slots else None)
    assert slots == sorted(set(slots))
    return slots


@pytest.mark.promise("H4", "X9")
@given(place=places(), expression=OFTEN, length=st.integers(0, 3 * DAY), shift=st.integers(0, 60_000), data=st.data())
def test_counting_a_calendar_says_what_walking_says(place, expression, length, shift, data):
    zone, moment = place
    after = to_ms(moment) + shift
    options = data.draw(modifiers(moment, moment + timedelta(days=5)))
    trigger = Cron(expression, tz=zone, **options)
    slots = check(trigger, after, after + length)
    hours = trigger.active_hours
    if hours is not None:
        options.pop("active_hours")
        everything = walk(Cron(expression, tz=zone, **options), after, after + length)
        assert slots == [slot for slot in everything if hours.is_open(slot)]
        assert trigger.closed_slots(after, after + length) == len(everything) - len(slots)
    else:
        assert trigger.closed_slots(after, after + length) == 0


@pytest.mark.promise("H4", "X9")
@given(
    place=places(),
    interval=st.integers(60, 200_000),
    anchor=st.integers(-500_000, 500_000),
    length=st.integers(0, 5 * DAY),
    data=st.data(),
)
def test_counting_a_grid_says_what_walking_says(place, interval, anchor, length, data):
    zone, moment = place
    options = data.draw(modifiers(moment, moment + timedelta(days=5)))
    trigger = Every(interval, anchor=moment + timedelta(seconds=anchor), tz=zone, **options)
    check(trigger, to_ms(moment), to_ms(moment) + length)


@pytest.mark.promise("H4")
@pytest.mark.parametrize("zone", ZONES)
@pytest.mark.parametrize("expression", ["0,20,40 0-3 * * *", "*/20 * * * *", "30 2 * * *"])
def test_counting_is_right_across_every_change_of_the_clock(zone, expression):
    trigger = Cron(expression, tz=zone)
    for change in NEAR[zone]:
        middle = to_ms(change)
        for begin in range(middle - DAY, middle + DAY, 7_200_000 + 60_000):
            check(trigger, begin, middle + DAY)


@pytest.mark.promise("H4")
def test_ten_years_of_minutes_are_counted_without_walking():
    trigger = Cron(
        "* * * * *", tz="America/New_York", active_hours={"start": "09:00", "end": "17:00", "timezone": "UTC"}
    )
    plain = Cron("* * * * *", tz="America/New_York")
    after = to_ms(datetime(2020, 1, 1, tzinfo=UTC))
    until = to_ms(datetime(2030, 1, 1, tzinfo=UTC))
    minutes = 3653 * 1440
    began = time.process_time()
    assert plain.count_slots(after, until) == minutes
    assert plain.latest_slot(after, until) == until
    assert trigger.count_slots(after, until) == minutes // 3
    assert trigger.closed_slots(after, until) == minutes - minutes // 3
    assert trigger.latest_slot(after, until) == until - 7 * 3_600_000 - 60_000
    assert time.process_time() - began < 5  # walking five million slots takes far longer


@pytest.mark.promise("H4")
def test_an_empty_or_backward_span_holds_nothing():
    for trigger in (Cron("* * * * *", tz="UTC"), Every("1m", anchor="2026-01-01T00:00:00Z")):
        assert trigger.count_slots(1_767_225_600_000, 1_767_225_600_000) == 0
        assert trigger.count_slots(1_767_225_600_000, 1_767_225_500_000) == 0
        assert trigger.latest_slot(1_767_225_600_000, 1_767_225_500_000) is None


@pytest.mark.promise("C5")
@pytest.mark.parametrize(
    ("expression", "minutes"),
    [
        ("* * * * *", 1),
        ("*/5 * * * *", 5),
        ("0 * * * *", 60),
        ("0,59 * * * *", 1),
        ("*/7 * * * *", 4),  # :56 to :00
        ("0 0,23 * * *", 60),  # 23:00 to 00:00
        ("59 23 * * *", 1440),
        ("0 0,23 * * 1", 23 * 60),  # never two days in a row
        ("0 0,23 * * 0,1", 60),
        ("0 9 * * 1", 7 * 1440),
        ("0 9 * * 1,4", 3 * 1440),
        ("0 0 1 * *", 28 * 1440),
        ("0 0 1,31 * *", 1440),  # the 31st to the 1st
        ("0 0 1,L * *", 1440),
        ("0 0 L * *", 28 * 1440),
        ("0 0 28 2 *", 365 * 1440),
        ("0 0 29 2 *", 4 * 365 * 1440 + 1440),
        ("0 0 1 * 1", 1440),  # Monday the 2nd, ever
        ("0 0,12 29 2 *", 720),
    ],
)
def test_the_shortest_gap_holds_for_ever(expression, minutes):
    assert Cron(expression, tz="UTC").min_gap_ms() == minutes * 60_000


@pytest.mark.promise("C5")
def test_the_shortest_gap_counts_seconds():
    assert Cron("0,58 * * * * *").min_gap_ms() == 2_000
    assert Cron("0,10 30 9 * * *").min_gap_ms() == 10_000


@pytest.mark.promise("C5")
@given(expression=OFTEN)
def test_no_two_slots_are_closer_than_the_shortest_gap(expression):
    trigger = Cron(expression, tz="UTC")
    slots = trigger.upcoming_slots(to_ms(datetime(2024, 1, 1, tzinfo=UTC)), 300)
    gaps = [b - a for a, b in pairwise(slots)]
    assert min(gaps, default=2**60) >= (trigger.min_gap_ms() or 0)
