"""`wakeful workflow …`."""

from __future__ import annotations

import getpass
import json
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.cli.failures import WrongUse
from wakeful.cli.opening import change, read
from wakeful.cli.place import Db, chosen
from wakeful.cli.saying import say, say_text
from wakeful.cli.tables import Column, Json, print_facts, print_json, print_table
from wakeful.cli.words import count
from wakeful.errors import NotFound
from wakeful.workflows import actions, input_actions, views
from wakeful.workflows.loading import CannotLoad, load_file, read_ref
from wakeful.workflows.lookup import find_workflow
from wakeful.workflows.topics.tables import Topics
from wakeful.workflows.wiring import warnings
from wakeful.workflows.words import SHOWN

if TYPE_CHECKING:
    from wakeful import Scheduler
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

app = typer.Typer(help="List, run, pause and settle workflows.")

Name = Annotated[str, typer.Argument(metavar="NAME", help="The workflow's name.")]
RunId = Annotated[str, typer.Argument(metavar="RUN", help="The run that waits; show prints it.")]
InputId = Annotated[str, typer.Argument(metavar="INPUT", help="The input's id; inputs prints it.")]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A note, kept on record.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept with the input.")]
Limit = Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, max=500, help="How many.")]


def who() -> str:
    """The person at this terminal, as far as the system knows."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "cli"


def looking(work: Callable[[Transaction], Any]) -> Callable[[Scheduler], Awaitable[Any]]:
    """Read in one transaction."""
    return lambda scheduler: scheduler.look(work)


def acting(work: Callable[[Transaction, Context], Any]) -> Callable[[Scheduler], Awaitable[Any]]:
    """Act in one transaction."""
    return lambda scheduler: scheduler.transact(work)


@app.command("list")
def list_workflows(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """List workflows with their status."""
    place = chosen(ctx, db)
    found: list[dict[str, Any]] = read(place, looking(views.workflow_views), [])
    if as_json:
        print_json(found)
    elif found:
        rows = [[one["name"], SHOWN[one["status"]], _issue(one), one["schedule"]] for one in found]
        print_table([Column("NAME", 12), Column("STATUS", 10), Column("ISSUE", 20), Column("SCHEDULE", 16, 1)], rows)
    else:
        say(f"There are no workflows in {place}.")


def _issue(shown: dict[str, Any]) -> str:
    return shown["issue"]["message"] if shown["issue"] is not None else "-"


@app.command("show")
def show(ctx: typer.Context, name: Name, *, as_json: Json = False, db: Db = None) -> None:
    """Show a workflow: its status, what to do, and what was done."""
    found = _found(chosen(ctx, db), lambda tx: views.workflow_view(tx, name), name)
    if as_json:
        print_json(found)
        return
    facts = [("workflow", found["name"]), ("status", SHOWN[found["status"]]), ("schedule", found["schedule"])]
    if found["issue"] is not None:
        facts.append(("issue", found["issue"]["message"]))
        if found["issue"]["run"] is not None:
            facts.append(
                ("", f"wakeful workflow {' or '.join(found['issue']['actions'])} {name} {found['issue']['run']}")
            )
    facts.append(("pending", count(found["pending_inputs"], "input")))
    facts.append(("version", found["version"]))
    facts += [
        ("did" if not number else "", f"{one['at']}  {one['text']}") for number, one in enumerate(found["recent"])
    ]
    print_facts(facts)
    rows = [
        [one["job"], one["type"], str(one["pending_events"]), one["next_run_at"] or one["wake_at"] or "-", _last(one)]
        for one in found["handlers"]
    ]
    print_table([Column("JOB", 12), Column("TYPE"), Column("PENDING"), Column("NEXT", 12), Column("LAST", 12)], rows)


def _last(handler: dict[str, Any]) -> str:
    return handler["last_run"]["workflow_status"] if handler["last_run"] is not None else "-"


def _found(place: Any, work: Callable[[Transaction], Any], name: str) -> Any:
    found = read(place, looking(work), None)
    if found is None:
        message = f"There is no workflow {name!r} in {place}."
        raise NotFound(message)
    return found


@app.command("run")
def run(ctx: typer.Context, name: Name, *, as_json: Json = False, db: Db = None) -> None:
    """Run all producers of a workflow now, one after the other."""
    started = change(chosen(ctx, db), acting(lambda tx, context: actions.run_now(tx, context, name, who=who())))
    _done({"runs": started}, f"{name}: {count(len(started), 'producer')} queued", as_json=as_json)


@app.command("pause")
def pause(ctx: typer.Context, name: Name, *, note: Note = None, as_json: Json = False, db: Db = None) -> None:
    """Start nothing more of a workflow. The run in progress ends, and what is due meanwhile waits."""
    change(chosen(ctx, db), acting(lambda tx, context: actions.pause(tx, context, name, who=who(), note=note)))
    _done({"name": name, "paused": True}, f"{name} is paused", as_json=as_json)


@app.command("resume")
def resume(ctx: typer.Context, name: Name, *, as_json: Json = False, db: Db = None) -> None:
    """Let a workflow go on; what failed in its code is tried again."""
    change(chosen(ctx, db), acting(lambda tx, context: actions.resume(tx, context, name, who=who())))
    _done({"name": name, "paused": False}, f"{name} goes on", as_json=as_json)


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
    """Say whether a change happened that was cut off."""
    value = _json("--result", result)

    def work(tx: Transaction, context: Context) -> None:
        actions.settle(tx, context, name, run_id, verdict, who=who(), result=value, note=note)

    change(chosen(ctx, db), acting(work))
    _done({"run": run_id, "verdict": verdict}, f"{run_id} is settled: {verdict}", as_json=as_json)


@app.command("approve")
def approve(
    ctx: typer.Context, name: Name, run_id: RunId, *, note: Note = None, as_json: Json = False, db: Db = None
) -> None:
    """Say yes to a run that asks. It goes on where it asked."""

    def work(tx: Transaction, context: Context) -> str:
        return actions.approve(tx, context, name, run_id, who=who(), note=note)

    again = change(chosen(ctx, db), acting(work))
    _done({"run": run_id, "continued_by": again}, f"{again} goes on where {run_id} asked", as_json=as_json)


@app.command("reject")
def reject(
    ctx: typer.Context, name: Name, run_id: RunId, *, note: Note = None, as_json: Json = False, db: Db = None
) -> None:
    """Say no to a run that asks. What it reserved is released, and the workflow is paused."""
    change(chosen(ctx, db), acting(lambda tx, context: actions.reject(tx, context, name, run_id, who=who(), note=note)))
    _done({"run": run_id}, f"{run_id} is rejected, and {name} is paused", as_json=as_json)


@app.command("events")
def events(
    ctx: typer.Context,
    name: Name,
    *,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Only of this topic.")] = None,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only pending, reserved, consumed or skipped ones.")
    ] = None,
    limit: Limit = 50,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List events, newest first."""

    def work(tx: Transaction) -> list[dict[str, Any]]:
        find_workflow(tx, name)
        return views.event_views(tx, tx.of(Topics).matching(name, topic, status, None, limit))

    found = _found(chosen(ctx, db), work, name)
    if as_json:
        print_json(found)
    elif found:
        rows = [[one["topic"], one["message_id"], one["status"], one["at"], one["id"]] for one in found]
        print_table(
            [Column("TOPIC", 8), Column("MESSAGE", 12), Column("STATUS", 8), Column("AT", 20), Column("EVENT", 17)],
            rows,
        )
    else:
        say(f"{name} has no such events.")


