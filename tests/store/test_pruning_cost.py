"""What it costs to keep the slots of pruned runs: the same, however many are kept already."""

from __future__ import annotations

from itertools import accumulate, cycle, islice

import pytest

from tests.store.samples import NOW, job
from wakeful import Every, Interval
from wakeful.kernel.engine.stretches import DAY_MS, FULL, keep_slots
from wakeful.kernel.rules.policy import trigger_text
from wakeful.store.records import RunRow
from wakeful.store.stretches import Stretch

MIDNIGHT = NOW - NOW % DAY_MS
PRUNED = 100
TRIGGERS = {"without a grid": Interval("10s"), "every second one of a grid": Every("10s")}
#: Steps between slots, in milliseconds.
STEPS = {"without a grid": (2_003, 1_994, 2_150, 2_011, 1_871), "every second one of a grid": (20_000,)}


@pytest.fixture
def work(monkeypatch):
    """How many slots of patterns were read and written, in all."""
    done = [0]
    listed, of_slots = Stretch.listed, Stretch.of_slots

    def counted_listed(stretch):
        found = listed(stretch)
        done[0] += len(found or ())
        return found

    def counted_of_slots(stretch, slots):
        done[0] += len(slots)
        return of_slots(stretch, slots)

    monkeypatch.setattr(Stretch, "listed", counted_listed)
    monkeypatch.setattr(Stretch, "of_slots", counted_of_slots)
    return done


def _cost(store, work, runs):
    before = work[0]
    store.write(lambda tx: keep_slots(tx, runs))
    return work[0] - before


def _runs(steps, count):
    slots = accumulate(islice(cycle(steps), count), initial=MIDNIGHT)
    return [
        RunRow(number, 1, "job", "schedule", slot, 1, None, None, None, "done", "success", slot, slot, slot + 5)
        for number, slot in enumerate(slots)
    ]


@pytest.mark.promise("X24", "X11")
@pytest.mark.parametrize("which", STEPS)
def test_to_keep_the_slots_of_pruned_runs_costs_the_same_however_many_are_kept(store, work, which):
    definition, state = job(1)
    trigger = trigger_text(TRIGGERS[which].resolved(MIDNIGHT - 10 * DAY_MS, "UTC"))
    store.write(lambda tx: tx.jobs.add([(definition._replace(trigger=trigger), state)]))
    runs = _runs(STEPS[which], 2_000)
    costs = [_cost(store, work, runs[at : at + PRUNED]) for at in range(0, len(runs), PRUNED)]
    assert max(costs) <= 2 * (FULL + PRUNED)
    found = store.read(lambda tx: tx.stretches.of_job(1))
    assert max(stretch.slots for stretch in found) <= FULL
    assert [slot for stretch in found for slot in stretch.listed()] == [run.slot for run in runs]


@pytest.mark.promise("X24")
def test_a_row_that_an_earlier_version_made_too_long_is_left_as_it_is(store, work):
    definition, state = job(1)
    trigger = trigger_text(Interval("10s").resolved(MIDNIGHT, "UTC"))
    store.write(lambda tx: tx.jobs.add([(definition._replace(trigger=trigger), state)]))
    runs = _runs(STEPS["without a grid"], 2_500)
    _cost(store, work, runs[:1])
    (row,) = store.read(lambda tx: tx.stretches.of_job(1))
    long = row.of_slots([run.slot for run in runs[:1_000]])
    store.write(lambda tx: tx.stretches.replace([row], [long]))
    _cost(store, work, runs[1_000:1_100])
    assert _cost(store, work, runs[1_100:1_200]) <= 2 * (FULL + PRUNED)
    assert long in store.read(lambda tx: tx.stretches.of_job(1))
    inside = runs[0]._replace(slot=runs[0].slot + 1)
    _cost(store, work, [inside])
    found = store.read(lambda tx: tx.stretches.of_job(1))
    assert max(stretch.slots for stretch in found) <= FULL, "one that must be written again is written in parts"
    assert sum(stretch.slots for stretch in found) == 1_201
