"""Running one attempt of a handler, phase by phase, with a checkpoint after each."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful.errors import StoreError, StoreRefused
from wakeful.kernel.rules.outcome import ApprovalNeeded, Defer, Noop, Skip, TransientError, Wait, clean
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import from_ms
from wakeful.workflows import checkpoints
from wakeful.workflows.authoring import (
    Applied,
    Consumer,
    Function,
    MutationResult,
    NotApplied,
    Prepared,
    Producer,
    Unknown,
    Workflow,
)
from wakeful.workflows.blocking import LoopWatch
from wakeful.workflows.checkpoints import Cause, Fenced, Outgoing, as_json, noted
from wakeful.workflows.failures import LogicError, Place, author_trace, classify
from wakeful.workflows.handler_context import HandlerContext
from wakeful.workflows.phases import Failure
from wakeful.workflows.registry import registry_of
from wakeful.workflows.tables import WorkflowRun
from wakeful.workflows.timing import RECONCILE_LIMIT_MS, read_wake_at

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.views.models import Run
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

T = TypeVar("T")
log = logging.getLogger("wakeful.workflows")
MAX_MESSAGE = 2_000


class HandlerFailed(Exception):
    """A call of a handler failed: with what, and where."""

    def __init__(self, error: BaseException, place: Place) -> None:
        super().__init__(str(error))
        self.error = error
        self.place = place


class Attempt:
    """One attempt of a handler in this process."""

    def __init__(self, scheduler: Scheduler, workflow: Workflow, run: Run, row: WorkflowRun, state: Any) -> None:
        self._scheduler = scheduler
        self._workflow = workflow
        self._handler = workflow.handlers[row.handler]
        self._run = run
        self._row = row
        self._state = state

    async def drive(self) -> Any:
        """Run it to its end; what it raises says to the engine how it ended."""
        ended = await self._attempt()
        if isinstance(ended, HandlerFailed):  # raised outside of `except`: its context is the author's alone
            return await self._fail(ended.error, ended.place)
        return {"title": self._row.title, "consumed": self._row.reserved, "published": len(ended.messages)}

    async def _attempt(self) -> Outgoing | HandlerFailed:
        try:
            if isinstance(self._handler, Producer):
                if self._row.begins != "prepare":
                    return await self._finish_consumer()
                return await self._produce(self._handler)
            return await self._consume(self._handler)
        except HandlerFailed as failed:
            if failed.place == "engine" and _is_away(failed.error):
                raise failed.error from None
            return failed
        except Fenced:
            raise Noop("another node took this run over") from None
        except StoreRefused as error:  # the store works, and does not take what is in it: again would be no different
            return HandlerFailed(error, "engine")
        except (Noop, Defer, Wait, StoreError):
            raise
        except Exception as error:  # noqa: BLE001 - a mistake of ours is on record, and stops the workflow
            return HandlerFailed(error, "engine")

    # -- phases -------------------------------------------------------------------------------------------------------

    async def _produce(self, producer: Producer) -> Outgoing:
        ctx, state = await self._call("producer", producer.run, self._state)
        return await self._commit(ctx, state)

    async def _finish_consumer(self) -> Outgoing:
        """The new code has made a producer of a consumer: what that had begun is ended, and what followed is not."""
        if self._row.begins == "reconcile":
            message = f"{self._row.handler} became a producer while its change was in flight"
            await self._ask_about_mutation(message, asks=False)
        return await self._commit(None, None)

    async def _consume(self, consumer: Consumer) -> Outgoing:
        begin = self._row.begins
        if begin == "prepare":
            await self._prepare(consumer)
        elif begin == "reconcile":
            await self._reconcile(consumer)
        if begin in ("prepare", "mutate") and self._row.reserved and consumer.on_mutate is not None:
            await self._mutate(consumer.on_mutate)
        if consumer.on_next is None:
            return await self._commit(None, None)
        if self._row.mutation != "none":
            self._row = self._row._replace(phase="emitting")  # stored with the commit, or with the failure
        ctx, state = await self._call("next", consumer.on_next, self._prepared(), self._result())
        return await self._commit(ctx, state)

    async def _prepare(self, consumer: Consumer) -> None:
        if consumer.on_prepare is None:
            raise HandlerFailed(LogicError(f"{consumer.name} has no prepare."), "handler")
        _, given = await self._call("prepare", consumer.on_prepare, self._state)
        if not isinstance(given, Prepared):
            raise HandlerFailed(LogicError(f"prepare returns Prepared(...), not {given!r:.80}."), "handler")
        wake = read_wake_at(given.wake_at, self._scheduler.clock.now())
        if wake.note is not None:
            log.warning("%s.%s: %s", self._row.workflow, self._row.handler, wake.note)
        try:
            reserve = _reservations(consumer, given.reserve)
            data = as_json({"reserve": reserve, "data": given.data}, "The data of prepare")
            title = None if given.title is None else clean(str(given.title))[:MAX_MESSAGE]
            row = self._row._replace(title=title)
            self._row = await self._store(lambda tx, _: checkpoints.prepared(tx, row, reserve, data, wake))
        except LogicError as error:
            raise HandlerFailed(error, "handler") from error

    async def _mutate(self, function: Function) -> None:
        self._row = await self._store(lambda tx, _: checkpoints.in_flight(tx, self._row))
        _, value = await self._call("mutate", function, self._prepared())
        try:
            result = as_json(value, "The result of mutate")
        except LogicError as error:
            raise HandlerFailed(error, "mutate") from error
        self._row = await self._store(lambda tx, _: checkpoints.mutated(tx, self._row, result))

    async def _reconcile(self, consumer: Consumer) -> None:
        """Find out whether the mutation happened; returns only if it did."""
        row, now = self._row, self._scheduler.clock.now()
        if row.reconcile_at is not None and row.reconcile_at > now:
            raise Defer(from_ms(row.reconcile_at), "the last attempt may still be running")
        verdict: Any = Unknown()
        message = row.error or "it was cut off"
        if consumer.on_reconcile is not None:
            self._row = row._replace(tries=row.tries + 1)
            try:
                _, verdict = await self._call("reconcile", consumer.on_reconcile, self._prepared())
            except HandlerFailed as failed:
                log.warning("%s.%s: reconcile failed: %s", row.workflow, row.handler, failed.error)
                message = f"reconcile failed: {_said(failed.error)}"
        if isinstance(verdict, Applied):
            try:
                result = as_json(verdict.result, "The result of reconcile")
            except LogicError as error:
                await self._ask_about_mutation(str(error), asks=True)
            self._row = await self._store(lambda tx, _: checkpoints.mutated(tx, self._row, result))
            return
        if isinstance(verdict, NotApplied):
            await self._store(lambda tx, context: checkpoints.not_applied(tx, context, self._row))
            raise Noop("the mutation did not happen, and is prepared again")
        if not isinstance(verdict, Unknown):
            message = f"reconcile returns Applied(...), NotApplied() or Unknown(), not {verdict!r:.80}."
        await self._ask_about_mutation(message, asks=consumer.on_reconcile is not None)

    async def _commit(self, ctx: HandlerContext | None, state: Any) -> Outgoing:
        outgoing = ctx.outgoing() if ctx is not None else Outgoing()
        try:
            text = None if state is None else as_json(state, "The state that a handler returns")
        except LogicError as error:
            raise HandlerFailed(error, "handler") from error
        self._row = await self._store(lambda tx, ctx: checkpoints.committed(tx, ctx, self._row, text, outgoing))
        if checkpoints.YIELDS in (self._row.notes or ""):
            log.warning("%s.%s: %s", self._row.workflow, self._row.handler, checkpoints.YIELDS)
        return outgoing

    # -- calling and failing ------------------------------------------------------------------------------------------

    async def _call(self, phase: str, function: Function, *given: Any) -> tuple[HandlerContext, Any]:
        """Call a function of the handler within its time; a failure is classified by where it arose."""
        ctx = HandlerContext(
            self._scheduler,
            self._row,
            self._handler,
            phase,
            config=self._workflow.config,
            approved_by=self._run.approved_by,
            new_id=self._scheduler.new_id,
        )
        limit = min(self._handler.timeout, RECONCILE_LIMIT_MS) if phase == "reconcile" else self._handler.timeout
        in_mutate = phase == "mutate"
        watch = LoopWatch(f"{phase} of {self._row.workflow}.{self._row.handler}")
        try:
            async with asyncio.timeout(limit / 1000) as timer:
                value = await watch.watch(function(ctx, *given))
        except (Exception, SystemExit, asyncio.CancelledError) as error:
            task = asyncio.current_task()
            if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
                raise  # from outside: a person's cancel, a shutdown, the time limit of the run
            self._row = noted(self._row, watch.note)
            if isinstance(error, TimeoutError) and timer.expired():
                late = TimeoutError(f"{phase} took longer than {format_interval(limit)}")
                raise HandlerFailed(late, "timeout_in_mutate" if in_mutate else "timeout") from error
            if ctx.failure is not None:
                raise HandlerFailed(*ctx.failure) from error
            said = error if isinstance(error, Exception) else LogicError(f"{phase} raised {error!r}.")
            raise HandlerFailed(said, "mutate" if in_mutate else "handler") from error
        self._row = noted(self._row, watch.note)
        if ctx.failure is not None:
            raise HandlerFailed(*ctx.failure)
        return ctx, value

    async def _fail(self, error: BaseException, place: Place) -> Any:
        failure: Failure = classify(error, place)
        row = self._row
        if failure == "reconciliation":
            asks = isinstance(self._handler, Consumer) and self._handler.on_reconcile is not None
            await self._ask_about_mutation(f"mutate failed: {_said(error)}", asks=asks, error=error)
        if failure in ("transient", "approval") and row.mutation == "in_flight" and row.begins != "reconcile":
            row = row._replace(mutation="none")  # both say that nothing changed outside
        trace = author_trace(error) if failure == "logic" else ""
        cause = Cause(failure, _said(error), trace, self._workflow.auto_fix is not None)
        try:
            stored = await self._store(lambda tx, context: checkpoints.failed(tx, context, row, cause))
        except Fenced:
            raise Noop("another node took this run over") from None
        if failure == "logic":
            registry_of(self._scheduler.kinds).on_code_failed()
        if failure == "transient" and stored.until is not None:
            raise Defer(from_ms(stored.until), _said(error)) from error
        if failure == "approval":
            raise error if isinstance(error, ApprovalNeeded) else ApprovalNeeded(_said(error)) from error
        if place == "engine" or not isinstance(error, Skip | Noop | Defer | Wait):
            raise error
        message = f"{type(error).__name__} is not for handlers of workflows: {_said(error)}"
        raise LogicError(message) from error

    async def _ask_about_mutation(self, message: str, *, asks: bool, error: BaseException | None = None) -> None:
        """Whether the mutation happened is not known: end this run, so that another one or a person finds out."""
        try:
            stored = await self._store(
                lambda tx, context: checkpoints.uncertain(tx, context, self._row, message, asks=asks)
            )
        except Fenced:
            raise Noop("another node took this run over") from None
        if stored.until is None:
            why = f"{message}. Did the mutation happen? Settle it: wakeful workflow settle"
            raise Wait(why=clean(why)) from error
        if error is not None and not isinstance(error, Skip | Noop | Defer | Wait | TransientError):
            raise error
        raise Noop(message)

    def _prepared(self) -> Prepared:
        kept = json.loads(self._row.prepared) if self._row.prepared is not None else {"reserve": {}, "data": None}
        wake_at = None if self._row.wake_at is None else from_ms(self._row.wake_at)
        return Prepared(kept["reserve"], kept["data"], wake_at, self._row.title)

    def _result(self) -> MutationResult:
        if self._row.mutation == "applied":
            return MutationResult("applied", json.loads(self._row.result) if self._row.result is not None else None)
        return MutationResult("skipped" if self._row.mutation == "skipped" else "none")

    async def _store(self, work: Callable[[Transaction, Context], T]) -> T:
        # Nothing that becomes due with it can start before this run has ended, and then the engine looks anyway.
        return await self._scheduler.transact(work, wakes=False)


def _reservations(consumer: Consumer, given: Any) -> dict[str, list[str]]:
    """What prepare reserved, by topic; LogicError where it cannot be reserved."""
    if not isinstance(given, Mapping) or not all(isinstance(events, list | tuple) for events in given.values()):
        message = f"reserve maps topics to lists of event ids, as in {{'mail': [mail.id]}}, and is {given!r:.80}."
        raise LogicError(message)
    unknown = sorted(str(topic) for topic in set(given) - set(consumer.subscribes))
    if unknown:
        message = f"{consumer.name} reserved events of {unknown[0]!r:.80}, which it does not subscribe to."
        raise LogicError(message)
    strange = next((event for events in given.values() for event in events if not isinstance(event, str)), None)
    if strange is not None:
        message = (
            f"{consumer.name} reserved {strange!r:.80}, which is no id of an event: give the `id` of what peek found."
        )
        raise LogicError(message)
    return {topic: list(events) for topic, events in given.items()}


def _is_away(error: BaseException) -> bool:
    """Whether the store could not be asked, and may be again: nothing is wrong with the workflow."""
    return isinstance(error, StoreError) and not isinstance(error, StoreRefused)


def _said(error: BaseException) -> str:
    try:
        text = str(error) or type(error).__name__
    except Exception:  # noqa: BLE001 - an error that cannot be shown is still an error
        text = type(error).__name__
    return clean(text)[:MAX_MESSAGE]
