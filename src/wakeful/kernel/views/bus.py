"""The event bus: calls listeners with what was committed. They can change nothing, whatever they do.

An async listener has a queue and a task of its own. A plain function is called on the event loop while it is quick; one
that holds the loop up gets a queue and a thread instead. A queue that is full drops events, and its listener is given
an event of type `dropped` with their number once it takes the next. What fails is logged, the first time with a trace.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import threading
from collections import deque
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from wakeful.errors import SchedulerError
from wakeful.kernel.views.events import STREAMS, Event, Listener, events_of

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.records import EventGroup

log = logging.getLogger("wakeful.events")

#: Events that wait for one listener.
MOST_WAITING = 1_000
#: A function that holds up the event loop this long, this often, is called in a thread from then on.
SLOW_MS = 100
SLOW_TIMES = 2
#: How long a scheduler that closes waits for async listeners.
FINISH_S = 1.0


class Bus:
    """The listeners of one scheduler."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._subscriptions: list[Subscription] = []

    def subscribe(self, listener: Listener, stream: str | None = None) -> Callable[[], None]:
        """Call a function, or await a coroutine function, with every event of one stream or of all; to stop, call the
        answer.
        """
        if stream is not None and stream not in STREAMS:
            message = f"There is no stream {stream!r:.60}: there are {', '.join(STREAMS)}."
            raise SchedulerError(message)
        subscription = Subscription(listener, stream, self._clock)
        self._subscriptions.append(subscription)

        def unsubscribe() -> None:
            if subscription in self._subscriptions:
                self._subscriptions.remove(subscription)
                subscription.end()

        return unsubscribe

    def notify(self, groups: list[EventGroup]) -> None:
        """Hand on what a transaction of this process has just committed."""
        if not self._subscriptions:
            return
        for group in groups:
            for event in events_of(group):
                for subscription in list(self._subscriptions):
                    subscription.take(event)

    async def finish(self) -> None:
        """Let async listeners have what waits for them, for a moment at most; then nothing more is called."""
        for subscription in self._subscriptions:
            await subscription.finish()


class Subscription:
    """One listener, and how it is called."""

    def __init__(self, listener: Listener, stream: str | None, clock: Clock) -> None:
        call = getattr(listener, "__call__", None)  # noqa: B004 - objects with an async __call__ are listeners too
        if call is None:
            message = f"A listener is a function of an event, not {listener!r:.80}."
            raise SchedulerError(message)
        self._listener = listener
        self._stream = stream
        self._clock = clock
        self._awaits = inspect.iscoroutinefunction(listener) or inspect.iscoroutinefunction(call)
        self._queue: EventQueue | None = EventQueue() if self._awaits else None
        self._worker: asyncio.Task[None] | threading.Thread | None = None
        self._slow = 0
        self._failed = False

    def take(self, event: Event) -> None:
        """Hand on one event, at once or as soon as the listener is ready for it."""
        if self._stream not in (None, event.stream):
            return
        if self._queue is None:
            self._call_here(event)
            return
        if self._queue.add(event):
            log.warning("an event listener is too slow (%s): events are dropped for it", self._name)
        if self._awaits and (self._worker is None or cast("asyncio.Task[None]", self._worker).done()):
            self._worker = asyncio.get_running_loop().create_task(self._follow())

    def end(self) -> None:
        """Nothing more is called, but what is being called continues."""
        if self._queue is not None:
            self._queue.close()

    async def finish(self) -> None:
        if isinstance(self._worker, asyncio.Task) and not self._worker.done():
            await asyncio.wait({self._worker}, timeout=FINISH_S)
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
        self.end()

    @property
    def _name(self) -> str:
        return str(getattr(self._listener, "__qualname__", None) or type(self._listener).__qualname__)

    def _call_here(self, event: Event) -> None:
        began = self._clock.boot()
        self._call(event)
        self._slow += self._clock.boot() - began >= SLOW_MS
        if self._slow < SLOW_TIMES:
            return
        log.warning("an event listener holds up the event loop (%s): it is called in a thread from now on", self._name)
        self._queue = EventQueue()
        self._worker = threading.Thread(target=self._follow_in_thread, args=(self._queue,), daemon=True)
        self._worker.start()

    def _call(self, event: Event) -> None:
        try:
            answer: Any = self._listener(event)
            if inspect.iscoroutine(answer):
                answer.close()
                message = "it returns a coroutine that nothing awaits: subscribe the async function itself"
                raise TypeError(message)  # noqa: TRY301 - logged like any other failure
        except Exception as error:  # noqa: BLE001 - whatever it is, it is the listener's own affair
            self._note_failure(event, error)

    def _note_failure(self, event: Event, error: Exception) -> None:
        """The first failure with its trace; the others would only repeat it."""
        if not self._failed:
            log.error("an event listener failed on %s %s (%s)", event.stream, event.type, self._name, exc_info=error)
        self._failed = True

    async def _follow(self) -> None:
        """Until the queue is empty; the next event begins another task."""
        assert self._queue is not None  # noqa: S101 - an async listener has one from the start
        while (event := self._queue.next()) is not None:
            try:
                await cast("Callable[[Event], Awaitable[None]]", self._listener)(event)
            except Exception as error:  # noqa: BLE001 - as above
                self._note_failure(event, error)

    def _follow_in_thread(self, queue: EventQueue) -> None:
        while (event := queue.wait()) is not None:
            self._call(event)


class EventQueue:
    """Events that wait for one listener, in order; safe to use from two threads."""

    def __init__(self) -> None:
        self._events: deque[Event] = deque()
        self._dropped = 0
        self._last: Event | None = None
        self._noted = False
        self._closed = False
        self._changed = threading.Condition()

    def add(self, event: Event) -> bool:
        """Keep an event, or drop it where there are too many; True for the first that is dropped."""
        with self._changed:
            if self._closed:
                return False
            if len(self._events) < MOST_WAITING:
                self._events.append(event)
                self._changed.notify()
                return False
            self._dropped += 1
            self._last = event
            is_first, self._noted = not self._noted, True
            return is_first

    def next(self) -> Event | None:
        """The next event, after all that waited what says how many were dropped; None when there is none."""
        with self._changed:
            return self._next()

    def wait(self) -> Event | None:
        """The same, as soon as there is one; None once the queue is closed."""
        with self._changed:
            while not self._events and not self._dropped and not self._closed:
                self._changed.wait()
            return self._next()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._events.clear()
            self._dropped = 0
            self._changed.notify()

    def _next(self) -> Event | None:
        if self._events:
            return self._events.popleft()
        if self._dropped and self._last is not None:
            note = self._last._replace(type="dropped", data={"count": self._dropped})
            self._dropped = 0
            return note
        return None
