"""Who is taken first, on every store: the highest priority, then who has waited longest, then the lower id.

And what that costs: an answer is not paid for by jobs that are not in it, whatever their priority.
"""

from __future__ import annotations

import random
import shutil

import pytest

from tests.store.samples import NOW, OpenStore, job
from wakeful.clock import ManualClock
from wakeful.store import schema_version
from wakeful.store.records import JOB_COLUMNS, STATE_COLUMNS

pytestmark = pytest.mark.promise("X22")

PRIORITY_SCHEMA = 11
LEVELS = (-100, -7, -1, 0, 0, 0, 1, 7, 100)


def ids(pairs):
    return [definition.id for definition, _ in pairs]


def plainly(pairs, waiting_since):
    """The ids in the order that is promised, by a plain sort."""
    return [state.job_id for _, state in sorted(pairs, key=lambda pair: _rank(pair[1], waiting_since))]


def _rank(state, waiting_since):
    return -state.priority, getattr(state, waiting_since), state.job_id


@pytest.mark.parametrize("seed", range(5))
def test_what_is_due_is_taken_as_a_plain_sort_would_order_it(store, seed):
    rng = random.Random(seed)
    pairs = [
        job(number, due_at=NOW + rng.randrange(-20, 5), priority=rng.choice(LEVELS))
        for number in rng.sample(range(1, 1000), 120)
    ]
    store.add(*pairs)
    due = [pair for pair in pairs if pair[1].due_at <= NOW]
    expected = plainly(due, "due_at")
    assert len(expected) > 60
    for limit in (1, 2, 17, len(due), 1000):
        assert ids(store.write(lambda tx, limit=limit: tx.jobs.due(NOW, limit))) == expected[:limit]
    assert store.read(lambda tx: tx.jobs.overdue(NOW)) == len(due)


@pytest.mark.parametrize("seed", range(5))
def test_batch_after_batch_takes_everything_in_that_order(store, seed):
    rng = random.Random(seed)
    pairs = [job(number, due_at=NOW - rng.randrange(9), priority=rng.choice(LEVELS)) for number in range(1, 61)]
    store.add(*pairs)
    taken = []

    def claim(tx):
        found = tx.jobs.due(NOW, 7)
        tx.jobs.save_started([state._replace(due_at=None) for _, state in found])
        return ids(found), tx.jobs.next_alarm()

    while len(taken) < len(pairs):
        batch, alarm = store.write(claim)
        taken += batch
        left = [state.due_at for _, state in pairs if state.job_id not in taken]
        assert alarm == min(left, default=None)
    assert taken == plainly(pairs, "due_at")


@pytest.mark.parametrize("seed", range(5))
def test_what_waits_for_a_lane_is_put_back_as_a_plain_sort_would_order_it(store, seed):
    rng = random.Random(seed)
    pairs = [
        job(number, parked="lane", ready_at=NOW - rng.randrange(9), priority=rng.choice(LEVELS))
        for number in range(1, 61)
    ]
    store.add(*pairs, job(99, parked="other", ready_at=NOW - 99, priority=100))
    expected = plainly(pairs, "ready_at")
    assert ids(store.read(lambda tx: tx.jobs.parked_on("lane", NOW, 20))) == expected[:20]
    long = [pair for pair in pairs if pair[1].ready_at <= NOW - 4]
    assert ids(store.read(lambda tx: tx.jobs.parked_on("lane", NOW - 4, 9))) == plainly(long, "ready_at")[:9]
    back = []
    while len(back) < len(pairs):
        assert store.write(lambda tx: tx.jobs.requeue_parked("lane", NOW, 7)) > 0
        due = ids(store.read(lambda tx: tx.jobs.due(NOW, 100)))
        back += [number for number in expected if number in due and number not in back]
        assert sorted(due) == sorted(expected[: len(due)])
    assert back == expected


def test_the_next_alarm_is_the_earliest_of_any_priority(store):
    store.add(job(1, due_at=NOW + 50), job(2, due_at=NOW + 30, priority=-3), job(3, due_at=NOW + 40, priority=3))
    assert store.write(lambda tx: tx.jobs.next_alarm()) == NOW + 30


def test_a_job_is_due_under_the_priority_it_was_given_last(store):
    store.add(job(1, due_at=NOW - 5), job(2, due_at=NOW))

    def prioritize(tx, priority):
        tx.jobs.save([tx.jobs.states([2])[2]._replace(priority=priority)])

    for priority, expected in ((42, [2, 1]), (-42, [1, 2]), (0, [1, 2])):
        store.write(lambda tx, priority=priority: prioritize(tx, priority))
        assert ids(store.write(lambda tx: tx.jobs.due(NOW, 9))) == expected
        assert ids(store.write(lambda tx: tx.jobs.due(NOW, 1))) == expected[:1]


