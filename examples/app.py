# A scheduler of your own, run by the server:  wakeful serve --app app:scheduler
# Jobs declared in code are stored when the server starts, and updated when the code changed.
from __future__ import annotations

from wakeful import Cron, Every, Noop, Run, Scheduler

scheduler = Scheduler("sqlite:///app.db", timezone="Europe/Berlin")


@scheduler.job(Cron("0 7 * * 1-5"), timeout="10m", retry=2)
async def digest(run: Run) -> dict[str, str]:
    return {"for": run.slot.isoformat() if run.slot else "a request"}


@scheduler.job(Every("15m"), lanes={"mailbox": 1})
def inbox(run: Run) -> Noop:  # a plain function runs in a thread
    return Noop(f"nothing new at attempt {run.attempt}")


@scheduler.on_job_due("greet")  # a handler for every job of a kind, however the job was made
async def greet(run: Run) -> str:
    return f"Hello, {run.payload['name']}"
