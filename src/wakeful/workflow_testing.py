"""`WorkflowTest`: a workflow in virtual time, for its author's tests."""

from __future__ import annotations

import asyncio
import copy
import functools
import inspect
import sys
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, Self, TypeVar

from wakeful.errors import NotFound, SchedulerError
from wakeful.kernel.domain import load
from wakeful.scheduler import Scheduler
from wakeful.virtual_time import VirtualClock, VirtualLoop

if TYPE_CHECKING:
    from wakeful.domains.workflows import Workflow
    from wakeful.kernel.context import Context
    from wakeful.scheduler.workflows import Verdict
    from wakeful.store.interface import Transaction

T = TypeVar("T")


class Crash(BaseException):
    """The process ends here, as far as a workflow can see."""


MOST = 10_000
FUNCTIONS = ("prepare", "mutate", "reconcile", "next", "producer", "steps")
#: What a run of a consumer has reached once the checkpoint after a function is stored.
_STORED = {"prepared": "prepare", "mutated": "mutate", "committed": "next"}


class WorkflowTest:
    """A workflow in virtual time, for its author's tests: days pass in milliseconds.

    >>> with WorkflowTest(workflow) as test:
    ...     test.publish("mail", {"subject": "Hello"}, message_id="1")
    ...     test.advance("1d")
    ...     print([event["status"] for event in test.events("mail")])
    ['consumed']

    `fail_in` and `crash_in` take `prepare`, `mutate`, `reconcile`, `next`, `producer`, the name of a step, or the name
    of a handler: then it is whichever function of it comes next.
    """

    def __init__(self, workflow: Workflow, *, start: datetime | None = None, config: Any = None) -> None:
        """`start`: when its time begins; `config`: what handlers have as `ctx.config`."""
        self.clock = VirtualClock(start) if start is not None else VirtualClock()
        self._scheduler = _WatchedScheduler("sqlite://", clock=self.clock, timezone="UTC", node="test", seed=1)
        self._scheduler.on_stored = self._stored
        self._refuse_unusable(workflow)
        self._name = workflow.name
        self._config = config
        self._errors: dict[str, list[BaseException]] = {}
        self._crashes: dict[str, bool] = {}
        self._published = 0
        self._versions = 1
        self._loop = VirtualLoop(self.clock)
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)
        self._scheduler.add_workflow(self._watched(workflow))
        self._runner.run(self._begin())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the test; nothing of it is kept."""
        self._runner.run(self._scheduler.close())
        self._runner.close()

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return datetime.fromtimestamp(self.clock.now() / 1000, UTC)

    # -- what happens ---------------------------------------------------------------------------------------------

    def publish(self, topic: str, payload: Any = None, *, message_id: str | int | None = None) -> str:
        """Publish an event by hand, and let happen what follows from it at once; its message id."""
        self._published += 1
        chosen = message_id if message_id is not None else f"test-{self._published}"
        event = self._act(self._scheduler.workflows.publish(self._name, topic, payload, message_id=chosen))
        return str(event["message_id"])

    def advance(self, interval: str | float | timedelta) -> None:
        """Let that much time pass, and everything that is due in it happen."""
        self._runner.run(self.clock.sleep(interval))

    def run(self) -> None:
        """Run all producers now, as `wakeful workflow run` does."""
        self._act(self._scheduler.workflows.run(self._name))

    def fail_in(self, phase: str, error: BaseException, times: int = 1) -> None:
        """Raise the error where that function would be called, the next so many times."""
        self._check_name(phase)
        given: object = error
        if not isinstance(given, BaseException):
            message = f"fail_in raises an exception, not {error!r:.80}."
            raise SchedulerError(message)
        if times < 1:
            message = f"times is at least 1, not {times}."
            raise SchedulerError(message)
        self._errors.setdefault(phase, []).extend([error] * times)

    def crash_in(self, phase: str, *, after_commit: bool = True) -> None:
        """Let the process die once: after that function, and after its checkpoint is stored or just before."""
        self._check_name(phase)
        self._crashes[phase] = after_commit

    def approve(self, note: str | None = None) -> None:
        """Approve the run that asks, or the correction of its code."""
        self._act(self._scheduler.workflows.approve(self._name, self._waiting(), note))

    def reject(self, note: str | None = None) -> None:
        """Reject the run that asks, which pauses the workflow; or reject the correction of its code."""
        self._act(self._scheduler.workflows.reject(self._name, self._waiting(), note))

    def pause(self, note: str | None = None) -> None:
        """Pause the workflow: what is due meanwhile waits."""
        self._act(self._scheduler.workflows.pause(self._name, note))

    def resume(self) -> None:
        """Resume the workflow, as a person does after a correction."""
        self._act(self._scheduler.workflows.resume(self._name))

    def settle(self, verdict: Verdict, result: Any = None, note: str | None = None) -> None:
        """Say whether an uncertain mutation happened: `happened`, `did_not_happen` or `skip`."""
        settled = self._scheduler.workflows.settle(self._name, self._waiting(), verdict, result=result, note=note)
        self._act(settled)

    def skip(self, ref: str, reason: str = "skipped by the test") -> None:
        """Skip an event, by its message id or its id, or an input, by its id."""
        self._act(self._scheduler.workflows.skip(self._name, self._ref(ref), reason))

    def replay(self, ref: str | None = None, *, start_over: bool = False) -> None:
        """Continue a parked event, by its message id or its id; all of them where none is given."""
        if ref is None:
            self._act(self._scheduler.workflows.replay_parked(self._name, start_over=start_over))
        else:
            replayed = self._scheduler.workflows.replay(self._name, self._ref(ref), "the test", start_over=start_over)
            self._act(replayed)

    def redeploy(self, workflow: Workflow) -> None:
        """Deploy this as the new version of the workflow; what failed in the old one's code is tried again."""
        self._refuse_unusable(workflow)
        if workflow.name != self._name:
            message = f"This test is of {self._name}: make another one for {workflow.name}."
            raise SchedulerError(message)

        async def deploy() -> None:
            self._versions += 1
            version = f"{workflow.code_version()}-{self._versions}"  # what its functions refer to may have changed
            await self._scheduler.add_workflow(self._watched(workflow, version))

        self._act(deploy())

    # -- what there is --------------------------------------------------------------------------------------------

    def workflow(self) -> dict[str, Any]:
        """Status, issue, schedule and handlers, as `/api/workflows/NAME` shows them."""
        return self._runner.run(self._scheduler.workflows.get(self._name))

    def events(self, topic: str) -> list[dict[str, Any]]:
        """The events of a topic, oldest first."""
        return self._runner.run(self._scheduler.workflows.events(self._name, topic, limit=MOST))[::-1]

    def parked(self) -> list[dict[str, Any]]:
        """The parked events, oldest first, each with `error`, `tries` and `run`."""
        return self._runner.run(self._scheduler.workflows.events(self._name, status="parked", limit=MOST))[::-1]

    def runs(self) -> list[dict[str, Any]]:
        """The runs of all handlers, oldest first."""
        return self._runner.run(self._scheduler.workflows.runs(self._name, limit=MOST))[::-1]

    def state(self, handler: str) -> Any:
        """What a handler has stored."""
        states = {one["name"]: one["state"] for one in self.workflow()["handlers"]}
        if handler not in states:
            message = f"{self._name} has no handler {handler!r:.80}. It has: {', '.join(states)}."
            raise SchedulerError(message)
        return states[handler]

    # -- how it is done -------------------------------------------------------------------------------------------

    async def _begin(self) -> None:
        await self._scheduler.open()
        await self._scheduler.start()
        await self._loop.settle()

    def _act(self, action: Coroutine[Any, Any, T]) -> T:
        """Let it happen, and what follows from it at once."""

        async def act() -> T:
            done = await action
            await self._loop.settle()
            return done

        return self._runner.run(act())

    def _ref(self, ref: str) -> str:
        """The id of the event with that message id, where it is one; else what was given."""
        if ref.startswith(("evt_", "inp_")):
            return ref
        found = self._runner.run(self._scheduler.workflows.events(self._name, limit=MOST))
        for event in found:
            if event["message_id"] == ref:
                return str(event["id"])
        message = f"{self._name} has no event {ref!r:.80}: give what publish returned, or the id of an event or input."
        raise NotFound(message)

    def _refuse_unusable(self, workflow: Workflow) -> None:
        """InvalidJob, as where the workflow itself is deployed: its wrapped functions would hide some mistakes."""
        load("wakeful.domains.workflows.deploying:plan_deployment")(self._scheduler, workflow, "code", forced=False)

    def _waiting(self) -> str:
        issue = self.workflow()["issue"]
        if issue is None or issue["run"] is None:
            message = f"{self._name} does not wait for a person."
            raise SchedulerError(message)
        return str(issue["run"])

    def _watched(self, workflow: Workflow, version: str | None = None) -> Workflow:
        """The workflow, with its functions wrapped so that they can be made to fail; its own is left as it is."""
        watched = copy.copy(workflow)
        watched.version = version or workflow.code_version()
        watched.config = workflow.config if self._config is None else self._config
        if callable(workflow.auto_fix):
            watched.auto_fix = functools.partial(self._corrected, workflow.auto_fix)
        watched.handlers = {name: copy.copy(handler) for name, handler in workflow.handlers.items()}
        functions = {phase for handler in watched.handlers.values() for phase in handler.functions()}
        self._places = (*(phase for phase in FUNCTIONS if phase in functions), *watched.handlers)
        self._stepping = [one.functions()["steps"][0] for one in workflow.handlers.values() if one.type == "steps"]
        for handler in watched.handlers.values():
            for phase, (function, _) in handler.functions().items():
                name = "run" if phase in ("producer", "steps") else f"on_{phase}"
                stepping = (
                    watch_steps(function, self._fail_first, self._crash_in_step) if phase == "steps" else function
                )
                setattr(handler, name, self._wrapped(phase, handler.name, stepping))
        return watched

    async def _corrected(self, hook: Callable[[Any], Any], request: Any) -> Any:
        """What the author's hook answers; the functions of a corrected version can be made to fail, too."""
        answer = hook(request)
        answer = await answer if inspect.isawaitable(answer) else answer
        corrects = (
            isinstance(answer, load("wakeful.domains.workflows.authoring:Workflow")) and answer.name == self._name
        )
        if corrects:
            self._refuse_unusable(answer)
        return self._watched(answer) if corrects else answer

    def _wrapped(self, phase: str, handler: str, function: Callable[..., Any]) -> Any:
        @functools.wraps(function)
        async def called(*given: Any, **named: Any) -> Any:
            self._fail_first(phase, handler)
            value = await function(*given, **named)
            self._crash_then(phase, handler)
            return value

        @functools.wraps(function)
        def called_plainly(*given: Any, **named: Any) -> Any:
            self._fail_first(phase, handler)
            value = function(*given, **named)
            self._crash_then(phase, handler)
            return value

        return called if _is_async(function) else called_plainly

    def _fail_first(self, *places: str) -> None:
        for name in places:
            if self._errors.get(name):
                raise self._errors[name].pop(0)

    def _crash_then(self, *places: str) -> None:
        for name in places:
            if self._crashes.get(name) is False:
                del self._crashes[name]
                raise Crash

    def _crash_in_step(self, name: str, *, after_commit: bool) -> None:
        if self._crashes.get(name) is after_commit:
            del self._crashes[name]
            raise Crash

    def _check_name(self, name: str) -> None:
        calls_step = load("wakeful.domains.workflows.steps.known_names:calls_step")
        if name not in self._places and not any(calls_step(function, name) for function in self._stepping):
            message = f"{self._name} has no function {name!r:.80}. It has: {', '.join(self._places)}."
            raise SchedulerError(message)

    def _stored(self, result: Any) -> None:
        """A transaction is stored, of one run or of several: die, where that is what it waits for."""
        for one in result if isinstance(result, list) else [result]:
            function, handler = _function_before(one)
            for name in (function, handler if function in ("next", "producer", "steps") else None):
                if name is not None and self._crashes.get(name):
                    del self._crashes[name]
                    raise Crash


