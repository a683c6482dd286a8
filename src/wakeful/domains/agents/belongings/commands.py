"""`wakeful work`: work items of agents."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wakeful.console.failures import WrongUse
from wakeful.console.opening import change, read
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, HowMany, Json, print_json, print_table
from wakeful.domains.agents import work as items
from wakeful.domains.agents.belongings import moving
from wakeful.scheduler import Scheduler

app = typer.Typer(help="Add work items for agents, and see their status.")

Item = Annotated[str, typer.Argument(metavar="ID", help="A work item's id.", show_default=False)]


@app.command("add")
def work_add(
    ctx: typer.Context,
    *,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent that works on it.", show_default=False)],
    title: Annotated[str, typer.Argument(metavar="TITLE", help="The title of the task.", show_default=False)],
    body: Annotated[str | None, typer.Option("--body", metavar="TEXT", help="More about it.")] = None,
    external: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="Its id in another system; added only once.")
    ] = None,
    priority: Annotated[
        int, typer.Option("--priority", metavar="N", min=-100, max=100, help="Items with a higher priority come first.")
    ] = 0,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Add a work item to an agent's queue and print its id."""
    new = items.NewItem(title, body, external, priority)

    async def add(scheduler: Scheduler) -> dict[str, Any]:
        added = await scheduler.transact(lambda tx, context: items.add_item(tx, context, agent, new))
        return added[0]

    added = change(chosen(ctx, db), add)
    print_json(added) if as_json else say(added["id"])


@app.command("list")
def work_list(
    ctx: typer.Context,
    *,
    agent: Annotated[str | None, typer.Argument(metavar="AGENT", help="Only of this agent.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help=f"Only these: {', '.join(items.STATUSES)}.")
    ] = None,
    orphaned: Annotated[bool, typer.Option("--orphaned", help="Only of agents that no longer exist.")] = False,
    number: HowMany = 50,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List work items, newest first."""
    if status is not None and status not in items.STATUSES:
        raise WrongUse(f"--status is one of {', '.join(items.STATUSES)}, not {status!r}.")
    place = chosen(ctx, db)
    nothing: list[dict[str, Any]] = []
    found = read(
        place,
        lambda s: s.read(lambda tx: items.list_items(tx, agent, status, None, number, orphaned=orphaned)),
        nothing,
    )
    if as_json:
        print_json(found)
    elif found:
        columns = [
            Column("ITEM", 17),
            Column("AGENT", 8),
            Column("STATUS", 8),
            Column("TRIES", 5, spare=3),
            Column("TITLE", 12, spare=1),
            Column("ERROR", 10, spare=2),
        ]
        print_table(columns, [_row(one) for one in found])
    else:
        say(f"No work items in {place}.")


def _row(one: dict[str, Any]) -> list[str | Cell]:
    agent = Cell(f"{one['agent']} (gone)", "yellow") if one["orphaned"] else one["agent"]
    title, error = " ".join(one["title"].split()), " ".join((one["last_error"] or "").split())
    return [one["id"], agent, one["status"], str(one["attempts"]), title, error]


@app.command("release")
def work_release(ctx: typer.Context, *, ref: Item, as_json: Json = False, db: Db = None) -> None:
    """Release an abandoned item, so that another run works on it."""
    found = change(chosen(ctx, db), lambda s: s.transact(lambda tx, _: items.release_item(tx, ref)))
    print_json(found) if as_json else say(f"{ref} is {found['status']}.")


@app.command("retry")
def work_retry(ctx: typer.Context, *, ref: Item, as_json: Json = False, db: Db = None) -> None:
    """Queue a done or failed item again."""
    found = change(chosen(ctx, db), lambda s: s.transact(lambda tx, context: items.retry_item(tx, context, ref)))
    print_json(found) if as_json else say(f"{ref} is {found['status']}.")


@app.command("move")
def work_move(
    ctx: typer.Context,
    *,
    ref: Item,
    agent: Annotated[str, typer.Argument(metavar="AGENT", help="The agent that gets it.", show_default=False)],
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Move an item to another agent, also if its own is gone."""
    found = change(chosen(ctx, db), lambda s: s.transact(lambda tx, _: moving.move_item(tx, ref, agent)))
    print_json(found) if as_json else say(f"{ref} is {found['status']} for {agent}.")
