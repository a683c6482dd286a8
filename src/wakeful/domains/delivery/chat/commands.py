"""`wakeful connector pair`, `people` and `unpair`: who may use a chat."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wakeful.console.opening import change, read
from wakeful.console.output import say
from wakeful.console.store_location import ConfigFile, Db, chosen, nearest_config
from wakeful.console.tables import Cell, Column, Json, print_json, print_table
from wakeful.domains.delivery.chat import CHAT_TYPES, pairing
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.domains.delivery.tables import Outbox
from wakeful.errors import ConnectorNotFound, InvalidSetting
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

Name = Annotated[str, typer.Argument(metavar="NAME", help="The connector.", show_default=False)]


def pair(
    ctx: typer.Context,
    *,
    name: Name,
    role: Annotated[
        str, typer.Option("--role", metavar="ROLE", help=f"What the person may do: {', '.join(pairing.ROLES)}.")
    ] = pairing.ROLE,
    config: ConfigFile = None,
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Create a code that lets one person into a chat.

    It works once, for ten minutes, and is void after five wrong ones.
    """
    place = chosen(ctx, db)
    file = config or place.config or nearest_config(Path.cwd())

    async def work(scheduler: Scheduler) -> tuple[str, int]:
        kind = await scheduler.read(lambda tx: _type_of(tx, name)) or _written_type(file, name)
        if kind is None:
            raise ConnectorNotFound(f"There is no connector named {name!r:.80}: see wakeful connector list.")
        if kind not in CHAT_TYPES:
            raise InvalidSetting(f"{name} is of type {kind}, which receives nothing: only telegram is paired.")
        code = pairing.new_code()
        return code, await scheduler.transact(lambda tx, _: pairing.offer(tx, name, code, role))

    code, expires_at = change(place, work, create=True)
    if as_json:
        print_json({"code": code, "connector": name, "role": role, "expires_at": iso(expires_at)})
    else:
        say(f"Write this to the bot in a private chat, within ten minutes:  /start {code}")


def people(ctx: typer.Context, *, name: Name, as_json: Json = False, db: Db = None) -> None:
    """List the people who are paired with a connector."""
    place = chosen(ctx, db)
    nothing: list[dict[str, Any]] = []
    found = read(place, lambda scheduler: scheduler.read(lambda tx: _people(tx, name)), nothing)
    if as_json:
        print_json(found)
    elif found:
        columns = [Column(title, 8) for title in ("SENDER", "NAME", "ROLE", "SOURCE", "PAIRED")]
        shown = ("sender", "name", "role", "source", "paired_at")
        rows: list[list[str | Cell]] = [[str(item[key] or "-") for key in shown] for item in found]
        print_table(columns, rows)
    else:
        say(f"No person is paired with {name}: run wakeful connector pair {name}")


def unpair(
    ctx: typer.Context,
    *,
    name: Name,
    sender: Annotated[str, typer.Argument(metavar="SENDER", help="The person's id.", show_default=False)],
    as_json: Json = False,
    db: Db = None,
) -> None:
    """Unpair a person from a connector.

    Their messages and presses no longer count, and nothing more is sent to them.
    """
    place = chosen(ctx, db)

    def work(tx: Transaction, _: Any) -> None:
        person = tx.of(Chats).person(name, sender)
        if person is None:
            raise ConnectorNotFound(f"{sender!r:.80} is not paired with {name}: see wakeful connector people {name}.")
        if person.source == "file":
            raise InvalidSetting(f"{sender} is in allow_from of {name}: take it out of the file instead.")
        pairing.forget(tx, name, sender)

    change(place, lambda scheduler: scheduler.transact(work))
    if as_json:
        print_json({"unpaired": sender})
    else:
        say(f"{sender} is no longer paired with {name}")


def _type_of(tx: Transaction, name: str) -> str | None:
    return next((row.type for row in tx.of(Outbox).connectors() if row.name == name), None)


def _written_type(file: Path | None, name: str) -> str | None:
    """The type of a connector that no server has registered yet."""
    from wakeful.config.loading import load

    if file is None:
        return None
    settings: Any = load(file, needs=()).config
    found = settings.connectors.root.get(name)
    return found.type if found is not None else None


def _people(tx: Transaction, name: str) -> list[dict[str, Any]]:
    return [{**item._asdict(), "paired_at": iso(item.paired_at)} for item in tx.of(Chats).people(name)]
