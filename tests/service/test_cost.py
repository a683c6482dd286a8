"""Start-up, a tick and memory: the same however many jobs are stored and however many runs are done."""

from __future__ import annotations

import gc
from collections import Counter
from datetime import timedelta

import pytest

from tests.service.cost import Steps
from tests.store.samples import NOW, OpenStore, job, run
from wakeful import Every, Scheduler, ids
from wakeful.testing import VirtualClock
from wakeful.testing import run as in_virtual_time

FEW, MANY = 100, 5_000
#: Deeper trees and a few more pages cost some steps; a walk over the others would cost tens of thousands.
SLACK = 3_000
FAR_MS = 40 * 86_400_000


def stock(path, jobs, runs):
    """So many jobs that sleep, and so many runs that are done, of as many jobs as there are."""
    with OpenStore(f"sqlite:///{path}", VirtualClock(), inline=True) as store:
        store.add(*(job(n, due_at=NOW + FAR_MS + n) for n in range(1, jobs + 1)))
        first = ids.first_id_at(NOW)
        store.add_runs(*(run(first + n, 1 + n % jobs, outcome="success") for n in range(runs)))


def scheduler_on(path, clock):
    scheduler = Scheduler(f"sqlite:///{path}", clock=clock, timezone="UTC", seed=1)

    @scheduler.on_job_due("tick")
    async def tick(_):
        """Over at once."""

    return scheduler


@pytest.fixture(scope="module")
def costs(tmp_path_factory):
    """Steps for opening, starting, and an hour with a job every minute, by how many jobs and runs there are."""
    found = {}
    for jobs, runs in ((FEW, FEW), (MANY, FEW), (FEW, MANY)):
        path = tmp_path_factory.mktemp("cost") / "wakeful.db"
        stock(path, jobs, runs)
        with pytest.MonkeyPatch.context() as patch:
            found[jobs, runs] = in_virtual_time(live(path, Steps(patch), clock := VirtualClock()), clock)
    return found


async def live(path, steps, clock):
    found = {}
    scheduler = scheduler_on(path, clock)
    await scheduler.open()
    found["opening"] = steps.since_last()
    await scheduler.start()
    await clock.sleep("1s")
    found["starting"] = steps.since_last()
    await scheduler.add_job("minutely", Every("1m"), kind="tick")
    await clock.sleep("5m")  # the first round of housekeeping, which looks through what is stored once
    steps.since_last()
    await clock.sleep("1h")
    found["an hour of ticks"] = steps.since_last()
    assert scheduler.get_state().trigger_count > 60
    await scheduler.stop()
    await scheduler.close()
    return found


@pytest.mark.promise("X24")
@pytest.mark.parametrize("crowd", [(MANY, FEW), (FEW, MANY)], ids=["jobs stored", "runs finished"])
@pytest.mark.parametrize("what", ["opening", "starting", "an hour of ticks"])
def test_what_the_engine_does_costs_the_same_however_much_is_stored(costs, what, crowd):
    few = costs[FEW, FEW][what]
    assert 0 < costs[crowd][what] <= few * 1.2 + SLACK


@pytest.mark.promise("X24")
def test_what_the_engine_keeps_in_memory_does_not_grow_with_the_runs_that_are_done(tmp_path):
    clock = VirtualClock()

    async def main():
        async with scheduler_on(tmp_path / "wakeful.db", clock) as scheduler:
            for n in range(20):
                await scheduler.add_job(f"job-{n}", Every("1m", anchor=None), kind="tick")
            await scheduler.start()
            await clock.sleep(timedelta(minutes=20))
            before = kept()
            await clock.sleep(timedelta(minutes=100))
            assert scheduler.get_state().trigger_count >= 20 * 119
            return before, kept()

    before, after = in_virtual_time(main(), clock)
    grown = {kind: (before[kind], count) for kind, count in after.items() if count > before[kind] + 200}
    assert grown == {}, "2,000 runs later there are more of these"


@pytest.mark.promise("X24")
def test_what_the_engine_keeps_in_memory_does_not_grow_with_the_jobs_that_are_stored(tmp_path):
    found = []
    for jobs in (FEW, MANY):
        path, clock = tmp_path / f"{jobs}.db", VirtualClock()
        stock(path, jobs, FEW)

        async def main(path=path, clock=clock):
            async with scheduler_on(path, clock) as scheduler:
                await scheduler.start()
                await clock.sleep("1h")
                return kept()

        found.append(in_virtual_time(main(), clock))
    few, many = found
    assert {kind: (few[kind], count) for kind, count in many.items() if count > few[kind] + 200} == {}


def kept():
    """How many objects of each class there are."""
    gc.collect()
    return Counter(type(each).__qualname__ for each in gc.get_objects())
