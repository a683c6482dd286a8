"""`wakeful letters …`."""

from __future__ import annotations

from typing import Annotated

import typer

from tests.sample.tables import Letters
from wakeful.console.opening import change, read
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen

app = typer.Typer(help="Letters and stamps.")


@app.command("stamps")
def stamps(ctx: typer.Context, *, buy: Annotated[int, typer.Option("--buy")] = 0, db: Db = None) -> None:
    """Buy stamps, and say how many there are."""

    def work(scheduler):
        return scheduler.transact(lambda tx, _: tx.of(Letters).buy(buy))

    say(f"{change(chosen(ctx, db), work, create=True)} stamps")


@app.command("list")
def list_letters(ctx: typer.Context, *, db: Db = None) -> None:
    """List letters."""
    for _, arrived in read(chosen(ctx, db), lambda scheduler: scheduler.read(lambda tx: tx.of(Letters).all()), []):
        say("arrived" if arrived else "returned" if arrived == 0 else "on its way")
