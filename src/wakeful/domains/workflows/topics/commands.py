"""`wakeful workflow events`, `inputs` and what people do about them; and what all commands of workflows share."""

from __future__ import annotations

import getpass
import json
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.console.failures import WrongUse, say_note
from wakeful.console.humanize import ago, count
from wakeful.console.opening import change, now_ms, read, rights_here
from wakeful.console.output import say
from wakeful.console.store_location import Db, StoreLocation, chosen
from wakeful.console.tables import Column, Json, print_json, print_table
from wakeful.domains.workflows import input_actions, views
from wakeful.domains.workflows.lookup import find_listed, find_workflow
from wakeful.domains.workflows.steps.people import unsettled
from wakeful.domains.workflows.steps.tables import PARKED, Tasks
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.errors import NotFound
from wakeful.triggers.moments import read_moment

if TYPE_CHECKING:
    from wakeful.kernel.cluster.nodes import Seen
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

events_app = typer.Typer()

Name = Annotated[str, typer.Argument(metavar="NAME", help="The workflow's name.")]
EventId = Annotated[str, typer.Argument(metavar="EVENT", help="The event's id; events prints it.")]
InputId = Annotated[str, typer.Argument(metavar="INPUT", help="The input's id; inputs prints it.")]
Skipped = Annotated[
    str, typer.Argument(metavar="INPUT|EVENT", help="The id of an input or of an event; inputs and events print them.")
]
Note = Annotated[str | None, typer.Option("--note", metavar="TEXT", help="A note, kept on record.", show_default=False)]
Reason = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept on record.")]
Limit = Annotated[int, typer.Option("-n", "--limit", metavar="N", min=1, max=500, help="How many.")]


def who() -> str:
    """The person at this terminal, as far as the system knows."""
    try:
        return f"cli:{getpass.getuser()}"
    except (OSError, KeyError, ImportError):
        return "cli"


def looking(work: Callable[[Transaction], Any]) -> Callable[[Scheduler], Awaitable[Any]]:
    """Read in one transaction."""
    return lambda scheduler: scheduler.read(work)


def seeing(work: Callable[[Transaction, Seen], Any]) -> Callable[[Scheduler], Awaitable[Any]]:
    """Read in one transaction, knowing which servers are alive."""

    async def look(scheduler: Scheduler) -> Any:
        seen = scheduler.host.seen
        return await scheduler.read(lambda tx: work(tx, seen))

    return look


def acting(work: Callable[[Transaction, Context], Any]) -> Callable[[Scheduler], Awaitable[Any]]:
    """Act in one transaction."""
    return lambda scheduler: scheduler.transact(work, rights=rights_here())


def found_or_not(place: Any, look: Callable[[Scheduler], Awaitable[Any]], name: str) -> Any:
    """Read something of a workflow; NotFound if there is no store."""
    found = read(place, look, None)
    if found is None:
        message = f"There is no workflow {name!r} in {place}."
        raise NotFound(message)
    return found


def read_json(option: str, text: str | None) -> Any:
    """The value of an option that is JSON."""
    try:
        return None if text is None else json.loads(text)
    except ValueError as error:
        raise WrongUse(f"{option} must be JSON: {error}.") from error


def done(data: Any, sentence: str, *, as_json: bool) -> None:
    """Say what was done."""
    if as_json:
        print_json(data)
    else:
        say(sentence)


