"""`wakeful workflow …`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful import clock
from wakeful.console.failures import say_note
from wakeful.console.humanize import ago, ahead, count, moment_words
from wakeful.console.opening import change, now_ms, read, rights_here, say_undo, shown_zone
from wakeful.console.output import say, say_text
from wakeful.console.store_location import Db, chosen
from wakeful.console.tables import Column, Json, print_facts, print_json, print_table
from wakeful.domains.workflows import actions, views
from wakeful.domains.workflows.draining import drain as drain_workflow
from wakeful.domains.workflows.fixes.tables import Fixes
from wakeful.domains.workflows.loading import CannotLoad, load_file, read_ref
from wakeful.domains.workflows.lookup import find_workflow
from wakeful.domains.workflows.topics.commands import (
    Limit,
    Name,
    Note,
    acting,
    done,
    events_app,
    found_or_not,
    looking,
    read_json,
    seeing,
    who,
)
from wakeful.domains.workflows.wiring import mistakes, warnings
from wakeful.domains.workflows.words import (
    IDLE,
    NEEDS_ATTENTION,
    SHOWN,
    STOPPED,
    answer_commands,
    change_words,
    still_waits,
)
from wakeful.kernel.actions.recording import origin_of
from wakeful.triggers.moments import read_moment

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

WAIT_S = 0.3

app = typer.Typer(help="List, run, pause and settle workflows.")

RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run that waits; show prints it.")]


@app.command("list")
def list_workflows(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """List workflows with their status."""
    place = chosen(ctx, db)
    found: list[dict[str, Any]] = read(place, seeing(views.workflow_views), [])
    if as_json:
        print_json(found)
    elif found:
        rows = [[one["name"], _status(one), _issue(one), one["schedule"]] for one in found]
        print_table([Column("NAME", 12), Column("STATUS", 10), Column("ISSUE", 20), Column("SCHEDULE", 16, 1)], rows)
    else:
        say(f"There are no workflows in {place}.")


def _status(shown: dict[str, Any]) -> str:
    return "Cut off: its server has ended" if shown["cut_off"] and shown["status"] == IDLE else SHOWN[shown["status"]]


def _issue(shown: dict[str, Any]) -> str:
    return shown["issue"]["message"] if shown["issue"] is not None else "-"


@app.command("show")
def show(ctx: typer.Context, name: Name, *, as_json: Json = False, db: Db = None) -> None:
    """Show a workflow: its status, what to do, and what was done."""
    place = chosen(ctx, db)
    found = found_or_not(place, seeing(lambda tx, seen: views.workflow_view(tx, name, seen)), name)
    if as_json:
        print_json(found)
        return
    zone, now = shown_zone(place), now_ms()
    facts = [("workflow", found["name"]), ("status", _status(found)), ("schedule", found["schedule"])]
    if found["issue"] is not None:
        facts.append(("issue", found["issue"]["message"]))
        issue = found["issue"]
        commands = answer_commands(name, issue["actions"], issue["run"], issue["likely"])
        facts += [("", command) for command in commands]
        facts += _change(issue["change"])
    if found["working"] is not None:
        working = found["working"]
        since = moment_words(working["since"], zone, now)
        facts.append(("", f"{working['run']} was cut off ({since}), and a thread or program of it is still at work."))
        facts.append(("", "Nothing of this workflow starts until that has ended."))
    if found["draining"]:
        facts.append(("", "It is draining: producers wait, and it is paused once nothing is left to do."))
    facts.append(("pending", count(found["pending_inputs"], "input")))
    facts.append(("version", found["version"]))
    facts += [
        ("did" if not number else "", f"{moment_words(one['at'], zone, now)}: {one['text']}")
        for number, one in enumerate(found["recent"])
    ]
    facts += [
        (
            "people" if not number else "",
            f"{moment_words(one['at'], zone, now)}: "
            + " ".join(filter(None, (one["who"], one["action"], one["detail"]))),
        )
        for number, one in enumerate(found["actions"])
    ]
    print_facts(facts)
    rows = [
        [one["job"], one["type"], str(one["pending_events"]), _next(one, now), _last(one)] for one in found["handlers"]
    ]
    print_table([Column("JOB", 12), Column("TYPE"), Column("PENDING"), Column("NEXT", 12), Column("LAST", 12)], rows)


def _change(change: dict[str, Any] | None) -> list[tuple[str, str]]:
    """What a person is asked about."""
    if change is None:
        return []
    lines = [change["title"], *change_words(change, change["result"])]
    return [("change" if not number else "", line) for number, line in enumerate(filter(None, lines))]


def _next(handler: dict[str, Any], now: int) -> str:
    at = handler["next_run_at"]
    return "-" if at is None else ahead(read_moment(at, "next_run_at"), now)


def _last(handler: dict[str, Any]) -> str:
    return handler["last_run"]["workflow_status"] if handler["last_run"] is not None else "-"


@app.command("run")
def run(ctx: typer.Context, name: Name, *, as_json: Json = False, db: Db = None) -> None:
    """Run all producers of a workflow now, one after the other."""
    started = change(chosen(ctx, db), acting(lambda tx, context: actions.run_now(tx, context, name, who=who())))
    done({"runs": started}, f"{name}: {count(len(started), 'producer')} queued", as_json=as_json)


@app.command("pause")
def pause(ctx: typer.Context, name: Name, *, note: Note = None, as_json: Json = False, db: Db = None) -> None:
    """Pause a workflow. The run in progress ends, and what is due meanwhile waits."""

    def work(tx: Transaction, context: Context) -> str | None:
        return actions.pause(tx, context, name, who=who(), origin=origin_of(context), note=note)

    action = change(chosen(ctx, db), acting(work))
    done({"name": name, "paused": True, "action": action}, f"{name} is paused", as_json=as_json)
    _say_undo(action, as_json=as_json)


@app.command("resume")
def resume(ctx: typer.Context, name: Name, *, as_json: Json = False, db: Db = None) -> None:
    """Resume a workflow; what failed in its code is tried again."""

    def work(tx: Transaction, context: Context) -> tuple[str | None, str | None]:
        action = actions.resume(tx, context, name, who=who(), origin=origin_of(context))
        return action, still_waits(find_workflow(tx, name))

    action, waits = change(chosen(ctx, db), acting(work))
    said = f"{name} continues" if waits is None else f"{name} is not paused. {waits}"
    done({"name": name, "paused": False, "action": action}, said, as_json=as_json)
    _say_undo(action, as_json=as_json)


def _say_undo(action: str | None, *, as_json: bool) -> None:
    if not as_json:
        say_undo(action)


@app.command("remove")
def remove(ctx: typer.Context, name: Name, *, note: Note = None, as_json: Json = False, db: Db = None) -> None:
    """Remove a workflow. Its state, events and runs stay for when it is deployed again."""
    left = change(chosen(ctx, db), acting(lambda tx, context: actions.remove(tx, context, name, who=who(), note=note)))
    done({"name": name, "to_settle": left}, f"{name} is removed", as_json=as_json)
    say_note(f"{name} is deployed again by a server that has its code: take it out of wakeful.yaml or your program.")
    for run_id in left:
        [command] = answer_commands(name, ["settle"], run_id)
        say_note(f"It is not known whether the last change happened: {command}")


@app.command("settle")
def settle(
    ctx: typer.Context,
    name: Name,
    run_id: RunId,
    verdict: Annotated[str, typer.Argument(metavar="VERDICT", help="One of happened, did_not_happen and skip.")],
    *,
    result: Annotated[
        str | None, typer.Option("--result", metavar="JSON", help="What the change returned, as JSON.")
    ] = None,
    note: Note = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Settle a change that was cut off: say whether it happened."""
    value = read_json("--result", result)

    def work(tx: Transaction, context: Context) -> None:
        actions.settle(tx, context, name, run_id, verdict, who=who(), result=value, note=note)

    change(chosen(ctx, db), acting(work))
    done({"run": run_id, "verdict": verdict}, f"{run_id} is settled: {verdict}", as_json=as_json)


