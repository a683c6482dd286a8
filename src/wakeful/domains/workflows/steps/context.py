"""The `ctx` of a handler with steps: what it does outside is recorded step by step, and done once.

A step is on record before it is called. One that is done is not called again: what it returned is on record. One that
was cut off may have happened: its `reconcile` finds out, or a person. One that failed is called again by the next
attempt, unless the handler caught the failure and went on.
"""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
import json
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from wakeful.clock import sleep
from wakeful.domains.workflows.approving import PHASE, PREPARED, VERSION, fingerprint
from wakeful.domains.workflows.authoring import Applied, NotApplied, Unknown, check_name
from wakeful.domains.workflows.calling import said
from wakeful.domains.workflows.checkpoints import as_json
from wakeful.domains.workflows.failures import LogicError, is_refused, leaves
from wakeful.domains.workflows.forgotten import awaited
from wakeful.domains.workflows.handler_context import HandlerContext
from wakeful.domains.workflows.publishing import NewEvent, is_key
from wakeful.domains.workflows.steps.authoring import STEP_LIMIT_MS, read_limit
from wakeful.domains.workflows.steps.failures import RemovedStep, StepFailed, StepUncertain
from wakeful.domains.workflows.steps.outgoing import why_not_elsewhere
from wakeful.domains.workflows.steps.rules import MAX_HOPS
from wakeful.domains.workflows.steps.tables import DONE, FAILED, UNCERTAIN, StepRow
from wakeful.domains.workflows.steps.wanted import StepRequest
from wakeful.domains.workflows.threads import counted, current
from wakeful.domains.workflows.timing import RECONCILE_LIMIT_MS, RECONCILE_TRIES, reconcile_delay
from wakeful.errors import IntervalParseError, InvalidJob
from wakeful.kernel.rules.outcome import ApprovalNeeded, TransientError, clean
from wakeful.triggers.durations import format_interval

if TYPE_CHECKING:
    from wakeful.domains.workflows.steps.running import StepAttempt

T = TypeVar("T")
MAX_STEP_NAME = 200
MAX_VALUE = 16 * 1024 * 1024


