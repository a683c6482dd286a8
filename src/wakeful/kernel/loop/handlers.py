"""Running handlers: async ones on the loop, sync ones in threads, and none of them able to stop the engine."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Awaitable, Callable, Collection, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, Protocol

from wakeful.kernel.engine.lines import Claimed
from wakeful.kernel.kinds import Handler
from wakeful.kernel.model.run import Run
from wakeful.kernel.rules.approval import question_before
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import FAILURES, WAITING, Result, from_exception, from_return, with_type
from wakeful.store.records import RunDetails
from wakeful.threads import Pool
from wakeful.trace_context import is_traced


class Drive(Protocol):
    """How one handler is run to its end."""

    async def __call__(self, active: Active, handler: Handler, threads: Threads, *, awaits: bool) -> Result: ...


MAX_THREADS = 64
log = logging.getLogger("wakeful.runs")
CANCEL_GRACE_S = 8.0  # from being asked to end until it counts as not stopping; a command is killed within it
_STARTING = threading.Lock()


class Active:
    """A run in this process, from claim to settle."""

    __slots__ = (
        "asked_at",
        "claimed",
        "deadline",
        "limit_ms",
        "on_limit",
        "overdue",
        "released",
        "reported_phase",
        "run",
        "started",
        "started_at",
        "task",
        "threaded",
        "verdict",
    )

    def __init__(self, claimed: Claimed, node: str, deadline: int) -> None:
        self.claimed = claimed
        details = RunDetails(claimed.run.id, approval=claimed.approval) if claimed.approval is not None else None
        self.run = Run(claimed.run, claimed.job.name, claimed.payload, details, node)
        self.deadline = deadline  # boot time
        self.limit_ms = from_text(claimed.job.options).timeout
        self.on_limit: Callable[[int], None] | None = None  # tells the engine of another limit
        self.task: asyncio.Task[None] | None = None
        self.verdict: Result | None = None  # why it is being cancelled
        self.started = False
        self.released = False
        self.started_at: int | None = claimed.run.started_at
        self.threaded = False
        self.overdue = False
        self.asked_at: int | None = None  # boot time at which it was first asked to end
        self.reported_phase: str | None = None  # the phase under which it is on record as not stopping

    def begin(self) -> bool:
        """The handler is about to be called; False when the run was released before that."""
        with _STARTING:
            self.started = not self.released
        return self.started

    def release(self) -> bool:
        """Give the run back; False when its handler has already been called."""
        with _STARTING:
            self.released = not self.started
        return self.released

    def in_thread(self) -> bool:
        """Whether a thread has begun it, which nothing can stop."""
        return self.threaded and self.started

    def cancel(self, verdict: Result, now: int) -> None:
        """Ask it to end; who asked first decides how it counts. A thread keeps its job until it ends by itself."""
        if self.verdict is None:  # what a person cancelled is not run again by a shutdown
            self.verdict = verdict
        if self.asked_at is None:
            self.asked_at = now
        # A task that is cancelled before its first step ends without a trace: that step looks at the verdict instead.
        if self.task is None or not (self.started or self.threaded):
            return
        # A handler that still waits for a thread must not start any more.
        if not self.threaded or self.release():
            self.task.cancel()

    def refuses_to_end(self, now: int) -> str | None:
        """The phase of a run that was asked to end and continues (see `GOES_ON`); None while it may still end."""
        if self.asked_at is None or self.verdict is None:
            return None
        if now - self.asked_at < CANCEL_GRACE_S * 1000 and not (self.overdue and self.in_thread()):
            return None
        if self.overdue:
            return "timeout"
        return "stopping" if self.verdict.interrupted else "cancelled"


_CURRENT: contextvars.ContextVar[Active | None] = contextvars.ContextVar("wakeful_run", default=None)


_INSIDE: contextvars.ContextVar[Active | None] = contextvars.ContextVar("wakeful_inside", default=None)


def inside_of(runs: Collection[Active]) -> Active | None:
    """Which of these runs this code is a part of: its handler, in a thread too, or a task that the handler began."""
    active = _INSIDE.get()
    return active if active is not None and active in runs else None


@contextmanager
def unstoppable(limit_ms: int) -> Iterator[bool]:
    """What a handler awaits in here is a thread, which nothing can stop: its run keeps its place until that ends.

    It may take this long; past that, and once it is cancelled, the run is shown as one that continues. False where no
    engine looks after that.
    """
    active = _CURRENT.get()
    if active is None or active.on_limit is None:
        yield False
        return
    active.threaded = True
    active.on_limit(limit_ms)
    try:
        yield True
    finally:
        active.threaded = False


def was_asked_to_end() -> bool:
    """Whether the run that this code belongs to is to end."""
    active = _CURRENT.get()
    return active is not None and active.verdict is not None


async def drive(active: Active, handler: Handler, threads: Threads, *, awaits: bool) -> Result:
    """Run one handler to its end; the result says how it ended, also after an error."""
    try:
        _check_wanted(active)
        _ask_first(active.claimed)
        if awaits:
            active.begin()
            _CURRENT.set(active)  # of this run's task alone
            _INSIDE.set(active)
            value = await handler(active.run)
        else:
            active.threaded = True
            value, error = await threads.call(active, handler)
            if error is not None:
                return active.verdict or _failed(active.run, error)
            active.threaded = False
            if inspect.isawaitable(value):
                _INSIDE.set(active)
                value = await value
    except asyncio.CancelledError:
        if active.verdict is None:
            return Result("cancelled", error_type="CancelledError", error="the handler was cancelled from within")
        return active.verdict
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - what a handler raises is its result
        said = from_exception(error)
        if active.verdict is None:
            return _failed(active.run, error)
        return active.verdict._replace(output=said.output, log_file=said.log_file, usage=said.usage)
    result = from_return(value)
    if active.verdict is not None and not active.verdict.interrupted:
        return active.verdict._replace(usage=result.usage)
    return result._replace(messages=active.run.outgoing) if active.run.outgoing else result


def _failed(run: Run, error: BaseException) -> Result:
    """What the exception says; an error is logged with its trace, so that it is seen without asking for the run."""
    result = from_exception(error)
    if result.outcome in FAILURES:
        # The trace as it is stored: bounded, and with no letter that a log file cannot hold.
        trace = f"\n{result.trace}" if result.trace else ""
        log.error("%s of %s failed: %s%s", run.id, run.job, with_type(result.error_type, result.error or ""), trace)
    return result._replace(messages=run.outgoing) if result.outcome in ("noop", WAITING) else result


def _check_wanted(active: Active) -> None:
    """Not to begin what was asked to end before its first step."""
    if active.verdict is not None:
        raise asyncio.CancelledError


def _ask_first(claimed: Claimed) -> None:
    """Raise the question that comes before the handler, where there is one."""
    question = question_before(claimed.job.name, claimed.job.options, claimed.approval)
    if question is not None:
        raise question


class Threads:
    """Daemon threads for sync handlers: one that never ends must not keep the process from ending."""

    def __init__(self, *, inline: bool = False, limit: int = MAX_THREADS) -> None:
        self._inline = inline
        self._limit = limit
        self._pool = Pool()

    def call(self, active: Active, handler: Handler) -> Awaitable[tuple[Any, BaseException | None]]:
        """A future of what the handler returns or raises. Cancelling it does not stop a thread; nothing can."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        if self._inline:
            active.begin()
            future.set_result(_attempt(handler, active))
            return future

        def work() -> None:
            if not active.begin():
                return
            ending = _attempt(handler, active)
            if not loop.is_closed():
                loop.call_soon_threadsafe(_finish, future, ending)

        # Tracing libraries look in the context for what a call is part of.
        self._pool.put(partial(contextvars.copy_context().run, work) if is_traced() else work, self._limit)
        return future

    def end(self) -> None:
        """Let the threads go, each when it has nothing left to do; calls after this get new ones."""
        self._pool.end()
        self._pool = Pool()


def _attempt(handler: Handler, active: Active) -> tuple[Any, BaseException | None]:
    token = _INSIDE.set(active)
    try:
        return handler(active.run), None
    except BaseException as error:  # noqa: BLE001 - carried to the loop, where raising some of them would end it
        return None, error
    finally:
        _INSIDE.reset(token)


def _finish(future: asyncio.Future[tuple[Any, BaseException | None]], ending: tuple[Any, BaseException | None]) -> None:
    if not future.done():
        future.set_result(ending)
