"""What every store promises about the record of actions: few rows for many subjects, and each found again."""

from __future__ import annotations

import pytest

from wakeful.store.actions import PACKED, ActionDetails, SubjectChange
from wakeful.store.records import SkipRow

FIELDS = ("paused", "slot", "notes")


def about(number, what="pause", actor="ann"):
    return ActionDetails(number, 1_000 + number, what, actor, "api")


def paused(subjects, note=None):
    return [SubjectChange(n, f"job {n}", FIELDS, (0, n * 10, None), (1, None, note)) for n in subjects]


def everything(store, action):
    """All that stands of an action, read in pages as undo does."""
    found, cursor = [], 0
    while cursor is not None:
        rows, cursor = store.read(lambda tx, after=cursor: tx.actions.rows(action, after, 500))
        found += rows
    return found


@pytest.mark.promise("X27")
def test_an_action_on_many_is_kept_in_few_rows_and_read_back_one_by_one(store):
    many = range(1, 2 * PACKED + 2)
    store.write(lambda tx: tx.actions.add(about(7), [*reversed(paused(many))]))
    head = store.read(lambda tx: tx.actions.head(7))
    assert (head.subjects, head.undone, head.what, head.actor, head.name) == (len(many), 0, "pause", "ann", "job 1")
    rows = everything(store, 7)
    assert [row.subject for row in rows] == list(many)
    assert rows[4].before == {"paused": 0, "slot": 50, "notes": None}
    assert rows[4].after == {"paused": 1, "slot": None}
    assert store.read(lambda tx: [one.id for one in tx.actions.before(None, 5)]) == [7]
    assert store.write(lambda tx: tx.actions.prune(8, 100)) == 3  # two full rows, and one subject alone
    assert store.read(lambda tx: tx.actions.head(7)) is None


@pytest.mark.promise("X27")
def test_what_was_brought_back_is_not_read_again_and_counts(store):
    store.write(lambda tx: tx.actions.add(about(7), paused((1, 2, 3))))
    store.write(lambda tx: tx.actions.undone(tx.actions.rows(7, 0, 10).rows[:1], 5_000, "ben"))
    assert [row.subject for row in everything(store, 7)] == [2, 3]
    assert store.read(lambda tx: tx.actions.latest(0, ("ann", "api"))) == 7
    store.write(lambda tx: tx.actions.undone(tx.actions.rows(7, 0, 10).rows, 6_000, "cid"))
    head = store.read(lambda tx: tx.actions.head(7))
    assert (head.subjects, head.undone, head.undone_at, head.undone_by) == (3, 3, 6_000, "cid")
    assert everything(store, 7) == []
    assert store.read(lambda tx: tx.actions.latest(0, ("ann", "api"))) is None


@pytest.mark.promise("X27")
def test_what_was_done_later_is_found_whether_it_was_done_to_one_or_to_many(store):
    store.write(lambda tx: tx.actions.add(about(1), paused((1, 2, 3, 4))))
    store.write(lambda tx: tx.actions.add(about(2, "resume"), paused((2, 9))))
    store.write(lambda tx: tx.actions.add(about(3, "remove"), paused((3,))))
    store.write(lambda tx: tx.actions.add(about(4, "snooze"), paused((4,))))
    store.write(lambda tx: tx.actions.add(about(5, "pause"), paused((7, 8))))

    def newer(number):
        found = store.read(lambda tx: tx.actions.newer([1, 2, 3, 4], number, but="snooze"))
        return {subject: row.what for subject, row in found.items()}

    assert newer(1) == {2: "resume", 3: "remove"}
    assert newer(2) == {3: "remove"}
    store.write(lambda tx: tx.actions.undone([tx.actions.newer([2], 1, but="")[2]], 9, "ben"))
    assert newer(1) == {3: "remove"}


@pytest.mark.promise("X27")
def test_an_action_that_did_several_things_is_one(store):
    store.write(lambda tx: tx.actions.add(about(1, "remove"), paused((1, 2))))
    store.write(lambda tx: tx.actions.add(about(1, "disable"), paused((3,))))
    head = store.read(lambda tx: tx.actions.head(1))
    assert (head.what, head.subjects) == ("apply", 3)
    assert [(row.subject, row.what) for row in everything(store, 1)] == [(1, "remove"), (2, "remove"), (3, "disable")]


@pytest.mark.promise("X27")
def test_a_snooze_is_taken_back_where_it_is_still_so(store):
    store.write(lambda tx: tx.alerts.snooze_job(5, 900))
    assert store.write(lambda tx: tx.alerts.unsnooze_job(5, 800, None)) is False
    assert store.write(lambda tx: tx.alerts.unsnooze_job(5, 900, 700)) is True
    assert store.read(lambda tx: tx.alerts.job_snoozed_until(5)) == 700
    assert store.write(lambda tx: tx.alerts.unsnooze_job(5, 700, None)) is True
    assert store.read(lambda tx: tx.alerts.job_snoozed_until(5)) is None
    assert store.write(lambda tx: tx.alerts.unsnooze(1, 700, None)) is False
    assert store.read(lambda tx: tx.alerts.open_about([5])) == []
    assert store.read(lambda tx: tx.jobs.parts_of_states([5], ("paused",))) == {}


@pytest.mark.promise("X25")
def test_the_latest_reason_of_each_job_is_found(store):
    rows = [SkipRow(1, "held", 1, 50, None), SkipRow(1, "blocked", 1, 90, None), SkipRow(2, "held", 1, 10, None)]
    store.write(lambda tx: tx.skips.count(rows))
    assert store.read(lambda tx: tx.skips.latest([1, 2, 3])) == {1: "blocked", 2: "held"}
    assert store.read(lambda tx: tx.skips.latest([])) == {}
