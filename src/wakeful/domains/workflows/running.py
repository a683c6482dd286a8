"""Running one attempt of a handler, phase by phase, with a checkpoint after each."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from wakeful import ids
from wakeful.domains.workflows import checkpoints
from wakeful.domains.workflows.approving import AccessRefused, Approval
from wakeful.domains.workflows.authoring import (
    Applied,
    Consumer,
    Event,
    Function,
    MutationResult,
    NotApplied,
    Prepared,
    Producer,
    Unknown,
    Workflow,
    with_state,
)
from wakeful.domains.workflows.blocking import LoopWatch
from wakeful.domains.workflows.calling import MAX_MESSAGE, Call, HandlerFailed, said
from wakeful.domains.workflows.checkpoints import Cause, Fenced, HandlerPlan, Outdated, PendingWrites, as_json, noted
from wakeful.domains.workflows.failures import (
    LogicError,
    Place,
    author_trace,
    classify,
    is_refused,
    shown,
    without_change,
)
from wakeful.domains.workflows.handler_context import HandlerContext
from wakeful.domains.workflows.phases import Failure, why_uncertain
from wakeful.domains.workflows.registry import registry_of
from wakeful.domains.workflows.steps.places import base_of
from wakeful.domains.workflows.tables import WorkflowRun, output_of
from wakeful.domains.workflows.timing import RECONCILE_TRIES, read_wake_at
from wakeful.domains.workflows.turns.rounds import RESTS
from wakeful.errors import StoreError, StoreRefused
from wakeful.kernel.model.run import approval_record
from wakeful.kernel.rules.outcome import APPROVAL, ApprovalNeeded, Defer, Noop, Skip, TransientError, Wait, clean
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.model.run import Run
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

T = TypeVar("T")
log = logging.getLogger("wakeful.workflows")
CHANGED_DATA = "mutate changed prepared.data, and next does not see that: return it, and use result.value"
MAX_READS = 5  # of events that change again and again while prepare runs


class Attempt:
    """One attempt of a handler in this process."""

    context_type: type[HandlerContext] = HandlerContext

    def __init__(self, scheduler: Scheduler, workflow: Workflow, run: Run, row: WorkflowRun, state: Any) -> None:
        self._scheduler = scheduler
        self._workflow = workflow
        self._handler = workflow.handlers[base_of(row.handler)]
        self._run = run
        self._row = row
        self._state = state
        self._approval = Approval(
            approval_record(run) or run.payload["approvals"], row.version, is_answer=run.reason == APPROVAL
        )
        self._ctx: HandlerContext | None = None  # of the last call

    async def drive(self) -> Any:
        """Run it to its end; what it raises says to the engine how it ended."""
        ended = await self._attempt()
        if isinstance(ended, HandlerFailed):  # raised outside of `except`: its context is the author's alone
            return await self._fail(ended.error, ended.place)
        return output_of(self._row, len(ended.messages))

    async def _attempt(self) -> PendingWrites | HandlerFailed:
        try:
            return await self._phases()
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

    async def _phases(self) -> PendingWrites:
        if isinstance(self._handler, Producer):
            if self._row.begins != "prepare":
                return await self._finish_consumer()
            return await self._produce(self._handler)
        assert isinstance(self._handler, Consumer)  # noqa: S101 - the third type has attempts of its own
        return await self._consume(self._handler)

    async def _produce(self, producer: Producer) -> PendingWrites:
        ctx, state = await self._call("producer", producer.run, self._state)
        return await self._commit(ctx, state)

    async def _finish_consumer(self) -> PendingWrites:
        """The new code has made a producer of a consumer: what that had begun is ended, and what followed is not."""
        if self._row.begins == "reconcile":
            message = f"{self._row.handler} became a producer while its change was in flight"
            await self._ask_about_mutation(message, asks=False)
        return await self._commit(None, None)

    async def _consume(self, consumer: Consumer) -> PendingWrites:
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
        following = with_state(consumer.on_next, self._state)
        ctx, state = await self._call("next", following, self._prepared(), self._result())
        return await self._commit(ctx, state)

    async def _prepare(self, consumer: Consumer) -> None:
        """Prepare, once more where an event that was read changed before it was reserved."""
        for _ in range(MAX_READS):
            try:
                return await self._prepare_once(consumer)
            except Outdated as error:
                changed = str(error)
        raise HandlerFailed(TransientError(f"{changed}, {MAX_READS} times in a row"), "handler")

    async def _prepare_once(self, consumer: Consumer) -> None:
        if consumer.on_prepare is None:
            raise HandlerFailed(LogicError(f"{consumer.name} has no prepare."), "handler")
        try:
            ctx, given, data = await self._choose(consumer, consumer.on_prepare)
            if not ctx.seen.covers(data):  # something else was approved: without that it is asked about again
                self._approval = Approval()
                ctx, given, data = await self._choose(consumer, consumer.on_prepare)
            wake = read_wake_at(given.wake_at, self._scheduler.clock.now())
            if wake.note is not None:
                log.warning("%s.%s: %s", self._row.workflow, self._row.handler, wake.note)
            title = None if given.title is None else _title(given.title)
            until = ctx.seen.until
            watermark = self._row.watermark if until is None else min(until, self._row.watermark)
            row = self._row._replace(title=title, watermark=watermark, prepared=data)
            plan = HandlerPlan(wake, self._approval.bound(data) if ctx.seen.used else None)
            reserve = reservations(consumer, given.reserve)
            self._row = await self._store(lambda tx, _: checkpoints.prepared(tx, row, reserve, ctx.revisions, plan))
        except LogicError as error:
            raise HandlerFailed(error, "handler") from error

    async def _choose(self, consumer: Consumer, function: Function) -> tuple[HandlerContext, Prepared, str]:
        """Call prepare; what it chose, also as it is stored."""
        ctx, given = await self._call("prepare", function, self._state)
        if not isinstance(given, Prepared):
            raise HandlerFailed(LogicError(f"prepare returns Prepared(...), not {shown(given)}."), "handler")
        reserve = reservations(consumer, given.reserve)
        kept = {"reserve": reserve, "data": given.data}
        numbers = {text: ids.number_of("evt", text) for found in reserve.values() for text in found}
        revisions = {text: ctx.revisions.get(number or 0, 0) for text, number in numbers.items()}
        if any(revisions.values()):  # another payload makes it another change
            kept["revisions"] = {text: revision for text, revision in revisions.items() if revision}
        return ctx, given, as_json(kept, "The data of prepare")

    async def _mutate(self, function: Function) -> None:
        self._row = await self._store(lambda tx, _: checkpoints.in_flight(tx, self._row))
        given = self._prepared()
        _, value = await self._call("mutate", function, given)
        if given.data != self._prepared().data:
            self._row = noted(self._row, CHANGED_DATA)
            log.warning("%s.%s: %s", self._row.workflow, self._row.handler, CHANGED_DATA)
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
        if row.mutate_error is None:
            self._row = row = row._replace(mutate_error=message)
        if consumer.on_reconcile is not None and row.tries < RECONCILE_TRIES:
            self._row = row._replace(tries=await self._store(lambda tx, _: checkpoints.count_try(tx, row)))
            message = (row.mutate_error or "").partition("\n")[0]
            try:
                _, verdict = await self._call("reconcile", consumer.on_reconcile, self._prepared())
            except HandlerFailed as failed:
                log.warning("%s.%s: reconcile failed: %s", row.workflow, row.handler, failed)
                message = f"reconcile failed: {said(failed.error)}"
        if isinstance(verdict, Applied):
            try:
                result = as_json(verdict.result, "The result of reconcile")
            except LogicError as error:
                await self._ask_about_mutation(str(error), asks=True)
            self._row = await self._store(lambda tx, _: checkpoints.mutated(tx, self._row, result))
            return
        if isinstance(verdict, NotApplied):
            await self._did_not_happen()
        if not isinstance(verdict, Unknown):
            message = f"reconcile returns Applied(...), NotApplied() or Unknown(), not {shown(verdict)}."
        await self._ask_about_mutation(message, asks=consumer.on_reconcile is not None)

    async def _did_not_happen(self) -> NoReturn:
        """Nothing changed outside: what comes next is decided by the error that mutate ended with."""
        row = self._row
        if row.failure is None:  # it was cut off, and did not fail
            await self._store(lambda tx, context: checkpoints.not_applied(tx, context, row))
            raise Noop("the mutation did not happen, and is prepared again")
        self._row = row._replace(mutation="none", refused=0)
        known: type[Exception] = {"transient": TransientError, "approval": AccessRefused}.get(row.failure, LogicError)
        why, _, trace = (row.mutate_error or "").partition("\n")
        error = known(f"{why}; reconcile found that it did not happen")
        if isinstance(error, LogicError):
            error.trace = trace
        raise HandlerFailed(error, "handler")

    async def _commit(self, ctx: HandlerContext | None, state: Any) -> PendingWrites:
        outgoing = ctx.outgoing() if ctx is not None else PendingWrites()
        try:
            text = None if state is None else as_json(state, "The state that a handler returns")
        except LogicError as error:
            raise HandlerFailed(error, "handler") from error
        self._row = await self._store(lambda tx, ctx: checkpoints.committed(tx, ctx, self._row, text, outgoing))
        if RESTS in (self._row.notes or ""):
            log.warning("%s.%s: %s", self._row.workflow, self._row.handler, RESTS)
        return outgoing

    # -- calling and failing ------------------------------------------------------------------------------------------

    def _context(self, phase: str) -> HandlerContext:
        return self.context_type(
            self._scheduler,
            self._row,
            self._handler,
            phase,
            state=self._state,
            config=self._workflow.config,
            approval=self._approval,
            new_id=self._scheduler.host.new_id,
        )

    async def _call(self, phase: str, function: Function, *given: Any) -> tuple[HandlerContext, Any]:
        """Call a function of the handler within its time; a failure is classified by where it arose."""
        self._ctx = ctx = self._context(phase)
        watch = LoopWatch(f"{phase} of {self._row.workflow}.{self._row.handler}")
        try:
            call = Call(self._scheduler, self._row, ctx, phase, self._handler.timeout)
            return ctx, await call.run(function, given, watch)
        finally:
            self._row = noted(self._row, watch.note)

    async def _fail(self, error: BaseException, place: Place) -> Any:
        failure: Failure = classify(error, place)
        row = self._row
        if failure == "reconciliation":
            asks = isinstance(self._handler, Consumer) and self._handler.on_reconcile is not None
            message = f"mutate failed: {said(error)}"
            self._row = row._replace(
                failure=without_change(error, place),
                refused=int(is_refused(error, place)),
                mutate_error=f"{message}\n{author_trace(error)}",
            )
            await self._ask_about_mutation(message, asks=asks, error=error)
        if failure in ("transient", "approval") and row.mutation == "in_flight" and row.begins != "reconcile":
            row = row._replace(mutation="none")  # both say that nothing changed outside
        if failure == "approval":
            error = self._question(error)
        trace = author_trace(error) if failure == "logic" else ""
        cause = Cause(failure, said(error), trace, self._workflow.auto_fix is not None)
        try:
            stored = await self._store(lambda tx, context: checkpoints.failed(tx, context, row, cause))
        except Fenced:
            raise Noop("another node took this run over") from None
        if failure == "logic":
            registry_of(self._scheduler.host.kinds).on_code_failed()
        if failure == "transient" and stored.until is not None:
            raise Defer(from_ms(stored.until), said(error)) from error
        if place == "engine" or failure == "approval" or not isinstance(error, Skip | Noop | Defer | Wait):
            raise error
        message = f"{type(error).__name__} is not for handlers of workflows: {said(error)}"
        raise LogicError(message) from error

    def _question(self, error: BaseException) -> ApprovalNeeded:
        """What a person is asked, and what the answer is about."""
        if isinstance(error, AccessRefused):
            return error
        if not isinstance(error, ApprovalNeeded):
            refused = AccessRefused(said(error))
            refused.__cause__ = error
            return refused
        error.about = self._ctx.about() if self._ctx is not None else None
        return error

    async def _ask_about_mutation(self, message: str, *, asks: bool, error: BaseException | None = None) -> None:
        """Whether the mutation happened is not known: end this run, so that another one or a person finds out."""
        message = why_uncertain(self._row, message)
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


def _title(given: object) -> str:
    return clean(given if isinstance(given, str) else shown(given))[:MAX_MESSAGE]


def _is_away(error: BaseException) -> bool:
    """Whether the store could not be asked, and may be again: nothing is wrong with the workflow."""
    return isinstance(error, StoreError) and not isinstance(error, StoreRefused)


def reservations(consumer: Consumer, given: Any) -> dict[str, list[str]]:
    """What prepare reserved, by topic; LogicError where it cannot be reserved."""
    if not isinstance(given, Mapping) or not all(isinstance(events, list | tuple) for events in given.values()):
        message = f"reserve maps topics to lists of event ids, as in {{'mail': [mail.id]}}, and is {shown(given)}."
        raise LogicError(message)
    unknown = sorted(shown(topic) for topic in set(given) - set(consumer.subscribes))
    if unknown:
        message = f"{consumer.name} reserved events of {unknown[0]}, which it does not subscribe to."
        raise LogicError(message)
    for event in (event for events in given.values() for event in events if not isinstance(event, str)):
        what = "an Event" if isinstance(event, Event) else shown(event)
        message = f"{consumer.name} reserved {what}, which is no id of an event: give the `id` of what peek found."
        raise LogicError(message)
    return {topic: list(events) for topic, events in given.items()}
