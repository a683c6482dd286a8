"""The sum of a job's slots, checked against itself: what tests of the ledger begin with."""

from __future__ import annotations

from tests.kernel.scene import at
from wakeful import Every

HOURLY = Every("1h", anchor=at(days=-30))


async def tally(scheduler, job="a"):
    one = (await scheduler.get_ledger(job, since="3650d")).total
    everyone = await scheduler.get_ledger(since="3650d")
    assert everyone.jobs.get(job, one) == one, "counted and listed are the same"
    assert one.unaccounted == 0
    assert one.due == one.ran + one.running + one.merged + one.missing + sum(one.waiting.values()) + sum(
        one.passed_over.values()
    )
    return one
