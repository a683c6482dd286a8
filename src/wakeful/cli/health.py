"""`status` and `alert`: what is going on in a store, and what needs a person."""

from __future__ import annotations

from datetime import datetime, tzinfo
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from wakeful import Job, Scheduler, ids
from wakeful.cli.acting import rights_here, say_undo
from wakeful.cli.app import SERVER, app
from wakeful.cli.opening import change, now_ms, read, server_of
from wakeful.cli.place import Db, chosen
from wakeful.cli.saying import say
from wakeful.cli.tables import Cell, Column, Json, print_facts, print_json, print_sentence, print_table
from wakeful.cli.times import next_starts
from wakeful.cli.words import ahead, brief, count, relative, stamp, zone_of
from wakeful.cli.zones import shown_zone
from wakeful.errors import AlertNotFound
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.engine.alerts import MEANINGS
from wakeful.kernel.rules.verdict import Facts, judge
from wakeful.kernel.views.records import alert_views
from wakeful.triggers import iso, to_ms

if TYPE_CHECKING:
    from wakeful import Alert, Verdict
    from wakeful.store.interface import Transaction

alerts = typer.Typer(help="List the incidents that need a person.")
app.add_typer(alerts, name="alert", rich_help_panel=SERVER)


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


NOTHING = Glance(None, {}, {}, 0, 0, None)


@app.command("status", rich_help_panel=SERVER)
def status(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """Say whether all is well. Show the server, jobs, next starts and open alerts."""
    place = chosen(ctx, db)
    glance = read(place, _look, NOTHING)
    verdict = glance.verdict or judge(Facts(now_ms(), served=False))
    if as_json:
        print_json({"store": str(place), "exists": place.exists, "verdict": verdict.to_dict(), **_as_data(glance)})
    else:
        print_sentence(verdict.sentence)
        say()
        print_facts(
            [
                ("store", str(place) if place.exists else f"{place} (none yet)"),
                *_facts(glance, now_ms(), shown_zone(place)),
            ]
        )


async def _look(scheduler: Scheduler) -> Glance:
    summary = await scheduler.get_summary()
    starts = await next_starts(scheduler, 1)
    first = starts[0] if starts else None
    server = server_of(scheduler)
    return Glance(
        server,
        summary.jobs,
        summary.parked,
        summary.open_runs,
        summary.open_alerts,
        first,
        summary.open_approvals,
        await scheduler.get_verdict(),
    )


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
        "next_start": {"job": start[0].name, "job_id": start[0].id, "at": iso(start[1])} if start is not None else None,
    }


def _facts(glance: Glance, now: int, zone: tzinfo) -> list[tuple[str, str | Cell]]:
    facts: list[tuple[str, str | Cell]] = [("server", _server(glance.server, now))]
    total = sum(glance.jobs.values())
    parts = ", ".join(f"{number} {name}" for name, number in glance.jobs.items() if number)
    facts += [("jobs", f"{total} ({parts})" if total else "none")]
    if glance.open_runs:
        facts += [("runs", f"{glance.open_runs} active, waiting or queued")]
    facts += [("waiting", f"{count(number, 'job')} for {what}") for what, number in glance.waiting.items() if number]
    if glance.next_start is not None:
        job, ms = glance.next_start
        facts += [("next", f"{job.name} {ahead(ms, now)}, {brief(ms, zone_of(job, zone), now)}")]
    else:
        facts += [("next", "nothing will start by time")]
    if glance.questions:
        facts += [("approvals", Cell(f"{glance.questions} open (wakeful approvals)", "yellow"))]
    alerts = f"{glance.open_alerts} open (wakeful alert list)" if glance.open_alerts else "none"
    return [*facts, ("alerts", Cell(alerts, "red" if glance.open_alerts else ""))]


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
        print_json([alert.to_dict() for alert in found])
    elif found:
        now, zone = now_ms(), shown_zone(place)
        print_table(
            [
                Column("ID", 17),
                Column("SINCE", 12),
                Column("KIND", 10),
                Column("STATE", 6, spare=1),
                Column("WHAT", 20),
            ],
            [
                [
                    alert.id,
                    f"{relative(to_ms(alert.opened_at), now)}, {brief(to_ms(alert.opened_at), zone, now)}",
                    alert.kind,
                    _state(alert, now),
                    alert.message,
                ]
                for alert in found
            ],
        )
        for kind in sorted({alert.kind for alert in found} & MEANINGS.keys()):
            say(f"{kind}: {MEANINGS[kind]}")
    else:
        say(f"No {'' if everything else 'open '}alerts in {place}.")


