"""`wakeful request`: what came in from outside, and letting it run again."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from wakeful import ids
from wakeful.console.failures import say_note
from wakeful.console.humanize import ago, moment_words
from wakeful.console.opening import change, now_ms, read, server_of, shown_zone
from wakeful.console.output import say, say_text
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, HowMany, Json, print_facts, print_json, print_table
from wakeful.domains.agents.inbound import receiving
from wakeful.scheduler import Scheduler
from wakeful.triggers.moments import read_moment

app = typer.Typer(help="Show requests of webhooks and chats, and replay them.")

Ref = Annotated[str, typer.Argument(metavar="ID", help="A request's id.", show_default=False)]


@app.command("list")
def list_(
    ctx: typer.Context,
    *,
    name: Annotated[
        str | None,
        typer.Argument(metavar="[NAME]", help="Only of this schedule, as agent.schedule.", show_default=False),
    ] = None,
    number: HowMany = 20,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List requests from outside, newest first."""
    place = chosen(ctx, db)
    nothing: list[dict[str, Any]] = []
    found = read(place, lambda s: s.read(lambda tx: receiving.list_requests(tx, name, None, number)), nothing)
    if as_json:
        print_json(found)
    elif found:
        print_table(*_rows(found))
    else:
        say(f"No requests in {place}.")


def _rows(found: list[dict[str, Any]]) -> tuple[list[Column], list[list[str | Cell]]]:
    columns = [
        Column("REQUEST", 17),
        Column("SCHEDULE", 10),
        Column("TYPE", 7),
        Column("CAME", 8),
        Column("RUN", 17, spare=2),
        Column("DELIVERY ID", 12, spare=1),
    ]
    now = now_ms()
    rows: list[list[str | Cell]] = [
        [
            one["id"],
            one["job"] or "(removed)",
            one["type"],
            ago(read_moment(one["at"], "at"), now),
            one["run"] or "-",
            one["delivery_id"] or (f"replay of {one['replay_of']}" if one["replay_of"] else "-"),
        ]
        for one in found
    ]
    return columns, rows


@app.command("show")
def show(ctx: typer.Context, *, ref: Ref, as_json: Json = False, db: Db = None) -> None:
    """Show a request with its content."""
    place = chosen(ctx, db)
    found = change(place, lambda s: s.read(lambda tx: receiving.get_request(tx, ref)))
    if as_json:
        print_json(found)
        return
    named = [("request", "id"), ("schedule", "job"), ("type", "type"), ("delivery id", "delivery_id")]
    named += [("replay of", "replay_of"), ("run", "run")]
    facts: list[tuple[str, str | Cell]] = [(title, str(found[key])) for title, key in named if found[key] is not None]
    facts.append(("came in", moment_words(found["at"], shown_zone(place), now_ms())))
    facts += [(key, str(value)) for key, value in found["about"].items() if value is not None]
    print_facts(facts)
    say()
    say_text(_content(found["body"]))


def _content(body: str | None) -> str:
    """The body, JSON with one name a line."""
    if body is None:
        return "Its content was pruned."
    try:
        return json.dumps(json.loads(body), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return body


@app.command("replay")
def replay(ctx: typer.Context, *, ref: Ref, as_json: Json = False, db: Db = None) -> None:
    """Replay a request: start its schedule again."""
    place = chosen(ctx, db)

    async def work(scheduler: Scheduler) -> tuple[receiving.ReceivedRequest, bool]:
        found = await scheduler.transact(lambda tx, context: receiving.replay(tx, context, ref))
        return receiving.settled(found), server_of(scheduler) is not None

    taken, served = change(place, work)
    again, run = receiving.request_text(taken.request_id), ids.run_text(taken.run_id)
    if as_json:
        print_json({"request": again, "run": run, "replay_of": ref})
    else:
        say(f"{ref} runs again as {run} ({again})")
    if not served:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")
