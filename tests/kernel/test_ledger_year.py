"""A year of an hourly job with edits, pauses, downtime, DST and pruning, slot by slot against a plain model."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from tests.kernel.scene import virtual
from wakeful import Cron, Retention, ids
from wakeful.kernel.views.ledger import account_of, listed_of
from wakeful.store.stretches import SlotSpan
from wakeful.triggers.moments import from_ms

YEAR_START = datetime(2026, 1, 1, tzinfo=UTC)


class Model:
    """What must have become of each slot, by the plainest means: one entry per slot."""

    def __init__(self):
        self.fates = {}

    def hours(self, begin, end, fate, step=60):
        moment = begin + timedelta(minutes=step)
        while moment <= end:
            self.fates[moment] = fate
            moment += timedelta(minutes=step)


@pytest.mark.promise("X25")
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("scene", ["sqlite"], indirect=True)  # many minutes on a server
@virtual
async def test_a_year_of_an_hourly_job_is_accounted_for_slot_by_slot(scene):
    model, keep = Model(), Retention(days=10, runs_per_job=200, check_every=50)
    hourly, half = Cron("0 * * * *", tz="Europe/Berlin"), Cron("0,30 * * * *", tz="Europe/Berlin")

    def day(number, hours=0):
        return YEAR_START + timedelta(days=number, hours=hours)

    async def act(run):
        if run.slot is not None and run.slot == day(200, 12):
            await asyncio.sleep(5.5 * 3600)

    scene.act = act
    # Minutely looks and sweeps would be most of what happens in a year; no clock is set in this one.
    scene.tuning = scene.tuning._replace(sweep_ms=6 * 3_600_000, longest_sleep_s=3_600)
    async with scene.scheduler(retention=keep) as scheduler:
        await scheduler.add_job("a", hourly, timeout="9h")
        await scheduler.add_job("night", Cron("30 2 * * *", tz="Europe/Berlin"))
        await scheduler.start()
        await scene.until(day(40) + timedelta(minutes=10))
        model.hours(day(0), day(40), "ran")
        await scheduler.pause_job("a")
        await scene.until(day(47) + timedelta(minutes=10))
        model.hours(day(40), day(47), "paused")
        await scheduler.resume_job("a")
        await scene.until(day(100) + timedelta(minutes=10))
        model.hours(day(47), day(100), "ran")
        await scheduler.update_job("a", trigger=half)
        await scene.until(day(110) + timedelta(minutes=10))
        model.hours(day(100), day(110), "ran", step=30)
        await scheduler.update_job("a", trigger=hourly)
        await scene.until(day(150) + timedelta(minutes=10))
        model.hours(day(110), day(150), "ran")
    await scene.until(day(153) + timedelta(minutes=10))
    async with scene.scheduler(retention=keep) as scheduler:
        model.hours(day(150), day(153), "merged")
        model.fates[day(153)] = "ran"
        await scheduler.start()
        await scene.until(day(365) + timedelta(minutes=10))
        model.hours(day(153), day(365), "ran")
        model.hours(day(200, 12), day(200, 17), "already_running")
        await _check_year(scheduler, model)


async def _check_year(scheduler, model):
    found = (await scheduler.get_ledger("a", since="3650d")).total
    expected = list(model.fates.values())
    assert (found.due, found.unaccounted) == (len(expected), 0)
    assert (found.ran, found.merged) == (expected.count("ran"), expected.count("merged"))
    assert found.passed_over == {"paused": 7 * 24, "already_running": 5}
    slots = await _all_slots(scheduler, "a")
    assert {slot: fate for slot, fate in slots.items() if model.fates.get(slot) != fate} == {}
    assert slots.keys() == model.fates.keys()
    for moment in list(model.fates)[::97]:
        slot = await scheduler.get_slot("a", moment)
        assert (slot.why or slot.fate) == model.fates[moment]
    nights = await _all_slots(scheduler, "night")
    assert set(nights.values()) <= {"ran", "merged"}
    assert datetime(2026, 3, 29, 1, 0, tzinfo=UTC) in nights, "02:30 did not exist: it came at 03:00, once"
    assert datetime(2026, 10, 25, 0, 30, tzinfo=UTC) in nights, "02:30 came twice: the first counts"
    assert len(nights) == 365
    every = await scheduler.get_ledger(since="3650d")
    assert every.jobs["a"] == found


async def _all_slots(scheduler, name):
    """Every slot of a job's life and what became of it."""
    job = await scheduler.get_job(name)

    def work(tx):
        pair = tx.jobs.by_id(ids.decode(job.id)[1])
        return listed_of(tx, account_of(tx, *pair, SlotSpan(0, tx.now)))

    listed = await scheduler._store.read(work)
    assert not listed.unlisted
    return {from_ms(slot): fate.why or fate.what for slot, fate in listed.fates.items()}