def _state(alert: Alert, now: int) -> Cell:
    if alert.closed_at is not None:
        return Cell(f"over {relative(to_ms(alert.closed_at), now)}")
    if alert.acked_at is not None:
        return Cell(f"acknowledged {relative(to_ms(alert.acked_at), now)}")
    return Cell("open", "red")


@alerts.command("show")
def show_alert(
    ctx: typer.Context,
    *,
    ref: Annotated[
        str, typer.Argument(metavar="ID", help="An alert's id, or a job for its latest.", show_default=False)
    ],
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Show one alert in full."""
    place = chosen(ctx, db)
    alert = change(place, lambda scheduler: scheduler.look(lambda tx: _meant(tx, ref)[0]))
    if as_json:
        print_json(alert.to_dict())
        return
    now, zone, since = now_ms(), shown_zone(place), to_ms(alert.opened_at)
    facts: list[tuple[str, str | Cell]] = [("id", alert.id), ("kind", alert.kind)]
    facts += [("state", _state(alert, now)), ("what", alert.message)]
    facts += [("job", alert.job)] if alert.job is not None else []
    facts += [("since", f"{stamp(since, zone)}, {relative(since, now)}")]
    if alert.times > 1:
        facts += [("seen", f"{alert.times} times, last {relative(to_ms(alert.last_at), now)}")]
    print_facts(facts)


@alerts.command("ack")
def ack_alerts(
    ctx: typer.Context,
    *,
    refs: Annotated[
        list[str],
        typer.Argument(metavar="ID...", help="Alerts by id, or jobs for all their open ones.", show_default=False),
    ],
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Acknowledge alerts.

    They stay open, marked as seen, until what they are about is over.
    """

    async def work(scheduler: Scheduler) -> tuple[list[Alert], str | None]:
        found = await scheduler.look(lambda tx: [alert for ref in refs for alert in _meant(tx, ref, open_only=True)])
        rights, actions = rights_here(scheduler), list[str | None]()
        numbers = list(dict.fromkeys(n for alert in found if (n := ids.alert_number(alert.id)) is not None))
        for number in numbers:
            actions.append((await scheduler.server_side.ack_alert(number, rights))[1])
        seen = await scheduler.look(lambda tx: alert_views(tx, [row for n in numbers if (row := tx.journal.alert(n))]))
        return seen, next(filter(None, actions), None)

    acked, action = change(chosen(ctx, db), work)
    if as_json:
        print_json([alert.to_dict() for alert in acked])
        return
    for alert in acked:
        say(f"Acknowledged {alert.id}: {alert.message}")
    say_undo(action)


def _meant(tx: Transaction, ref: str, *, open_only: bool = False) -> list[Alert]:
    """The alert of that id, or those of the job, the newest first."""
    number = ids.alert_number(ref)
    if number is not None:
        alert = tx.journal.alert(number)
        if alert is None:
            raise AlertNotFound(f"There is no alert {ref}: wakeful alert list --all shows them all.")
        return alert_views(tx, [alert])
    job = find_job(tx, ref)[0]
    found = [alert for alert in tx.journal.alerts(job.id) if alert.closed_at is None or not open_only]
    if not found:
        raise AlertNotFound(f"{job.name} has no {'open ' if open_only else ''}alert.")
    return alert_views(tx, found)
