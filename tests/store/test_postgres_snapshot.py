"""A snapshot that somebody holds open: what is cleared meanwhile stays in the index, and is not walked over.

And the watermark that makes it so: whatever is armed below it, by this process or another, is found.
"""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.service.real_time import Watch, real
from tests.store.postgres_server import emptied_url, postgres_url
from tests.store.samples import NOW, OpenStore, job
from tests.store.test_postgres_plans import _plans
from wakeful import Once, Scheduler
from wakeful.clock import ManualClock
from wakeful.store.alarm_watermark import COSTLY_MS, LONGEST_REST_MS, Watermark
from wakeful.triggers.moments import to_ms

pytestmark = pytest.mark.promise("X2")

START = datetime(2020, 1, 1, tzinfo=UTC)
DEAD = 35_000
FUTURE = NOW + 3_600_000
_FILL = f"""
INSERT INTO jobs (id, name, kind, source, trigger, payload, options, created_at, updated_at)
SELECT n, 'job-' || n, 'work', 'code', '{{}}', 'null', '{{}}', {NOW}, {NOW} FROM generate_series(1, {DEAD}) n;
INSERT INTO job_state (job_id, revision, enabled, paused, due_at, queued, errors, crashes, missed, slot_runs, priority)
SELECT n, 1, 1, 0, {NOW} - 100000 + n * 7919 % {DEAD}, 0, 0, 0, 0, 0, n % 2 * 5 FROM generate_series(1, {DEAD}) n;
INSERT INTO priorities (level) VALUES (5), (-5)
"""  # noqa: S608 - numbers of our own


def _ask(tx):
    return tx.jobs.due(NOW, 10), tx.jobs.next_alarm()


def _look(tx):
    tx.jobs.look_below()


