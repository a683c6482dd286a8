"""What every store promises about jobs that wait: parked ones, and those that start after others."""

from __future__ import annotations

import pytest

from tests.store.samples import NOW, job, run
from tests.store.test_contract_jobs import ids
from wakeful.errors import StoreError
from wakeful.store.owners import Owned
from wakeful.store.records import RunDetails


def test_jobs_with_lanes_are_walked_through_by_id(store):
    pairs = [job(n) for n in range(1, 7)]
    laned = [(one._replace(options='{"lanes":[["l",1]]}'), state) for one, state in pairs[1:5]]
    gone = laned[1][0]._replace(removed_at=NOW)
    store.write(lambda tx: tx.jobs.add([pairs[0], laned[0], (gone, laned[1][1]), *laned[2:], pairs[5]]))
    assert [found.id for found in store.read(lambda tx: tx.jobs.laned(0, 2))] == [2, 4]
    assert [found.id for found in store.read(lambda tx: tx.jobs.laned(4, 2))] == [5]


def test_a_freed_place_goes_to_the_longest_waiting_job(store):
    store.add(
        job(1, parked="lane", ready_at=NOW - 1),
        job(2, parked="lane", ready_at=NOW - 7),
        job(3, parked="lane", ready_at=NOW - 7),
        job(4, parked="other", ready_at=NOW - 99),
        job(5, due_at=NOW),
    )
    assert store.read(lambda tx: tx.jobs.parked_counts()) == {"lane": 3, "other": 1}
    assert ids(store.read(lambda tx: tx.jobs.parked_on("lane", NOW - 1, 9))) == [2, 3, 1]
    assert ids(store.read(lambda tx: tx.jobs.parked_on("lane", NOW - 2, 1))) == [2]
    assert store.write(lambda tx: tx.jobs.requeue_parked("lane", NOW, 2)) == 2
    found = store.read(lambda tx: tx.jobs.due(NOW, 9))
    assert [(state.job_id, state.due_at, state.parked) for _, state in found] == [
        (2, NOW - 7, None),
        (3, NOW - 7, None),
        (5, NOW, None),
    ]
    assert store.read(lambda tx: tx.jobs.parked_counts()) == {"lane": 1, "other": 1}
    assert store.write(lambda tx: tx.jobs.requeue_parked("lane", NOW, 9)) == 1
    assert store.write(lambda tx: tx.jobs.requeue_parked("lane", NOW, 9)) == 0


def test_a_parked_job_that_has_no_time_is_due_now(store):
    store.add(job(1, parked="lane"))
    store.write(lambda tx: tx.jobs.requeue_parked("lane", NOW, 1))
    assert store.read(lambda tx: tx.jobs.next_alarm()) == NOW


def test_a_parked_job_whose_time_lies_ahead_since_the_clock_was_set_back_is_due_now(store):
    store.add(job(1, parked="lane", ready_at=NOW + 86_400_000))
    store.write(lambda tx: tx.jobs.requeue_parked("lane", NOW, 1))
    assert store.read(lambda tx: tx.jobs.next_alarm()) == NOW


# -- what starts after what -------------------------------------------------------------------------------------------


def test_who_waits_since_a_time_that_is_ahead_now_is_set_back_with_the_clock(store):
    waiting = {1: NOW - 50, 2: NOW + 100, 3: NOW + 200}
    store.write(lambda tx: tx.jobs.add([job(number, parked="a", ready_at=at) for number, at in waiting.items()]))
    store.write(lambda tx: tx.jobs.add([job(4, due_at=NOW, ready_at=NOW + 300)]))
    store.write(lambda tx: tx.jobs.set_lines_back(NOW, 1_000))
    found = store.read(lambda tx: tx.jobs.states([1, 2, 3, 4]))
    assert [found[number].ready_at - NOW for number in (1, 2, 3, 4)] == [-50, -900, -800, 300]


def test_whether_there_is_a_job_of_a_kind_is_about_those_that_are_not_removed(store):
    store.write(lambda tx: tx.jobs.add([job(1, kind="there"), job(2, kind="gone", removed_at=NOW)]))
    assert [store.read(lambda tx, k=kind: tx.jobs.has_kind(k)) for kind in ("there", "gone")] == [True, False]


