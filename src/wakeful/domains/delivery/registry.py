"""The connectors of one scheduler: those registered here, their public settings, and who wrote through them."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.delivery.chat import CHAT_TYPES, pairing
from wakeful.domains.delivery.chat.listening import Listener, Listeners
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.domains.delivery.connector import Connector, Message
from wakeful.domains.delivery.local import CallConnector
from wakeful.domains.delivery.outbox import NO_CONNECTOR, alert_unregistered, arm_for, enqueue, hasten, hold_for_pairing
from wakeful.domains.delivery.post import Post
from wakeful.domains.delivery.routing import LAST, NOWHERE, Interaction
from wakeful.domains.delivery.rules import Rules, read_rules, rules_data
from wakeful.domains.delivery.sending import DeliverySender, attempt, find_connector
from wakeful.domains.delivery.tables import AttemptRow, ConnectorRow, DeliveryRow, Outbox
from wakeful.errors import ConnectorNotFound, InvalidSetting
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.actions.jobs import add_jobs
from wakeful.kernel.engine.alerts import close_alert
from wakeful.kernel.model.run import check_message
from wakeful.kernel.rules.option_reading import NAME
from wakeful.triggers import Interval

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

DELIVERY = "delivery"
LABEL = "connector:"
RESERVED = (LAST, NOWHERE)
LOOK = "1h"  # how often a connector's job looks at its queue when nothing armed it

log = logging.getLogger("wakeful.delivery")


class RegisteredConnector(NamedTuple):
    """A connector of this process."""

    connector: Connector
    rules: Rules
    source: str


CONNECTOR_RULE = (
    "must have a name that begins with a small letter or a digit, has up to 64 small letters, digits, _ and -, "
    "and is neither last nor none"
)


def check_connector_name(name: object) -> str:
    if not isinstance(name, str) or NAME.fullmatch(name) is None or name in RESERVED:
        message = f"A connector {CONNECTOR_RULE}, not {name!r:.80}."
        raise InvalidSetting(message)
    return name


class ConnectorRegistry:
    """`scheduler.connectors`."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._entries: dict[str, RegisteredConnector] = {}
        self._file: bool = False
        self._writes: set[asyncio.Task[None]] = set()
        self._listeners = Listeners(scheduler)
        self.written: dict[str, Any] = {}  # what the file says of its connectors
        scheduler.on_job_due(DELIVERY, DeliverySender(scheduler, self.find))
        scheduler.host.before_start(self._store_all)
        scheduler.host.add_service(self)

    # -- which there are ----------------------------------------------------------------------------------------------

    def find(self, name: str) -> Connector | None:
        """The connector of that name in this process."""
        entry = self._entries.get(name)
        return entry.connector if entry is not None else None

    def register(
        self, name: str, send: Callable[[Message], Any] | Connector, *, rules: Mapping[str, Any] | None = None
    ) -> Callable[[], None]:
        """Send what is delivered to `name` with a function `send(message)`, async or not, or with a connector.

        `rules`: rate, attempts, quiet_hours and max_age, as in a file. Call the answer to end it.
        """
        found: Any = getattr(send, "send", None)
        connector: Any = send if found is not None else CallConnector(send, str(name))  # type: ignore[arg-type]
        return self.add(name, connector, read_rules(rules or {}), "code")

    def add(self, name: str, connector: Connector, rules: Rules, source: str) -> Callable[[], None]:
        """Register a connector with its rules; `source` is file or code."""
        check_connector_name(name)
        entry = self._entries[name] = RegisteredConnector(connector, rules, source)
        self._file = self._file or source == "file"
        self._scheduler.host.offer_labels([LABEL + name])
        if self._scheduler.is_running():
            if hasattr(connector, "begin"):
                connector.begin(self._scheduler)
            self._in_background(self._store([name]))

        def unregister() -> None:
            if self._entries.get(name) is entry:
                del self._entries[name]
                self._scheduler.host.withdraw_labels([LABEL + name])
                if self._scheduler.is_running():
                    self._in_background(self._remove(name))

        return unregister

    def configured(self, written: Mapping[str, Any]) -> None:
        """A file was read: connectors from a file that are no longer in it are gone."""
        self._file = True
        self.written = dict(written)

    async def replace(self, changed: Mapping[str, tuple[Connector, Rules]], gone: Collection[str]) -> None:
        """The file says something else now: some connectors are added or changed, others are gone.

        A message that is being sent is finished with the connector it began with.
        """
        gone = {name for name in gone if name in self._entries and self._entries[name].source == "file"}
        for name in (*gone, *changed):
            entry = self._entries.get(name)
            if entry is not None and hasattr(entry.connector, "end"):
                await entry.connector.end()
        for name in gone:
            del self._entries[name]
        self._scheduler.host.withdraw_labels([LABEL + name for name in gone])
        own = self._scheduler.host.node_id
        await self._scheduler.transact(lambda tx, _: _mark_removed(tx, set(gone) - _served(tx, but=own)))
        for name, (connector, rules) in changed.items():
            self._entries[name] = RegisteredConnector(connector, rules, "file")
            if hasattr(connector, "begin"):
                connector.begin(self._scheduler)
        self._scheduler.host.offer_labels([LABEL + name for name in changed])
        await self._store(list(changed))

    # -- beside the engine --------------------------------------------------------------------------------------------

    def begin(self) -> None:
        for entry in self._entries.values():
            if hasattr(entry.connector, "begin"):
                entry.connector.begin(self._scheduler)

    async def end(self) -> None:
        for entry in self._entries.values():
            if hasattr(entry.connector, "end"):
                await entry.connector.end()
        await self._listeners.end()
        if self._writes:
            await asyncio.gather(*self._writes, return_exceptions=True)

    async def _store_all(self) -> None:
        """Before anything fires: store the connectors, and retry pending messages."""
        await self._store(list(self._entries), is_start=True)

    async def store(self) -> None:
        """Put the connectors on record without a server: messages find their way to them."""
        await self._store(list(self._entries))

    async def job_of(self, name: str) -> str:
        """The id of the job that sends a connector's messages."""
        found = await self._scheduler.read(lambda tx: find_connector(tx, name))
        if found is None:
            raise ConnectorNotFound(f"There is no connector named {name!r:.80}.")
        return ids.job_text(found.job_id)

    async def _store(self, names: list[str], *, is_start: bool = False) -> None:
        entries = {name: self._entries[name] for name in names if name in self._entries}
        await self._scheduler.transact(lambda tx, context: self._put(tx, context, entries, is_start=is_start))

    async def _remove(self, name: str) -> None:
        await self._scheduler.transact(lambda tx, _: _mark_removed(tx, {name}))

    def _in_background(self, work: Any) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.get_running_loop().create_task(work)
        self._writes.add(task)
        task.add_done_callback(self._writes.discard)
        return task

    def _put(
        self, tx: Transaction, context: Context, entries: Mapping[str, RegisteredConnector], *, is_start: bool
    ) -> None:
        outbox = tx.of(Outbox)
        outbox.serialize()
        known = {row.name: row for row in outbox.connectors(removed=True)}
        if is_start and self._file:
            gone = {row.name for row in known.values() if row.source == "file"} - set(entries)
            _mark_removed(tx, gone - _served(tx))
        for name, entry in entries.items():
            rules = json.dumps(rules_data(entry.rules, self._scheduler.host.default_zone))
            before = known.get(name)
            position = before.position if before is not None else context.new_id()
            row = ConnectorRow(
                name=name, type=entry.connector.type, position=position, job_id=0, rules=rules, source=entry.source,
                removed_at=None,
            )  # fmt: skip
            row = row._replace(job_id=self._job(tx, context, name, before))
            outbox.put_connector(row)
            close_alert(tx, context, NO_CONNECTOR, name)
            if close_alert(tx, context, NO_CONNECTOR, LAST) or is_start:
                outbox.adopt_unrouted(name, tx.now)
            if row.type in CHAT_TYPES:
                _address_people(tx, context, row, getattr(entry.connector, "allow_from", ()))
            if is_start:
                hasten(tx, name, tx.now)
            arm_for(tx, row)
        if is_start:
            alert_unregistered(tx, context)

    def _job(self, tx: Transaction, context: Context, name: str, before: ConnectorRow | None) -> int:
        """The job that sends the messages of a connector; created with it, and again if it was removed."""
        found = tx.jobs.by_id(before.job_id) if before is not None else None
        if found is not None and found[0].removed_at is None:
            return found[0].id
        title = f"{DELIVERY}.{name}"
        if tx.jobs.by_name(title) is not None:
            title = f"{title}.{ids.job_text(context.new_id())}"
        new = NewJob(
            title, Interval(LOOK), kind=DELIVERY, payload={"connector": name}, labels=[LABEL + name], max_errors=0,
            timeout="30m", retry=0,
        )  # fmt: skip
        made = self._scheduler.host.draft(new, "code", {})
        return add_jobs(tx, context, [made], "error", self._scheduler.host.default_zone)[0]

    # -- messages and interactions ------------------------------------------------------------------------------------

    async def deliver(
        self, text: str, *, to: str = LAST, title: str | None = None, agent: str | None = None, urgent: bool = False
    ) -> str:
        """Store a message; its id. ConnectorNotFound for a connector that is not registered."""
        asked = check_message(text, to, title)
        if to == NOWHERE:
            raise InvalidSetting("to is none, which sends nothing: name a connector, or last.")
        await asyncio.gather(
            *self._writes, return_exceptions=True
        )  # a connector that was registered a moment ago is known by then

        def work(tx: Transaction, context: Context) -> int:
            if to != LAST:
                require_connector(tx, to)
            post = Post(asked.text, to, title=asked.title, agent=agent, urgent=urgent)
            number = enqueue(tx, context, post)
            assert number is not None  # noqa: S101 - it goes somewhere
            return number

        return ids.encode("dlv", await self._scheduler.transact(work))

    def touch(self, name: str, sender: str, agent: str | None = None) -> Awaitable[None]:
        """Record that a person wrote through a connector: `last` routes there from now on.

        Await it to be sure that it is stored.
        """
        check_connector_name(name)

        async def write() -> None:
            await self._scheduler.transact(lambda tx, context: touch(tx, context, name, str(sender), agent))

        return self._in_background(write())

    def listen(self, listener: Listener, connector: str | None = None) -> Callable[[], None]:
        """Call `listener(message)`, async or not, with what paired people write, in one chat or in all.

        It is called on the node that receives, so register it on every node. Call the returned function to unsubscribe.
        """
        return self._listeners.listen(listener, connector)

    def hand_over(self, name: str) -> None:
        """Hand new messages to the listeners."""
        self._listeners.hand_over(name)

    async def test(self, name: str, text: str | None = None) -> int:
        """Send one message now, past the queue, and record what came of it; its number.

        In a chat everybody who is paired gets one; the number is that of the first which did not arrive, if there is.
        """
        connector = self.find(name)
        if connector is None:
            known = ", ".join(self._entries) or "none"
            raise ConnectorNotFound(f"There is no connector named {name!r:.80} here: there are {known}.")
        said = text if text is not None else f"This is a test of the connector {name}."
        recipients: list[str | None] = [None]
        if connector.type in CHAT_TYPES:
            people = await self._scheduler.read(lambda tx: tx.of(Chats).people(name))
            recipients = [person.sender for person in people] or recipients
        tests = [await self._test_one(name, connector, said, to) for to in recipients]
        return next((number for number, ok in tests if not ok), tests[0][0])

    async def _test_one(self, name: str, connector: Connector, said: str, to: str | None) -> tuple[int, bool]:
        number, at = await self._scheduler.transact(lambda tx, context: (context.new_id(), tx.now))
        message = Message(ids.encode("dlv", number), "test", said, "Test", None, None, None, None, to, at)
        tried, ms = await attempt(connector, message, self._scheduler.clock.boot)

        def work(tx: Transaction, context: Context) -> None:
            status = "sent" if tried.ok else "unknown" if tried.unclear else "failed"
            outbox = tx.of(Outbox)
            made = DeliveryRow(
                id=number, connector=name, recipient=to, status=status, open=0, kind="test", text=said, title="Test",
                job_id=None, job=None, run_id=None, agent=None, outcome=None, extra=None, urgent=0, attempts=1,
                next_at=None, last_error=tried.error, created_at=at, sent_at=tx.now if tried.ok else None,
            )  # fmt: skip
            outbox.add(made)
            known = None if tried.unclear else int(tried.ok)
            outbox.begin_attempt(AttemptRow(
                id=context.new_id(), delivery_id=number, connector=name, at=at, ms=ms, ok=known, error=tried.error,
            ))  # fmt: skip
            row = find_connector(tx, name)
            if tried.ok and row is not None:  # its target takes messages: what waits need not wait for its turn
                hasten(tx, name, tx.now)
                arm_for(tx, row)

        await self._scheduler.transact(work)
        return number, tried.ok


