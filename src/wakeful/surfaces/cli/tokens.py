"""`token`: who may use the server. Works on the store itself: a user who can write it is an admin anyway."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.console.humanize import relative
from wakeful.console.opening import change, now_ms, read, rights_here
from wakeful.console.output import Yes, ask_before_final, say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, Json, print_json, print_table
from wakeful.kernel.actions.recording import origin_of
from wakeful.kernel.actions.tokens import revoke as revoke_token
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.triggers import to_ms

if TYPE_CHECKING:
    from wakeful import Token
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

tokens = typer.Typer(help="Create, list and revoke API tokens.")
app.add_typer(tokens, name="token", rich_help_panel=SERVER)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The token's name.")]


@tokens.command("create")
def create(
    ctx: typer.Context,
    name: Name,
    *,
    role: Annotated[
        str,
        typer.Option("--role", metavar="ROLE", help="Its role: viewer, operator, admin, or agent (its own jobs only)."),
    ],
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Create a token and print it. It is not shown again."""
    token = change(chosen(ctx, db), lambda scheduler: scheduler.create_token(name, role), create=True)
    if as_json:
        print_json({"name": name, "role": role, "token": token})
    else:
        say(token)


@tokens.command("list")
def list_tokens(
    ctx: typer.Context,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Include revoked tokens.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List valid tokens with name, role and last use. The tokens themselves are never shown."""
    place = chosen(ctx, db)
    nothing: list[Token] = []
    found = read(place, lambda scheduler: scheduler.list_tokens(revoked=everything), nothing)
    if as_json:
        print_json([token.to_dict() for token in found])
    elif found:
        now = now_ms()
        print_table(
            [
                Column("NAME", 8),
                Column("ROLE", 8),
                Column("MADE", 8, spare=1),
                Column("LAST USED", 8),
                Column("STATE", 7),
            ],
            [
                [
                    token.name,
                    token.role,
                    relative(to_ms(token.created_at), now),
                    relative(to_ms(token.last_used_at), now) if token.last_used_at is not None else "never",
                    Cell("valid", "green") if token.revoked_at is None else Cell("revoked", "yellow"),
                ]
                for token in found
            ],
        )
    else:
        say(f"No tokens in {place}. Create one: wakeful token create NAME --role viewer")


@tokens.command("revoke")
def revoke(ctx: typer.Context, name: Name, *, yes: Yes = False, as_json: Json = False, db: Db = None) -> None:
    """Revoke a token. It is rejected from now on, and streams opened with it end.

    It cannot be undone: create another. At a terminal you are asked before.
    """
    ask_before_final(f"The token {name} will be rejected from now on.", yes=yes)

    def work(tx: Transaction, context: Context) -> None:
        revoke_token(tx, name, origin_of(context))

    change(chosen(ctx, db), lambda scheduler: scheduler.transact(work, rights=rights_here()))
    if as_json:
        print_json({"name": name, "revoked": True})
    else:
        say(f"Revoked {name}")
