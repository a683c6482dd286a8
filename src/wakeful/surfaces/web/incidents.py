"""`/alerts` and `/monitors`: what went wrong, who has seen it, and what outside has not reported."""

from __future__ import annotations

from typing import Any

from wakeful.kernel.model.job import job_views
from wakeful.store.listing import JobFilter
from wakeful.surfaces.web.marks import Look
from wakeful.surfaces.web.pages import Asked, Page, Region

SHOWN = 100
MONITORS = {
    "new": Look("idle", "", "new"),
    "up": Look("ok", "ok", "up"),
    "late": Look("missing", "wait", "late"),
    "down": Look("missing", "bad", "down"),
    "paused": Look("paused", "", "paused"),
}


async def alerts(asked: Asked) -> dict[str, Any]:
    found = await asked.scheduler.list_alerts(open_only=asked.query.get("all") != "1", limit=SHOWN)
    return {"alerts": found, "all": asked.query.get("all") == "1"}


alerts_page = Page(
    "alerts", "/alerts", lambda _: "Alerts", (Region("alerts", ("alert",), alerts),),
    lambda asked: "wakeful alert list --all" if asked.query.get("all") == "1" else "wakeful alert list",
)  # fmt: skip


async def monitors(asked: Asked) -> dict[str, Any]:
    wanted = JobFilter(kind="monitor", limit=SHOWN)
    jobs = await asked.scheduler.read(lambda tx: job_views(tx, tx.jobs.matching(wanted)))
    shown = [(job, job.monitor, MONITORS[job.monitor["state"]]) for job in jobs if job.monitor is not None]
    return {"monitors": shown}


monitors_page = Page(
    "monitors", "/monitors", lambda _: "Monitors", (Region("monitors", ("run", "job", "alert"), monitors),),
    lambda _: "wakeful list --kind monitor",
)  # fmt: skip