def _is_async(function: Callable[..., Any]) -> bool:
    return bool(load("wakeful.domains.workflows.plain_functions:is_async")(function))


def _function_before(result: Any) -> tuple[str | None, str | None]:
    """The function whose checkpoint a transaction has stored, where it is one; and its handler."""
    attempt = getattr(result, "attempt", result)
    phase, handler = getattr(attempt, "phase", None), getattr(attempt, "handler", None)
    if phase in ("mutating", "mutated") and attempt.begins == "reconcile":
        return "reconcile", handler
    if attempt is not result or phase is None:  # it failed, or is no checkpoint
        return None, None
    if attempt.type in ("producer", "steps"):
        return (attempt.type if phase == "committed" else None), str(handler).partition(".")[0]
    return _STORED.get(phase), handler


def watch_steps(function: Callable[..., Any], fail: Callable[[str], None], crash: Callable[..., None]) -> Any:
    """A handler with steps whose steps can be made to fail, or to end the process before or after their commit."""

    @functools.wraps(function)
    async def called(ctx: Any, event: Any) -> Any:
        return await function(_WatchedSteps(ctx, fail, crash), event)

    @functools.wraps(function)
    def called_plainly(ctx: Any, event: Any) -> Any:
        return function(_WatchedSteps(ctx, fail, crash), event)

    return called if _is_async(function) else called_plainly


