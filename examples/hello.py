# The whole idea in a few lines: a job that runs once, now, and a second one that follows when the first succeeded.
from __future__ import annotations

import asyncio
import tempfile
from datetime import UTC, datetime

from wakeful import After, Once, Run, Scheduler

folder = tempfile.TemporaryDirectory()
scheduler = Scheduler(f"sqlite:///{folder.name}/wakeful.db")
done = asyncio.Event()


@scheduler.job(Once(datetime(2026, 1, 1, tzinfo=UTC)))  # a time that has passed: due at once
async def fetch(run: Run) -> dict[str, int]:
    return {"rows": 42, "attempt": run.attempt}  # any JSON value: the run's output


@scheduler.job(After("fetch"))
async def report(run: Run) -> None:
    [fetched] = await scheduler.get_run_log("fetch")
    print(f"{run.job} runs because of {run.reason}: {fetched.job} {fetched.outcome}, {fetched.output['rows']} rows")
    done.set()


async def main() -> None:
    async with scheduler:
        await scheduler.start()
        await done.wait()
        await scheduler.stop()
        for job in await scheduler.list_jobs():
            print(f"{job.name}: {job.schedule}, {job.last_outcome}")


asyncio.run(main())
folder.cleanup()

# Output:
# report runs because of after: fetch success, 42 rows
# fetch: once at 2026-01-01 00:00 UTC, success
# report: after fetch succeeds, success
