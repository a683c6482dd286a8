"""What comes in through a chat, each in one transaction with the record that it was received.

One node receives for an account at a time: it holds the account's row, and renews it while it receives. What it takes
counts only while it does.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains import domains
from wakeful.domains.delivery.chat import buttons, pairing
from wakeful.domains.delivery.chat.tables import AnswerRow, Chats, MessageRow, Person, ReceiverRow
from wakeful.domains.delivery.outbox import enqueue
from wakeful.domains.delivery.post import Post
from wakeful.domains.delivery.routing import Interaction
from wakeful.domains.delivery.tables import Outbox
from wakeful.errors import SchedulerError
from wakeful.kernel.rules.outcome import beginning, clean

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LEASE_MS = 90_000
TEXT_MOST = 20_000
SAID_MOST = 190
PAIRED = "You are paired, as {role}. Messages of Wakeful arrive here from now on."
WRONG_CODE = "This code is not valid. Ask for a new one: wakeful connector pair"


class Incoming(NamedTuple):
    """A message from a paired person, as listeners get it."""

    id: str  # the same if it is handed over again
    connector: str
    sender: str
    name: str | None
    role: str
    text: str
    at: int
    read: Any = None  # for a domain that hears it: what its `reads` found in it


class BotAccount(NamedTuple):
    """Who receives: which bot, through which connector, on which node."""

    hash: str
    connector: str
    node: int


class ChatUpdate(NamedTuple):
    """Something that came in: a text, or the press of a button. `chat` and `message` say where."""

    position: int
    sender: str
    name: str | None
    text: str | None = None
    press: str | None = None
    query: str | None = None
    chat: str | None = None
    message: str | None = None


def take_lease(tx: Transaction, account: BotAccount) -> int | None:
    """Receive from here on, or continue receiving; from which update on, or None where another node receives."""
    chats = tx.of(Chats)
    row = chats.receiver(account.hash)
    position = row.position if row is not None else 0
    if row is not None and row.node != account.node and _holds(tx, row):
        return None
    chats.put_receiver(ReceiverRow(account.hash, account.connector, account.node, tx.now + LEASE_MS, position))
    return position


def _holds(tx: Transaction, row: ReceiverRow) -> bool:
    if tx.exclusive:  # there is no other node, only an earlier process of this one
        return False
    # One that is held for longer than a lease was taken before the clock was set back.
    return tx.now < row.until <= tx.now + LEASE_MS and row.node in {node.id for node in tx.members.alive()}


def give_up_lease(tx: Transaction, account: BotAccount) -> None:
    row = tx.of(Chats).receiver(account.hash)
    if row is not None and row.node == account.node:
        tx.of(Chats).put_receiver(row._replace(until=0))


def _advance(tx: Transaction, account: BotAccount, position: int) -> bool:
    """Whether to process an update: this node receives, and the update is new."""
    row = tx.of(Chats).receiver(account.hash)
    if row is None or row.node != account.node or row.position > position:
        return False
    tx.of(Chats).put_receiver(row._replace(position=position + 1, until=tx.now + LEASE_MS))
    return True


def skip(tx: Transaction, account: BotAccount, position: int) -> bool:
    """Leave an update behind."""
    return _advance(tx, account, position)


async def read(scheduler: Scheduler, account: BotAccount, update: ChatUpdate) -> Mapping[str, Any]:
    """What domains find in the message of a paired person before it is taken, by domain; in no writing transaction."""

    def look(tx: Transaction) -> dict[str, Callable[[], Any]]:
        person = tx.of(Chats).person(account.connector, update.sender)
        if person is None or update.text is None:
            return {}
        row = _message(0, person, update, tx.now)
        readers = [(domain.name, domain.reads) for domain in domains() if domain.reads is not None]
        return {name: reads(tx, incoming(row)) for name, reads in readers}

    return {name: work() for name, work in (await scheduler.read(look)).items()}


def take(
    tx: Transaction,
    context: Context,
    account: BotAccount,
    update: ChatUpdate,
    found: Mapping[str, Any] = MappingProxyType({}),
) -> str | None:
    """Process an update; returns the answer to an unpaired person, if any. Raises what a button press raises.

    `found` is what `read` returned.
    """
    if not _advance(tx, account, update.position):
        return None
    if update.query is not None:
        _pressed(tx, context, account.connector, update)
        return None
    return _written(tx, context, account.connector, update, found)


def known(tx: Transaction, connector: str, update: ChatUpdate) -> Person | None:
    """The paired person an update is from; one whom the file lets in has a name from their first message on."""
    person = tx.of(Chats).person(connector, update.sender)
    if person is not None and person.name is None and update.name:
        person = person._replace(name=update.name)
        tx.of(Chats).pair(person)
    return person


# -- presses -----------------------------------------------------------------------------------------------------------


def _pressed(tx: Transaction, context: Context, connector: str, update: ChatUpdate) -> None:
    person = known(tx, connector, update)
    found = buttons.press(tx, context, person, connector, update.press or "")
    touch(tx, context, connector, update.sender)
    _answer(tx, context, connector, update, found)


def refuse(tx: Transaction, context: Context, account: BotAccount, update: ChatUpdate, why: str) -> None:
    """An update that did nothing is left behind; a press is answered with the reason."""
    if _advance(tx, account, update.position) and update.query is not None:
        _answer(tx, context, account.connector, update, buttons.Press(why))


def _answer(tx: Transaction, context: Context, connector: str, update: ChatUpdate, found: buttons.Press) -> None:
    left = json.dumps(found.left) if found.left is not None else None
    said = beginning(found.said, SAID_MOST)
    row = AnswerRow(
        id=context.new_id(), connector=connector, query=update.query or "", said=said, chat=update.chat,
        message=update.message, buttons=left,
    )  # fmt: skip
    tx.of(Chats).add_answer(row)


# -- messages ----------------------------------------------------------------------------------------------------------


def _message(number: int, person: Person, update: ChatUpdate, now: int) -> MessageRow:
    text = clean(update.text or "")[:TEXT_MOST]
    return MessageRow(
        id=number, connector=person.connector, sender=person.sender, name=person.name, role=person.role, text=text,
        at=now, open=1,
    )  # fmt: skip


def _written(
    tx: Transaction, context: Context, connector: str, update: ChatUpdate, found: Mapping[str, Any]
) -> str | None:
    text = clean(update.text or "")[:TEXT_MOST]
    word, _, rest = text.strip().partition(" ")
    if word == "/start" and rest.strip():
        return _start(tx, context, connector, update, rest.strip())
    person = known(tx, connector, update)
    if person is None or not text.strip():
        return None
    touch(tx, context, connector, update.sender)
    if word in ("/approve", "/reject"):
        _reply(tx, context, person, _decide(tx, context, person, word[1:], rest))
        return None
    row = _message(context.new_id(), person, update, tx.now)
    tx.of(Chats).add_message(row)
    for domain in domains():
        if domain.hears is not None:
            domain.hears(tx, context, incoming(row)._replace(read=found.get(domain.name)))
    return None


def _start(tx: Transaction, context: Context, connector: str, update: ChatUpdate, code: str) -> str | None:
    """A person sent a code. Unpaired people are answered only while a code is open, and each at most a few times."""
    person = tx.of(Chats).person(connector, update.sender)
    was_open = pairing.has_open_code(tx, connector) and pairing.is_heard(tx, connector, update.sender)
    paired = pairing.redeem(tx, context, connector, update.sender, code[:64], name=update.name)
    if paired is not None:
        touch(tx, context, connector, update.sender)
        _reply(tx, context, paired, PAIRED.format(role=paired.role))
        return None
    if person is not None:
        touch(tx, context, connector, update.sender)
        _reply(tx, context, person, f"You are paired already, as {person.role}.")
        return None
    return WRONG_CODE if was_open else None


def _decide(tx: Transaction, context: Context, person: Person, action: str, rest: str) -> str:
    """`/approve RUN` and `/reject RUN why`: the same as the buttons."""
    if person.role not in buttons.MAY_PRESS:
        return f"Your role is {person.role}: this needs {buttons.MAY_PRESS[0]}."
    run, _, note = rest.strip().partition(" ")
    act = buttons.approve if action == "approve" else buttons.reject
    try:
        return act(tx, context, buttons.Button(action, run, action, {"note": note.strip() or None}), person.signature)
    except SchedulerError as error:  # it is raised before anything is written
        return str(error)


def _reply(tx: Transaction, context: Context, person: Person, text: str) -> None:
    enqueue(tx, context, Post(text, person.connector, "reply", recipient=person.sender, urgent=True))


def touch(tx: Transaction, context: Context, connector: str, sender: str) -> None:
    tx.of(Outbox).touch(Interaction("", connector, sender, tx.now, context.new_id()))


def incoming(row: MessageRow) -> Incoming:
    number = ids.encode("msg", row.id)
    return Incoming(number, row.connector, row.sender, row.name, row.role, row.text, row.at)
