"""Chat messages: which schedules they start, and which agents only get them as events.

A message starts every schedule whose `match` finds something in it. One without `match` gets what no other one
matches. Where an agent is named and none of its schedules takes the message, it waits as a system event and the agent
is woken.

Patterns are searched before the transaction that stores a message, and only for people who may start something: nobody
waits for a search, and nobody who is only paired to look can cause one.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains.agents.inbound.listening import answer_waiting, hearing
from wakeful.domains.agents.inbound.receiving import CHAT, Inbound, ReceivedRequest, TurnedAway, take
from wakeful.domains.agents.inbound.tables import InboundRequests, RequestRow
from wakeful.domains.agents.wakes import add_event, find_agent, request_wake
from wakeful.domains.delivery import Post, enqueue, role_of, touch
from wakeful.errors import InvalidJob, InvalidSetting, NotAllowed, SchedulerError
from wakeful.kernel.actions.idempotency import run_idempotent
from wakeful.kernel.rules.outcome import clean
from wakeful.patterns import Pattern

if TYPE_CHECKING:
    from wakeful.kernel.actions.idempotency import IdempotentRequest
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef

log = logging.getLogger("wakeful.agents")

LONGEST_MATCHED = 4_000
MAY_START = ("operator", "admin")


class InboundMessage(NamedTuple):
    """A message as a connector brought it."""

    connector: str
    sender: str
    text: str
    message_id: str | None = None
    name: str | None = None

    def inbound(self) -> Inbound:
        about = {"connector": self.connector, "sender": self.sender, "name": self.name}
        delivery_id = None if self.message_id is None else f"{self.connector}:{self.message_id}"
        return Inbound(CHAT, delivery_id, {key: value for key, value in about.items() if value is not None}, self.text)


class Received(NamedTuple):
    """What became of a message."""

    taken: list[ReceivedRequest]
    turned_away: list[SchedulerError]


def read(tx: Transaction, incoming: Any) -> Callable[[], frozenset[str]]:
    """What is to be searched in a message before it is received."""
    patterns = patterns_for(tx, incoming.connector, None) if incoming.role in MAY_START else {}
    return lambda: found_in(incoming.text, patterns)


def hear(tx: Transaction, context: Context, incoming: Any) -> None:
    """A paired person wrote in a chat: part of the transaction that stores that it was received."""
    message = InboundMessage(incoming.connector, incoming.sender, incoming.text, incoming.id, incoming.name)
    if incoming.role not in MAY_START:
        if hearing(tx, message.connector, None):
            _answer(tx, context, message, f"Your role is {incoming.role}: this needs {MAY_START[0]}.")
        return
    found = _start(tx, context, message, matching(tx, message, None, incoming.read or frozenset()))
    if found.turned_away and not found.taken:
        _answer(tx, context, message, str(found.turned_away[0]))


async def pass_on(
    scheduler: Scheduler, message: InboundMessage, agent: str | None, once: IdempotentRequest | None = None
) -> Received:
    """A program passes on a message; NotAllowed for a sender who is not paired with a chat."""
    if not message.text.strip() or not message.sender.strip() or not message.sender.isprintable():
        raise InvalidJob("A message needs a text, and a sender of printable characters.")
    message = message._replace(text=clean(message.text))

    def look(tx: Transaction) -> Mapping[str, str]:
        _check(tx, message, agent)
        return patterns_for(tx, message.connector, agent)

    found = found_in(message.text, await scheduler.read(look))
    return await scheduler.transact(
        lambda tx, context: run_idempotent(tx, once, lambda: _receive(tx, context, message, agent, found))
    )


def _check(tx: Transaction, message: InboundMessage, agent: str | None) -> None:
    if role_of(tx, message.connector, message.sender) not in MAY_START:
        raise NotAllowed(f"{message.sender!r:.80} is not paired with {message.connector} as {MAY_START[0]}.")
    if agent is not None:
        find_agent(tx, agent)


def _receive(
    tx: Transaction, context: Context, message: InboundMessage, agent: str | None, found: frozenset[str]
) -> Received:
    _check(tx, message, agent)
    jobs = matching(tx, message, agent, found)
    if jobs:
        return _start(tx, context, message, jobs)
    return Received([] if agent is None else [_wake(tx, context, message, agent)], [])


def matching(tx: Transaction, message: InboundMessage, agent: str | None, found: frozenset[str]) -> list[JobDef]:
    """The schedules that a message starts in which these patterns were found."""
    heard = hearing(tx, message.connector, agent)
    matched = [job for job, chat in heard if chat.get("match") in found]
    return matched or [job for job, chat in heard if chat.get("match") is None]


def patterns_for(tx: Transaction, connector: str, agent: str | None) -> dict[str, str]:
    """The patterns that a message is searched for, each with the name of a schedule that has it."""
    heard = hearing(tx, connector, agent)
    return {chat["match"]: job.name for job, chat in heard if chat.get("match") is not None}


def found_in(text: str, patterns: Mapping[str, str]) -> frozenset[str]:
    """The patterns that are found in a message; one that an older version stored and that is refused now is not."""
    found = set()
    for pattern, job in patterns.items():
        try:
            if Pattern(pattern).is_in(text[:LONGEST_MATCHED]):
                found.add(pattern)
        except InvalidSetting as error:
            log.warning("%s: no message matches, because chat.match %s", job, error)
    return frozenset(found)


def _start(tx: Transaction, context: Context, message: InboundMessage, jobs: list[JobDef]) -> Received:
    received = Received([], [])
    for job in jobs:
        pair = tx.jobs.by_id(job.id)
        if pair is None or not pair[1].enabled:
            continue
        found = take(tx, context, pair, message.inbound())
        if isinstance(found, TurnedAway):
            received.turned_away.append(found.error)
        else:
            touch(tx, context, message.connector, message.sender, json.loads(job.payload)["agent"])
            received.taken.append(found)
            if pair[1].paused and not found.is_duplicate:
                answer_waiting(tx, context, job, f"{job.name} is paused until a person resumes it")
    return received


def _wake(tx: Transaction, context: Context, message: InboundMessage, agent: str) -> ReceivedRequest:
    """Leave the message as an event and wake the agent."""
    job, _ = find_agent(tx, agent)
    inbound, requests = message.inbound(), tx.of(InboundRequests)
    known = requests.called(job.id, inbound.delivery_id)
    if known is not None:
        return ReceivedRequest(known.id, known.run_id, is_duplicate=True)
    asked = request_wake(tx, context, agent, "message")
    source = f"{message.name or message.sender} by {message.connector}"
    chat = f"{message.connector}:{message.sender}"
    add_event(tx, context, agent, message.text, source=source, context_key=None, chat=chat)
    touch(tx, context, message.connector, message.sender, agent)
    row = RequestRow(
        id=context.new_id(), job_id=job.id, type=CHAT, delivery_id=inbound.delivery_id, replay_of=None,
        run_id=asked.run_id or 0, at=tx.now, about=clean(json.dumps(inbound.about)), body=message.text,
    )  # fmt: skip
    requests.add(row)
    return ReceivedRequest(row.id, row.run_id)


def _answer(tx: Transaction, context: Context, message: InboundMessage, text: str) -> None:
    enqueue(tx, context, Post(text, message.connector, "reply", recipient=message.sender, urgent=True))
