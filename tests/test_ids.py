"""Ids go up, whatever the clock does, and read the same way back."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wakeful.clock import EARLIEST_MS
from wakeful.ids import IdSource, decode, encode, first_id_at, job_text, number_of, run_text

NOW = 1_767_225_600_000
NUMBERS = st.integers(0, 2**63 - 1)


def source(times, seed=1):
    """A source whose clock shows these times, one after the other."""
    moments = iter(times)
    return IdSource(lambda: next(moments), random.Random(seed))


@given(st.lists(st.integers(0, 2**42 - 1), min_size=1, max_size=50), st.integers(0, 2**62), st.randoms())
def test_ids_only_go_up_whatever_the_clock_shows_and_the_store_holds(offsets, held, rng):
    moments = iter(EARLIEST_MS + offset for offset in offsets)
    ids = IdSource(lambda: next(moments), rng)
    ids.start_above(held)
    made = [held, *(ids.next() for _ in offsets)]
    assert made == sorted(set(made))


def test_ids_of_different_milliseconds_sort_by_time_also_between_sources():
    times = [NOW, NOW + 1, NOW + 2, NOW + 1000]
    made = [source([moment], seed).next() for seed, moment in enumerate(times)]
    assert made == sorted(made)


def test_sources_of_the_same_millisecond_rarely_meet():
    assert len({source([NOW], seed).next() for seed in range(1000)}) > 990


def test_the_same_seed_makes_the_same_ids():
    times = [NOW, NOW, NOW + 5]
    one, two = source(times), source(times)
    assert [one.next() for _ in times] == [two.next() for _ in times]


def test_a_burst_in_one_millisecond_counts_up_without_leaving_it():
    ids = source([NOW] * 1000)
    made = [ids.next() for _ in range(1000)]
    assert made == list(range(made[0], made[0] + 1000))
    assert first_id_at(NOW) <= made[0] <= made[-1] < first_id_at(NOW + 1)


@pytest.mark.promise("H2")
def test_a_clock_set_back_makes_no_smaller_id():
    ids = source([NOW, NOW - 86_400_000, NOW + 1])
    first, second, third = (ids.next() for _ in range(3))
    assert first < second < third
    assert third >= first_id_at(NOW + 1)


def test_a_clock_that_was_never_set_still_makes_ids_that_go_up():
    ids = source([0, 0, NOW])
    made = [ids.next() for _ in range(3)]
    assert 0 < made[0] < made[1] < made[2]


def test_a_source_starts_above_what_a_store_holds_and_forgets_nothing():
    ids = source([NOW, NOW])
    held = first_id_at(NOW + 1000)
    ids.start_above(held)
    ids.start_above(5)
    first, second = ids.next(), ids.next()
    assert held < first < second < first_id_at(NOW + 1002)


@pytest.mark.promise("H2")
def test_sources_that_share_a_store_rarely_meet_while_the_clock_is_behind():
    sources = [source([NOW] * 100, seed) for seed in range(10)]
    for ids in sources:
        ids.start_above(first_id_at(NOW + 3_600_000))
    made = [ids.next() for ids in sources for _ in range(100)]
    assert len(set(made)) > 990


def test_the_same_seed_makes_the_same_ids_while_the_clock_is_behind():
    times = [NOW, NOW - 5_000, NOW - 5_000, NOW + 1]
    one, two = source(times), source(times)
    assert [one.next() for _ in times] == [two.next() for _ in times]


@given(st.integers(1, 2**42 - 1), st.integers(0, 1000))
def test_the_first_id_of_a_moment_parts_older_from_newer(offset, seed):
    moment = EARLIEST_MS + offset
    assert first_id_at(moment) <= source([moment], seed).next() < first_id_at(moment + 1)


@pytest.mark.parametrize("moment", [-1, 0, EARLIEST_MS - 1, EARLIEST_MS])
def test_nothing_is_older_than_the_first_id_of_all(moment):
    assert first_id_at(moment) == 0


@given(st.sampled_from(["job", "run", "dlv"]), NUMBERS)
def test_an_id_reads_the_same_way_back(prefix, number):
    text = encode(prefix, number)
    assert decode(text) == (prefix, number)
    assert len(text) == 17
    assert set(text[4:]) <= set("0123456789abcdefghjkmnpqrstvwxyz")


@given(NUMBERS, NUMBERS)
def test_texts_sort_as_their_ids_do(one, two):
    assert (run_text(one) < run_text(two)) == (one < two)


def test_a_job_and_a_run_say_what_they_are():
    assert job_text(1) == "job_0000000000001"
    assert run_text(32) == "run_0000000000010"


@pytest.mark.parametrize(
    "text",
    [
        "",
        "_",
        "backup",
        "job_",
        "job_1",
        "run_00000000000001",
        "run_000000000000",
        "cat_0000000000001",
        "RUN_0000000000001",
        "run_000000000000I",
        "run_000000000000i",
        "run_000000000000L",
        "run_000000000000o",
        "run_000000000000u",
        "run_00000000000A1",
        "run-0000000000001",
        " run_0000000000001",
        "run_0000000000001\n",
        "run_" + 13 * "\u0660",
        "run_8000000000000",
        "run_zzzzzzzzzzzzz",
        "run__000000000001",
    ],
)
def test_what_is_no_id_is_no_id(text):
    assert decode(text) is None


@given(st.text(max_size=20))
def test_any_text_is_read_without_a_mishap(text):
    found = decode(text)
    assert found is None or encode(*found) == text


@pytest.mark.parametrize(
    "text", ["run", "run_", "job_0000000000000", "run_000000000000", "run_000000000000u", "run_zzzzzzzzzzzzz"]
)
def test_only_a_well_formed_id_with_the_right_prefix_has_a_number(text):
    assert number_of("run", "run_0000000000011") == 33
    assert number_of("run", text) is None
