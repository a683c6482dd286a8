"""One call of a handler's function: within its time, watched, and with a failure placed where it arose."""

from __future__ import annotations

import asyncio
import functools
from typing import TYPE_CHECKING, Any

from wakeful.clock import ManualClock
from wakeful.domains.workflows.failures import LogicError, Place, deciding, leaves
from wakeful.domains.workflows.plain_functions import called
from wakeful.domains.workflows.programs import watch_programs
from wakeful.domains.workflows.threads import Work, seen_by
from wakeful.domains.workflows.timing import RECONCILE_LIMIT_MS
from wakeful.domains.workflows.working import when_ended
from wakeful.kernel.rules.outcome import clean, message_of
from wakeful.triggers.durations import format_interval

if TYPE_CHECKING:
    from wakeful.domains.workflows.authoring import Function
    from wakeful.domains.workflows.blocking import LoopWatch
    from wakeful.domains.workflows.handler_context import HandlerContext
    from wakeful.domains.workflows.tables import WorkflowRun
    from wakeful.scheduler import Scheduler

MAX_MESSAGE = 2_000
CHANGES = ("mutate", "steps")  # the phases that change something outside
CUT_OFF = ("timeout", "timeout_in_mutate", "unsure")  # where a call fails that did not come to its end


class HandlerFailed(Exception):
    """A call of a handler failed: with what, and where."""

    def __init__(self, error: BaseException, place: Place) -> None:
        self.error = deciding(error, place)
        super().__init__(said(self.error))
        self.place = place


def said(error: BaseException) -> str:
    """What an error says, as it is stored."""
    return clean("; ".join(message_of(leaf) for leaf in leaves(error)))[:MAX_MESSAGE]


class Call:
    """One call of a function of a handler."""

    def __init__(self, scheduler: Scheduler, row: WorkflowRun, ctx: HandlerContext, phase: str, timeout: int) -> None:
        self._row = row
        self._ctx = ctx
        self._phase = phase
        self._called = row.handler.partition(".")[0] if phase == "steps" else phase  # as messages name it
        self._limit = min(timeout, RECONCILE_LIMIT_MS) if phase == "reconcile" else timeout
        self._work = Work(row.id, inline=isinstance(scheduler.clock, ManualClock))
        self._scheduler = scheduler

    async def run(self, function: Function, given: tuple[Any, ...], watch: LoopWatch) -> Any:
        """What the function returns; HandlerFailed where it fails, or leaves a thread at work."""
        if not self._work.inline:
            watch_programs(asyncio.get_running_loop())
        value, failed, has_ended = None, None, False
        try:
            value = await self._within_time(function, given, watch)
            failed, has_ended = self._failed_call(), True
        except HandlerFailed as error:
            failed, has_ended = error, error.place not in CUT_OFF
        finally:
            is_cut = self._phase in CHANGES and (not has_ended or self._ctx.cut_call is not None)
            at_end = functools.partial(when_ended, self._scheduler, self._row.workflow, self._row.id)
            is_left = self._work.leave(at_end, cut=is_cut)
        if failed is None and is_left:
            message = f"{self._phase} returned while a thread that it had started was still at work: await it."
            failed = HandlerFailed(LogicError(message), self._place())
        if failed is None:
            return value
        if failed.place == "mutate" and (is_left or self._ctx.has_called or self._ctx.cut_call is not None):
            failed.place = "unsure"
        raise failed

    async def _within_time(self, function: Function, given: tuple[Any, ...], watch: LoopWatch) -> Any:
        task = asyncio.current_task()
        cancels = task.cancelling() if task is not None else 0
        try:
            async with asyncio.timeout(self._limit / 1000) as timer:
                with seen_by(self._work):
                    value = await watch.watch(self._ctx.run(called(function, self._ctx, given, self._work)))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # from outside: a person's cancel, a shutdown, the time limit of the run
            if isinstance(error, TimeoutError) and timer.expired():
                raise self._late() from error
            # A task group raises what the calls in it were cancelled for.
            decided = self._failed_call(or_cut=not isinstance(error, BaseExceptionGroup))
            if decided is not None:
                raise decided from error
            shown = error if isinstance(error, Exception) else LogicError(f"{self._called} raised {error!r}")
            raise HandlerFailed(shown, self._place()) from error
        # A function that swallows that it was cut off, and returns, has not done its work all the same.
        if timer.expired():
            raise self._late()
        if task is not None and task.cancelling() > cancels:
            raise asyncio.CancelledError
        return value

    def _failed_call(self, *, or_cut: bool = True) -> HandlerFailed | None:
        """The failure of a call of `ctx`, which decides; `or_cut`: also that one was cancelled."""
        if self._ctx.failure is not None:
            return HandlerFailed(*self._ctx.failure)
        if self._ctx.cut_call is None or not or_cut:
            return None
        return HandlerFailed(self._ctx.cut_call, "mutate" if self._phase == "mutate" else "call")

    def _late(self) -> HandlerFailed:
        late = TimeoutError(f"{self._called} took longer than {format_interval(self._limit)}")
        return HandlerFailed(late, "timeout_in_mutate" if self._phase == "mutate" else "timeout")

    def _place(self) -> Place:
        return "mutate" if self._phase == "mutate" else "handler"