class StepContext(HandlerContext):
    """The `ctx` of one call of a handler with steps."""

    attempt: StepAttempt
    known: dict[str, StepRow]

    def begin(self, attempt: StepAttempt, steps: Sequence[StepRow]) -> None:
        """Give it the attempt that it belongs to, and what earlier ones recorded."""
        self.attempt = attempt
        self.known = {step.name: step for step in steps}
        self.asked: set[str] = set()  # names of steps that the function has called for
        self._unasked = dict.fromkeys(self.known)  # those on record that it has not
        self._open = {step.name for step in steps if step.status in ("running", UNCERTAIN)}  # may have happened or not
        self.failed: dict[str, asyncio.Task[Any] | None] = {}  # steps that failed, each with the task it failed in
        self.caught: list[str] = []  # those of them that the handler went on after
        self._root = asyncio.current_task()
        self._at_work: set[asyncio.Task[Any]] = set()  # steps alongside others that have not ended

    # -- what authors call --------------------------------------------------------------------------------------------

    @awaited
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
    ) -> Coroutine[Any, Any, Any]:
        """Do something outside once, and return what it returned, also after a crash or in a later attempt."""
        self._note_caught()
        wanted = StepRequest(name, function, args, kwargs)
        question = approve if isinstance(approve, str) else "" if approve else None
        return self._noted(wanted, reconcile, timeout, question)

    async def run(self, call: Awaitable[T]) -> T:
        """As for every function; steps that it had begun in other tasks, and left there, end and are on record."""
        try:
            return await super().run(call)
        except asyncio.CancelledError:
            self._cancel_others()
            raise
        finally:
            await self._others_ended()

    async def _others_ended(self) -> None:
        try:
            while self._at_work:
                await asyncio.wait(self._at_work)
        except asyncio.CancelledError:
            self._cancel_others()
            while self._at_work:
                await asyncio.wait(self._at_work)
            raise

    def _cancel_others(self) -> None:
        for step in self._at_work:
            step.cancel()

    async def _noted(self, wanted: StepRequest, reconcile: Any, timeout: Any, question: str | None) -> Any:
        """The step; beside others it is a task of its own, so that one that fails does not cut off those beside it."""
        wanted.caller = asyncio.current_task()
        step = self._step(wanted, reconcile, timeout, question)
        if wanted.caller is self._root:
            return await step
        task = asyncio.get_running_loop().create_task(step)
        self._at_work.add(task)
        task.add_done_callback(self._ended_beside)
        return await asyncio.shield(task)

    def _ended_beside(self, task: asyncio.Task[Any]) -> None:
        self._at_work.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited for it may be gone: then it is on record alone

    async def _step(self, wanted: StepRequest, reconcile: Any, timeout: Any, question: str | None) -> Any:
        name = wanted.name
        self._check(wanted)
        if reconcile is not None and not callable(reconcile):
            self._refuse(f"reconcile of the step {name!r} is a function, not {reconcile!r:.80}.")
        try:
            wanted.limit = read_limit(timeout, STEP_LIMIT_MS)
        except (InvalidJob, IntervalParseError) as error:
            self._refuse(f"timeout of the step {name!r}: {error}")
        known = self.known.get(name)
        if known is not None and known.status == DONE:
            return json.loads(known.value) if known.value is not None else None
        if known is not None and known.status == FAILED and known.caught:
            raise StepFailed(name, known.error or "", known.error_type)
        await self._refuse_changed(wanted)
        if known is not None and (known.status != FAILED or (reconcile is not None and not known.sure)):
            happened = await self._find_out(wanted, known, reconcile)
            if happened is not None:
                return json.loads(happened.value) if happened.value is not None else None
        if question is not None:
            self._ask_for(wanted, question)
        return await self._do(wanted, reconciles=reconcile is not None)

    @awaited
    async def publish(
        self,
        topic: str,
        payload: Any = None,
        *,
        message_id: str | int,
        input: str | None = None,  # noqa: A002 - as authors write it
    ) -> None:
        """Publish an event with the commit of this run; also into a topic of another workflow, `books.entries`."""
        self._permit("publish")
        declared = self._handler.publishes
        workflow, dot, name = str(topic).partition(".")
        if (dot and declared is None) or (declared is not None and topic not in declared):
            self._refuse(f"{self._handler.name} publishes to {topic!r:.80}, which it does not name in `publishes`.")
        text = self._text("message_id", message_id)
        try:
            check_name("workflow" if dot else "topic", workflow)
            body = as_json(payload, f"The payload for {check_name('topic', name) if dot else topic}")
        except (LogicError, InvalidJob) as error:
            self._refuse(str(error))
        if dot and workflow != self._attempt.workflow:
            await self._refuse_elsewhere(workflow, name)
        self._messages.append(NewEvent(topic, text, body, await self._cause(input)))

    async def _refuse_elsewhere(self, workflow: str, topic: str) -> None:
        """What cannot be published into another workflow is said before the run has done more."""
        if self._attempt.hops >= MAX_HOPS:
            self._refuse(
                f"The event came through {MAX_HOPS} workflows, and {self._handler.name} would publish it into "
                f"{workflow}.{topic}: workflows that publish into each other must come to an end."
            )
        why = await self._read(lambda tx: why_not_elsewhere(tx, workflow, topic))
        if why is not None:
            self._refuse(why)

    @property
    def approved_by(self) -> str | None:
        """Who approved what the handler asked about itself; steps ask for themselves."""
        return self._approval.of_prepared(self._attempt.prepared, self._phase)

    def about(self) -> dict[str, Any]:
        """What a question is about that the handler asks itself."""
        return {
            PHASE: self._phase,
            VERSION: self._attempt.version,
            PREPARED: fingerprint(self._attempt.prepared or ""),
        }

    # -- checks -------------------------------------------------------------------------------------------------------

    def _note_caught(self) -> None:
        """Another step is called for: of those that failed, the handler has caught what it can have seen.

        That is what failed in the same task, and for the task of the handler itself what failed in one that is over.
        Steps alongside it, which are called for without looking at each other, have caught nothing.
        """
        here = asyncio.current_task()
        seen = [
            name
            for name, task in self.failed.items()
            if task is here or (here is self._root and task is not None and task.done())
        ]
        self.caught += seen
        for name in seen:
            del self.failed[name]

    def _check(self, wanted: StepRequest) -> None:
        name: Any = wanted.name
        function: Any = wanted.function
        self._permit("step")
        if self.failure is not None:
            raise self.failure[0]
        if not isinstance(name, str) or not is_key(name, MAX_STEP_NAME):
            self._refuse(f"The name of a step is a text of 1 to {MAX_STEP_NAME} bytes, not {name!r:.80}.")
        if not callable(function):
            shown = (
                f"the coroutine of {function.__name__}(...)" if inspect.iscoroutine(function) else f"{function!r:.80}"
            )
            if inspect.iscoroutine(function):
                function.close()
            self._refuse(
                f'ctx.step is given a name, a function and its arguments, as in `await ctx.step("pay", pay, bill)`, '
                f"not {shown}."
            )
        if name in self.asked:
            self._refuse(
                f"{self._handler.name} has two steps called {name!r:.80}: the name of a step is used once in a run. "
                "Rename one, or add to the name what tells them apart."
            )
        self.asked.add(name)
        self._unasked.pop(name, None)

    async def _refuse_changed(self, wanted: StepRequest) -> None:
        """Other code recorded steps that this code does not have: doing another one could do the same once more."""
        missing = self._missing()
        if missing and wanted.caller is not self._root:
            await sleep(0)  # those alongside it are called for at the same time
            missing = self._missing()
        if missing:
            error = RemovedStep(missing[0], new=wanted.name)
            self.failure = self.failure or (error, "handler")
            raise error

    def _missing(self) -> list[str]:
        return self.attempt.missing_steps(self.unasked())

    def unasked(self) -> list[str]:
        """The steps on record that the function has not called for."""
        return list(self._unasked)

    # -- doing --------------------------------------------------------------------------------------------------------

    async def _do(self, wanted: StepRequest, *, reconciles: bool) -> Any:
        known = self.known.get(wanted.name)
        now = self._scheduler.clock.now()
        step = StepRow(
            event_id=self.attempt.event_id, name=wanted.name,
            number=known.number if known is not None else len(self.known) + 1, status="running",
            attempts=(known.attempts if known is not None else 0) + 1, run_id=self._attempt.id,
            version=self._attempt.version, started_at=known.started_at if known is not None else now,
            until=now + wanted.limit,
        )  # fmt: skip
        caught, self.caught = self.caught, []
        self.known[wanted.name] = step
        self._open.add(wanted.name)
        await self.attempt.begin_step(step, caught)
        try:
            value = await self._within(wanted.limit, wanted.function, *wanted.args, **wanted.kwargs)
        except TimeoutError as error:
            if not isinstance(error, _Late):
                await self._note_failure(step, error, wanted.caller)
            self._cut_off(step, f"it took longer than {format_interval(wanted.limit)}", reconciles=reconciles)
        except asyncio.CancelledError:
            self._note_cut(step, "it was cancelled before it had ended", reconciles=reconciles)
            raise
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it is on record, and the handler may catch it
            await self._note_failure(step, error, wanted.caller)
        try:
            text = _as_value(value, f"What the step {wanted.name!r} returns")
        except LogicError as error:
            self._cut_off(step, str(error), reconciles=reconciles)
        await self._end_step(step._replace(status=DONE, value=text))
        return json.loads(text)

    async def _end_step(self, step: StepRow) -> None:
        ended = step._replace(ended_at=self._scheduler.clock.now())
        self.known[step.name] = ended
        self._open.discard(step.name)
        await self.attempt.end_step(ended, doubtful=bool(self._open))

    async def _note_failure(self, step: StepRow, error: BaseException, caller: asyncio.Task[Any] | None) -> NoReturn:
        """The step is over, and has failed."""
        if any(isinstance(leaf, ApprovalNeeded) for leaf in leaves(error)):
            sure = True
        else:
            sure = all(isinstance(leaf, TransientError) for leaf in leaves(error)) or is_refused(error, "mutate")
        kind = type(leaves(error)[0]).__name__
        await self._end_step(step._replace(status=FAILED, error=said(error), error_type=kind, sure=int(sure)))
        if isinstance(error, ApprovalNeeded):
            self.failure = self.failure or (error, "handler")
            raise error
        self.failed[step.name] = caller
        raise StepFailed(step.name, said(error), kind) from error

    def _note_cut(self, step: StepRow, why: str, *, reconciles: bool) -> StepUncertain:
        cut = step._replace(status=UNCERTAIN, error=why)
        self.known[step.name] = cut
        delay = 0 if reconciles else None
        error = StepUncertain(step.name, why, delay)
        self.failure = self.failure or (error, "unsure")
        return error

    def _cut_off(self, step: StepRow, why: str, *, reconciles: bool) -> NoReturn:
        raise self._note_cut(step, why, reconciles=reconciles) from None

    async def _find_out(self, wanted: StepRequest, known: StepRow, reconcile: Any) -> StepRow | None:
        """Whether a step that was cut off, or failed, has happened: as it is then, or None where it has not."""
        why = known.error or "it was cut off"
        if reconcile is None or known.tries >= RECONCILE_TRIES:
            self._doubt(StepUncertain(wanted.name, why, None))
        known = self.known[wanted.name] = await self.attempt.ask_about(known)
        verdict: Any = Unknown()
        try:
            verdict = await self._within(RECONCILE_LIMIT_MS, reconcile, *wanted.args, **wanted.kwargs)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - what it does not find out, it may find out later
            why = f"{why}; reconcile failed: {said(error)}"
            self.log.warning("reconcile of the step %s failed: %s", wanted.name, said(error))
        if verdict is NotApplied or isinstance(verdict, NotApplied):
            return None
        if isinstance(verdict, Applied):
            try:
                text = _as_value(verdict.result, f"The result of reconcile of the step {wanted.name!r}")
            except LogicError as error:
                self._doubt(StepUncertain(wanted.name, str(error), reconcile_delay(known.tries)))
            await self._end_step(known._replace(status=DONE, value=text, error=None, error_type=None))
            return self.known[wanted.name]
        if verdict is not Unknown and not isinstance(verdict, Unknown):
            why = f"reconcile returns Applied(...), NotApplied or Unknown, not {verdict!r:.80}"
        return self._doubt(StepUncertain(wanted.name, why, reconcile_delay(known.tries)))

    def _doubt(self, error: StepUncertain) -> NoReturn:
        self.failure = self.failure or (error, "unsure")
        raise error

    async def _within(self, limit: int, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        """Call a function within its time: an async one here, another one in a thread."""
        work = current()
        try:
            async with asyncio.timeout(limit / 1000) as timer:
                with counted(work):
                    if work is None or inspect.iscoroutinefunction(function):
                        value = function(*args, **kwargs)
                    else:
                        run = contextvars.copy_context().run
                        value = await work.start(functools.partial(run, function, *args, **kwargs))
                    return await value if inspect.isawaitable(value) else value
        except TimeoutError as error:
            if timer.expired():
                raise _Late from error
            raise

    # -- approvals ----------------------------------------------------------------------------------------------------

    def _of_event(self, mark: str) -> str:
        return f"{self.attempt.event_id} {mark}"

    def _ask_for(self, wanted: StepRequest, question: str) -> None:
        """Ask a person before the step, unless one has approved exactly this."""
        mark = wanted.mark()
        if self._approval.of_prepared(self._of_event(mark), "step") is not None:
            return
        error = ApprovalNeeded(clean(question) or f"May {self._handler.name} do {wanted.name}?")
        about = fingerprint(self._of_event(mark))
        error.about = {PHASE: "step", VERSION: self._attempt.version, PREPARED: about}
        self.failure = self.failure or (error, "handler")
        raise error


def _as_value(value: Any, what: str) -> str:
    """What is kept of a step, or LogicError: each later attempt, and who looks at the run, reads all of it."""
    text = as_json(value, what)
    if len(text) > MAX_VALUE:
        raise LogicError(f"{what} has {len(text):,} bytes of JSON, and may have {MAX_VALUE:,}: return a reference.")
    return text


class _Late(TimeoutError):
    """The time limit of a step was reached; its function may have raised a TimeoutError of its own."""
