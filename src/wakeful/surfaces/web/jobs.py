"""`/jobs`: what there is, and how it fares."""

from __future__ import annotations

import json
from functools import partial
from typing import Any
from urllib.parse import urlencode

from wakeful.kernel.model.job import Job, job_views
from wakeful.kernel.views.lately import lately
from wakeful.kernel.views.nearness import near_names
from wakeful.store.interface import Transaction
from wakeful.store.listing import JobFilter
from wakeful.store.runs import RunFilter
from wakeful.surfaces.web.drawings.bars import sparkline
from wakeful.surfaces.web.marks import look_of_job
from wakeful.surfaces.web.pages import Asked, Page, Region, command
from wakeful.surfaces.web.remembering import Remembered

SHOWN = 50
AGENTS_LISTED = 200
ORDERS = {"": "what needs you, then what is next", "next": "what is next", "last": "what ran last", "name": "name"}
STATES = ("waiting", "running", "disabled", "paused", "idle", "done")
WORDS = {
    "waiting": ("waits for you", "wait for you"),
    "running": ("runs", "run"),
    "disabled": ("is off", "are off"),
    "paused": ("is paused", "are paused"),
    "idle": ("is idle", "are idle"),
    "done": ("is done", "are done"),
}
SORTED = 1_000
COUNTED = 1_000  # so many that match are counted; beyond it says 1,000+
COUNTS: Remembered[int] = Remembered()
NEEDS_FIRST = ("waiting", "disabled", "running")


def wanted(asked: Asked) -> JobFilter:
    """The filters of the address."""
    query = asked.query
    return JobFilter(
        kind=query.get("kind") or None,
        owner=query.get("agent") or None,
        status=query["state"] if query.get("state") in STATES else None,
        contains=query.get("q") or None,
        after=query.get("cursor") or None,
        limit=SHOWN + 1,
        hidden=asked.scheduler.host.hidden_kinds,
    )


def found(tx: Transaction, filters: JobFilter, order: str) -> tuple[list[Job], str | None]:
    """A page of jobs, and where the next one begins."""
    unfiltered = filters._replace(limit=None, hidden=()) == JobFilter()
    if order not in ("name", "next", "last") and unfiltered:
        return _most_urgent(tx, filters.hidden), None
    if order in ("next", "last"):
        return _by_time(tx, filters, order), None
    pairs = tx.jobs.matching(filters)
    following = pairs[SHOWN - 1][0].name if len(pairs) > SHOWN else None
    return job_views(tx, pairs[:SHOWN]), following


def _most_urgent(tx: Transaction, hidden: tuple[str, ...]) -> list[Job]:
    """What needs a person, what runs, and then what starts next."""
    pairs = [
        pair
        for status in NEEDS_FIRST
        for pair in tx.jobs.matching(JobFilter(status=status, limit=SHOWN, hidden=hidden))
    ]
    pairs += tx.jobs.soonest(SHOWN, hidden)
    pairs += tx.jobs.matching(JobFilter(limit=SHOWN, hidden=hidden)) if len(pairs) < SHOWN else []
    return job_views(tx, list({job.id: (job, state) for job, state in pairs}.values())[:SHOWN])


def _by_time(tx: Transaction, filters: JobFilter, order: str) -> list[Job]:
    """Those that start next, or that ran last, among the first that match."""
    if order == "next":
        pairs = tx.jobs.soonest(SORTED, filters.hidden)
        matching = (
            {job.id for job, _ in tx.jobs.matching(filters._replace(limit=SORTED))} if _filtered(filters) else None
        )
    else:
        runs = tx.runs.matching(RunFilter(limit=SORTED, hidden=filters.hidden))
        numbers = list(dict.fromkeys(run.job_id for run in runs))
        found, states = tx.jobs.definitions(numbers), tx.jobs.states(numbers)
        pairs = [(found[one], states[one]) for one in numbers if one in states and found[one].removed_at is None]
        matching = (
            {job.id for job, _ in tx.jobs.matching(filters._replace(limit=SORTED))} if _filtered(filters) else None
        )
    views = job_views(tx, [pair for pair in pairs if matching is None or pair[0].id in matching])
    if order == "next":
        views.sort(key=lambda job: (job.next_run_at is None, job.next_run_at.timestamp() if job.next_run_at else 0.0))
    return views[:SHOWN]


def _filtered(filters: JobFilter) -> bool:
    return filters._replace(limit=None, hidden=(), after=None) != JobFilter()


def chosen(filters: JobFilter) -> str:
    """The filter as the API takes it: what a selection of all that match means."""
    given = {"kind": filters.kind, "owner": filters.owner, "status": filters.status, "q": filters.contains}
    kept = {name: value for name, value in given.items() if value is not None}
    return json.dumps({"filter": kept} if kept else {"all": True})


async def _count(asked: Asked, filters: JobFilter) -> int:
    return await asked.scheduler.read(lambda tx: tx.jobs.count_up_to(filters, COUNTED))


async def rows(asked: Asked) -> dict[str, Any]:
    """The table."""
    filters, order = wanted(asked), asked.query.get("order", "")

    def work(tx: Transaction) -> dict[str, Any]:
        jobs, following = found(tx, filters, order)
        last = lately(tx, [job.id for job in jobs])
        counts = tx.jobs.counts(filters.hidden)
        return {
            "rows": [(job, look_of_job(job), last[job.id], sparkline(last[job.id])) for job in jobs],
            "following": following,
            "counts": counts,
            "total": sum(counts.values()),
            "kinds": sorted({job.kind for job in jobs} | ({filters.kind} if filters.kind else set())),
            "near": near_names(tx, filters.contains) if not jobs and filters.contains else [],
        }

    facts = await asked.scheduler.read(work)
    matching = facts["total"] if not _filtered(filters) else len(facts["rows"])
    if _filtered(filters) and (facts["following"] or filters.after or order in ("next", "last")):
        matching = await COUNTS.ask(
            asked.scheduler, repr(filters._replace(after=None)), partial(_count, asked, filters)
        )
    agents = [agent["name"] for agent in (await asked.scheduler.agents.list())[:AGENTS_LISTED]]
    more = {**{key: value for key, value in asked.query.items() if key != "cursor" and value}, "order": "name"}
    filtered = any(asked.query.get(name) for name in ("q", "state", "kind", "agent"))
    return {
        **facts,
        "matching": matching,
        "agents": agents,
        "orders": ORDERS,
        "order": order if order in ORDERS else "",
        "chosen": chosen(filters),
        "many": COUNTED,
        "states": STATES,
        "words": WORDS,
        "filtered": filtered,
        "more": f"/jobs?{urlencode(more | ({'cursor': facts['following']} if facts['following'] else {}))}",
    }


page = Page(
    "jobs",
    "/jobs",
    lambda _: "Jobs",
    (Region("jobs", ("job", "run"), rows),),
    lambda asked: command(
        "list", asked.query, {"state": "--status", "kind": "--kind", "agent": "--owner", "q": "--match"}
    ),
)
