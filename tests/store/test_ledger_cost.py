"""What a ledger of everything costs: a few questions and little work, however many jobs there are."""

from __future__ import annotations

from functools import partial
from time import process_time

import pytest

from tests.paces import pace_s
from tests.store.samples import NOW, job
from wakeful import Cron
from wakeful.errors import SchedulerNotOpen
from wakeful.kernel.rules.policy import trigger_text
from wakeful.kernel.views import ledger as ledgers
from wakeful.kernel.views.ledger import ledger_in_steps, ledger_of_all
from wakeful.store.records import RunRow

DAY = 86_400_000
QUESTIONS = 12
MORE_QUESTIONS = 8  # for jobs that are looked at slot by slot, all together
TOGETHER = 200  # jobs in one transaction


def _fill(store, jobs, days, added=None):
    """Daily jobs, each at a time of its own, whose slots all ran; `added`: when they were, if not before their runs."""
    for start in range(1, jobs + 1, TOGETHER):
        store.write(partial(_add, range(start, min(start + TOGETHER, jobs + 1)), days, added))


def _add(numbers, days, added, tx):
    pairs, runs = [], []
    for number in numbers:
        trigger = Cron(f"{number % 60} {number // 60 % 24} * * *", tz="Europe/Berlin")
        slots = trigger.upcoming_slots(NOW - days * DAY, days + 1)
        past, following = [slot for slot in slots if slot <= NOW], slots[-1]
        for place, slot in enumerate(past):
            where = (number, "job", "schedule", slot, 1, None, None, None, "done", "success", slot, slot, slot + 9)
            runs.append(RunRow(number * 1_000 + place, *where))
        armed = {"slot": following, "next_at": following, "due_at": following}
        definition, state = job(
            number, created_at=added or NOW - days * DAY, last_slot=past[-1], counted_to=past[-1], **armed
        )
        pairs.append((definition._replace(trigger=trigger_text(trigger)), state))
    tx.jobs.add(pairs)
    tx.runs.add(runs)


class _Counting:
    """A session that counts what it is asked."""

    def __init__(self, session):
        self._session = session
        self.asked = self.found = 0

    def __getattr__(self, name):
        given = getattr(self._session, name)
        return partial(self._ask, given) if name in ("rows", "bulk", "select_in") else given

    def _ask(self, given, *args, **named):
        rows = given(*args, **named)
        self.asked += 1
        self.found += len(rows)
        return rows


def _watched(tx):
    session = _Counting(tx._session)
    for verbs in (tx.slots, tx.stretches, tx.jobs, tx.facts, tx.members, tx.nodes, tx.skips):
        verbs._session = session
    return session


def _counted(tx, since):
    session = _watched(tx)
    return ledger_of_all(tx, since), session.asked


class _Stepping:
    """A store that counts what each transaction is asked and finds, and may be closed after some."""

    def __init__(self, store, close_after=None):
        self._store = store
        self._close_after = close_after
        self.steps = []

    async def read(self, work):
        if len(self.steps) == self._close_after:
            await self._store.close()
        return await self._store.read(lambda tx: self._count(work, tx))

    def _count(self, work, tx):
        session = _watched(tx)
        found = work(tx)
        self.steps.append((session.asked, session.found))
        return found


@pytest.mark.promise("X25")
def test_a_ledger_of_all_jobs_asks_the_same_few_questions_however_many_there_are(store):
    _fill(store, 50, 10)
    found, asked = store.read(lambda tx: _counted(tx, 0))
    assert (found.total.due, found.total.ran, found.total.unaccounted) == (500, 500, 0)
    assert asked <= QUESTIONS


@pytest.mark.promise("X25")
def test_jobs_whose_runs_do_not_agree_with_their_triggers_are_looked_at_together_however_many_there_are(store):
    _fill(store, 100, 10, added=NOW)
    found, asked = store.read(lambda tx: _counted(tx, 0))
    assert (len(found.jobs), found.total.ran) == (100, 1_000)
    assert asked <= QUESTIONS + MORE_QUESTIONS


@pytest.mark.promise("X25", "X24")
@pytest.mark.parametrize("added", [None, NOW])
def test_a_ledger_in_steps_is_the_same_and_no_step_looks_at_more_than_so_many_jobs(store, monkeypatch, added):
    monkeypatch.setattr(ledgers, "STEP", 20)
    monkeypatch.setattr(ledgers, "MOST_SLOTS", 50)
    _fill(store, 100, 10, added)
    whole = store.read(lambda tx: ledger_of_all(tx, 0))
    stepping = _Stepping(store.store)
    in_steps = store.do(ledger_in_steps(stepping, lambda _: 0))
    assert in_steps._replace(until=whole.until) == whole
    assert (len(whole.jobs), whole.total.ran) == (100, 1_000)
    assert len(stepping.steps) > 5
    asked, found = map(max, zip(*stepping.steps, strict=True))
    assert asked <= QUESTIONS
    assert found <= 5 * 20, "the ids of jobs, their states, and what a question counts of each"


@pytest.mark.promise("X24")
def test_a_ledger_in_steps_ends_as_soon_as_the_store_is_closed(store, monkeypatch):
    monkeypatch.setattr(ledgers, "STEP", 20)
    _fill(store, 100, 2)
    stepping = _Stepping(store.store, close_after=3)
    with pytest.raises(SchedulerNotOpen):
        store.do(ledger_in_steps(stepping, lambda _: 0))
    assert len(stepping.steps) == 3


@pytest.mark.promise("X25")
def test_thirty_days_of_ten_thousand_jobs_take_little_work(store):
    _fill(store, 10_000, 30)
    took = []
    for _ in range(3):
        began = process_time()
        found = store.read(lambda tx: ledger_of_all(tx, NOW - 30 * DAY))
        took.append(process_time() - began)
    assert (len(found.jobs), found.total.unaccounted) == (10_000, 0)
    assert found.total.due == found.total.ran == 300_000
    assert min(took) < 50 * pace_s()
