"""`link`: a link that opens the dashboard, once, within ten minutes."""

from __future__ import annotations

import getpass
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.console.opening import change
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Json, print_json
from wakeful.errors import StoreNotFound
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.monitoring import public_url

if TYPE_CHECKING:
    from wakeful import Scheduler

Role = Annotated[str, typer.Option("--role", metavar="ROLE", help="What it allows: viewer, operator or admin.")]


@app.command("link", rich_help_panel=SERVER)
def link(ctx: typer.Context, *, role: Role = "admin", as_json: Json = False, db: Db = None) -> None:
    """Print a link that opens the dashboard. It works once, within ten minutes."""
    place = chosen(ctx, db)

    async def work(scheduler: Scheduler) -> str:
        base = await server_url(scheduler, place)
        if base is None:
            raise StoreNotFound("No server has run on this store yet: start one with wakeful serve.")
        return await new_link(scheduler, base, role)

    found = change(place, work)
    if as_json:
        print_json({"link": found, "role": role})
    else:
        say(found)


async def new_link(scheduler: Scheduler, base: str, role: str) -> str:
    """A link for the user of this machine who asks."""
    code = await scheduler.server_side.create_link_code(getpass.getuser(), role)
    return f"{base.rstrip('/')}/in/{code}"


async def server_url(scheduler: Scheduler, place: StoreLocation) -> str | None:
    """Where the server of this store is reached: at its public address, or where it was last seen."""
    known = await scheduler.read(lambda tx: tx.facts.of(["server_url"]).get("server_url"))
    return public_url(place) or known
