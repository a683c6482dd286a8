"""`wakeful agent limits`: the accounts that are at their rate limit, and clearing one."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from wakeful.console.humanize import ago, ahead
from wakeful.console.opening import change, now_ms, read
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, Json, print_json, print_table
from wakeful.triggers.moments import read_moment

limits = typer.Typer(help="List accounts at their rate limit, and clear limits.", invoke_without_command=True)


@limits.callback()
def list_limits(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """List the accounts that are at their rate limit, or clear the limit of one."""
    if ctx.invoked_subcommand is not None:
        return
    nothing: list[dict[str, Any]] = []
    found = read(chosen(ctx, db), lambda scheduler: scheduler.agents.rate_limits(), nothing)
    if as_json:
        print_json(found)
    elif found:
        columns = [
            Column("ACCOUNT", 8),
            Column("ENDS", 6),
            Column("SINCE", 6),
            Column("AGENTS", 8, spare=2),
            Column("SAID", 12, spare=1),
        ]
        print_table(columns, [_row(one, now_ms()) for one in found])
    else:
        say("No account is at its rate limit.")


def _row(one: dict[str, Any], now: int) -> list[str | Cell]:
    since = "-" if one["since"] is None else ago(read_moment(one["since"], "since"), now)
    ends = ahead(read_moment(one["until"], "until"), now)
    return [one["account"], ends, since, ", ".join(one["agents"]), " ".join(one["why"].split())]


@limits.command("clear")
def clear(
    ctx: typer.Context,
    *,
    account: Annotated[str, typer.Argument(metavar="ACCOUNT", help="The account.", show_default=False)],
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Clear the rate limit of an account; what waits for it starts."""
    cleared = change(chosen(ctx, db), lambda scheduler: scheduler.agents.clear_rate_limit(account))
    if as_json:
        print_json(cleared)
    else:
        say(f"The rate limit of {account} is cleared.")
