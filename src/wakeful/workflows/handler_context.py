"""What handlers are given as `ctx`: the way to topics, inputs and the outside that is watched.

Each phase may do only what belongs to it. A failure of a call decides the run, also when the handler catches it.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Callable
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from wakeful import ids
from wakeful.errors import InvalidJob
from wakeful.kernel.rules.outcome import clean
from wakeful.triggers.moments import from_ms
from wakeful.workflows.authoring import Event, Handler, check_name
from wakeful.workflows.checkpoints import Outgoing, as_json
from wakeful.workflows.failures import LogicError, Place
from wakeful.workflows.publishing import Message, is_key
from wakeful.workflows.topics.tables import EventRow, InputRow, Topics

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.workflows.tables import WorkflowRun

T = TypeVar("T")
PERMITTED = {
    "producer": frozenset({"publish", "register_input", "call"}),
    "prepare": frozenset({"peek", "call"}),
    "mutate": frozenset({"call"}),
    "reconcile": frozenset({"call"}),
    "next": frozenset({"publish"}),
}
MAX_PEEK = 1_000
MAX_TEXT = 1_000
MAX_NAME = 200


class HandlerContext:
    """The `ctx` of one call of a handler."""

    def __init__(
        self,
        scheduler: Scheduler,
        attempt: WorkflowRun,
        handler: Handler,
        phase: str,
        *,
        config: Any = None,
        approved_by: str | None = None,
        new_id: Callable[[], int],
    ) -> None:
        self._scheduler = scheduler
        self._attempt = attempt
        self._handler = handler
        self._phase = phase
        self._new_id = new_id
        self._messages: list[Message] = []
        self._inputs: dict[tuple[str, str, str], InputRow] = {}
        self._causes: set[int] = set()  # inputs that are known to be this workflow's
        self._knows_reserved = False  # whether those of the reserved events are among them
        self._calls = 0
        self.failure: tuple[BaseException, Place] | None = None
        self.config = {} if config is None else config
        self.approved_by = approved_by
        self.run_id = ids.run_text(attempt.id)
        self.log = logging.getLogger(f"wakeful.workflows.{attempt.workflow}.{attempt.handler}")

    @property
    def now(self) -> datetime:
        """The scheduler's time."""
        return from_ms(self._scheduler.clock.now()).astimezone(UTC)

    async def peek(self, topic: str, limit: int = 100) -> list[Event]:
        """The oldest pending events of a topic that this consumer subscribes to, at most 1,000."""
        self._permit("peek")
        if topic not in self._handler.subscribes:
            self._refuse(f"{self._handler.name} peeks at {topic!r}, which it does not subscribe to.")
        if type(limit) is not int or limit < 0:
            self._refuse(f"The limit of peek is a whole number of events, not {limit!r:.80}.")
        workflow, most = self._attempt.workflow, min(limit, MAX_PEEK)
        found = await self._read(lambda tx: tx.of(Topics).pending(workflow, topic, most))
        return [_event(row, cause) for row, cause in found]

    async def publish(
        self,
        topic: str,
        *,
        message_id: str | int,
        payload: Any = None,
        input: str | None = None,  # noqa: A002 - as authors write it
    ) -> None:
        """Publish an event with the commit of this run; a message id that was published before makes no second one."""
        self._permit("publish")
        if self._handler.publishes is not None and topic not in self._handler.publishes:
            self._refuse(f"{self._handler.name} publishes to {topic!r:.80}, which it does not name in `publishes`.")
        said = self._text("message_id", message_id)
        try:
            body = as_json(payload, f"The payload for {check_name('topic', topic)}")
        except (LogicError, InvalidJob) as error:
            self._refuse(str(error))
        self._messages.append(Message(topic, said, body, await self._cause(input)))

    async def register_input(self, source: str, type: str, id: str | int, *, title: str | None = None) -> str:  # noqa: A002
        """Note something from outside that causes events; the id to give to `publish` as `input`."""
        self._permit("register_input")
        key = (self._text("source", source, MAX_NAME), self._text("type", type, MAX_NAME), self._text("id", id))
        row = self._inputs.get(key)
        if row is None:
            workflow = self._attempt.workflow
            row = await self._read(lambda tx: tx.of(Topics).find_input(workflow, *key))
        if row is None:
            said = None if title is None else clean(str(title))[:MAX_TEXT]
            row = InputRow(self._new_id(), self._attempt.workflow, *key, said, self._scheduler.clock.now())
            self._inputs[key] = row
        self._causes.add(row.id)
        return ids.encode("inp", row.id)

    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call something outside. Its failure decides this run, also when it is caught; mutate may do it once."""
        self._permit("call")
        self._calls += 1
        if self._phase == "mutate" and self._calls > 1:
            self._refuse("mutate makes at most one change outside: this is its second ctx.call.")
        try:
            value = function(*args, **kwargs)
            return await value if inspect.isawaitable(value) else value
        except Exception as error:
            self.failure = self.failure or (error, "mutate" if self._phase == "mutate" else "call")
            raise

    def outgoing(self) -> Outgoing:
        """What is to be written with the commit."""
        return Outgoing(self._messages, list(self._inputs.values()))

    async def _cause(self, given: object) -> tuple[int, ...]:
        if given is None:
            return ()
        number = ids.number_of("inp", given) if isinstance(given, str) else None
        if number is None or not await self._is_input(number):
            self._refuse(f"input is what register_input returned, or the input of an event, not {given!r:.80}.")
        return (number,)

    async def _is_input(self, number: int) -> bool:
        """Whether this workflow has the input."""
        if number not in self._causes and self._attempt.reserved and not self._knows_reserved:
            # At once: a consumer of many events publishes for the input of each.
            self._causes.update(await self._read(lambda tx: tx.of(Topics).causes_of_run(self._attempt.id)))
            self._knows_reserved = True
        if number not in self._causes:
            row = await self._read(lambda tx: tx.of(Topics).input(number))
            if row is None or row.workflow != self._attempt.workflow:
                return False
            self._causes.add(number)
        return True

    async def _read(self, work: Callable[[Transaction], T]) -> T:
        """Ask the store; that it fails is not the author's mistake, and decides the run all the same."""
        try:
            return await self._scheduler.look(work)
        except Exception as error:
            self.failure = self.failure or (error, "engine")
            raise

    def _text(self, name: str, given: object, most: int = MAX_TEXT) -> str:
        text = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""
        if not is_key(text, most):
            self._refuse(f"{name} is a text of 1 to {most} bytes without NUL characters, not {given!r:.80}.")
        return text

    def _permit(self, what: str) -> None:
        if what not in PERMITTED[self._phase]:
            self._refuse(f"ctx.{what} is not allowed in {self._phase}.")

    def _refuse(self, message: str) -> NoReturn:
        error = LogicError(message)
        self.failure = self.failure or (error, "mutate" if self._phase == "mutate" else "handler")
        raise error


def _event(row: EventRow, cause: int | None) -> Event:
    """An event as handlers see it."""
    known = None if cause is None else ids.encode("inp", cause)
    payload = json.loads(row.payload)
    return Event(ids.encode("evt", row.id), row.message_id, row.topic, payload, from_ms(row.at), known)
