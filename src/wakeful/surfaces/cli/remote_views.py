"""`list`, `show` and `runs` under WAKEFUL_TOKEN: what a server lets its caller see, in brief."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from wakeful.console.humanize import ago, ahead
from wakeful.console.opening import now_ms
from wakeful.console.output import say
from wakeful.console.remote import asked_server
from wakeful.console.store_location import StoreLocation
from wakeful.console.tables import Cell, Column, print_facts, print_json, print_table
from wakeful.triggers.moments import read_moment

PAGE = 200
SHOWN = ("kind", "schedule", "status", "next_run_at", "last_run_at", "last_outcome", "last_error", "owner")
OF_RUN = ("job", "reason", "status", "outcome", "error", "due_at", "started_at", "finished_at", "output")


def print_jobs(place: StoreLocation, wanted: Mapping[str, Any], most: int | None, *, as_json: bool) -> None:
    """Jobs, by name."""
    found = _pages(place, "/api/jobs", wanted, most)
    if as_json:
        print_json(found)
        return
    now = now_ms()
    columns = [Column("NAME", 12), Column("SCHEDULE", 20, spare=1), Column("STATUS", 8), Column("NEXT", 9)]
    rows: list[list[str | Cell]] = [
        [*(one[key] for key in ("name", "schedule", "status")), _time(one["next_run_at"], now, ahead), _last(one)]
        for one in found
    ]
    if rows:
        print_table([*columns, Column("LAST", 9)], rows)
    else:
        say(f"No jobs that this token may see at {place}.")


def print_runs(place: StoreLocation, job: str | None, most: int, *, as_json: bool) -> None:
    """Runs, the newest first."""
    path = "/api/runs" if job is None else f"/api/jobs/{quote(job, safe='')}/runs"
    found = _pages(place, path, {}, most)
    if as_json:
        print_json(found)
        return
    now = now_ms()
    columns = [Column("RUN", 17), Column("JOB", 10), Column("OUTCOME", 9), Column("STARTED", 9), Column("ERROR", 12)]
    rows: list[list[str | Cell]] = [
        [one["id"], one["job"], one["outcome"] or one["status"], _time(one["started_at"], now, ago), _error(one)]
        for one in found
    ]
    if rows:
        print_table(columns, rows)
    else:
        say(f"No runs that this token may see at {place}.")


def print_one(place: StoreLocation, ref: str, *, as_json: bool) -> None:
    """A job or a run."""
    is_run = ref.startswith("run_")
    found = _ask(place, f"/api/{'runs' if is_run else 'jobs'}/{quote(ref, safe='')}")
    if as_json:
        print_json(found)
        return
    name = found["id"] if is_run else found["name"]
    shown = [(key, found.get(key)) for key in (OF_RUN if is_run else SHOWN)]
    facts = [(key.replace("_", " "), str(value)) for key, value in shown if value is not None]
    print_facts([("run" if is_run else "job", name), *facts])


def _pages(place: StoreLocation, path: str, wanted: Mapping[str, Any], most: int | None) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    query = {key: value for key, value in wanted.items() if value not in (None, False)}
    cursor: str | None = ""
    while cursor is not None and (most is None or len(found) < most):
        limit = PAGE if most is None else min(PAGE, most - len(found))
        more = {"limit": limit, **({"cursor": cursor} if cursor else {})}
        page = _ask(place, f"{path}?{urlencode({**query, **more})}")
        found += page["items"]
        cursor = page["next"]
    return found


def _ask(place: StoreLocation, path: str) -> Any:
    return asyncio.run(asked_server(place.url).ask("GET", path))


def _last(job: dict[str, Any]) -> str:
    return job["last_outcome"] or "-"


def _time(text: str | None, now: int, words: Any) -> str:
    return "-" if text is None else str(words(read_moment(text, "at"), now))


def _error(run: dict[str, Any]) -> str:
    return " ".join((run["error"] or "").split())