@app.command("approve")
def approve(
    ctx: typer.Context, name: Name, run_id: RunId, *, note: Note = None, as_json: Json = False, db: Db = None
) -> None:
    """Approve a run that asks, or the correction of its code."""

    def work(tx: Transaction, context: Context) -> str | None:
        return actions.approve(tx, context, name, run_id, who=who(), note=note)

    again = change(chosen(ctx, db), acting(work))
    said = f"{again} continues where {run_id} asked" if again else f"The correction for {run_id} is being deployed"
    done({"run": run_id, "continued_by": again}, said, as_json=as_json)


@app.command("reject")
def reject(
    ctx: typer.Context, name: Name, run_id: RunId, *, note: Note = None, as_json: Json = False, db: Db = None
) -> None:
    """Reject a run that asks, or a correction. A run's workflow is paused."""

    def work(tx: Transaction, context: Context) -> bool:
        actions.reject(tx, context, name, run_id, who=who(), note=note)
        return bool(find_workflow(tx, name).paused)

    paused = change(chosen(ctx, db), acting(work))
    done({"run": run_id}, f"{run_id} is rejected{f', and {name} is paused' if paused else ''}", as_json=as_json)


@app.command("drain")
def drain(
    ctx: typer.Context,
    name: Name,
    *,
    wait: Annotated[bool, typer.Option("--wait", help="Return when it is drained, or cannot continue.")] = False,
    note: Note = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Drain a workflow: finish what it has, then pause it."""

    async def work(scheduler: Scheduler) -> tuple[dict[str, Any], str | None]:
        _, action = await scheduler.transact(
            lambda tx, context: drain_workflow(tx, context, name, who=who(), origin=origin_of(context), note=note),
            rights=rights_here(),
        )
        while True:
            found: dict[str, Any] = await seeing(lambda tx, seen: views.workflow_view(tx, name, seen))(scheduler)
            if not wait or not found["draining"] or found["status"] in (NEEDS_ATTENTION, STOPPED):
                return found, action
            await clock.sleep(WAIT_S)

    found, action = change(chosen(ctx, db), work)
    data = {"name": name, "draining": found["draining"], "paused": found["paused"], "action": action}
    done(data, f"{name} is {'drained, and paused' if found['paused'] else 'draining'}", as_json=as_json)
    _say_undo(action, as_json=as_json)
    if wait and not found["paused"]:
        say(f"It cannot continue: {_issue(found)}", error=True)
        raise typer.Exit(1)


@app.command("fixes")
def fixes(
    ctx: typer.Context,
    name: Name,
    *,
    diff: Annotated[bool, typer.Option("--diff", help="Also what each would change.")] = False,
    limit: Limit = 20,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List corrections of a workflow's code, newest first."""

    def work(tx: Transaction) -> list[dict[str, Any]]:
        find_workflow(tx, name)
        return [views.fix_view(row) for row in tx.of(Fixes).of(name, limit)]

    found = found_or_not(chosen(ctx, db), looking(work), name)
    if as_json:
        print_json(found)
    elif not found:
        say(f"{name} has no corrections.")
    else:
        now = now_ms()
        rows = [
            [one["handler"], one["status"], ago(read_moment(one["at"], "at"), now), one["note"] or "-", one["run"]]
            for one in found
        ]
        columns = [Column("HANDLER", 8), Column("STATUS", 8), Column("AGE", 8), Column("NOTE", 12), Column("RUN", 17)]
        print_table(columns, rows)
        for one in found if diff else ():
            say_text(one["diff"] or "")


@app.command("check")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file, or FILE:NAME.")], *, as_json: Json = False
) -> None:
    """Load a workflow's file and look for mistakes. Nothing is stored and nothing runs."""
    found = load_file(read_ref(file, Path.cwd()))
    workflow = found.workflow if isinstance(found, CannotLoad) else found
    if workflow is not None:
        problems = mistakes(workflow) + warnings(workflow)
    else:
        problems = [f"{found.message}\n{found.trace}".strip()] if isinstance(found, CannotLoad) else []
    if as_json:
        name, handlers = (workflow.name, sorted(workflow.handlers)) if workflow is not None else (None, [])
        print_json({"name": name, "handlers": handlers, "problems": problems})
    elif workflow is not None and not problems:
        say(f"{workflow.name} is good: {', '.join(workflow.handlers)}")
    else:
        for problem in problems:
            say_text(problem)
    if problems:
        raise typer.Exit(1)


app.registered_commands += events_app.registered_commands