@events_app.command("events")
def events(
    ctx: typer.Context,
    name: Name,
    *,
    topic: Annotated[str | None, typer.Option("--topic", metavar="TOPIC", help="Only of this topic.")] = None,
    status: Annotated[
        str | None,
        typer.Option("--status", metavar="STATUS", help="Only pending, reserved, consumed, skipped or parked ones."),
    ] = None,
    limit: Limit = 50,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List events, newest first."""
    if status not in (None, "pending", "reserved", "consumed", "skipped", "parked"):
        raise WrongUse(f"--status is pending, reserved, consumed, skipped or parked, not {status!r}.")

    def work(tx: Transaction) -> list[dict[str, Any]]:
        find_listed(tx, name)
        return views.event_views(tx, tx.of(Topics).matching(name, topic, status, None, limit))

    found = found_or_not(chosen(ctx, db), looking(work), name)
    if as_json:
        print_json(found)
    elif found:
        now = now_ms()
        rows = [
            [one["topic"], one["message_id"], one["status"], ago(read_moment(one["at"], "at"), now), one["id"]]
            for one in found
        ]
        print_table(
            [Column("TOPIC", 8), Column("MESSAGE", 12), Column("STATUS", 8), Column("AGE", 8), Column("EVENT", 17)],
            rows,
        )
    else:
        say(f"{name} has no such events.")


@events_app.command("inputs")
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
        find_listed(tx, name)
        return [views.input_view(tx, row) for row in tx.of(Topics).inputs(name, status, None, limit)]

    found = found_or_not(chosen(ctx, db), looking(work), name)
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


@events_app.command("skip")
def skip(ctx: typer.Context, name: Name, ref: Skipped, *, reason: Reason, as_json: Json = False, db: Db = None) -> None:
    """Let nothing more happen to an input, or to a pending event."""

    def work(tx: Transaction, context: Context) -> tuple[int, str | None]:
        number = input_actions.skip(tx, context, name, ref, reason=reason, who=who())
        return number, find_workflow(tx, name).issue

    skipped, issue = change(chosen(ctx, db), acting(work))
    what = "event" if ref.startswith("evt_") else "input"
    done({what: ref, "skipped": skipped}, f"{count(skipped, 'event')} skipped", as_json=as_json)
    if issue == "logic":
        say_note(
            f"{name} still waits: its code failed. Once nothing is left to correct: wakeful workflow resume {name}"
        )


@events_app.command("rerun")
def rerun(
    ctx: typer.Context, name: Name, input_id: InputId, *, reason: Reason, as_json: Json = False, db: Db = None
) -> None:
    """Run an input again, as new events."""

    def work(tx: Transaction, context: Context) -> list[str]:
        return input_actions.rerun_input(tx, context, name, input_id, reason=reason, who=who())

    made = change(chosen(ctx, db), acting(work))
    done({"input": input_id, "events": made}, f"{count(len(made), 'event')} published", as_json=as_json)


@events_app.command("publish")
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
    given = input_actions.ByHand(topic, message_id, read_json("--payload", payload))

    def work(tx: Transaction, context: Context) -> dict[str, Any]:
        found = input_actions.publish_by_hand(tx, context, name, given, who=who())
        event = tx.of(Topics).get(found.event_id)
        shown = views.event_views(tx, [event])[0] if event is not None else views.pruned_view(found.event_id, given)
        return {"new": found.new, "event": shown}

    found = change(chosen(ctx, db), acting(work))
    done(found, f"{message_id} is published" if found["new"] else f"{message_id} was published before", as_json=as_json)


@events_app.command("parked")
def parked(ctx: typer.Context, name: Name, *, limit: Limit = 50, as_json: Json = False, db: Db = None) -> None:
    """List events that failed and are set aside, newest first."""

    def work(tx: Transaction) -> list[dict[str, Any]]:
        find_listed(tx, name)
        return views.event_views(tx, tx.of(Topics).matching(name, None, "parked", None, limit))

    found = found_or_not(chosen(ctx, db), looking(work), name)
    if as_json:
        print_json(found)
    elif found:
        rows = [[one["message_id"], str(one["tries"]), one["error"] or "-", one["run"], one["id"]] for one in found]
        columns = [Column("MESSAGE", 12), Column("TRIES"), Column("ERROR", 20), Column("RUN", 17), Column("EVENT", 17)]
        print_table(columns, rows)
    else:
        say(f"{name} has no parked events.")


@events_app.command("replay")
def replay(
    ctx: typer.Context,
    name: Name,
    event_id: Annotated[
        str | None, typer.Argument(metavar="EVENT", help="The event's id; events prints it.", show_default=False)
    ] = None,
    *,
    all_parked: Annotated[bool, typer.Option("--parked", help="All parked events.")] = False,
    start_over: Annotated[
        bool, typer.Option("--start-over", help="Forget the stored steps of a parked event: all are done again.")
    ] = False,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is kept on record.")] = "",
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Try parked events again, or publish a consumed one as a new one."""
    if (event_id is None) != all_parked:
        raise WrongUse("Give the id of an event, or --parked for all that are parked.")

    def work(tx: Transaction, context: Context) -> tuple[list[str], int]:
        if event_id is None:
            made = input_actions.replay_all_parked(tx, context, name, reason=reason, who=who(), start_over=start_over)
            return made, len(unsettled(tx, tx.of(Tasks).with_status(name, PARKED)))
        return [
            input_actions.replay_event(tx, context, name, event_id, reason=reason, who=who(), start_over=start_over)
        ], 0

    made, waiting = change(chosen(ctx, db), acting(work))
    if event_id is None:
        done({"events": made}, f"{count(len(made), 'event')} replayed", as_json=as_json)
        if waiting:
            verb = "waits" if waiting == 1 else "wait"
            say_note(f"{count(waiting, 'event')} {verb} to be settled: wakeful workflow parked {name}")
    elif made == [event_id]:
        done({"event": event_id, "events": made}, f"{event_id} continues", as_json=as_json)
    else:
        done({"event": event_id, "events": made}, f"{event_id} is published again as {made[0]}", as_json=as_json)


def refuse_to_show(_: StoreLocation, ref: str, *, as_json: bool) -> None:  # noqa: ARG001 - all are called alike
    """Events and inputs are explained."""
    raise WrongUse(f"{ref} is of a workflow: wakeful explain {ref}")
