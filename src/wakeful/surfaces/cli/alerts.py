"""`alert`: what needs a person, and what a person says about it."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful import Scheduler, ids
from wakeful.console.humanize import ahead, brief, count, need_seconds, relative, stamp
from wakeful.console.opening import change, now_ms, read, rights_here, say_undo, shown_zone
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, HowMany, Json, print_facts, print_json, print_table
from wakeful.domains.alerts import SnoozeResult, snooze
from wakeful.errors import AlertNotFound, JobNotFound
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.recording import acknowledge, origin_of
from wakeful.kernel.engine.alerts import MEANINGS
from wakeful.kernel.views.records import alert_views
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.typed import duration
from wakeful.triggers import to_ms

if TYPE_CHECKING:
    from wakeful import Alert
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

alerts = typer.Typer(help="List the incidents that need a person.")
app.add_typer(alerts, name="alert", rich_help_panel=SERVER)


@alerts.command("list")
def list_alerts(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include closed alerts.")] = False,
    number: HowMany = 50,
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
        now, zone, exact = now_ms(), shown_zone(place), need_seconds(to_ms(alert.opened_at) for alert in found)
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
                    f"{relative(to_ms(alert.opened_at), now)}, {brief(to_ms(alert.opened_at), zone, now, exact=exact)}",
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
    states = [f"acknowledged {relative(to_ms(alert.acked_at), now)}"] if alert.acked_at is not None else []
    if alert.snoozed_until is not None and to_ms(alert.snoozed_until) > now:
        states.append(f"snoozed, ends {ahead(to_ms(alert.snoozed_until), now)}")
    return Cell("; ".join(states)) if states else Cell("open", "red")


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
    alert = change(place, lambda scheduler: scheduler.read(lambda tx: _meant(tx, ref)[0]))
    if as_json:
        print_json(alert.to_dict())
        return
    now, zone, since = now_ms(), shown_zone(place), to_ms(alert.opened_at)
    facts: list[tuple[str, str | Cell]] = [("id", alert.id), ("kind", alert.kind)]
    facts += [("state", _state(alert, now)), ("what", alert.message)]
    facts += [("job", alert.job)] if alert.job is not None else []
    facts += [("since", f"{stamp(since, zone)}, {relative(since, now)}")]
    if alert.times > 1:
        facts += [("seen", f"{count(alert.times, 'time')}, last {relative(to_ms(alert.last_at), now)}")]
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

    They stay open, marked as seen, until the incident is over. No message repeats them.
    """

    async def work(scheduler: Scheduler) -> tuple[list[Alert], str | None]:
        found = await scheduler.read(lambda tx: [alert for ref in refs for alert in _meant(tx, ref, open_only=True)])
        rights, actions = rights_here(scheduler), list[str | None]()
        numbers = list(dict.fromkeys(n for alert in found if (n := ids.alert_number(alert.id)) is not None))
        for number in numbers:
            done = await scheduler.transact(partial(_acknowledge, number), rights=rights)
            actions.append(done)
        seen = await scheduler.read(lambda tx: alert_views(tx, [row for n in numbers if (row := tx.alerts.get(n))]))
        return seen, next(filter(None, actions), None)

    acked, action = change(chosen(ctx, db), work)
    if as_json:
        print_json([alert.to_dict() for alert in acked])
        return
    for alert in acked:
        say(f"Acknowledged {alert.id}: {alert.message}")
    say_undo(action)


def _acknowledge(number: int, tx: Transaction, context: Context) -> str | None:
    return acknowledge(tx, number, origin_of(context))[1]


@alerts.command("snooze")
def snooze_alerts(
    ctx: typer.Context,
    *,
    refs: Annotated[
        list[str],
        typer.Argument(
            metavar="ID...", help="Alerts by id, or jobs for all their alerts, open or not.", show_default=False
        ),
    ],
    for_: Annotated[
        str, typer.Option("--for", metavar="TIME", help="How long, such as 30m or 2h.", show_default=True)
    ] = "1h",
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Send no message about alerts for a time.

    Alerts that are still open then are sent again. A job's future alerts are snoozed, too.
    """
    time = duration("--for", for_)

    def work(tx: Transaction, context: Context) -> SnoozeResult:
        return snooze(tx, refs, time, origin_of(context))

    snoozed, action = change(chosen(ctx, db), lambda scheduler: scheduler.transact(work, rights=rights_here()))
    if as_json:
        print_json([alert.to_dict() for alert in snoozed])
        return
    for alert in snoozed:
        say(f"Snoozed {alert.id} for {for_}: {alert.message}")
    if not snoozed:
        say(f"No alert is open; none about {', '.join(refs)} is sent for {for_}.")
    say_undo(action)


def _meant(tx: Transaction, ref: str, *, open_only: bool = False) -> list[Alert]:
    """The alert of that id, or those of the job, the newest first."""
    number = ids.alert_number(ref)
    if number is not None:
        alert = tx.alerts.get(number)
        if alert is None:
            raise AlertNotFound(f"There is no alert {ref}: wakeful alert list --all shows them all.")
        return alert_views(tx, [alert])
    try:
        job = find_job(tx, ref)[0]
    except JobNotFound as error:
        raise AlertNotFound(str(error).replace("no job", "no alert or job", 1)) from None
    found = [alert for alert in tx.alerts.latest(job_id=job.id) if alert.closed_at is None or not open_only]
    if not found:
        raise AlertNotFound(f"{job.name} has no {'open ' if open_only else ''}alert.")
    return alert_views(tx, found)
