"""Running one attempt of a handler with steps: take an event, call the function, and record each of its steps."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from weakref import WeakKeyDictionary

from wakeful import ids
from wakeful.domains.workflows.approving import Approval
from wakeful.domains.workflows.authoring import Event
from wakeful.domains.workflows.calling import HandlerFailed, said
from wakeful.domains.workflows.checkpoints import Fenced, PendingWrites
from wakeful.domains.workflows.failures import LogicError, Place, author_trace, classify
from wakeful.domains.workflows.registry import registry_of
from wakeful.domains.workflows.running import Attempt
from wakeful.domains.workflows.steps import ending, recording
from wakeful.domains.workflows.steps.authoring import StepHandler
from wakeful.domains.workflows.steps.context import StepContext
from wakeful.domains.workflows.steps.ending import Failure
from wakeful.domains.workflows.steps.failures import RemovedStep, StepFailed, StepUncertain
from wakeful.domains.workflows.steps.known_names import calls_step
from wakeful.domains.workflows.steps.rules import RetryDecision, fate
from wakeful.domains.workflows.steps.tables import UNCERTAIN, StepRow
from wakeful.domains.workflows.steps.taking import ClaimedWork, KeyedEvent, Untaken, Wanting, take, taken_before
from wakeful.domains.workflows.steps.together import Together
from wakeful.domains.workflows.steps.words import no_such_step
from wakeful.domains.workflows.threads import seen_by
from wakeful.domains.workflows.turns.rounds import RESTS
from wakeful.kernel.rules.outcome import ApprovalNeeded, Defer, Noop, Skip, Wait
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.domains.workflows.authoring import Workflow
    from wakeful.domains.workflows.handler_context import HandlerContext
    from wakeful.domains.workflows.topics.tables import EventRow
    from wakeful.scheduler import Scheduler

T = TypeVar("T")
MOST_BATCHES = 1_000  # of events that get their keys


class Stores:
    """What the runs of one scheduler store together."""

    def __init__(self) -> None:
        self.taking: Together[Wanting, ClaimedWork | Untaken] = Together(take, wakes=True)  # others may start with it
        self.steps = Together(recording.steps_written)
        self.commits = Together(recording.steps_committed)


_STORES: WeakKeyDictionary[Scheduler, Stores] = WeakKeyDictionary()


class StepAttempt(Attempt):
    """One attempt at an event in this process."""

    context_type = StepContext

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        if self._scheduler not in _STORES:
            _STORES[self._scheduler] = Stores()
        self._stores = _STORES[self._scheduler]
        self._writing = asyncio.Lock()  # steps may be done alongside each other, and each writes the attempt
        self._taken: ClaimedWork | None = None

    @property
    def event_id(self) -> int:
        """The event that it is about."""
        return self._now().task.event_id

    def _now(self) -> ClaimedWork:
        assert self._taken is not None  # noqa: S101 - it has taken one before anything is called
        return self._taken

    def _steps(self) -> StepHandler:
        assert isinstance(self._handler, StepHandler)  # noqa: S101 - it is made for no other
        return self._handler

    # -- the run ------------------------------------------------------------------------------------------------------

    async def _phases(self) -> PendingWrites:
        self._taken = await self._take()
        self._row = self._taken.attempt
        if self._taken.approvals is not None:
            self._approval = Approval(self._taken.approvals, self._row.version)
        handler = self._steps()
        if not self._taken.task.tries:
            self._key_of(self._taken.event)  # what its function raises is a failure of this event
        ctx, _ = await self._call("steps", handler.run, self._taken.event)
        assert isinstance(ctx, StepContext)  # noqa: S101 - see _context
        self._refuse_unasked(ctx)
        outgoing = ctx.outgoing()
        row = self._row
        try:
            self._row = await self._stores.commits.store(self._scheduler, recording.Commit(row, outgoing))
        except LogicError as error:  # another workflow cannot take what is published
            raise HandlerFailed(error, "handler") from error
        if RESTS in (self._row.notes or ""):
            ctx.log.warning(RESTS)
        return outgoing

    def _context(self, phase: str) -> HandlerContext:
        ctx = super()._context(phase)
        assert isinstance(ctx, StepContext)  # noqa: S101 - see context_type
        ctx.begin(self, self._now().steps)
        return ctx

    async def _take(self) -> ClaimedWork:
        if self._row.begins == "steps":
            return await self._take_again()
        wanting = Wanting(self._row)
        for _ in range(MOST_BATCHES):
            found = await self._stores.taking.store(self._scheduler, wanting)
            if isinstance(found, ClaimedWork):
                return found
            if not found.unkeyed:
                raise Noop("there is nothing to do")
            keyed = [KeyedEvent(event, self._key_or_own(event)) for event in found.unkeyed]
            wanting = Wanting(self._row, keyed, found.after)
        raise Noop("there is nothing to do yet")

    async def _take_again(self) -> ClaimedWork:
        """Continue with what the last attempt at this place was at."""
        row, now = self._row, self._scheduler.clock.now()
        if row.reconcile_at is not None and row.reconcile_at > now:
            until, why = row.reconcile_at, "the last attempt may still be running"
            await self._store(lambda tx, context: ending.put_off(tx, context, row, until, why))
            raise Noop(why)
        found = await self._scheduler.read(lambda tx: taken_before(tx, row))
        if found is None:
            raise Fenced
        return found

    def _key_or_own(self, event: EventRow) -> str:
        """The key of an event; one whose key cannot be made gets its own, and fails when it is taken."""
        text = ids.encode("evt", event.id)
        seen = Event(text, event.message_id, event.topic, json.loads(event.payload), from_ms(event.at), None)
        try:
            return self._steps().key_of(seen)
        except (Exception, SystemExit):  # noqa: BLE001 - raised again by the attempt at this event
            return text

    def _key_of(self, event: Event) -> None:
        try:
            self._steps().key_of(event)
        except (Exception, SystemExit) as error:
            shown = error if isinstance(error, Exception) else LogicError(f"the function of the key raised {error!r}")
            raise HandlerFailed(shown, "handler") from error

    # -- steps --------------------------------------------------------------------------------------------------------

    async def begin_step(self, step: StepRow, caught: Sequence[str]) -> None:
        """The step is on record before it is called."""
        async with self._writing:
            write = recording.StepWrite(self._row, step, doubtful=True, caught=caught)
            self._row = await self._checked(self._stores.steps.store(self._scheduler, write))

    async def end_step(self, step: StepRow, *, doubtful: bool) -> None:
        """How the step ended is on record before the handler continues."""
        async with self._writing:
            write = recording.StepWrite(self._row, step, doubtful=doubtful)
            self._row = await self._checked(self._stores.steps.store(self._scheduler, write))

    async def ask_about(self, step: StepRow) -> StepRow:
        """That reconcile is asked is on record before it is called."""
        async with self._writing:
            row = self._row
            return await self._checked(self._store(lambda tx, _: recording.asked_about(tx, row, step)))

    async def _checked(self, storing: Awaitable[T]) -> T:
        """A checkpoint in the midst of the handler: that it failed is not the author's, and decides the run."""
        try:
            with seen_by(None):
                return await storing
        except Exception as error:
            if self._ctx is not None:
                self._ctx.failure = self._ctx.failure or (error, "engine")
            raise

    def missing_steps(self, names: Sequence[str]) -> list[str]:
        """Those of the recorded steps that other code recorded, and that this code does not have."""
        task = self._now().task
        if not names or task.accepted == self._row.version:
            return []
        by_name = {step.name: step for step in self._now().steps}
        others = [name for name in names if by_name.get(name) and by_name[name].version != self._row.version]
        return [name for name in others if not calls_step(self._steps().run, name)]

    def _refuse_unasked(self, ctx: StepContext) -> None:
        """The function has returned, and did not call for every step on record."""
        task, unasked = self._now().task, ctx.unasked()
        if not unasked or task.accepted == self._row.version:
            return
        open_ones = [name for name in unasked if ctx.known[name].status == "uncertain"]
        changed = [name for name in unasked if ctx.known[name].version != self._row.version]
        for name in [*changed, *open_ones][:1]:
            raise HandlerFailed(RemovedStep(name), "handler")

    # -- failing ------------------------------------------------------------------------------------------------------

    async def _fail(self, error: BaseException, place: Place) -> Any:
        if isinstance(error, Fenced):
            raise Noop("another node took this run over")
        if self._taken is None:  # nothing was taken: a mistake of ours
            return await super()._fail(error, place)
        if isinstance(error, ApprovalNeeded):
            await self._question_person(error)
        failure = self._judge(error, place)._replace(cuts=self._cuts(error))
        row = self._row
        try:
            await self._store(lambda tx, context: ending.task_failed(tx, context, row, failure))
        except Fenced:
            raise Noop("another node took this run over") from None
        if failure.fate.follows == "stop" and not failure.uncertain:
            registry_of(self._scheduler.host.kinds).on_code_failed()
        return self._raise(error, failure)

    def _raise(self, error: BaseException, failure: Failure) -> NoReturn:
        """Say to the engine how the run ended."""
        if failure.fate.follows == "retry" and isinstance(error, StepUncertain):
            raise Noop(failure.message)
        if isinstance(error, StepFailed) and error.__cause__ is not None:
            error = error.__cause__
        if isinstance(error, Skip | Noop | Defer | Wait):
            message = f"{type(error).__name__} is not for handlers of workflows: {said(error)}"
            raise LogicError(message) from error
        raise error

    async def _question_person(self, error: ApprovalNeeded) -> NoReturn:
        """The run waits for a person, with its event and its place."""
        if error.about is None and self._ctx is not None:
            error.about = self._ctx.about()
        row, caught = self._row, self._ctx.caught if isinstance(self._ctx, StepContext) else []
        try:
            await self._store(lambda tx, _: recording.questioned(tx, row, caught, said(error)))
        except Fenced:
            raise Noop("another node took this run over") from None
        raise error

    def _cuts(self, error: BaseException) -> dict[str, str]:
        """Why it is not known of steps whether they happened."""
        known = self._ctx.known.values() if isinstance(self._ctx, StepContext) else ()
        found = {step.name: step.error for step in known if step.status == UNCERTAIN and step.error is not None}
        return {**found, error.step: error.why} if isinstance(error, StepUncertain) else found

    def _judge(self, error: BaseException, place: Place) -> Failure:
        """What the error means for the event."""
        task, handler, now = self._now().task, self._steps(), self._scheduler.clock.now()
        hook = self._workflow.auto_fix is not None
        if isinstance(error, StepUncertain):
            return self._judge_doubt(error)
        if isinstance(error, RemovedStep):
            text = no_such_step(error.step, self._row.workflow, self._now().event.id)
            return Failure(text, RetryDecision("park"), counts=False)
        cause = error.__cause__ if isinstance(error, StepFailed) and error.__cause__ is not None else error
        if place == "engine":
            kind = "mistake"
        elif isinstance(error, StepFailed):
            kind = classify(cause, "call")
        else:
            kind = "mistake" if isinstance(error, LogicError) else classify(error, place)
        message = f"{error.step}: {said(cause)}" if isinstance(error, StepFailed) else said(error)
        chosen = fate(kind, task.tries + 1, handler.retry, handler.on_failure, now)
        trace = author_trace(cause) if kind != "transient" else ""
        return Failure(message, chosen, trace=trace, has_hook=hook and kind == "logic")

    def _judge_doubt(self, error: StepUncertain) -> Failure:
        """Reconcile is asked again later, or a person is."""
        now = self._scheduler.clock.now()
        if error.delay is not None:
            return Failure(str(error), RetryDecision("retry", now + error.delay), counts=False)
        follows = RetryDecision("park" if self._steps().on_failure == "park" else "stop")
        return Failure(error.why, follows, counts=False, uncertain=True)


def attempt_of(workflow: Workflow, name: str) -> type[Attempt]:
    """What runs a handler."""
    return StepAttempt if isinstance(workflow.handlers[name], StepHandler) else Attempt