def test_a_priority_that_only_another_process_has_used_is_seen_at_the_next_look(store, store_url, clock):
    store.add(job(1, due_at=NOW))
    store.write(lambda tx: (tx.jobs.due(NOW, 9), tx.jobs.next_alarm()))
    with OpenStore(store_url, clock) as other:
        other.add(job(2, due_at=NOW, priority=9), job(3, due_at=NOW - 100_000, priority=-9))
        other.write(lambda tx: tx.jobs.save([tx.jobs.states([1])[1]._replace(due_at=NOW - 90_000, priority=9)]))
    assert ids(store.write(lambda tx: (tx.jobs.look_below(), tx.jobs.due(NOW, 9))[1])) == [1, 2, 3]


def test_jobs_stored_before_there_were_priorities_have_0_and_keep_their_order(bare_url, clock, tmp_path, monkeypatch):
    before = shutil.copytree(schema_version.FOLDERS["wakeful"], tmp_path / "before")
    for script in before.glob("*.sql"):
        if int(script.name[:4]) >= PRIORITY_SCHEMA:
            script.unlink()
    with monkeypatch.context() as older:
        older.setattr(schema_version, "FOLDERS", {"wakeful": before})
        with OpenStore(bare_url, clock) as store:
            store.write(_stock)
    with OpenStore(bare_url, clock) as store:
        assert ids(store.write(lambda tx: tx.jobs.due(NOW, 9))) == [2, 1]
        assert ids(store.write(lambda tx: tx.jobs.parked_on("lane", NOW, 9))) == [4, 3]
        states = store.read(lambda tx: tx.jobs.states([1, 2, 3, 4]))
        assert {state.priority for state in states.values()} == {0}
        store.add(job(5, due_at=NOW, priority=1))
        store.write(lambda tx: tx.jobs.requeue_parked("lane", NOW, 1))
        assert ids(store.write(lambda tx: tx.jobs.due(NOW, 9))) == [5, 4, 2, 1]


def _stock(tx):
    """Two jobs that are due and two that are parked, with the columns there were."""
    waits = [{"due_at": NOW}, {"due_at": NOW - 1}, {"parked": "lane", "ready_at": NOW - 3}]
    waits.append({"parked": "lane", "ready_at": NOW - 4})
    pairs = [job(number, **more) for number, more in enumerate(waits, 1)]
    columns = [name for name in STATE_COLUMNS if name not in ("priority", "ended_at", "counted_to")]
    rows = [[getattr(state, name) for name in columns] for _, state in pairs]
    tx.jobs._session.insert_many("jobs", JOB_COLUMNS, [definition for definition, _ in pairs])
    tx.jobs._session.insert_many("job_state", columns, rows)


# -- what it costs on SQLite; for PostgreSQL see test_postgres_plans.py -----------------------------------------------


@pytest.mark.parametrize("asleep", [True, False], ids=["nothing else is due", "everything is due"])
def test_looking_costs_the_same_however_many_jobs_of_any_priority_there_are(tmp_path, asleep):
    with OpenStore(f"sqlite:///{tmp_path / 'wakeful.db'}", ManualClock(), inline=True) as store:
        _fill(store, range(1, 101), asleep=asleep)
        few = {name: _steps(store, work) for name, work in LOOKING.items()}
        _fill(store, range(101, 8001), asleep=asleep)
        many = {name: _steps(store, work) for name, work in LOOKING.items()}
    assert {name: (few[name], many[name]) for name in LOOKING if many[name] > 2 * few[name] + 20} == {}


LOOKING = {
    "what is due": lambda tx: tx.jobs.due(NOW, 20),
    "the next alarm": lambda tx: tx.jobs.next_alarm(),
    "what is parked": lambda tx: tx.jobs.parked_on("lane", NOW, 20),
    "putting back": lambda tx: tx.jobs.requeue_parked("lane", NOW, 0),
}


def _fill(store, numbers, *, asleep):
    """Of every priority: jobs that are armed, and twice as many that are parked, some of them only just now."""
    due_at = NOW + 5 if asleep else NOW - 5
    waits = [{"due_at": due_at}, {"parked": "lane", "ready_at": NOW}, {"parked": "lane", "ready_at": NOW + 5}]
    store.add(*(job(number, priority=(number // 3) % 4 * 20 - 40, **waits[number % 3]) for number in numbers))


def _steps(store, work):
    """How many steps the database's machine takes for it."""
    count = [0]

    def step():
        count[0] += 1

    store.store._writer.set_progress_handler(step, 1)
    store.write(work)
    store.store._writer.set_progress_handler(None, 0)
    return count[0]
