"""`wakeful delivery` and `wakeful connector`: what was sent, sending it again, and trying a connector out."""

from __future__ import annotations

from datetime import tzinfo
from pathlib import Path
from typing import Annotated, Any

import typer

from wakeful.console.failures import WrongUse, say_note
from wakeful.console.humanize import ago, count, moment_words
from wakeful.console.opening import change, now_ms, read, rights_here, server_of, shown_zone
from wakeful.console.output import ask_before_final, say, say_text
from wakeful.console.store_location import ConfigFile, Db, StoreLocation, chosen, nearest_config
from wakeful.console.tables import Cell, Column, HowMany, Json, print_facts, print_json, print_table
from wakeful.domains.delivery import outbox
from wakeful.domains.delivery.chat import commands as chat_commands
from wakeful.domains.delivery.outbox import STATUSES
from wakeful.domains.delivery.registry import ConnectorRegistry
from wakeful.domains.delivery.tables import DeliveryFilter, DeliveryRow, Outbox
from wakeful.domains.delivery.views import delivery_number, get_delivery, list_connectors, list_deliveries
from wakeful.errors import ConnectorNotFound, DeliveryNotFound, SchedulerError, ScheduleTriggerError
from wakeful.kernel.actions.recording import note_other, origin_of
from wakeful.kernel.context import Context
from wakeful.scheduler import Scheduler
from wakeful.store.interface import Transaction
from wakeful.triggers.moments import read_moment

deliveries = typer.Typer(help="List messages, and send those that failed again.")
connectors = typer.Typer(help="List, test and pair connectors, which send messages.")

#: Why a message is held, in words.
HELD_FOR = {"quiet": "the end of quiet hours", "pairing": "a person to be paired with its chat"}
STYLES = {"sent": "green", "failed": "red", "unknown": "yellow", "held": "blue", "expired": "dim"}

Id = Annotated[str, typer.Argument(metavar="ID", help="A delivery's id.", show_default=False)]


class DeliveryRefused(SchedulerError):
    """A test message did not arrive."""