@app.command("inputs")
def inputs(
    ctx: typer.Context,
    name: Name,
    *,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help="Only pending, done or skipped ones.")
    ] = None,
    limit: Limit = 50,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List inputs with what each caused, newest first."""
    if status not in (None, "pending", "done", "skipped"):
        raise WrongUse(f"--status is pending, done or skipped, not {status!r}.")

    def work(tx: Transaction) -> list[dict[str, Any]]:
        find_workflow(tx, name)
        return [views.input_view(tx, row) for row in tx.of(Topics).inputs(name, status, None, limit)]

    found = _found(chosen(ctx, db), work, name)
    if as_json:
        print_json(found)
    elif found:
        rows = [
            [one["title"] or one["external_id"], one["status"], count(len(one["caused"]), "event"), one["id"]]
            for one in found
        ]
        print_table([Column("INPUT", 16), Column("STATUS", 8), Column("CAUSED", 8), Column("ID", 17)], rows)
    else:
        say(f"{name} has no such inputs.")


@app.command("skip")
def skip(
    ctx: typer.Context, name: Name, input_id: InputId, *, reason: Reason, as_json: Json = False, db: Db = None
) -> None:
    """Let nothing more happen to an input."""

    def work(tx: Transaction, context: Context) -> int:
        return input_actions.skip_input(tx, context, name, input_id, reason=reason, who=who())

    skipped = change(chosen(ctx, db), acting(work))
    _done({"input": input_id, "skipped": skipped}, f"{count(skipped, 'event')} skipped", as_json=as_json)


@app.command("rerun")
def rerun(
    ctx: typer.Context, name: Name, input_id: InputId, *, reason: Reason, as_json: Json = False, db: Db = None
) -> None:
    """Work on an input once more, as new events."""

    def work(tx: Transaction, context: Context) -> list[str]:
        return input_actions.rerun_input(tx, context, name, input_id, reason=reason, who=who())

    made = change(chosen(ctx, db), acting(work))
    _done({"input": input_id, "events": made}, f"{count(len(made), 'event')} published", as_json=as_json)


@app.command("publish")
def publish(
    ctx: typer.Context,
    name: Name,
    topic: Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.")],
    *,
    message_id: Annotated[str, typer.Option("--id", metavar="ID", help="The message id; known ones are not repeated.")],
    payload: Annotated[str | None, typer.Option("--payload", metavar="JSON", help="The payload, as JSON.")] = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Publish an event by hand."""
    given = input_actions.ByHand(topic, message_id, _json("--payload", payload))

    def work(tx: Transaction, context: Context) -> dict[str, Any]:
        found = input_actions.publish_by_hand(tx, context, name, given, who=who())
        event = tx.of(Topics).get(found.event_id)
        return {"new": found.new, "event": views.event_views(tx, [event])[0] if event is not None else None}

    found = change(chosen(ctx, db), acting(work))
    _done(
        found, f"{message_id} is published" if found["new"] else f"{message_id} was published before", as_json=as_json
    )


@app.command("check")
def check(
    file: Annotated[str, typer.Argument(metavar="FILE", help="The file, or FILE:NAME.")], *, as_json: Json = False
) -> None:
    """Load a workflow's file and look for mistakes. Nothing is stored and nothing runs."""
    found = load_file(read_ref(file, Path.cwd()))
    if isinstance(found, CannotLoad):
        problems, name = [f"{found.message}\n{found.trace}".strip()], None
    else:
        problems, name = warnings(found), found.name
    if as_json:
        handlers = [] if isinstance(found, CannotLoad) else sorted(found.handlers)
        print_json({"name": name, "handlers": handlers, "problems": problems})
    elif problems:
        for problem in problems:
            say_text(problem)
    elif not isinstance(found, CannotLoad):
        say(f"{found.name} is good: {', '.join(found.handlers)}")
    if problems:
        raise typer.Exit(1)


def _json(option: str, text: str | None) -> Any:
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise WrongUse(f"{option} must be JSON: {error}.") from error


def _done(data: Any, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(data)
    else:
        say(sentence)
