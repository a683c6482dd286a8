"""Stretches and slots in the store: what both dialects must answer."""

from __future__ import annotations

import shutil

import pytest

from tests.store.samples import NOW, OpenStore, job
from wakeful import Every
from wakeful.kernel.rules.policy import trigger_text
from wakeful.kernel.views.ledger import ledger_of_all
from wakeful.store import schema_version
from wakeful.store.owners import Owned
from wakeful.store.records import JOB_COLUMNS, STATE_COLUMNS, RunRow
from wakeful.store.stretches import RAN, Around, Block, PastTrigger, SlotSpan, Stretch
from wakeful.triggers.moments import from_ms, to_ms

HOUR = 3_600_000
LEDGER_SCHEMA = 22


def _stretch(first, last, slots=None, *, fate=RAN, job_id=1, since=0, pattern=None):
    return Stretch(job_id, fate, first, last, slots or (last - first) // HOUR + 1, since, pattern)


@pytest.fixture
def stored(store):
    kept = [
        _stretch(1 * HOUR, 5 * HOUR),
        _stretch(9 * HOUR, 12 * HOUR),
        _stretch(6 * HOUR, 8 * HOUR, fate="paused"),
        _stretch(2 * HOUR, 3 * HOUR, job_id=2),
    ]
    store.write(lambda tx: tx.stretches.replace([], kept))
    return store


def test_a_stretch_says_which_slots_it_has():
    assert _stretch(HOUR, HOUR).listed() == [HOUR]
    assert _stretch(HOUR, 3 * HOUR).listed() is None, "its trigger knows"
    slots = [HOUR, 3 * HOUR, 4 * HOUR, 9 * HOUR]
    made = _stretch(HOUR, HOUR).of_slots(slots)
    assert (made.first_slot, made.last_slot, made.slots, made.listed()) == (HOUR, 9 * HOUR, 4, slots)
    assert made.of_slots([HOUR]).pattern is None


def test_a_pattern_of_a_whole_day_is_short():
    slots = [minute * 60_000 for minute in range(0, 1440, 2)]
    assert len(_stretch(0, 0, 1).of_slots(slots).pattern) < 100


def test_what_encloses_a_slot_is_found_of_one_fate_or_of_all(stored):
    found = stored.read(lambda tx: tx.stretches.covering(1, 7 * HOUR))
    assert [item.fate for item in found] == ["paused"]
    assert stored.read(lambda tx: tx.stretches.covering(1, 7 * HOUR, RAN)) == []


def test_what_is_near_some_slots_is_found_for_many_jobs_at_once(stored):
    later = [_stretch(hour * HOUR, hour * HOUR) for hour in (14, 16, 18)]
    stored.write(lambda tx: tx.stretches.replace([], [*later, _stretch(10 * HOUR, 11 * HOUR, since=5)]))
    keys = [Around(1, RAN, 0, 12 * HOUR, 14 * HOUR), Around(2, RAN, 0, 8 * HOUR, 9 * HOUR), Around(3, RAN, 0, 0, 0)]
    found = stored.write(lambda tx: tx.stretches.near([*keys, Around(1, "paused", 0, 0, HOUR)]))
    assert {(item.job_id, item.fate, item.first_slot) for item in found} == {
        (1, RAN, 9 * HOUR), (1, RAN, 14 * HOUR), (1, RAN, 16 * HOUR), (2, RAN, 2 * HOUR), (1, "paused", 6 * HOUR),
    }, "those within, and one before and one after"  # fmt: skip
    assert stored.write(lambda tx: tx.stretches.near([])) == []


def test_stretches_of_a_span_are_summed_where_they_lie_in_it_and_listed_where_it_cuts_them(stored):
    span = SlotSpan(2 * HOUR, 8 * HOUR)
    assert stored.read(lambda tx: tx.stretches.sums(span)) == [(1, "paused", 3)]
    cut = stored.read(lambda tx: tx.stretches.crossing(span))
    assert [(item.job_id, item.first_slot) for item in cut] == [(1, HOUR), (2, 2 * HOUR)]
    assert [item.fate for item in stored.read(lambda tx: tx.stretches.within(1, span))] == [RAN, "paused"]


def test_a_stretch_that_grows_keeps_its_row_and_its_pattern(stored):
    old = _stretch(9 * HOUR, 12 * HOUR)
    new = old.of_slots([9 * HOUR, 12 * HOUR, 14 * HOUR])
    stored.write(lambda tx: tx.stretches.replace([old], [new]))
    assert new in stored.read(lambda tx: tx.stretches.of_job(1))
    assert len(stored.read(lambda tx: tx.stretches.of_job(1))) == 3


def test_a_trigger_that_was_in_force_for_no_time_does_not_replace_the_one_before(store):
    def work(tx):
        tx.stretches.retire_trigger(1, '"first"', 100)
        tx.stretches.retire_trigger(1, '"never"', 100)
        tx.stretches.retire_trigger(1, '"second"', 200)

    store.write(work)
    assert store.read(lambda tx: tx.stretches.past_triggers(1)) == [
        PastTrigger(1, 0, 100, '"first"'), PastTrigger(1, 100, 200, '"second"'),
    ]  # fmt: skip
    assert store.read(lambda tx: tx.stretches.all_past_triggers(150)) == {1: [PastTrigger(1, 100, 200, '"second"')]}


def _run(run_id, slot, *, attempt=1, status="done", started=1, retry_of=None):
    ended = 2 if status == "done" else None
    row = RunRow(run_id, 1, "job", "schedule", slot, attempt, retry_of, None, None, status, None, 1, started, ended)
    return row._replace(outcome="success" if status == "done" else None)


def test_runs_are_counted_by_their_slots(store):
    def work(tx):
        tx.jobs.add([job(1), job(2, owner="ann"), job(3, kind="hidden")])
        tx.runs.add(
            [
                _run(10, 1 * HOUR),
                _run(11, 1 * HOUR, attempt=2, retry_of=10),
                _run(12, 2 * HOUR, started=None),
                _run(13, 3 * HOUR, status="active"),
                _run(14, 4 * HOUR, started=None),
                _run(15, 4 * HOUR, attempt=2, retry_of=14),
                _run(16, None),
                _run(17, 9 * HOUR),
            ]
        )

    store.write(work)
    span = SlotSpan(0, 5 * HOUR)
    assert store.read(lambda tx: tx.slots.firsts(span)) == {1: 4}
    assert store.read(lambda tx: tx.slots.firsts(span, Block(1, 2))) == {}
    assert store.read(lambda tx: tx.slots.unstarted(span)) == {1: 1}
    assert store.read(lambda tx: tx.slots.unstarted(span, Block(0, 1))) == {1: 1}
    assert [run.id for run in store.read(lambda tx: tx.slots.opened(span))] == [13]
    assert [run.id for run in store.read(lambda tx: tx.slots.runs(1, span))] == [10, 11, 12, 13, 14, 15]
    assert store.read(lambda tx: tx.slots.next_run(1, 4 * HOUR)) == 9 * HOUR
    assert store.read(lambda tx: tx.slots.next_run(1, 9 * HOUR)) is None
    assert {placed.id for placed in store.read(lambda tx: tx.slots.jobs(["hidden"]))} == {1, 2}
    assert {placed.id for placed in store.read(lambda tx: tx.slots.jobs((), Owned("ann")))} == {2}


def test_in_a_store_from_before_there_was_a_ledger_the_record_begins_with_the_last_event(
    bare_url, clock, tmp_path, monkeypatch
):
    before = shutil.copytree(schema_version.FOLDERS["wakeful"], tmp_path / "before")
    for script in before.glob("*.sql"):
        if int(script.name[:4]) >= LEDGER_SCHEMA:
            script.unlink()
    trigger = trigger_text(Every("1h", anchor=from_ms(NOW - 50 * HOUR)))

    def stock(tx):
        armed, stopped = job(1, slot=NOW + HOUR, next_at=NOW + HOUR), job(2, paused=1, last_slot=NOW - 9 * HOUR)
        columns = [name for name in STATE_COLUMNS if name != "counted_to"]
        pairs = [(one._replace(trigger=trigger, created_at=NOW - 40 * HOUR), state) for one, state in (armed, stopped)]
        tx.jobs._session.insert_many("jobs", JOB_COLUMNS, [one for one, _ in pairs])
        rows = [[getattr(state, name) for name in columns] for _, state in pairs]
        tx.jobs._session.insert_many("job_state", columns, rows)
        tx.events.emit("job", {"type": "paused"})

    with monkeypatch.context() as older:
        older.setattr(schema_version, "FOLDERS", {"wakeful": before})
        with OpenStore(bare_url, clock) as store:
            store.write(stock)
            upgraded_at = store.read(lambda tx: tx.now)
    with OpenStore(bare_url, clock) as store:
        states = store.read(lambda tx: tx.jobs.states([1, 2]))
        assert [states[1].counted_to, states[2].counted_to] == [NOW + HOUR - 1, NOW - 9 * HOUR]
        found = store.read(lambda tx: ledger_of_all(tx, 0))
        assert to_ms(found.since) == upgraded_at
        assert (found.total.due, found.total.unaccounted) == (0, 0)


def test_a_job_that_is_forgotten_leaves_nothing_of_its_slots(stored):
    def work(tx):
        for job_id in (1, 2):
            tx.stretches.retire_trigger(job_id, '"first"', 100)
        tx.jobs.forget([1])

    stored.write(work)
    assert stored.read(lambda tx: (tx.stretches.of_job(1), tx.stretches.past_triggers(1))) == ([], [])
    assert stored.read(lambda tx: (len(tx.stretches.of_job(2)), len(tx.stretches.past_triggers(2)))) == (1, 1)
