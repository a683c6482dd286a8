"""`status` and `alert`: what is going on in a store, and what needs a person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from wakeful import Job, Scheduler, ids
from wakeful.cli.app import SERVER, app
from wakeful.cli.opening import now_ms, read, server_of
from wakeful.cli.place import Db, chosen
from wakeful.cli.saying import say
from wakeful.cli.tables import Cell, Column, Json, print_facts, print_json, print_table
from wakeful.cli.times import next_starts
from wakeful.cli.words import ahead, brief, count, relative, zone_named, zone_of
from wakeful.kernel.engine.alerts import MEANINGS
from wakeful.triggers import iso

if TYPE_CHECKING:
    from wakeful.store.records import Alert

alerts = typer.Typer(help="Alerts: incidents that need a person.")
app.add_typer(alerts, name="alert", rich_help_panel=SERVER)


class Glance(NamedTuple):
    """A store at one moment."""

    server: dict[str, Any] | None
    jobs: dict[str, int]
    waiting: dict[str, int]
    open_runs: int
    open_alerts: int
    next_start: tuple[Job, int] | None


NOTHING = Glance(None, {}, {}, 0, 0, None)


@app.command("status", rich_help_panel=SERVER)
def status(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """Show the server, the number of jobs, the next starts and open alerts."""
    place = chosen(ctx, db)
    glance = read(place, _look, NOTHING)
    if as_json:
        print_json({"store": str(place), "exists": place.exists, **_as_data(glance)})
    else:
        print_facts([("store", str(place) if place.exists else f"{place} (none yet)"), *_facts(glance, now_ms())])


async def _look(scheduler: Scheduler) -> Glance:
    summary = await scheduler.get_summary()
    starts = await next_starts(scheduler, 1)
    first = starts[0] if starts else None
    server = server_of(scheduler)
    return Glance(server, summary.jobs, summary.parked, summary.open_runs, summary.open_alerts, first)


def _as_data(glance: Glance) -> dict[str, Any]:
    start = glance.next_start
    server = glance.server
    if server is not None and isinstance(server.get("since"), int):
        server = {**server, "since": iso(server["since"])}
    return {
        "server": server,
        "jobs": glance.jobs,
        "waiting": glance.waiting,
        "open_runs": glance.open_runs,
        "open_alerts": glance.open_alerts,
        "next_start": {"job": start[0].name, "job_id": start[0].id, "at": iso(start[1])} if start is not None else None,
    }


def _facts(glance: Glance, now: int) -> list[tuple[str, str | Cell]]:
    facts: list[tuple[str, str | Cell]] = [("server", _server(glance.server, now))]
    total = sum(glance.jobs.values())
    parts = ", ".join(f"{number} {name}" for name, number in glance.jobs.items() if number)
    facts += [("jobs", f"{total} ({parts})" if total else "none")]
    if glance.open_runs:
        facts += [("runs", f"{glance.open_runs} active, waiting or queued")]
    facts += [("waiting", f"{count(number, 'job')} for {what}") for what, number in glance.waiting.items() if number]
    if glance.next_start is not None:
        job, ms = glance.next_start
        facts += [("next", f"{job.name} {ahead(ms, now)} ({brief(ms, zone_of(job), now)})")]
    else:
        facts += [("next", "nothing will start by time")]
    alerts = f"{glance.open_alerts} open (wakeful alert list)" if glance.open_alerts else "none"
    return [*facts, ("alerts", Cell(alerts, "red" if glance.open_alerts else ""))]


def _server(server: dict[str, Any] | None, now: int) -> Cell:
    if server is None:
        return Cell("not running: nothing fires until one does (wakeful serve)", "yellow")
    since = (
        f", for {relative(server['since'], now).removesuffix(' ago')}" if isinstance(server.get("since"), int) else ""
    )
    return Cell(
        f"running: process {server.get('pid')} on {server.get('host')}, node {server.get('node')}{since}", "green"
    )


@alerts.command("list")
def list_alerts(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include closed alerts.")] = False,
    number: Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, max=10_000, help="How many.")] = 50,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List open alerts, newest first."""
    place = chosen(ctx, db)
    nothing: list[Alert] = []
    found = read(place, lambda scheduler: scheduler.list_alerts(open_only=not everything, limit=number), nothing)
    if as_json:
        print_json([_alert(alert) for alert in found])
    elif found:
        now, zone = now_ms(), zone_named(None)
        print_table(
            [Column("SINCE", 12), Column("KIND", 10), Column("STATE", 6, spare=1), Column("WHAT", 20)],
            [
                [
                    f"{relative(alert.opened_at, now)} ({brief(alert.opened_at, zone, now)})",
                    alert.kind,
                    Cell("open", "red") if alert.closed_at is None else f"over {relative(alert.closed_at, now)}",
                    alert.message,
                ]
                for alert in found
            ],
        )
        for kind in sorted({alert.kind for alert in found} & MEANINGS.keys()):
            say(f"{kind}: {MEANINGS[kind]}")
    else:
        say(f"No {'' if everything else 'open '}alerts in {place}.")


def _alert(alert: Alert) -> dict[str, Any]:
    times = {name: getattr(alert, name) for name in ("opened_at", "last_at", "closed_at", "acked_at")}
    return {
        "id": ids.encode("alr", alert.id),
        "kind": alert.kind,
        "meaning": MEANINGS.get(alert.kind),
        "job_id": ids.job_text(alert.job_id) if alert.job_id is not None else None,
        "message": alert.message,
        "times": alert.times,
        **{name: iso(ms) if ms is not None else None for name, ms in times.items()},
    }
