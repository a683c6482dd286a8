# A web application with several workers and one SQLite file:  uvicorn workers:app --workers 3
# One worker runs the jobs. The others stand by: they add, start and show jobs, and one of them takes over if it ends.
from __future__ import annotations

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI

from wakeful import Every, Run, Scheduler

scheduler = Scheduler("sqlite:///workers.db")


@scheduler.job(Every("10m"))
async def refresh(run: Run) -> dict[str, object]:
    return {"reason": run.reason, "worker": os.getpid()}


@asynccontextmanager
async def lifespan(_: FastAPI) -> AsyncIterator[None]:
    async with scheduler:
        await scheduler.start(standby=True)
        yield
        await scheduler.stop(timeout=10)


app = FastAPI(lifespan=lifespan)


@app.get("/")
async def show() -> dict[str, object]:
    return {"worker": os.getpid(), "status": scheduler.get_status()}


@app.post("/refresh")
async def start_refresh() -> dict[str, object]:
    run = await scheduler.wait_for_run(await scheduler.run_job("refresh"), timeout=30)
    return {"asked": os.getpid(), "outcome": run.outcome, "output": run.output}
