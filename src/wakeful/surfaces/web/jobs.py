"""`/jobs`: what there is, and how it fares."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

from wakeful.kernel.actions.lookup import near_names
from wakeful.kernel.model.job import Job, job_views
from wakeful.kernel.views.history import lately
from wakeful.store.interface import Transaction
from wakeful.store.listing import JobFilter
from wakeful.store.records import JobDef, JobState
from wakeful.store.runs import RunFilter
from wakeful.surfaces.web.drawings.bars import sparkline
from wakeful.surfaces.web.marks import look_of_job
from wakeful.surfaces.web.pages import PageRequest, Region, WebPage, command
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


def wanted(asked: PageRequest) -> JobFilter:
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
    filtered = _filtered(filters)
    if not filtered and filters.after is None and order != "name":
        makers = {"next": _next_first, "last": _last_first}
        return makers.get(order, _most_urgent)(tx, filters.hidden), None
    if filtered and order in ("next", "last"):
        return _sorted(job_views(tx, tx.jobs.matching(filters._replace(limit=SORTED, after=None))), order)[:SHOWN], None
    pairs = tx.jobs.matching(filters)
    jobs = job_views(tx, pairs[:SHOWN])
    if len(pairs) > SHOWN:
        return jobs, pairs[SHOWN - 1][0].name
    return jobs if order == "name" or filters.after is not None else _sorted(jobs, ""), None


def _sorted(jobs: list[Job], order: str) -> list[Job]:
    """In the wanted order; jobs without such a time come last, by name."""

    def key(job: Job) -> tuple[float, float]:
        if order == "last":
            return 0, -job.last_run_at.timestamp() if job.last_run_at else 1
        rank = NEEDS_FIRST.index(job.status) if not order and job.status in NEEDS_FIRST else len(NEEDS_FIRST)
        return rank, job.next_run_at.timestamp() if job.next_run_at else float("inf")

    return sorted(jobs, key=key)


def _most_urgent(tx: Transaction, hidden: tuple[str, ...]) -> list[Job]:
    """What needs a person, what runs, and then what starts next."""
    pairs = [
        pair
        for status in NEEDS_FIRST
        for pair in tx.jobs.matching(JobFilter(status=status, limit=SHOWN, hidden=hidden))
    ]
    return _filled(tx, [*pairs, *tx.jobs.soonest(SHOWN, hidden)], hidden)


def _next_first(tx: Transaction, hidden: tuple[str, ...]) -> list[Job]:
    """What starts next, then what has no time to start at."""
    return _sorted(_filled(tx, tx.jobs.soonest(SHOWN, hidden), hidden), "next")


def _last_first(tx: Transaction, hidden: tuple[str, ...]) -> list[Job]:
    """What ran last, as far as the newest runs say, then the others."""
    runs = tx.runs.matching(RunFilter(limit=SORTED, hidden=hidden))
    numbers = list(dict.fromkeys(run.job_id for run in runs))[:SHOWN]
    found, states = tx.jobs.definitions(numbers), tx.jobs.states(numbers)
    pairs = [(found[one], states[one]) for one in numbers if one in states and found[one].removed_at is None]
    return _filled(tx, pairs, hidden)


def _filled(tx: Transaction, pairs: Sequence[tuple[JobDef, JobState]], hidden: tuple[str, ...]) -> list[Job]:
    """These, and others by name as long as there is room on the page."""
    more = tx.jobs.matching(JobFilter(limit=SHOWN, hidden=hidden)) if len(pairs) < SHOWN else []
    return job_views(tx, list({job.id: (job, state) for job, state in [*pairs, *more]}.values())[:SHOWN])


def _filtered(filters: JobFilter) -> bool:
    return filters._replace(limit=None, hidden=(), after=None) != JobFilter()


def chosen(filters: JobFilter) -> str:
    """The filter as the API takes it: what a selection of all that match means."""
    given = {"kind": filters.kind, "owner": filters.owner, "status": filters.status, "q": filters.contains}
    kept = {name: value for name, value in given.items() if value is not None}
    return json.dumps({"filter": kept} if kept else {"all": True})


async def _count(asked: PageRequest, filters: JobFilter) -> int:
    return await asked.scheduler.read(lambda tx: tx.jobs.count_up_to(filters, COUNTED + 1))


async def rows(asked: PageRequest) -> dict[str, Any]:
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
    full = len(facts["rows"]) == SHOWN
    if _filtered(filters) and (facts["following"] or filters.after or (full and order in ("next", "last"))):
        matching = await COUNTS.ask(
            asked.scheduler, repr(filters._replace(after=None)), partial(_count, asked, filters)
        )
    by_name = facts["following"] is not None or filters.after is not None
    agents = [agent["name"] for agent in (await asked.scheduler.agents.list())[:AGENTS_LISTED]]
    more = {**{key: value for key, value in asked.query.items() if key != "cursor" and value}, "order": "name"}
    filtered = _filtered(filters)
    return {
        **facts,
        "matching": matching,
        "agents": agents,
        "orders": ORDERS,
        "order": "name" if by_name and not order else order if order in ORDERS else "",
        "chosen": chosen(filters),
        "many": COUNTED,
        "states": STATES,
        "words": WORDS,
        "filtered": filtered,
        "more": f"/jobs?{urlencode(more | ({'cursor': facts['following']} if facts['following'] else {}))}",
    }


page = WebPage(
    "jobs",
    "/jobs",
    lambda _: "Jobs",
    (Region("jobs", ("job", "run"), rows),),
    lambda asked: command(
        "list", asked.query, {"state": "--status", "kind": "--kind", "agent": "--owner", "q": "--match"}
    ),
)
