"""Handlers that are plain functions (`def`): each call runs in a thread, with a `ctx` that needs no `await`.

What such a function asks of `ctx` is done on the event loop, while its thread waits. In virtual time the loop waits for
the thread in turn, so that nothing else happens while the function works.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import queue
import threading
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, TypeVar, overload

from wakeful.domains.workflows.failures import LogicError
from wakeful.domains.workflows.threads import Work

if TYPE_CHECKING:
    import logging
    from datetime import datetime, timedelta

    from wakeful.domains.workflows.authoring import Event, Events, Function
    from wakeful.domains.workflows.handler_context import HandlerContext

P = ParamSpec("P")
T = TypeVar("T")
LATE = "ctx was used after its function had returned or was cut off, and did nothing."


def called(function: Function, ctx: HandlerContext, given: tuple[Any, ...], work: Work) -> Awaitable[Any]:
    """A call of a handler's function, which may be a plain one."""
    if is_async(function):
        call: Awaitable[Any] = function(ctx, *given)
        return call
    return _in_thread(function, ctx, given, work)


@functools.lru_cache(maxsize=1_000)
def is_async(function: Function) -> bool:
    """Whether a call of it must be awaited: an async function, or an object of a class that can be called so."""
    of_object = None if isinstance(function, type) else getattr(function, "__call__", None)  # noqa: B004 - its kind is asked
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(of_object)


class _End(NamedTuple):
    """How the function ended."""

    value: Any
    error: BaseException | None


class _Request(NamedTuple):
    """Something that a function asked of `ctx`."""

    begin: Callable[[], Awaitable[Any]]
    reply: Future[Any]

    async def answer(self) -> None:
        try:
            self.reply.set_result(await self.begin())
        except Exception as error:  # noqa: BLE001 - it belongs to the function
            self.reply.set_exception(error)
        except BaseException:
            self.reply.set_exception(LogicError(LATE))
            raise


class _Channel:
    """Between the thread of a function and the event loop."""

    def __init__(self, ctx: HandlerContext, *, inline: bool) -> None:
        self._ctx = ctx
        self._loop = asyncio.get_running_loop()
        self._inline = inline
        self._blocking: queue.SimpleQueue[_Request | _End] = queue.SimpleQueue()
        self._waiting: asyncio.Queue[_Request | _End] = asyncio.Queue()
        self._open: set[Future[Any]] = set()
        self._closed = False
        self._lock = threading.Lock()

    def send(self, item: _Request | _End) -> None:
        """From the thread."""
        if self._inline:
            self._blocking.put(item)
        elif not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._waiting.put_nowait, item)

    def ask(self, begin: Callable[[], Awaitable[Any]]) -> Any:
        """From the thread: have this awaited on the loop; what comes of it."""
        reply: Future[Any] = Future()
        with self._lock:
            is_late = self._closed
            if not is_late:
                self._open.add(reply)
        if is_late:
            self._ctx.log.error(LATE)
            raise LogicError(LATE)
        self.send(_Request(begin, reply))
        try:
            return reply.result()
        finally:
            self._open.discard(reply)

    async def receive(self) -> _Request | _End:
        """On the loop."""
        return self._blocking.get() if self._inline else await self._waiting.get()

    def close(self) -> None:
        """Nobody answers any more."""
        with self._lock:
            self._closed = True
            unanswered = [reply for reply in self._open if not reply.done()]
        for reply in unanswered:
            reply.set_exception(LogicError(LATE))


async def _in_thread(function: Callable[..., Any], ctx: HandlerContext, given: tuple[Any, ...], work: Work) -> Any:
    channel = _Channel(ctx, inline=work.inline)
    context = contextvars.copy_context()

    def run() -> _End:
        try:
            return _End(context.run(function, PlainContext(ctx, channel), *given), None)
        except BaseException as error:  # noqa: BLE001 - raised on the loop
            return _End(None, error)

    work.put(run, channel.send)
    try:
        while not isinstance(item := await channel.receive(), _End):
            await item.answer()
    finally:
        channel.close()
    if item.error is not None:
        raise item.error
    return item.value


class PlainContext:
    """The `ctx` of a plain function: the same as `Context`, without `await`."""

    if TYPE_CHECKING:
        state: Any
        config: Any
        run_id: str
        log: logging.Logger
        now: datetime
        approved_by: str | None

    def __init__(self, ctx: HandlerContext, channel: _Channel) -> None:
        self._ctx = ctx
        self._channel = channel

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def peek(
        self,
        topic: str,
        limit: int = 100,
        *,
        after: Event | str | None = None,
        where: Mapping[str, Any] | None = None,
    ) -> Events:
        """As `Context.peek`."""
        found: Events = self._channel.ask(lambda: self._ctx.peek(topic, limit, after=after, where=where))
        return found

    def publish(
        self,
        topic: str,
        payload: Any = None,
        *,
        message_id: str | int,
        input: str | None = None,  # noqa: A002 - as authors write it
    ) -> None:
        """As `Context.publish`."""
        self._channel.ask(lambda: self._ctx.publish(topic, payload, message_id=message_id, input=input))

    def register_input(self, source: str, type: str, id: str | int, *, title: str | None = None) -> str:  # noqa: A002
        """As `Context.register_input`."""
        return str(self._channel.ask(lambda: self._ctx.register_input(source, type, id, title=title)))

    def step(
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
        """As `Context.step`."""
        how: dict[str, Any] = {"reconcile": reconcile, "timeout": timeout, "approve": approve}
        return self._channel.ask(lambda: self._ctx.step(name, function, *args, **how, **kwargs))

    @overload
    def call(self, function: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def call(self, function: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def call(self, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `Context.call`: in this thread, or on the event loop where it is an async function."""
        self._ctx.begin_call(function)
        try:
            found = function(*args, **kwargs)
            value = self._channel.ask(lambda: found) if inspect.isawaitable(found) else found
        except Exception as error:
            self._ctx.note_failed_call(error)
            raise
        self._ctx.has_called = True
        return value