def _buffers(store, verb):
    """The pages that each statement of a verb touches, as its values are planned."""
    plans = store.write(lambda tx: _plans(tx, verb))
    told = [(sql, plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]) for sql, plan in plans]
    return [pages for sql, pages in told[: len(told) // 2] if "FROM job_state" in sql]


@pytest.fixture(scope="module")
def held():
    """A store with one job armed, after 35,000 others were cleared while somebody looked on."""
    url = postgres_url()
    with OpenStore(url, ManualClock()) as opened, psycopg.connect(url, autocommit=True) as admin:
        admin.execute("ALTER TABLE job_state SET (autovacuum_enabled = false)")
        admin.execute(_FILL)
        with psycopg.connect(url) as onlooker:
            onlooker.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            onlooker.execute("SELECT count(*) FROM jobs")
            admin.execute("UPDATE job_state SET due_at = NULL")
            admin.execute("UPDATE job_state SET due_at = %s WHERE job_id = 7", (FUTURE,))
            yield opened, url


def test_what_is_due_and_the_next_alarm_are_asked_for_above_the_entries_that_a_snapshot_keeps(held):
    store, _ = held
    store.store._writer.watermark.forget()
    before = _buffers(store, _ask)
    assert store.write(_ask) == ([], FUTURE)
    after = _buffers(store, _ask)
    print(f"\nwith {DEAD} dead entries: claim and next alarm {before} pages without a watermark, {after} with one")
    assert min(before) > DEAD // 2
    assert max(after) <= 30


@pytest.mark.promise("X22")
def test_a_job_of_low_priority_that_has_long_been_due_keeps_no_other_priority_from_its_floor(held):
    store, url = held
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("UPDATE job_state SET due_at = %s, priority = -5 WHERE job_id = 9", (NOW - 99_999,))
        store.store._writer.watermark.forget()
        assert store.write(lambda tx: tx.jobs.next_alarm()) == NOW - 99_999
        after = _buffers(store, _ask)
        other.execute("UPDATE job_state SET due_at = NULL, priority = 5 WHERE job_id = 9")
    print(f"\nbeside a starved job: claim and next alarm {after} pages")
    assert max(after) <= 40


def test_a_look_below_reads_each_page_once(held):
    store, _ = held
    store.write(_ask)
    (pages,) = _buffers(store, _look)
    print(f"\nwith {DEAD} dead entries: a look below the watermark {pages} pages")
    assert pages < DEAD // 10


def test_what_another_process_arms_for_a_time_long_past_is_found_by_the_next_look(held):
    store, url = held
    assert store.write(_ask) == ([], FUTURE)
    with psycopg.connect(url, autocommit=True) as other:
        other.execute("UPDATE job_state SET due_at = %s WHERE job_id = 9", (NOW - 90_000,))

        def turn(tx):
            tx.jobs.look_below()
            return [state.job_id for _, state in tx.jobs.due(NOW, 10)], tx.jobs.next_alarm() <= NOW + 10

        assert store.write(turn) == ([9], True)
        assert [state.job_id for _, state in store.write(_ask)[0]] == [9]  # and stays in sight until it is cleared
        other.execute("UPDATE job_state SET due_at = NULL WHERE job_id = 9")


@real
async def test_a_node_starts_what_another_process_armed_for_a_time_long_past():
    url = postgres_url()
    node, other = (Scheduler(url, node=name, timezone="UTC") for name in ("one", "other"))
    node.on_job_due("work", lambda run: run.job)
    async with node, other:
        watch = Watch(node)
        await node.start()
        await node.add_job("first", Once(START), kind="work")
        await watch.finished()  # from here on it has a watermark
        await other.add_job("second", Once(START + timedelta(days=36_500)), kind="work")
        long_past = to_ms(START)

        def arm(tx):
            _, state = tx.jobs.by_name("second")
            tx.jobs.save([state._replace(due_at=long_past, next_at=long_past, slot=long_past)])

        await other._store.write(arm)
        await watch.finished(2)
        runs = [(run.job, run.outcome, run.slot, run.node) for run in await node.get_run_log()]
        assert sorted(runs) == [(name, "success", START, "one") for name in ("first", "second")]
        await node.stop()


# -- nothing is missed ------------------------------------------------------------------------------------------------


class _Refused(Exception):
    """A work that changes its mind."""


class Armed:
    """One process that arms, clears, parks and puts back jobs at random, and is asked for all that is due."""

    def __init__(self, store, clock, seed):
        self._store, self._clock, self._rng = store, clock, random.Random(seed)
        self._store.write(lambda tx: tx.jobs.add([job(number, priority=number % 3) for number in range(1, 13)]))

    def step(self):
        self._clock.step(timedelta(milliseconds=self._rng.choice([0, 1, 900, 1100, 60_000, -30_000])))
        acts = [self._arm, self._arm, self._clear, self._park, self._unpark, self._refuse, self._prioritize]
        self._rng.choice(acts)()
        asked, truth = self._store.write(lambda tx: (_answers(tx), _truth(tx)))
        assert asked == truth

    def _moment(self):
        return self._clock.now() + self._rng.choice([-500_000, -2_000, -10, 0, 10, 5_000, 700_000])

    def _save(self, tx, **changes):
        states = tx.jobs.states(self._rng.sample(range(1, 13), 3))
        save = self._rng.choice([tx.jobs.save, tx.jobs.save_started, tx.jobs.save_settled])
        save([state._replace(**changes) for state in states.values()])

    def _arm(self):
        at = self._moment()
        self._store.write(lambda tx: self._save(tx, due_at=at))

    def _clear(self):
        self._store.write(lambda tx: self._save(tx, due_at=None))

    def _park(self):
        def work(tx):
            states = tx.jobs.states(self._rng.sample(range(1, 13), 3)).values()
            tx.jobs.save([state._replace(due_at=None, parked="lane", ready_at=self._moment()) for state in states])

        self._store.write(work)

    def _unpark(self):
        self._store.write(lambda tx: tx.jobs.requeue_parked("lane", tx.now, 2))

    def _prioritize(self):
        def work(tx):
            states = tx.jobs.states(self._rng.sample(range(1, 13), 3)).values()
            tx.jobs.save([state._replace(priority=self._rng.choice([-1, 0, 1, 2, 9])) for state in states])

        self._store.write(work)

    def _refuse(self):
        """It clears everything, asks, and is rolled back: all of it is due again."""

        def work(tx):
            tx.jobs.save([state._replace(due_at=None) for state in tx.jobs.states(range(1, 13)).values()])
            tx.jobs.next_alarm()
            raise _Refused

        with pytest.raises(_Refused):
            self._store.write(work)


def _answers(tx):
    return tx.jobs.next_alarm(), [state.job_id for _, state in tx.jobs.due(tx.now, 50)]


def _truth(tx):
    rows = tx.jobs._session.rows("SELECT -priority, due_at, job_id FROM job_state WHERE due_at IS NOT NULL")
    due = [job_id for _, due_at, job_id in sorted(map(tuple, rows)) if due_at <= tx.now]
    return min((due_at for _, due_at, _ in rows), default=None), due


@pytest.mark.parametrize("seed", range(4))
def test_whatever_a_process_arms_clears_parks_or_rolls_back_it_gets_all_that_is_due(seed):
    clock = ManualClock()
    with OpenStore(emptied_url(), clock, inline=True) as store:
        armed = Armed(store, clock, seed)
        for _ in range(120):
            armed.step()


def test_of_works_that_share_a_transaction_one_that_is_rolled_back_leaves_its_alarms_in_sight():
    watermark = Watermark()
    watermark.begin(0)
    watermark.first({0: NOW - 50_000, 5: None}, NOW)
    watermark.committed(0)
    watermark.begin(0)
    watermark.armed(NOW - 70_000)
    watermark.first({0: None, 5: None}, NOW)  # the second work cleared everything ...
    watermark.undone()  # ... and was rolled back
    assert watermark.since == {0: NOW - 70_000, 5: NOW - 70_000}


def test_a_commit_of_which_nothing_is_known_forgets_the_floor():
    watermark = Watermark()
    watermark.begin(0)
    watermark.first({0: None, 5: None}, NOW)
    watermark.committed(0)
    watermark.begin(0)
    assert watermark.since == {0: NOW - 1000, 5: NOW - 1000}
    watermark.forget()
    watermark.begin(0)
    assert watermark.since == {}


def test_after_a_look_that_took_long_there_is_a_pause_that_ends():
    watermark = Watermark()
    watermark.begin(0)
    assert not watermark.wants_look()  # nothing to look below
    watermark.first({0: None, 5: None}, NOW)
    assert watermark.wants_look()
    watermark.committed(COSTLY_MS)
    watermark.begin(COSTLY_MS + 1)
    assert not watermark.wants_look()
    watermark.begin(COSTLY_MS + LONGEST_REST_MS)
    assert watermark.wants_look()
