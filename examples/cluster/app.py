# One program for every node: which store, who we are and what we have comes from the environment.
#   WAKEFUL_DB=postgresql://user@host/database WAKEFUL_NODE=north wakeful serve --app app:scheduler
from __future__ import annotations

import os

from wakeful import Every, Run, Scheduler

scheduler = Scheduler(
    os.environ.get("WAKEFUL_DB", "sqlite:///cluster.db"),
    node=os.environ.get("WAKEFUL_NODE"),  # the machine's name and the process's number, unless given
    labels=os.environ.get("WAKEFUL_LABELS", "").split(),
)


@scheduler.job(Every("10s"))
async def tidy(run: Run) -> str:
    return f"tidied for {run.slot}" if run.slot else "tidied on request"


@scheduler.job(Every("15s"), labels=["gpu"])  # only on a node that has one
async def render(run: Run) -> str:
    return f"rendered, attempt {run.attempt}"


@scheduler.job(Every("20s"), lanes={"warehouse": 1})  # one at a time, on all nodes together
async def load(run: Run) -> str:
    return f"loaded by run {run.id}"