@deliveries.command("list")
def list_(
    ctx: typer.Context,
    *,
    status: Annotated[
        str | None, typer.Option("--status", metavar="STATUS", help=f"Only these: {', '.join(STATUSES)}.")
    ] = None,
    failed: Annotated[bool, typer.Option("--failed", help="The same as --status failed.")] = False,
    connector: Annotated[str | None, typer.Option("--connector", metavar="NAME", help="Only to this one.")] = None,
    job: Annotated[str | None, typer.Option("--job", metavar="NAME", help="Only about this job.")] = None,
    number: HowMany = 20,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """List messages, newest first."""
    status = "failed" if failed else status
    if status is not None and status not in STATUSES:
        raise WrongUse(f"--status is one of {', '.join(STATUSES)}, not {status!r}.")
    place = chosen(ctx, db)
    wanted = DeliveryFilter(status, connector, job, limit=number)
    nothing: list[dict[str, Any]] = []
    found = read(place, lambda scheduler: scheduler.read(lambda tx: list_deliveries(tx, wanted)), nothing)
    if as_json:
        print_json(found)
    elif found:
        print_table(*_rows(found))
    else:
        say(f"No messages in {place}.")


def _rows(found: list[dict[str, Any]]) -> tuple[list[Column], list[list[str | Cell]]]:
    columns = [
        Column("DELIVERY", 17),
        Column("STATUS", 8),
        Column("CONNECTOR", 9),
        Column("JOB", 8, spare=2),
        Column("AGE", 6),
        Column("TRIES", 5, spare=3),
        Column("MESSAGE", 12, spare=1),
    ]
    now = now_ms()
    rows: list[list[str | Cell]] = []
    for item in found:
        said = item["last_error"] if item["status"] not in ("sent", "pending") else item["title"] or item["text"]
        rows.append(
            [
                item["id"],
                Cell(item["status"], STYLES.get(item["status"], "")),
                item["connector"] or "-",
                item["job"] or "",
                ago(_ms(item["created_at"]), now),
                str(item["attempts"]),
                " ".join(str(said or item["title"] or item["text"]).split()),
            ]
        )
    return columns, rows


def _ms(text: str) -> int:
    return read_moment(text, "created_at")


@deliveries.command("show")
def show(ctx: typer.Context, *, ref: Id, as_json: Json = False, db: Db = None) -> None:
    """Show one message with all its attempts."""
    show_delivery(chosen(ctx, db), ref, as_json=as_json)


def show_delivery(place: StoreLocation, ref: str, *, as_json: bool) -> None:
    """Print a delivery."""
    number = delivery_number(ref)
    found = change(place, lambda scheduler: scheduler.read(lambda tx: get_delivery(tx, number)))
    if as_json:
        print_json(found)
    else:
        print_delivery(found, shown_zone(place), now_ms())


def print_delivery(found: dict[str, Any], zone: tzinfo, now: int) -> None:
    """One message in full."""
    facts: list[tuple[str, str | Cell]] = [
        ("delivery", found["id"]),
        ("status", Cell(found["status"], STYLES.get(found["status"], ""))),
        ("connector", found["connector"] or "none yet"),
    ]
    names = ("kind", "title", "to", "job", "run", "agent", "outcome")
    facts += [(name, str(found[name])) for name in names if found[name] is not None]
    moments = {"created": "created_at", "sent": "sent_at", "next attempt": "next_attempt_at"}
    facts += [(name, moment_words(found[key], zone, now)) for name, key in moments.items() if found[key] is not None]
    if found["held_for"]:
        facts.append(("held for", HELD_FOR.get(found["held_for"], found["held_for"])))
    facts += [(name.replace("_", " "), str(found[name])) for name in ("digest", "last_error") if found[name]]
    for index, attempt in enumerate(found["log"], 1):
        how = {True: "sent", False: "failed", None: "unknown"}[attempt["ok"]]
        took = f" in {attempt['ms']} ms" if attempt["ms"] is not None else ""
        why = f": {attempt['error']}" if attempt["error"] else ""
        facts.append((f"attempt {index}", f"{moment_words(attempt['at'], zone, now)}: {how}{took}{why}"))
    print_facts(facts)
    say()
    say_text(found["text"].rstrip())


@deliveries.command("requeue")
def requeue(
    ctx: typer.Context,
    *,
    ref: Annotated[str | None, typer.Argument(metavar="[ID]", help="A delivery's id.", show_default=False)] = None,
    all_failed: Annotated[bool, typer.Option("--all-failed", help="Every message that failed.")] = False,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Send a failed message again, or all of them."""
    if (ref is None) is not all_failed:
        raise WrongUse("Name one message, or use --all-failed: wakeful delivery requeue ID")
    requeue_messages(chosen(ctx, db), ref, as_json=as_json)


def requeue_messages(place: StoreLocation, ref: str | None, *, as_json: bool) -> None:
    """Send one message again, or every one that failed."""

    async def work(scheduler: Scheduler) -> tuple[int, bool]:
        served = server_of(scheduler) is not None
        if ref is None:
            return await scheduler.transact(lambda tx, context: outbox.requeue_all(tx, context, "failed")), served
        number = delivery_number(ref)
        row, why = await scheduler.transact(lambda tx, _: outbox.requeue(tx, number))
        if row is None:
            raise DeliveryNotFound(f"There is no delivery {ref}.")
        if why is not None:
            raise ScheduleTriggerError(f"{ref} is {why}: it cannot be queued again.")
        return 1, served

    done, served = change(place, work)
    if as_json:
        print_json({"requeued": done})
    else:
        say(f"{count(done, 'message')} queued again")
    if not served and done:
        say_note(f"No server is running on {place}: nothing is sent until one does (wakeful serve).")


def cancel_message(place: StoreLocation, ref: str, *, yes: bool, as_json: bool) -> None:
    """Do not send a message that waits or failed."""
    ask_before_final(f"{ref} will not be sent.", yes=yes)
    number = delivery_number(ref)

    def cancel(tx: Transaction, context: Context) -> DeliveryRow | None:
        before = tx.of(Outbox).get(number)
        row = outbox.cancel(tx, number)
        if row is not None and row != before:
            note_other(tx, origin_of(context), "cancel_message", number, ref)
        return row

    async def work(scheduler: Scheduler) -> dict[str, Any]:
        row = await scheduler.transact(cancel, rights=rights_here())
        if row is not None and row.last_error != outbox.CANCELLED:
            raise ScheduleTriggerError(f"{ref} is {row.status}: only what waits or failed can be cancelled.")
        return await scheduler.read(lambda tx: get_delivery(tx, number))

    found = change(place, work)
    if as_json:
        print_json(found)
    else:
        say(f"{ref} is not sent any more")


@connectors.command("list")
def list_all(ctx: typer.Context, *, as_json: Json = False, db: Db = None) -> None:
    """List the connectors that servers of this store have."""
    place = chosen(ctx, db)
    nothing: list[dict[str, Any]] = []
    found = read(place, lambda scheduler: scheduler.read(list_connectors), nothing)
    if as_json:
        print_json(found)
    elif found:
        columns = [Column(name, 8) for name in ("NAME", "TYPE", "PENDING", "HELD", "FAILED", "RATE")]
        rows: list[list[str | Cell]] = [
            [str(item[name] if item[name] is not None else "-") for name in _SHOWN] for item in found
        ]
        print_table(columns, rows)
    else:
        say(f"No connector is known in {place}: write one to connectors in wakeful.yaml, and run wakeful serve.")


_SHOWN = ("name", "type", "pending", "held", "failed", "rate")


@connectors.command("test")
def try_out(
    ctx: typer.Context,
    *,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The connector.", show_default=False)],
    config: ConfigFile = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Send a test message from here, and print the result."""
    place = chosen(ctx, db)
    written = _written(config or place.config or nearest_config(Path.cwd()), name)

    async def work(scheduler: Scheduler) -> dict[str, Any]:
        number = await _registered(scheduler, written).test(name)
        return await scheduler.read(lambda tx: get_delivery(tx, number))

    found = change(place, work, create=True)
    if as_json:
        print_json(found)
    if found["status"] != "sent":
        raise DeliveryRefused(f"{name} did not take the test message: {found['last_error']}")
    if not as_json:
        say(f"{name} took the test message {found['id']} in {found['log'][0]['ms']} ms")


connectors.command("pair")(chat_commands.pair)
connectors.command("people")(chat_commands.people)
connectors.command("unpair")(chat_commands.unpair)


def _written(config: Path | None, name: str) -> Any:
    """The connectors of a configuration file, which has one of that name."""
    from wakeful.config.loading import load

    if config is None:
        raise ConnectorNotFound("There is no wakeful.yaml here: name the file that has the connector with --config.")
    settings: Any = load(config, needs=("connectors",)).config
    if name not in settings.connectors.root:
        known = ", ".join(settings.connectors.root) or "none"
        raise ConnectorNotFound(f"There is no connector named {name!r:.80} in {config}: there are {known}.")
    return settings.connectors


def _registered(scheduler: Scheduler, written: Any) -> ConnectorRegistry:
    """The connectors of this program, as a file has them."""
    from wakeful.domains.delivery.configuration import register_all

    registry = scheduler.connectors
    assert isinstance(registry, ConnectorRegistry)  # noqa: S101 - ours
    register_all(registry, written, scheduler.clock)
    return registry