class _WatchedSteps:
    """The `ctx` of a handler with steps, in a test."""

    def __init__(self, ctx: Any, fail: Callable[[str], None], crash: Callable[..., None]) -> None:
        self._ctx, self._fail, self._crash = ctx, fail, crash

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx, name)

    def step(self, name: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As the `ctx` it stands for."""
        given: Any = function
        watched = self._watched(name, function) if callable(given) else function
        found = self._ctx.step(name, watched, *args, **kwargs)
        if inspect.isawaitable(found):
            return self._ctx.begun.wrap(self._then(name, found), sys._getframe(1))  # noqa: SLF001 - for messages
        self._crash(name, after_commit=True)
        return found

    async def _then(self, name: str, found: Any) -> Any:
        value = await found
        self._crash(name, after_commit=True)
        return value

    def _watched(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        async def called(*args: Any, **kwargs: Any) -> Any:
            self._fail(name)
            value = await function(*args, **kwargs)
            self._crash(name, after_commit=False)
            return value

        @functools.wraps(function)
        def called_plainly(*args: Any, **kwargs: Any) -> Any:
            self._fail(name)
            value = function(*args, **kwargs)
            self._crash(name, after_commit=False)
            return value

        return called if _is_async(function) else called_plainly


class _WatchedScheduler(Scheduler):
    """A scheduler that lets a test see each transaction of a domain once it is stored."""

    on_stored: Callable[[Any], None] = staticmethod(lambda _: None)

    async def transact(self, work: Callable[[Transaction, Context], T], **how: Any) -> T:
        """As every scheduler does."""
        result = await super().transact(work, **how)
        self.on_stored(result)
        return result
