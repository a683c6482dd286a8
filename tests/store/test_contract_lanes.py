"""What every store promises about lanes."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, job
from wakeful.store.owners import Owned


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
    assert store.read(lambda tx: tx.lanes.loads(["a", "b", "c", "d"])) == {
        "a": (1, 2, False, None), "b": (0, 1, False, None), "c": (1, None, False, None), "d": (0, None, False, None),
    }  # fmt: skip
    assert store.write(lambda tx: tx.lanes.leave([3, 99])) == {}
    assert store.write(lambda tx: tx.lanes.leave([1, 2])) == {}
    assert store.read(lambda tx: tx.lanes.all()) == {"a": 1, "c": 1}


def test_a_lane_becomes_wider_when_its_narrowest_job_leaves(store):
    store.write(lambda tx: tx.lanes.enter({1: {"a": 1}, 2: {"a": 4}}))
    store.write(lambda tx: tx.lanes.add({"a": 1}))
    assert store.write(lambda tx: tx.lanes.leave([1])) == {"a": 3}
    store.write(lambda tx: tx.lanes.reset({"a": 2}))
    assert store.read(lambda tx: tx.lanes.loads(["a"])) == {"a": (2, 4, False, None)}


def test_only_lanes_that_no_job_has_and_no_run_holds_are_forgotten(store):
    store.write(lambda tx: tx.lanes.enter({1: {"of a job": 2}}))
    store.write(lambda tx: tx.lanes.add({"held": 1, "over": 1}))
    store.write(lambda tx: tx.lanes.add({"over": -1}))
    store.write(lambda tx: tx.lanes.tidy())
    assert store.read(lambda tx: tx.lanes.all()) == {"held": 1, "of a job": 0}


def put(store, *jobs):
    store.write(lambda tx: tx.jobs.add(list(jobs)))


def waiting(store, lane, limit=9, now=NOW + 100):
    """Who is to get a place, and whether they are parked on that lane."""
    return [(one.job_id, one.parked) for one in store.read(lambda tx: tx.lanes.waiters(lane, now, limit))]


def test_places_are_freed_and_how_long_their_runs_took_is_kept_as_a_mean(store):
    store.write(lambda tx: tx.lanes.add({"a": 3, "b": 1}))
    store.write(lambda tx: tx.lanes.free({"a": [100, 300], "b": []}))
    assert store.read(lambda tx: tx.lanes.loads(["a", "b"])) == {
        "a": (1, None, False, 200), "b": (1, None, False, None),
    }  # fmt: skip
    store.write(lambda tx: tx.lanes.free({"a": [1000]}))
    assert store.read(lambda tx: tx.lanes.loads(["a"])) == {"a": (0, None, False, 400)}


def test_who_waits_for_a_lane_and_who_reserves_a_place_in_it_stand_in_one_line(store):
    put(
        store,
        job(1, parked="a", ready_at=NOW + 2),
        job(2, parked="b", ready_at=NOW + 1),  # and reserves one in a
        job(3, parked="a", ready_at=NOW + 9, priority=5),
        job(4, parked="b", ready_at=NOW + 3),
        job(5, due_at=NOW + 4, ready_at=NOW + 4),  # was put back just now, and reserves one in a
    )
    store.write(lambda tx: tx.lanes.enter({1: {"a": 1}, 2: {"a": 1, "b": 1}}))
    store.write(lambda tx: tx.lanes.reserve({2: ["a"], 5: ["a"]}))
    line = [(3, True), (2, False), (1, True), (5, False)]
    assert waiting(store, "a") == line
    assert waiting(store, "a", 2) == line[:2]
    assert waiting(store, "b") == [(2, True), (4, True)]
    assert waiting(store, "c") == []
    loads = store.read(lambda tx: tx.lanes.loads(["a", "b"]))
    assert [loads["a"].contested, loads["b"].contested] == [True, True]


def test_what_is_reserved_counts_while_its_job_waits_and_is_dropped_then(store):
    put(
        store,
        job(1, parked="b", ready_at=NOW),
        job(2, ready_at=NOW, due_at=NOW + 500),  # its kind has put it off
        job(3, run_id=7, ready_at=NOW),
        job(4, due_at=NOW),  # has not waited yet
    )
    store.write(lambda tx: tx.lanes.reserve({number: ["a"] for number in (1, 2, 3, 4)}))
    assert waiting(store, "a") == [(1, False)]
    assert store.write(lambda tx: tx.lanes.drop_reservations(NOW + 100)) == {"a"}
    assert store.write(lambda tx: tx.lanes.drop_reservations(NOW + 100)) == set()
    assert waiting(store, "a", now=NOW + 900) == [(1, False)]
    store.write(lambda tx: tx.lanes.reserve({1: ["c", "d"]}))
    assert [waiting(store, lane) for lane in "acd"] == [[], [(1, False)], [(1, False)]]
    store.write(lambda tx: tx.lanes.reserve({1: []}))
    assert [waiting(store, lane) for lane in "acd"] == [[], [], []]


def test_a_job_that_leaves_its_lanes_leaves_what_it_reserved_to_others(store):
    put(store, job(1, parked="b", ready_at=NOW))
    store.write(lambda tx: tx.lanes.enter({1: {"a": 2, "b": 1}, 2: {"a": 2, "b": 1}}))
    store.write(lambda tx: tx.lanes.reserve({1: ["a"]}))
    assert store.write(lambda tx: tx.lanes.leave([1])) == {"a": 1}
    assert waiting(store, "a") == []


def test_a_lane_that_somebody_waits_for_is_not_forgotten(store):
    put(store, job(1, parked="session", ready_at=NOW))
    store.write(lambda tx: tx.lanes.add({"session": 1, "over": 1}))
    store.write(lambda tx: tx.lanes.add({"session": -1, "over": -1}))
    store.write(lambda tx: tx.lanes.tidy())
    assert store.read(lambda tx: tx.lanes.all()) == {"session": 0}


def test_a_lane_holds_others_if_a_job_is_in_it_that_is_not_the_owners(store):
    put(store, job(1, owner="ann"), job(2))
    store.write(lambda tx: tx.lanes.enter({1: {"own": 1, "shared": 1}, 2: {"shared": 1}}))
    found = {
        lane: store.read(lambda tx, lane=lane: tx.lanes.holds_others(lane, Owned("ann")))
        for lane in ("own", "shared", "none")
    }
    assert found == {"own": False, "shared": True, "none": False}