def test_chains_are_found_from_both_ends_and_changed_in_place(store):
    store.add(job(1, "first"), job(2), job(3))
    assert not store.read(lambda tx: tx.jobs.any_chains())
    store.write(lambda tx: (tx.jobs.chain("first", 3, "any"), tx.jobs.chain("first", 2, "success")))
    store.write(lambda tx: tx.jobs.chain("first", 3, "failure"))
    assert store.read(lambda tx: tx.jobs.chained("first")) == [(2, "success"), (3, "failure")]
    assert store.read(lambda tx: (tx.jobs.upstream(3), tx.jobs.upstream(1))) == ("first", None)
    assert store.read(lambda tx: tx.jobs.any_chains())
    store.write(lambda tx: tx.jobs.unchain(3))
    assert store.read(lambda tx: tx.jobs.chained("first")) == [(2, "success")]


def test_a_chain_on_an_unheard_of_end_is_refused(store):
    with pytest.raises(StoreError):
        store.write(lambda tx: tx.jobs.chain("first", 1, "maybe"))


def test_what_an_owner_has_is_counted_in_jobs_and_in_bytes(store):
    store.add(job(1, owner="fox", payload='"123"'), job(2, owner="fox", removed_at=NOW), job(3), job(4, owner="hen"))
    assert store.read(lambda tx: [tx.jobs.count_of(Owned(owner)) for owner in ("fox", "hen", "cat")]) == [1, 1, 0]
    empty = len('{"type":"manual"}' + "null" + "{}")
    assert store.read(lambda tx: [tx.jobs.bytes_of(Owned(owner)) for owner in ("fox", "hen", "cat")]) == [
        2 * empty + 1, empty, 0
    ]  # fmt: skip
    store.write(lambda tx: tx.runs.add([run(1, 1), run(2, 4), run(3, 1)]))
    store.write(lambda tx: tx.runs.detail([RunDetails(1, payload='"given"'), RunDetails(2, output='"x"')]))
    assert store.read(lambda tx: [tx.jobs.bytes_of(Owned(owner)) for owner in ("fox", "hen")]) == [
        2 * empty + 1 + len('"given"'), empty
    ]  # fmt: skip


def test_jobs_are_disowned_together_and_their_revision_says_so(store):
    store.add(job(1, owner="fox"), job(2, owner="fox", removed_at=NOW), job(3, owner="hen"))
    assert store.write(lambda tx: [tx.jobs.disown(Owned("fox"), NOW + 1), tx.jobs.disown(Owned("fox"), NOW + 1)]) == [
        2,
        0,
    ]
    found = [store.read(lambda tx, number=number: tx.jobs.by_id(number)) for number in (1, 2, 3)]
    assert [(one.owner, one.updated_at, state.revision) for one, state in found] == [
        (None, NOW + 1, 2), (None, NOW + 1, 2), ("hen", NOW, 1)
    ]  # fmt: skip


def test_a_name_that_is_taken_is_found_before_another_job_gets_it(store):
    store.add(job(1, "a"))

    def work(tx):
        found = tx.jobs.taken(["a", "b"])
        if not found:
            tx.jobs.add([job(2, "a")])
        return found

    assert store.write(work) == {"a": 1}


def test_jobs_are_found_that_were_added_or_changed_after_a_moment(store):
    store.add(
        job(1), job(2, updated_at=NOW + 5), job(3, updated_at=NOW + 9), job(4, updated_at=NOW + 9, removed_at=NOW)
    )
    assert [one.id for one in store.read(lambda tx: tx.jobs.stored_after(NOW, 0, 10))] == [2, 3]
    assert [one.id for one in store.read(lambda tx: tx.jobs.stored_after(NOW, 0, 1))] == [2]
    assert [one.id for one in store.read(lambda tx: tx.jobs.stored_after(NOW, 2, 10))] == [3]


def test_when_the_newest_job_was_added_is_known_also_by_a_clock_that_was_ahead(store):
    store.add(job(1, created_at=NOW + 9), job(2, created_at=NOW))
    assert store.read(lambda tx: tx.jobs.last_added(0)) == NOW
    assert store.read(lambda tx: tx.jobs.last_added(2)) == 0
