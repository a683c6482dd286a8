"""What every store promises about lanes."""

from __future__ import annotations

import pytest


def test_an_unused_lane_is_free(store):
    assert store.read(lambda tx: tx.lanes.used(["agent:a", "agent:b"])) == {"agent:a": 0, "agent:b": 0}
    assert store.read(lambda tx: tx.lanes.used([])) == {}


def test_places_are_taken_and_freed_in_any_number_of_lanes_at_once(store):
    store.write(lambda tx: tx.lanes.add({"b": 2, "a": 1, "ü \U0001f319": 1, "untouched": 0}))
    store.write(lambda tx: tx.lanes.add({"a": 3, "b": -1}))
    store.write(lambda tx: tx.lanes.add({}))
    assert store.read(lambda tx: tx.lanes.used(["a", "b", "c"])) == {"a": 4, "b": 1, "c": 0}
    assert store.read(lambda tx: tx.lanes.all()) == {"a": 4, "b": 1, "ü \U0001f319": 1}


def test_lanes_can_be_counted_again(store):
    store.write(lambda tx: tx.lanes.add({"a": 1, "lost": 5}))
    store.write(lambda tx: tx.lanes.reset({"a": 2, "b": 1}))
    assert store.read(lambda tx: tx.lanes.all()) == {"a": 2, "b": 1}
    store.write(lambda tx: tx.lanes.reset({}))
    assert store.read(lambda tx: tx.lanes.all()) == {}


def test_places_taken_in_a_work_that_fails_are_free_again(store):
    store.write(lambda tx: tx.lanes.add({"a": 1}))

    def fails(tx):
        tx.lanes.add({"a": 1, "b": 1})
        assert tx.lanes.used(["a", "b"]) == {"a": 2, "b": 1}
        raise KeyError

    with pytest.raises(KeyError):
        store.write(fails)
    assert store.read(lambda tx: tx.lanes.all()) == {"a": 1}


def test_a_lane_is_as_wide_as_its_smallest_job_says(store):
    store.write(lambda tx: tx.lanes.enter({1: {"a": 3, "b": 1}, 2: {"a": 2}}))
    store.write(lambda tx: tx.lanes.enter({3: {"a": 5}, 4: {}}))
    store.write(lambda tx: tx.lanes.add({"a": 1, "c": 1}))
    assert store.read(lambda tx: tx.lanes.sizes(["a", "b", "c", "d"])) == {
        "a": (1, 2), "b": (0, 1), "c": (1, None), "d": (0, None),
    }  # fmt: skip
    assert store.write(lambda tx: tx.lanes.leave([3, 99])) == {}
    assert store.write(lambda tx: tx.lanes.leave([1, 2])) == {}
    assert store.read(lambda tx: tx.lanes.all()) == {"a": 1, "c": 1}


def test_a_lane_becomes_wider_when_its_narrowest_job_leaves(store):
    store.write(lambda tx: tx.lanes.enter({1: {"a": 1}, 2: {"a": 4}}))
    store.write(lambda tx: tx.lanes.add({"a": 1}))
    assert store.write(lambda tx: tx.lanes.leave([1])) == {"a": 3}
    store.write(lambda tx: tx.lanes.reset({"a": 2}))
    assert store.read(lambda tx: tx.lanes.sizes(["a"])) == {"a": (2, 4)}
