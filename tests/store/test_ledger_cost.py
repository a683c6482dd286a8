"""What a ledger of everything costs: a few questions and little work, however many jobs there are."""

from __future__ import annotations

from functools import partial
from time import process_time

import pytest

from tests.store.samples import NOW, job
from wakeful import Cron
from wakeful.kernel.rules.policy import trigger_text
from wakeful.kernel.views.ledger import ledger_of_all
from wakeful.store.records import RunRow

DAY = 86_400_000
QUESTIONS = 12
TOGETHER = 200  # jobs in one transaction


def _fill(store, jobs, days):
    """Daily jobs, each at a time of its own, whose slots all ran."""
    for start in range(1, jobs + 1, TOGETHER):
        store.write(partial(_add, range(start, min(start + TOGETHER, jobs + 1)), days))


def _add(numbers, days, tx):
    pairs, runs = [], []
    for number in numbers:
        trigger = Cron(f"{number % 60} {number // 60 % 24} * * *", tz="Europe/Berlin")
        slots = trigger.upcoming_slots(NOW - days * DAY, days + 1)
        past, following = [slot for slot in slots if slot <= NOW], slots[-1]
        for place, slot in enumerate(past):
            where = (number, "job", "schedule", slot, 1, None, None, None, "done", "success", slot, slot, slot + 9)
            runs.append(RunRow(number * 1_000 + place, *where))
        armed = {"slot": following, "next_at": following, "due_at": following}
        definition, state = job(number, created_at=NOW - days * DAY, last_slot=past[-1], counted_to=past[-1], **armed)
        pairs.append((definition._replace(trigger=trigger_text(trigger)), state))
    tx.jobs.add(pairs)
    tx.runs.add(runs)


class _Counting:
    """A session that counts what it is asked."""

    def __init__(self, session):
        self._session = session
        self.asked = 0

    def __getattr__(self, name):
        self.asked += name in ("rows", "bulk", "select_in")
        return getattr(self._session, name)


def _counted(tx, since):
    session = _Counting(tx._session)
    for verbs in (tx.slots, tx.stretches, tx.jobs, tx.facts, tx.members):
        verbs._session = session
    return ledger_of_all(tx, since), session.asked


@pytest.mark.promise("X25")
def test_a_ledger_of_all_jobs_asks_the_same_few_questions_however_many_there_are(store):
    _fill(store, 50, 10)
    found, asked = store.read(lambda tx: _counted(tx, 0))
    assert (found.total.due, found.total.ran, found.total.unaccounted) == (500, 500, 0)
    assert asked <= QUESTIONS


@pytest.mark.promise("X25")
def test_thirty_days_of_ten_thousand_jobs_take_less_than_a_second_of_work(store):
    _fill(store, 10_000, 30)
    took = []
    for _ in range(3):
        began = process_time()
        found = store.read(lambda tx: ledger_of_all(tx, NOW - 30 * DAY))
        took.append(process_time() - began)
    assert (len(found.jobs), found.total.unaccounted) == (10_000, 0)
    assert found.total.due == found.total.ran == 300_000
    assert min(took) < 1.0
