"""Every: the grid."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.errors import InvalidTrigger
from wakeful.triggers import Every, to_ms

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
SECONDS = st.integers(-(10**9), 4 * 10**9)


@pytest.mark.promise("H1")
@pytest.mark.parametrize(
    ("now", "expected"),
    [
        (NOON - timedelta(days=400), NOON),
        (NOON - timedelta(milliseconds=1), NOON),
        (NOON, NOON + timedelta(hours=1)),
        (NOON + timedelta(milliseconds=1), NOON + timedelta(hours=1)),
        (NOON + timedelta(minutes=59), NOON + timedelta(hours=1)),
        (NOON + timedelta(hours=1), NOON + timedelta(hours=2)),
        (NOON + timedelta(days=365, minutes=1), NOON + timedelta(days=365, hours=1)),
    ],
)
def test_the_anchor_while_it_lies_ahead_then_the_first_point_after_now(now, expected):
    assert Every("1h", anchor=NOON).next_after(now) == expected


@pytest.mark.promise("H1")
@given(anchor=SECONDS, now=SECONDS, interval=st.integers(1, 10**7))
def test_the_next_time_is_on_the_grid_and_never_past(anchor, now, interval):
    trigger = Every(interval, anchor=datetime.fromtimestamp(anchor, UTC))
    slot = trigger.next_slot(now * 1000)
    assert slot > now * 1000
    assert slot >= anchor * 1000
    assert (slot - anchor * 1000) % (interval * 1000) == 0
    assert slot == anchor * 1000 or slot - interval * 1000 <= now * 1000


@pytest.mark.promise("H1")
def test_without_an_anchor_the_grid_begins_when_the_job_is_stored():
    stored = Every("5m").resolved(to_ms(NOON), "Europe/Berlin")
    assert stored == Every("5m", anchor=NOON)
    assert stored.next_after(NOON) == NOON + timedelta(minutes=5)
    assert Every("5m").next_after(NOON) == NOON + timedelta(minutes=5)
    assert Every("5m").upcoming(NOON, 2) == [NOON + timedelta(minutes=5), NOON + timedelta(minutes=10)]


def test_a_start_is_the_anchor_unless_one_is_given():
    trigger = Every("6h", start=NOON).resolved(to_ms(NOON - timedelta(days=1, hours=1)), "UTC")
    assert trigger.upcoming(NOON - timedelta(days=1), 2) == [NOON, NOON + timedelta(hours=6)]
    anchored = Every("6h", anchor=NOON - timedelta(hours=1), start=NOON)
    assert anchored.next_after(NOON - timedelta(days=1)) == NOON + timedelta(hours=5)


def test_writing_the_same_job_again_moves_nothing():
    stored = Every("5m").resolved(1_000, "Europe/Berlin")
    assert Every("5m").resolved(99_000, "Europe/Berlin", keep=stored) is stored
    assert Every("6m").resolved(99_000, "Europe/Berlin", keep=stored) == Every("6m").resolved(99_000, "Europe/Berlin")
    other = Every("5m", max_runs=3).resolved(99_000, "Europe/Berlin", keep=stored)
    assert other.anchor_ms == 99_000
    anchored = Every("5m", anchor=NOON)
    assert anchored.resolved(99_000, "UTC", keep=stored) == anchored


@pytest.mark.parametrize("anchor", [datetime(2026, 1, 1), "2026-01-01T00:00:00", "tomorrow", 5, True])  # noqa: DTZ001
def test_an_anchor_without_a_zone_is_refused(anchor):
    with pytest.raises(InvalidTrigger) as caught:
        Every("5m", anchor=anchor)
    assert caught.value.field == "anchor"


def test_the_zone_of_the_anchor_is_only_a_way_to_write_it():
    elsewhere = NOON.astimezone(timezone(timedelta(hours=5, minutes=45)))
    assert Every("5m", anchor=elsewhere) == Every("5m", anchor=NOON) == Every("5m", anchor="2026-03-01T12:00:00Z")


@pytest.mark.promise("H4")
def test_years_of_missed_points_are_counted_at_once():
    trigger = Every("1s", anchor=NOON)
    start, end = to_ms(NOON), to_ms(NOON + timedelta(days=3650))
    assert trigger.count_slots(start, end) == 3650 * 86_400
    assert trigger.count_slots(start - 1, end) == 3650 * 86_400 + 1
    assert trigger.latest_slot(start, end + 500) == end
    assert trigger.latest_slot(start, start + 999) is None


@pytest.mark.promise("C5")
def test_the_shortest_gap_is_the_interval():
    assert Every("5s").min_gap_ms() == 5000
    assert Every("5s", active_hours={"start": "09:00", "end": "17:00"}).min_gap_ms() == 5000
