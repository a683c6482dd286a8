"""Wall time that people step, boot time that only goes on, and a virtual clock that moves only when it is moved."""

from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.clock import EARLIEST_MS, ManualClock, SharedClock, SystemClock, block, sleep
from wakeful.errors import SchedulerError

START = datetime(2026, 1, 1, tzinfo=UTC)
START_MS = 1_767_225_600_000


# -- the machine's clocks ---------------------------------------------------------------------------------------------


def test_the_system_clock_shows_the_time_of_the_machine_in_whole_milliseconds():
    before = time.time_ns() // 1_000_000
    now = SystemClock().now()
    after = time.time_ns() // 1_000_000
    assert isinstance(now, int)
    assert EARLIEST_MS < before <= now <= after


@pytest.mark.promise("H2")
def test_boot_time_never_goes_back_and_is_the_same_for_every_clock():
    readings = [SystemClock().boot() for _ in range(10_000)]
    assert readings == sorted(readings)
    assert isinstance(readings[0], int)
    assert readings[0] > 0


def test_the_time_until_a_moment_is_in_seconds_and_negative_when_it_is_past():
    clock = SystemClock()
    assert 3500 < clock.until(clock.now() + 3_600_000) <= 3600.001
    assert clock.until(clock.now() - 1000) < -0.9


def test_blocking_and_sleeping_last_at_least_as_long_as_asked():
    clock = SystemClock()
    start = clock.boot()
    block(0.005)
    middle = clock.boot()
    asyncio.run(sleep(0.005))
    assert middle - start >= 4
    assert clock.boot() - middle >= 4


def test_sleeping_lets_others_run_and_blocking_holds_only_its_own_thread():
    done = []

    async def main():
        other = asyncio.create_task(asyncio.sleep(0, done.append("other")))
        await sleep(0)
        await other

    thread = threading.Thread(target=block, args=(0.001,))
    thread.start()
    asyncio.run(main())
    thread.join(120)
    assert done == ["other"]
    assert not thread.is_alive()


# -- a clock that stands still ----------------------------------------------------------------------------------------


def test_a_virtual_clock_stands_still_until_it_is_moved():
    clock = ManualClock()
    assert (clock.now(), clock.now(), clock.boot()) == (START_MS, START_MS, clock.boot())


@pytest.mark.parametrize(
    "start", [START, START.astimezone(timezone(timedelta(hours=5, minutes=45))), datetime(1999, 1, 1, tzinfo=UTC)]
)
def test_it_begins_at_the_given_time(start):
    assert ManualClock(start).now() == start.timestamp() * 1000


def test_it_does_not_guess_a_time_zone():
    with pytest.raises(SchedulerError, match="give it a time zone"):
        ManualClock(datetime(2026, 1, 1))  # noqa: DTZ001 - the mistake itself


def test_time_that_passes_passes_for_wall_and_boot_time():
    clock = ManualClock()
    boot, monotonic = clock.boot(), clock.monotonic()
    clock.elapse(90.5)
    assert clock.now() == START_MS + 90_500
    assert clock.boot() == boot + 90_500
    assert clock.monotonic() == pytest.approx(monotonic + 90.5)


@pytest.mark.promise("H2")
@pytest.mark.parametrize("step", [timedelta(days=1), timedelta(days=-1), timedelta(milliseconds=-1), timedelta(0)])
def test_a_step_moves_the_wall_clock_alone(step):
    clock = ManualClock()
    boot, monotonic = clock.boot(), clock.monotonic()
    clock.step(step)
    assert clock.now() == START_MS + step.total_seconds() * 1000
    assert (clock.boot(), clock.monotonic()) == (boot, monotonic)


def test_the_time_until_a_moment_shrinks_with_time_and_with_steps():
    clock = ManualClock()
    assert clock.until(START_MS + 1500) == 1.5
    clock.elapse(1)
    assert clock.until(START_MS + 1500) == 0.5
    clock.step(timedelta(seconds=2))
    assert clock.until(START_MS + 1500) == -1.5


@given(st.lists(st.one_of(st.floats(0, 10**6), st.timedeltas(timedelta(days=-400), timedelta(days=400))), max_size=30))
def test_boot_time_never_goes_back_and_wall_time_is_the_sum_of_what_happened(moves):
    clock = ManualClock()
    wall, boot = 0, clock.boot()
    for move in moves:
        if isinstance(move, timedelta):
            clock.step(move)
            wall += round(move.total_seconds() * 1_000_000)
        else:
            clock.elapse(move)
            wall += round(move * 1_000_000)
        assert clock.boot() >= boot
        boot = clock.boot()
    assert clock.now() == START_MS + wall // 1000


@given(st.lists(st.integers(1, 999), max_size=50))
def test_microseconds_add_up(parts):
    clock = ManualClock()
    for part in parts:
        clock.elapse(part / 1_000_000)
    assert clock.now() == START_MS + sum(parts) // 1000


# -- the time of a database ---------------------------------------------------------------------------------------


def test_a_shared_clock_shows_its_own_time_until_it_is_set():
    own = ManualClock()
    assert SharedClock(own).now() == own.now()
    assert SharedClock(own).until(own.now() + 1500) == 1.5


@given(
    wrong=st.integers(-(10**12), 10**12),
    tellings=st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**6), st.integers(0, 10**6)), min_size=1),
)
def test_a_shared_clock_is_never_ahead_of_the_database_and_behind_by_the_quickest_answer_at_most(wrong, tellings):
    own = ManualClock()
    shared, quickest = SharedClock(own), None
    for pause, there, back in tellings:
        own.elapse(pause / 1_000_000)
        asked = own.boot_us()
        answered = asked + there + wrong
        own.elapse((there + back) / 1_000_000)
        shared.hear(asked, answered, own.boot_us())
        quickest = there + back if quickest is None else min(quickest, there + back)
        behind = own.boot_us() + wrong - (own.boot_us() + shared._offset_us)
        assert 0 <= behind <= quickest
        assert shared.boot() == own.boot()


def test_a_shared_clock_follows_a_database_whose_clock_was_set():
    own = ManualClock()
    shared = SharedClock(own)
    for moved in (0, 86_400_000_000, -86_400_000_000):
        shared.hear(own.boot_us(), own.boot_us() + 10**15 + moved, own.boot_us())
        assert shared.now() == (own.boot_us() + 10**15 + moved) // 1000
        assert shared.until(shared.now() + 2000) == pytest.approx(2, abs=0.001)
