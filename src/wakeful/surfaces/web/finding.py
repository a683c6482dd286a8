"""`/find`: a job, a run by its id, or an agent, by a part of the name."""

from __future__ import annotations

from typing import Any

from wakeful import ids
from wakeful.kernel.actions.lookup import near_names
from wakeful.kernel.model.job import Job, job_views
from wakeful.kernel.model.run import Run, run_views
from wakeful.store.interface import Transaction
from wakeful.store.listing import JobFilter
from wakeful.surfaces.web.marks import look_of_job, look_of_run
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage

SHOWN = 8
PLACES = {
    "Now": "/",
    "Jobs": "/jobs",
    "New job": "/jobs/new",
    "Runs": "/runs",
    "Agents": "/agents",
    "Workflows": "/workflows",
    "Deliveries": "/deliveries",
    "Monitors": "/monitors",
    "Alerts": "/alerts",
    "Nodes": "/nodes",
    "Events": "/events",
    "More": "/more",
}


async def found(asked: PageRequest) -> dict[str, Any]:
    """What has the text in its name, or is the run of that id."""
    text = asked.query.get("q", "").strip()[:200]
    if not text or not text.isprintable():
        return {"jobs": [], "runs": [], "agents": [], "places": [], "near": [], "text": text}

    def work(tx: Transaction) -> tuple[list[Job], list[Run], list[str]]:
        wanted = JobFilter(contains=text, limit=SHOWN, hidden=asked.scheduler.host.hidden_kinds)
        jobs = job_views(tx, tx.jobs.matching(wanted))
        number = ids.number_of("run", text)
        row = tx.runs.get(number) if number is not None else None
        return jobs, run_views(tx, [row]) if row is not None else [], [] if jobs or row else near_names(tx, text)

    jobs, runs, near = await asked.scheduler.read(work)
    agents = [agent["name"] for agent in await asked.scheduler.agents.list() if text.lower() in agent["name"].lower()]
    places = [(name, path) for name, path in PLACES.items() if text.lower() in name.lower()]
    return {
        "text": text,
        "jobs": [(job, look_of_job(job)) for job in jobs],
        "runs": [(run, look_of_run(run)) for run in runs],
        "agents": agents[:SHOWN],
        "places": places[:SHOWN],
        "near": near,
    }


page = WebPage("find", "/find", lambda _: "Find", (Region("found", (), found),), lambda _: "wakeful list --match NAME")
