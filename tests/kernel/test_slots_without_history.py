"""Which slots were run stays known when their runs are pruned: no clock step makes one run twice."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.kernel.scene import at, settled_slots, virtual
from wakeful import Cron, Every, Retention
from wakeful.kernel.engine.stretches import DAY_MS, FULL, PER_DAY, join
from wakeful.store.stretches import RAN, Stretch

SHORT = Retention(runs_per_job=10, check_every=5)
TRIGGERS = {
    "every": Every("1m", anchor=at(days=-30)),
    "cron": Cron("* * * * *"),
    "uneven cron": Cron("0,5,20,50 * * * *"),
    "thinned": Every("7s", anchor=at(days=-30)),
}


@pytest.mark.promise("H2")
@pytest.mark.parametrize("trigger", TRIGGERS.values(), ids=TRIGGERS)
@virtual
async def test_a_slot_whose_run_was_pruned_is_not_run_again_when_the_clock_goes_back(scene, minutely_sweeps, trigger):
    async with scene.scheduler(retention=SHORT) as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await scene.sleep("60m")
        assert len(await scheduler.get_run_log("a", limit=500)) < 20, "nothing was pruned, nothing is proved"
        scene.step(minutes=-50)
        await scene.sleep("65m")
        slots = settled_slots(scene.runs)
        assert len(slots) == len(set(slots)), "a slot was run twice"
        assert max(slots) > at(minutes=60), "it goes on once the old time has passed"


@pytest.mark.promise("H2")
@virtual
async def test_a_slot_older_than_all_history_is_not_run_again(scene):
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_job("a", Every("6h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("8d")
        assert len(await scheduler.get_run_log("a", limit=500)) < 10
        scene.step(days=-7)
        await scene.sleep("8d")
        slots = settled_slots(scene.runs)
        assert len(slots) == len(set(slots)), "a slot was run twice"
        assert max(slots) > at(days=8), "it goes on once the old time has passed"


@pytest.mark.promise("H2")
@virtual
async def test_a_day_back_after_thirty_hours_of_minutes_repeats_nothing(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("30h")
        scene.step(days=-1)
        await scene.sleep("23h")
        slots = settled_slots(scene.runs)
        assert len(slots) == len(set(slots)), "a slot was run twice"


@pytest.mark.promise("H2")
@virtual
async def test_slots_the_job_never_had_before_are_run_after_its_trigger_changed(scene, minutely_sweeps):
    async with scene.scheduler(retention=SHORT) as scheduler:
        await scheduler.add_job("a", Every("10m", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("10h")
        await scheduler.update_job("a", trigger=Every("5m", anchor=at(days=-30)))
        await scene.sleep("2h")
        scene.step(hours=-8)
        began = len(scene.runs)
        await scene.sleep("1h")
        again = set(scene.slots[began:])
        assert again, "silent for hours"
        assert all(slot.minute % 10 == 5 for slot in again), "these were run before, under the first trigger"


@pytest.mark.promise("H2")
@virtual
async def test_what_is_kept_of_a_steady_job_is_one_stretch(scene, minutely_sweeps):
    async with scene.scheduler(retention=SHORT) as scheduler:
        job_id = await scheduler.add_job("a", Every("1m", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("5h")
        (kept,) = await _stretches(scheduler, job_id)
        left = await scheduler.get_run_log("a", limit=500)
        assert kept.slots + len(left) == len(scene.runs)
        assert kept.last_slot - kept.first_slot == (kept.slots - 1) * 60_000


@pytest.mark.promise("H2")
@virtual
async def test_stretches_leave_by_a_retention_of_their_own_and_with_their_job(scene):
    keep = Retention(days=1, runs_per_job=10, slot_days=3, check_every=5)
    async with scene.scheduler(retention=keep) as scheduler:
        job_id = await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("2d")
        await scheduler.pause_job("a")
        assert await _stretches(scheduler, job_id)
        await scene.sleep("4d")
        assert await _stretches(scheduler, job_id) == []
        ledger = await scheduler.get_ledger(since="30d")
        assert (ledger.since > at(days=1), ledger.total.unaccounted) == (True, 0), "it begins where the records begin"
        await scheduler.resume_job("a")
        await scene.sleep("1d")
        assert await _stretches(scheduler, job_id)
        await scheduler.remove_job("a")
        await scene.sleep("2d")
        assert await _stretches(scheduler, job_id) == []


async def _stretches(scheduler, job_id):
    from wakeful import ids

    return await scheduler._store.read(lambda tx: tx.stretches.of_job(ids.decode(job_id)[1]))


def _singles(slots):
    return [Stretch(1, RAN, slot, slot, 1, 0) for slot in slots]


def _next(before, after):
    return before.last_slot + 10 >= after.first_slot


@given(st.sets(st.integers(0, 400).map(lambda n: n * 10)), st.randoms(use_true_random=False))
def test_joining_bit_by_bit_in_any_order_says_the_same_as_joining_at_once(slots, rng):
    order = sorted(slots)
    rng.shuffle(order)
    kept = []
    for slot in order:
        kept = join([*kept, *_singles([slot])], _next)
    assert sum(item.slots for item in kept) == len(slots)
    if len(join(_singles(slots), _next)) <= PER_DAY:
        covered = {slot for item in kept for slot in range(item.first_slot, item.last_slot + 1, 10)}
        assert covered >= slots


def test_a_job_that_leaves_out_every_second_slot_keeps_a_few_stretches_a_day():
    slots = [n * 120_000 for n in range(3 * DAY_MS // 120_000)]
    kept = join(_singles(slots), lambda before, after: before.last_slot + 60_000 >= after.first_slot)
    assert len(kept) <= 3 * (PER_DAY + 1 + 720 // FULL)
    assert sum(item.slots for item in kept) == len(slots)
    assert kept[0].first_slot == 0
    assert timedelta(milliseconds=kept[-1].last_slot) > timedelta(days=2, hours=23)
