"""What handlers are given as `ctx`: the way to topics, inputs and the outside that is watched.

Each phase may do only what belongs to it. A failure of a call decides the run, also when the handler catches it.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from wakeful import ids
from wakeful.domains.workflows.approving import PHASE, VERSION, Approval, SeenEvents, about_prepared
from wakeful.domains.workflows.authoring import Event, Events, Handler, check_name
from wakeful.domains.workflows.checkpoints import PendingWrites, as_json
from wakeful.domains.workflows.context import Context
from wakeful.domains.workflows.failures import LogicError, Place
from wakeful.domains.workflows.forgotten import Begun, StateCheck, awaited
from wakeful.domains.workflows.publishing import NewEvent, is_key
from wakeful.domains.workflows.threads import counted, current, seen_by
from wakeful.domains.workflows.topics.peeking import as_events, asked, read
from wakeful.domains.workflows.topics.tables import InputRow, Topics
from wakeful.errors import InvalidJob
from wakeful.kernel.rules.outcome import clean
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.domains.workflows.tables import WorkflowRun
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

T = TypeVar("T")
PERMITTED = {
    "producer": frozenset({"publish", "register_input", "call"}),
    "prepare": frozenset({"peek", "call"}),
    "mutate": frozenset({"call"}),
    "reconcile": frozenset({"call"}),
    "next": frozenset({"publish"}),
    "steps": frozenset({"step", "publish", "call"}),
}
MAX_TEXT = 1_000
MAX_NAME = 200


class HandlerContext(Context):
    """The `ctx` of one call of a handler."""

    def __init__(
        self,
        scheduler: Scheduler,
        attempt: WorkflowRun,
        handler: Handler,
        phase: str,
        *,
        state: Any,
        config: Any = None,
        approval: Approval | None = None,
        new_id: Callable[[], int],
    ) -> None:
        self._scheduler = scheduler
        self._attempt = attempt
        self._handler = handler
        self._phase = phase
        self._new_id = new_id
        self._messages: list[NewEvent] = []
        self._inputs: dict[tuple[str, str, str], InputRow] = {}
        self._causes: set[int] = set()  # inputs that are known to be this workflow's
        self._knows_reserved = False  # whether those of the reserved events are among them
        self._calls = 0
        self.has_called = False  # whether a `ctx.call` has ended well
        self.cut_call: TimeoutError | None = None  # one was cancelled before it had ended
        self._ended = False  # its function has returned
        self._said_late = set[str]()  # what the log has about the time after that
        self._label = handler.name if phase in ("producer", "steps") else f"{phase} of {handler.name}"
        self.begun = Begun()
        self.state = state
        self.revisions: dict[int, int] = {}  # of the events that peek found
        self.failure: tuple[BaseException, Place] | None = None
        self.config = {} if config is None else config
        self._approval = approval if approval is not None else Approval()
        self.seen = SeenEvents(self._approval, phase, attempt.watermark)
        self.run_id = ids.run_text(attempt.id)
        self.log = logging.getLogger(f"wakeful.workflows.{attempt.workflow}.{attempt.handler}")

    @property
    def approved_by(self) -> str | None:
        """Who approved this change; None before that, and where something else was approved."""
        if self._phase in ("prepare", "producer"):
            return self.seen.approved_by()
        return self._approval.of_prepared(self._attempt.prepared, self._phase)

    def about(self) -> dict[str, Any]:
        """What a question is about that is asked now."""
        asked = {PHASE: self._phase, VERSION: self._attempt.version}
        if self._phase in ("prepare", "producer"):
            return {**asked, **self.seen.about()}
        return {**asked, **about_prepared(self._attempt.prepared)}

    @property
    def now(self) -> datetime:
        """The scheduler's time."""
        return from_ms(self._scheduler.clock.now()).astimezone(UTC)

    @awaited
    async def peek(
        self,
        topic: str,
        limit: int = 100,
        *,
        after: Event | str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Events:
        """The oldest pending events of a topic that this consumer subscribes to, at most 1,000 at once. For `prepare`.

        `.more` of what it returns says whether there are more; read on with `after`, an event or its id. `where` maps
        `message_id`, or keys of the payload, to the value that is wanted, or to a list of values.
        """
        self._permit("peek")
        if topic not in self._handler.subscribes:
            self._refuse(f"{self._handler.name} peeks at {topic!r}, which it does not subscribe to.")
        try:
            question = asked(topic, limit, after, where, until=self.seen.until)
        except LogicError as error:
            self._refuse(str(error))
        found = await self._read(lambda tx: read(tx, self._attempt.workflow, question))
        if found is None:
            self._refuse(f"`after` is an event of the topic {topic}, and {after!r:.80} is of another one.")
        self.seen.note([row for row, _ in found.found])
        self.revisions.update((row.id, row.revision) for row, _ in found.found)
        return as_events(found)

    @awaited
    async def publish(
        self,
        topic: str,
        payload: Any = None,
        *,
        message_id: str | int,
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
        self._messages.append(NewEvent(topic, said, body, await self._cause(input)))

    @awaited
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

    @awaited
    async def step(
        self,
        name: str,
        function: Callable[..., Any],
        /,
        *args: Any,
        reconcile: Callable[..., Any] | None = None,
        timeout: str | float | timedelta | None = None,
        approve: str | bool | None = None,
        **kwargs: Any,
    ) -> Any:
        """Only handlers with steps have them."""
        del name, function, args, reconcile, timeout, approve, kwargs
        self._permit("step")

    @awaited
    async def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """Call something outside. Its failure decides this run, also when it is caught; mutate may do it once."""
        self.begin_call(function)
        work = current()
        try:
            with counted(work):  # one that is shielded from its cancellation continues
                if work is None or inspect.iscoroutinefunction(function):
                    value = function(*args, **kwargs)
                else:
                    run = contextvars.copy_context().run
                    value = await work.start(functools.partial(run, function, *args, **kwargs))
                value = await value if inspect.isawaitable(value) else value
                self.has_called = True
                return value
        except asyncio.CancelledError:
            self._note_cut_call()
            raise
        except Exception as error:
            self.note_failed_call(error)
            raise

    def begin_call(self, function: Callable[..., Any]) -> None:
        """Refuse what may not be called."""
        self._permit("call")
        if not callable(function):
            self._refuse(_not_called(function))
        self._calls += 1
        if self._phase == "mutate" and self._calls > 1:
            self._refuse("mutate makes at most one change outside: this is its second ctx.call.")

    def note_failed_call(self, error: BaseException) -> None:
        """A failed call decides the run, whatever the handler makes of it."""
        self.failure = self.failure or (error, "mutate" if self._phase == "mutate" else "call")

    def _note_cut_call(self) -> None:
        """A cancelled call decides the run as well, unless the function fails with what it was cancelled for."""
        self.cut_call = self.cut_call or TimeoutError("a ctx.call was cancelled before it had ended")

    async def run(self, call: Awaitable[T]) -> T:
        """Wait for a call of the handler's function; what it forgot decides the run like any failure."""
        check = StateCheck(self._phase, self.state)
        try:
            value = await call
        except BaseException as error:
            self._end(self.begun.end(self._label, error))
            raise
        self._end(self.begun.end(self._label, None) or check.mistake(self._label, value))
        return value

    def outgoing(self) -> PendingWrites:
        """What is to be written with the commit."""
        return PendingWrites(self._messages, list(self._inputs.values()))

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
            with seen_by(None):  # what we do in threads is not the handler's
                return await self._scheduler.read(work)
        except Exception as error:
            self.failure = self.failure or (error, "engine")
            raise

    def _text(self, name: str, given: object, most: int = MAX_TEXT) -> str:
        text = str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""
        if not is_key(text, most):
            self._refuse(f"{name} is a text of 1 to {most} bytes without NUL characters, not {given!r:.80}.")
        return text

    def _end(self, mistake: str | None) -> None:
        self._ended = True
        if self.begun.is_lost("call"):
            self._note_cut_call()
        if mistake is not None:
            self._note(LogicError(mistake))

    def _permit(self, what: str) -> None:
        self.begun.enter(what)
        if (late := self.late(what)) is not None:
            raise late
        if what not in PERMITTED[self._phase]:
            may = " and ".join(f"ctx.{name}" for name in sorted(PERMITTED[self._phase]))
            where = {"producer": "a producer", "steps": "a handler with steps"}.get(self._phase, self._phase)
            self._refuse(f"ctx.{what} is not allowed in {where}, which may use {may}.")

    def late(self, what: str) -> LogicError | None:
        """What to raise, and the log has it too, where the function has ended; None before."""
        if not self._ended:
            return None
        message = (
            f"ctx.{what} was called after {self._label} had returned, and did nothing: await every task that uses ctx."
        )
        if message not in self._said_late:
            self._said_late.add(message)
            self.log.error(message)
        return LogicError(message)

    def _refuse(self, message: str) -> NoReturn:
        error = LogicError(message)
        self._note(error)
        raise error

    def _note(self, error: LogicError) -> None:
        self.failure = self.failure or (error, "mutate" if self._phase == "mutate" else "handler")


def _not_called(given: object) -> str:
    """What to write instead of a call of something that is no function."""
    shown = f"{given!r:.80}"
    if inspect.iscoroutine(given):
        shown = f"the coroutine of {given.__name__}(...)"
        given.close()
    return f"ctx.call is given a function and its arguments, as in `await ctx.call(post, bill)`, not {shown}."
