# Testing your own jobs: with a virtual clock a week passes in milliseconds, and the same way every time.
from __future__ import annotations

import logging
from collections import Counter
from datetime import UTC, datetime

from wakeful import Cron, Every, Run, Scheduler
from wakeful.testing import VirtualClock, run

logging.getLogger("wakeful.runs").setLevel(logging.CRITICAL)  # the failure below is expected
clock = VirtualClock(datetime(2026, 6, 1, tzinfo=UTC))  # a Monday
scheduler = Scheduler("sqlite://", clock=clock)
counts: Counter[str] = Counter()


@scheduler.job(Cron("0 2 * * *", tz="Europe/Berlin"))
async def nightly(run: Run) -> None:
    counts[run.job] += 1


@scheduler.job(Cron("0 9 * * 1-5", tz="Europe/Berlin"))
async def standup(run: Run) -> None:
    counts[run.job] += 1


@scheduler.job(Every("6h"))
async def backup(run: Run) -> None:
    counts[run.job] += 1
    if counts[run.job] == 3:
        raise OSError("the disk is full")  # errors back off; the grid stays


async def main() -> None:
    async with scheduler:
        await scheduler.start()
        await clock.sleep("7d")
        for name, count in sorted(counts.items()):
            stats = await scheduler.get_run_stats(name)
            print(f"{name}: {count} runs, {stats.error} failed")


run(main(), clock)

# Output:
# backup: 28 runs, 1 failed
# nightly: 7 runs, 0 failed
# standup: 5 runs, 0 failed
