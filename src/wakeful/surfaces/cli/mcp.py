"""`mcp`: the tools of Wakeful for an agent's program, over standard input and output."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.console.failures import WrongUse
from wakeful.console.opening import change, user_name
from wakeful.console.store_location import TOKEN, Db, chosen
from wakeful.errors import InvalidSetting
from wakeful.surfaces.cli.app import SERVER, app

if TYPE_CHECKING:
    from wakeful import Scheduler
    from wakeful.console.store_location import StoreLocation
    from wakeful.routing.settings import ServerSettings

ROLES = ("viewer", "operator", "admin")
MISSING = "wakeful mcp needs the package mcp: pip install 'wakeful[mcp]'."

Role = Annotated[
    str,
    typer.Option("--role", metavar="ROLE", help="What its tools may do: viewer, operator or admin (commands, too)."),
]


@app.command("mcp", rich_help_panel=SERVER)
def mcp(ctx: typer.Context, *, role: Role = "operator", db: Db = None) -> None:
    """Offer schedules and runs to a program as MCP tools, over stdio.

    In a run of an agent, it passes everything on to the server that started the run.
    """
    if role not in ROLES:
        raise WrongUse(f"--role is one of {', '.join(ROLES)}, not {role!r:.40}.")
    place, stdio = chosen(ctx, db), _stdio()
    if place.server:
        asyncio.run(stdio.serve_bridge(place.url, os.environ[TOKEN]))
    else:
        change(place, lambda scheduler: _serve(stdio, scheduler, place, role), create=True)


def _stdio() -> Any:
    """The part that needs the SDK; InvalidSetting where that is not installed."""
    try:
        from wakeful.surfaces.mcp import stdio
    except ModuleNotFoundError as error:
        if error.name != "mcp":
            raise
        raise InvalidSetting(MISSING) from None
    return stdio


async def _serve(stdio: Any, scheduler: Scheduler, place: StoreLocation, role: str) -> None:
    from wakeful.routing.auth import Caller
    from wakeful.surfaces.mcp.tool_context import context_of

    await stdio.serve_here(await context_of(scheduler, _settings(place), Caller(user_name(), role)))


def _settings(place: StoreLocation) -> ServerSettings:
    """The limits that a server of this store would have."""
    from wakeful.surfaces.cli.serve import server_settings
    from wakeful.surfaces.cli.served_file import load_here

    loaded = load_here(place.config) if place.config is not None else None
    return server_settings(place.config, loaded)[0]
