"""`status`: what is going on in a store."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import Any, NamedTuple

import typer

from wakeful import Job, Scheduler, Verdict
from wakeful.console.humanize import ahead, brief, count, moment_words, relative, zone_of
from wakeful.console.opening import now_ms, read, server_of, shown_zone
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Json, print_facts, print_json, print_sentence
from wakeful.domains.agents.budgets.spending import fleet_today
from wakeful.kernel.rules.holding import hold_of
from wakeful.kernel.rules.parking import HOLD
from wakeful.kernel.rules.verdict import VerdictInput, judge
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.nodes import serving
from wakeful.surfaces.cli.times import next_starts
from wakeful.triggers import iso, to_ms


class Glance(NamedTuple):
    """A store at one moment."""

    server: dict[str, Any] | None
    jobs: dict[str, int]
    waiting: dict[str, int]
    open_runs: int
    open_alerts: int
    next_start: tuple[Job, int] | None
    questions: int = 0  # runs that wait for a person
    verdict: Verdict | None = None  # none where there is no store
    hold: dict[str, Any] | None = None  # who paused everything
    budget: dict[str, Any] | None = None  # of all agents together; none if no agent ran today
    cut_off: int = 0  # runs whose server has ended
    nodes: tuple[str, ...] = ()  # that run jobs now


NOTHING = Glance(None, {}, {}, 0, 0, None)


@app.command("status", rich_help_panel=SERVER)
def status(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """Say whether all is well. Show the server, jobs, next starts and open alerts."""
    place = chosen(ctx, db)
    glance = read(place, _look, NOTHING)
    verdict = glance.verdict or judge(VerdictInput(now_ms(), served=False))
    if as_json:
        print_json(
            {"store": str(place), "exists": glance is not NOTHING, "verdict": verdict.to_dict(), **_as_data(glance)}
        )
    else:
        print_sentence(verdict.sentence)
        say()
        print_facts(
            [
                ("store", str(place) if glance is not NOTHING else f"{place} (none yet)"),
                *_facts(glance, now_ms(), shown_zone(place)),
            ]
        )


async def _look(scheduler: Scheduler) -> Glance:
    summary = await scheduler.get_summary()
    starts = await next_starts(scheduler, 1)
    hold = hold_of(await scheduler.read(lambda tx: tx.nodes.held()))
    first = starts[0] if starts else None
    server = server_of(scheduler)
    return Glance(
        server,
        _with_cut_off(summary.jobs, summary.cut_off),
        summary.parked,
        summary.open_runs,
        summary.open_alerts,
        first,
        summary.open_approvals,
        await scheduler.get_verdict(),
        hold.to_dict() if hold is not None else None,
        await scheduler.read(fleet_today),
        summary.cut_off,
        tuple(sorted(node.name for node in serving(await scheduler.list_nodes()))),
    )


def _with_cut_off(jobs: dict[str, int], number: int) -> dict[str, int]:
    """The jobs by status; those whose server ended while they ran are not running."""
    if not number:
        return jobs
    found = {**jobs, "running": jobs.get("running", 0) - number, "cut_off": number}
    return {status: many for status, many in found.items() if many}


def _as_data(glance: Glance) -> dict[str, Any]:
    start = glance.next_start
    server = glance.server
    if server is not None and isinstance(server.get("since"), datetime):
        server = {**server, "since": iso(to_ms(server["since"]))}
    return {
        "server": server,
        "jobs": glance.jobs,
        "waiting": glance.waiting,
        "open_runs": glance.open_runs,
        "open_alerts": glance.open_alerts,
        "open_approvals": glance.questions,
        "hold": glance.hold,
        "budget": glance.budget,
        "next_start": {"job": start[0].name, "job_id": start[0].id, "at": iso(start[1])} if start is not None else None,
    }


def _facts(glance: Glance, now: int, zone: tzinfo) -> list[tuple[str, str | Cell]]:
    facts: list[tuple[str, str | Cell]] = [("server", _servers(glance, now))]
    if glance.hold is not None:
        since = moment_words(glance.hold["since"], zone, now)
        facts += [("paused", Cell(f"everything, since {since} (wakeful resume --all)", "yellow"))]
    total = sum(glance.jobs.values())
    parts = ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in glance.jobs.items() if number)
    facts += [("jobs", f"{total} ({parts})" if total else "none")]
    if glance.open_runs:
        cut_off = f", {glance.cut_off} of them cut off" if glance.cut_off else ""
        facts += [("runs", f"{glance.open_runs} active, waiting or queued{cut_off}")]
    awaited = {HOLD: "wakeful resume --all"}
    waiting = {awaited.get(what, what): number for what, number in glance.waiting.items() if number}
    facts += [("waiting", f"{count(number, 'job')} for {what}") for what, number in waiting.items()]
    if glance.next_start is not None:
        job, ms = glance.next_start
        facts += [("next", f"{job.name} {ahead(ms, now)}, {brief(ms, zone_of(job, zone), now)}")]
    else:
        facts += [("next", "nothing will start by time")]
    if glance.budget is not None:
        facts += [("budget", f"{glance.budget['words']} used today by agents")]
    if glance.questions:
        facts += [("approvals", Cell(f"{glance.questions} open (wakeful approvals)", "yellow"))]
    alerts = f"{glance.open_alerts} open (wakeful alert list)" if glance.open_alerts else "none"
    return [*facts, ("alerts", Cell(alerts, "red" if glance.open_alerts else ""))]


def _servers(glance: Glance, now: int) -> Cell:
    if len(glance.nodes) > 1:
        return Cell(f"{count(len(glance.nodes), 'node')} running: {', '.join(glance.nodes)}", "green")
    return _server(glance.server, now)


def _server(server: dict[str, Any] | None, now: int) -> Cell:
    if server is None:
        return Cell("not running: nothing fires until one does (wakeful serve)", "yellow")
    since = (
        f", for {relative(to_ms(server['since']), now).removesuffix(' ago')}"
        if isinstance(server.get("since"), datetime)
        else ""
    )
    return Cell(
        f"running: process {server.get('pid')} on {server.get('host')}, node {server.get('node')}{since}", "green"
    )
