"""`copy`: everything in one store into another, whichever kind either is."""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wakeful.clock import SystemClock
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.humanize import count
from wakeful.console.opening import read
from wakeful.console.output import say
from wakeful.console.store_location import StoreLocation, find_place
from wakeful.console.tables import Json, console, print_json
from wakeful.domains import domains, hidden_kinds
from wakeful.errors import StoreNotFound
from wakeful.store.jobs import JobFilter
from wakeful.surfaces.cli.app import SERVER, app

if TYPE_CHECKING:
    from wakeful.store.copying import Copied
    from wakeful.store.interface import Transaction

#: What a person counts; the rest is in the JSON.
COUNTED = {"jobs": "job", "runs": "run", "events": "event", "alerts": "alert", "tokens": "token"}


@app.command("copy", rich_help_panel=SERVER)
def copy(
    *,
    source: Annotated[str, typer.Argument(metavar="FROM", help="A store: a file, or an address.", show_default=False)],
    target: Annotated[str, typer.Argument(metavar="TO", help="An empty store, or none yet.", show_default=False)],
    as_json: Json = False,
) -> None:
    """Copy everything from one store to another. From SQLite to PostgreSQL, back, or from file to file."""
    domains()  # their tables are copied too
    here = Path.cwd()
    origin, goal = find_place(source, os.environ, here), find_place(target, os.environ, here)
    if not origin.exists:
        raise StoreNotFound(f"There is no store at {origin}: nothing was copied.")
    if same_place(origin, goal):
        raise WrongUse(f"{origin} is FROM and TO: name two stores.")
    with progress(quiet=as_json) as report:
        copied = asyncio.run(_copy(origin, goal, report))
    if as_json:
        print_json({"from": str(origin), "to": str(goal), **copied._asdict()})
    else:
        for line in summary(copied, origin, goal):
            say(line)
    if copied.elsewhere:
        say_note(f"The whole output of {count(copied.elsewhere, 'run')} is on other machines and is not copied.")
    say_note(f"{origin} is unchanged. Do not start a server on it again, or its jobs run on both stores.")


def same_place(origin: StoreLocation, goal: StoreLocation) -> bool:
    """Whether two names are of one store."""
    if origin.path is not None and goal.path is not None:
        return os.path.realpath(origin.path) == os.path.realpath(goal.path)
    return origin.url == goal.url


async def _copy(origin: StoreLocation, goal: StoreLocation, report: Callable[[str, int, int], None]) -> Copied:
    from wakeful.store import make_store
    from wakeful.store.copying import copy_store

    source, target = make_store(origin.url, SystemClock()), make_store(goal.url, SystemClock())
    await source.open(create=False)
    try:
        await target.open()
        try:
            return await copy_store(source, target, report)
        finally:
            await target.close()
    finally:
        await source.close()


def _jobs(tx: Transaction) -> int:
    return tx.jobs.count(JobFilter(hidden=hidden_kinds()))


def summary(copied: Copied, origin: StoreLocation, goal: StoreLocation) -> list[str]:
    """What was copied, in lines; jobs are those that `list` and `status` count."""
    jobs = read(goal, lambda scheduler: scheduler.read(_jobs), 0)
    rows = {**copied.rows, "jobs": jobs}
    parts = [count(rows[table], noun) for table, noun in COUNTED.items() if rows[table]]
    parts += [count(copied.files, "file")] if copied.files else []
    return [f"Copied {', '.join(parts) or 'nothing: it was empty'}", f"  from  {origin}", f"  to    {goal}"]


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[[str, int, int], None]]:
    """A bar for each table, in a terminal; elsewhere silence, for the result says it all."""
    if quiet or not sys.stderr.isatty():
        yield lambda _table, _done, _total: None
        return
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (TextColumn("{task.description:<12}"), BarColumn(), MofNCompleteColumn())
    with Progress(*columns, console=console(stderr=True), transient=True) as bars:
        tasks = {}

        def report(table: str, done: int, total: int) -> None:
            if table not in tasks:
                tasks[table] = bars.add_task(table, total=total)
            bars.update(tasks[table], completed=done)

        yield report
