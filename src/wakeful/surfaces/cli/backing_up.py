"""`backup` and `restore`: a store at one moment, and back. A restored store is paused until a person resumes it."""

from __future__ import annotations

import asyncio
import os
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.clock import SystemClock
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.humanize import count
from wakeful.console.opening import now, user_name
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen, find_place
from wakeful.console.tables import Json, print_json
from wakeful.domains import domains
from wakeful.errors import StoreNotFound
from wakeful.kernel.actions import callbacks, run_tokens
from wakeful.kernel.domain import load
from wakeful.kernel.rules.holding import Hold
from wakeful.surfaces.cli.app import SERVER, app
from wakeful.surfaces.cli.backup_files import file_for, prune, refuse_existing, replacing
from wakeful.surfaces.cli.copying import progress, same_place, summary

if TYPE_CHECKING:
    from collections.abc import Callable

    from wakeful.store.copying import Copied
    from wakeful.store.interface import Transaction

KEYS = (callbacks.KEY, run_tokens.KEY)  # with which tokens are made; no copy has those of a running server
NEW_KEYS = (
    "The restored store has new keys: tokens of runs and callback addresses that were given out before the backup are "
    "not valid here. Work that continues elsewhere cannot report to it."
)

File = Annotated[str, typer.Argument(metavar="FILE", help="The backup, a file.", show_default=False)]


@app.command("backup", rich_help_panel=SERVER)
def backup(
    ctx: typer.Context,
    *,
    target: Annotated[
        str | None,
        typer.Argument(metavar="[DIRECTORY]", help="A directory for dated files, or a new file.", show_default=False),
    ] = None,
    keep: Annotated[
        int | None,
        typer.Option(
            "--keep", min=1, metavar="N", help="Keep the newest N backups of the directory.", show_default=False
        ),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="FILE", help="Write this file instead.", show_default=False)
    ] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Replace the file if it exists.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Back up the store to a directory or a file, while servers run.

    The file is a store of its own, and paused: a server that is started on it starts and sends nothing. It has keys of
    its own, too: tokens of runs and callbacks cannot be made from it for the store that is backed up.
    """
    domains()  # their tables are copied too
    place = chosen(ctx, db)
    for text in (target, to):
        if text is not None:
            _file(text)  # an address of a database is refused
    if not place.exists:
        raise StoreNotFound(f"There is no store at {place}: nothing was backed up.")
    file, folder = file_for(target, to, keep, now())
    goal = _file(str(file))
    if same_place(goal, place):
        raise WrongUse(f"{goal} is the store itself: name another file.")
    if not replace:
        refuse_existing(file)
    with replacing(file) if replace else nullcontext():
        copied = _carry(place, goal, f"backup of {place}", live=True, quiet=as_json)
    gone = prune(folder, keep) if folder is not None and keep is not None else []
    _report(copied, place, goal, as_json=as_json)
    if gone and not as_json:
        say(f"Removed {count(len(gone), 'older backup')} from {folder}")


@app.command("restore", rich_help_panel=SERVER)
def restore(ctx: typer.Context, *, file: File, as_json: Json = False, db: Db = None) -> None:
    """Restore a backup into an empty store. Nothing starts or is sent until wakeful resume --all.

    The store gets new keys: tokens of runs and callback addresses from before the backup are not valid in it.
    """
    domains()
    origin, place = _file(file), chosen(ctx, db)
    if not origin.exists:
        raise StoreNotFound(f"There is no backup at {origin}: nothing was restored.")
    if same_place(origin, place):
        raise WrongUse(f"{origin} is the backup and the store: name another store with --db.")
    copied = _carry(origin, place, f"restored from {origin}", live=False, quiet=as_json)
    _report(copied, origin, place, as_json=as_json)
    say_note(NEW_KEYS)
    say_note("Everything is paused: look through wakeful list and wakeful delivery list, then wakeful resume --all.")


def _file(text: str) -> StoreLocation:
    place = find_place(text, os.environ, Path.cwd())
    if place.path is None:
        raise WrongUse(f"{text} is not a file: a backup is one.")
    return place


def _carry(origin: StoreLocation, goal: StoreLocation, note: str, *, live: bool, quiet: bool) -> Copied:
    with progress(quiet=quiet) as report:
        return asyncio.run(_copy(origin, goal, report, note, live=live))


async def _copy(
    origin: StoreLocation, goal: StoreLocation, report: Callable[[str, int, int], None], note: str, *, live: bool
) -> Copied:
    from wakeful.store import make_store
    from wakeful.store.copying import back_up, copy_store

    def hold(tx: Transaction) -> None:
        tx.nodes.hold(Hold(tx.now, user_name(), note, messages=True).text)
        for domain in domains():
            if domain.held is not None:
                load(domain.held)(tx)

    source, target = make_store(origin.url, SystemClock()), make_store(goal.url, SystemClock())
    await source.open(create=False)
    try:
        await target.open()
        try:
            return await (back_up if live else copy_store)(source, target, report, hold, KEYS)
        finally:
            await target.close()
    finally:
        await source.close()


def _report(copied: Copied, origin: StoreLocation, goal: StoreLocation, *, as_json: bool) -> None:
    if as_json:
        print_json({"from": str(origin), "to": str(goal), **copied._asdict()})
        return
    for line in summary(copied, origin, goal):
        say(line)