def _address_people(tx: Transaction, context: Context, row: ConnectorRow, allowed: Sequence[str]) -> None:
    """A chat is registered: pair whom its file lets in; what is for no person in particular waits for them."""
    hold_for_pairing(tx, context, row.name)
    pairing.allow(tx, context, row.name, allowed)


def _served(tx: Transaction, *, but: int | None = None) -> set[str]:
    """The connectors that nodes which are alive brought along, one of them aside."""
    nodes = [node for node in tx.members.serving() if node.id != but]
    labels = {str(label) for node in nodes for label in json.loads(node.details).get("labels", ())}
    return {label.removeprefix(LABEL) for label in labels if label.startswith(LABEL)}


def touch(tx: Transaction, context: Context, name: str, sender: str, agent: str | None) -> None:
    """Record an interaction, in any transaction."""
    tx.of(Outbox).touch(Interaction(agent or "", name, sender, tx.now, context.new_id()))


def require_connector(tx: Transaction, name: str) -> ConnectorRow:
    """The stored record of a connector, or ConnectorNotFound."""
    rows = tx.of(Outbox).connectors()
    found = next((row for row in rows if row.name == name), None)
    if found is None:
        known = ", ".join(row.name for row in rows)
        hint = f"there are {known}" if known else "none is registered"
        raise ConnectorNotFound(f"There is no connector named {name!r:.80}: {hint}.")
    return found


def role_of(tx: Transaction, name: str, sender: str) -> str | None:
    """The role of a person who writes through a connector: in a chat, the paired role; None for an unpaired person.

    For a connector where people are not paired, the program that passes their messages on answers for them.
    """
    if require_connector(tx, name).type not in CHAT_TYPES:
        return pairing.ROLE
    person = tx.of(Chats).person(name, sender)
    return None if person is None else person.role


def _mark_removed(tx: Transaction, names: set[str]) -> None:
    outbox = tx.of(Outbox)
    for row in outbox.connectors():
        if row.name in names:
            outbox.put_connector(row._replace(removed_at=tx.now))
