"""`plan` and `apply`: show and apply the difference between a configuration file and the store."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import Scheduler
from wakeful.cli.acting import user_name
from wakeful.cli.app import SERVER, app
from wakeful.cli.checking import File, config_named
from wakeful.cli.failures import say_note
from wakeful.cli.opening import change, now_ms, read, server_of
from wakeful.cli.place import Db, Place, given_store, place_beside
from wakeful.cli.saying import say
from wakeful.cli.tables import Json, print_json
from wakeful.cli.words import count

if TYPE_CHECKING:
    from wakeful.fleet.entries import FleetFile
    from wakeful.fleet.planning import Plan

CHANGES = 5  # what `plan` exits with where there is something to do


@app.command("plan", rich_help_panel=SERVER)
def plan(ctx: typer.Context, *, file: File = None, as_json: Json = False, db: Db = None) -> None:
    """Show what apply would change, and change nothing. Exits with 5 if there is something to change."""
    from wakeful.fleet.applying import plan_fleet, ready_fleet, terms_of
    from wakeful.fleet.planning import make_plan

    wanted, place = _file_and_place(ctx, file, db, "plan")

    async def work(scheduler: Scheduler) -> Plan:
        fleet, terms = ready_fleet(scheduler, wanted), terms_of(wanted, scheduler.clock.now())
        return await scheduler.look(lambda tx: plan_fleet(tx, fleet, terms))

    if place.exists:
        found = read(place, work, make_plan([], [], terms_of(wanted, now_ms())))
    else:
        found = make_plan(ready_fleet(Scheduler(place.url), wanted).wanted, [], terms_of(wanted, now_ms()))
    _report(found, as_json=as_json)
    if not found.is_empty:
        raise typer.Exit(CHANGES)


@app.command("apply", rich_help_panel=SERVER)
def apply(
    ctx: typer.Context,
    *,
    file: File = None,
    yes: Annotated[bool, typer.Option("--yes", help="Also if it removes more than half of the file's jobs.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Apply the jobs of a configuration file, in one transaction. Other jobs are left alone."""
    from wakeful.fleet.applying import apply_fleet, ready_fleet, terms_of

    wanted, place = _file_and_place(ctx, file, db, "apply")

    async def work(scheduler: Scheduler) -> tuple[Plan, dict[str, Any] | None]:
        fleet, terms = ready_fleet(scheduler, wanted), terms_of(wanted, scheduler.clock.now())
        done = await scheduler.transact(
            lambda tx, context: apply_fleet(tx, context, fleet, terms, confirmed=yes, person=user_name())
        )
        assert done is not None  # noqa: S101 - it is applied whether or not it was before
        return done, server_of(scheduler)

    done, server = change(place._replace(config=None), work, create=True)
    _report(done, as_json=as_json)
    if server is None:
        say_note(f"No server is running on {place}: nothing fires until one does (wakeful serve).")


def _file_and_place(ctx: typer.Context, file: Path | None, db: str | None, command: str) -> tuple[FleetFile, Place]:
    from wakeful.config.loading import load

    found = config_named(file, command)
    wanted = load(found, needs=("defaults", "fleet", "include")).jobs
    return wanted, place_beside(found, given_store(ctx, db), os.environ, Path.cwd())


# -- in words ---------------------------------------------------------------------------------------------------------


def _report(found: Plan, *, as_json: bool) -> None:
    if as_json:
        print_json(_as_data(found))
        return
    for wanted in found.create:
        say(f"+ {wanted.draft.name}  {wanted.draft.trigger.describe()}")
    for update in found.update:
        changes = "; ".join(f"{name}: {_word(old)} -> {_word(new)}" for name, (old, new) in update.changes.items())
        say(f"~ {update.owned.job.name}  {changes}")
    for owned in found.remove:
        say(f"- {owned.job.name}")
    if found.is_empty:
        say(f"Nothing to do: {count(found.unchanged, 'job')} already as in the file.")
    for name in found.passed:
        say_note(f"{name} is not added: its time has passed.")


def _as_data(found: Plan) -> dict[str, Any]:
    updates = [
        {"name": one.owned.job.name, "changes": {name: list(pair) for name, pair in one.changes.items()}}
        for one in found.update
    ]
    return {
        "create": [one.draft.name for one in found.create],
        "update": updates,
        "remove": [one.job.name for one in found.remove],
        "unchanged": found.unchanged,
    }


def _word(value: Any) -> str:
    if value is None:
        return "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
