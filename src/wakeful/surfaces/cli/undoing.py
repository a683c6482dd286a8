"""`undo`: take back a pause, a resume, a removal, an acknowledgement or a snooze."""

from __future__ import annotations

from typing import Annotated

import typer

from wakeful import Action, Scheduler, Undone
from wakeful.console.failures import WrongUse, say_note
from wakeful.console.humanize import count, relative, span
from wakeful.console.opening import change, now_ms, read, rights_here
from wakeful.console.output import say
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Cell, Column, Json, print_json, print_table
from wakeful.surfaces.cli.app import JOBS, app
from wakeful.triggers import to_ms

SHOWN = 20
TAKEN_BACK = {
    "disable": "Not disabled any more", "pause": "Not paused any more", "resume": "Stopped again", "remove": "Restored",
    "acknowledge": "Not acknowledged any more", "pause_all": "Not paused any more", "resume_all": "Paused again",
    "snooze": "Not snoozed any more", "pause_workflow": "Not paused any more", "resume_workflow": "Paused again",
    "drain_workflow": "Not drained any more",
}  # fmt: skip


@app.command("undo", rich_help_panel=JOBS)
def undo(
    ctx: typer.Context,
    *,
    ref: Annotated[
        str | None, typer.Argument(metavar="[ACTION]", help="An action's id; else your last one.", show_default=False)
    ] = None,
    listed: Annotated[bool, typer.Option("--list", help="Show what was done instead.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Undo a pause, resume, removal, acknowledgement or snooze.

    It works for ten minutes, also for what others did. Later changes are kept.
    """
    place = chosen(ctx, db)
    if listed:
        if ref is not None:
            raise WrongUse("Use --list or an action, not both.")
        nothing: list[Action] = []
        _show(read(place, lambda scheduler: scheduler.list_actions(limit=SHOWN), nothing), as_json=as_json)
        return

    async def work(scheduler: Scheduler) -> Undone:
        rights = rights_here()
        meant = ref if ref is not None else await scheduler.server_side.latest_action(rights)
        return await scheduler.server_side.undo(meant, rights)

    done = change(place, work)
    if as_json:
        print_json(done.to_dict())
        return
    which = ", ".join(done.restored) if len(done.restored) <= SHOWN else count(len(done.restored), "job")
    say(f"{TAKEN_BACK.get(done.what, 'Undone')}: {which}")
    for reason in list(done.kept.values())[:SHOWN]:
        say_note(f"{reason}.")


def _show(actions: list[Action], *, as_json: bool) -> None:
    if as_json:
        print_json([action.to_dict() for action in actions])
    elif actions:
        now = now_ms()
        columns = [Column("ID", 17), Column("WHEN", 10), Column("WHAT", 7), Column("WHICH", 12), Column("WHO", 8)]
        print_table([*columns, Column("UNDO", 8)], [[*_cells(action, now), _undo(action, now)] for action in actions])
    else:
        say("Nothing on record: what people do to jobs, runs, alerts and nodes is listed here.")


def _cells(action: Action, now: int) -> list[str | Cell]:
    more = f" and {action.changed - 1} more" if action.changed > 1 else ""
    who = f"{action.via}:{action.actor}"  # as it is written everywhere
    return [action.id, relative(to_ms(action.at), now), action.what, f"{action.name}{more}", who]


def _undo(action: Action, now: int) -> str:
    if action.undo_until is not None:
        return f"for {span(max(0, to_ms(action.undo_until) - now) // 1000 * 1000)}"
    if not action.undoable:
        return "no"
    return f"undone by {action.undone_by}" if action.undone_at is not None else "too late"
