"""Time under your control: for your own tests, and for ours.

`run(main)` is `asyncio.run` on an event loop whose time is virtual. When every task waits, time jumps to the next
moment that a task waits for, so a week of schedules passes in milliseconds and always in the same order:

    from wakeful import Every, Scheduler
    from wakeful.testing import VirtualClock, run

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            ...
            await scheduler.start()
            await clock.sleep("3d")

    clock = VirtualClock()
    run(main(), clock)

Threads, subprocesses and sockets have no place in virtual time: sync handlers are run inline, the rest is refused.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import selectors
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeVar

from wakeful import clock as clocks
from wakeful.errors import SchedulerError
from wakeful.kernel.domain import load
from wakeful.scheduler import Scheduler
from wakeful.triggers.durations import interval_ms

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.workflows import Workflow

T = TypeVar("T")

__all__ = ["VirtualClock", "VirtualLoop", "WorkflowTest", "run"]


class VirtualClock(clocks.VirtualClock):
    """A clock for tests; with `run`, time passes by itself whenever everybody waits."""

    async def sleep(self, interval: str | float | timedelta) -> None:
        """Let that much time pass, and everything that is due in it happen: `await clock.sleep("3d")`."""
        await clocks.sleep(interval_ms(interval) / 1000)
        loop = asyncio.get_running_loop()
        if isinstance(loop, VirtualLoop):
            await loop.settle()


class _JumpingSelector(selectors.BaseSelector):
    """Waiting for nothing takes no time: the clock jumps to the moment the loop wants to wake up."""

    def __init__(self, clock: clocks.VirtualClock) -> None:
        self._clock = clock
        self._map: dict[Any, selectors.SelectorKey] = {}

    def register(self, fileobj: Any, events: int, data: Any = None) -> selectors.SelectorKey:
        key = selectors.SelectorKey(fileobj, fileobj if isinstance(fileobj, int) else fileobj.fileno(), events, data)
        self._map[fileobj] = key
        return key

    def unregister(self, fileobj: Any) -> selectors.SelectorKey:
        return self._map.pop(fileobj)

    def get_map(self) -> Mapping[Any, selectors.SelectorKey]:
        return self._map

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            message = "Every task waits for something that can never happen in virtual time."
            raise SchedulerError(message)
        if timeout > 0:
            self._clock.elapse(timeout + 1e-6)  # past the timer's rounding, so that it is due
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on a virtual clock."""

    def __init__(self, clock: clocks.VirtualClock) -> None:
        self._virtual = clock
        self._settling = 0
        super().__init__(_JumpingSelector(clock))

    def time(self) -> float:
        return self._virtual.monotonic()

    async def settle(self) -> None:
        """Let everything happen that can still happen at this very moment."""
        self._settling += 1
        try:
            while self._has_more_now():
                await clocks.sleep(0)
        finally:
            self._settling -= 1

    def _has_more_now(self) -> bool:
        # Others who settle are ready too, each with one callback: waiting for each other they would wait forever.
        due = self._scheduled and self._scheduled[0].when() <= self.time()  # type: ignore[attr-defined]
        return len(self._ready) >= self._settling or bool(due)  # type: ignore[attr-defined]

    def call_soon_threadsafe(self, *_: Any, **__: Any) -> NoReturn:  # type: ignore[override]
        self._refuse("another thread")

    def run_in_executor(self, *_: Any) -> NoReturn:  # type: ignore[override]
        self._refuse("a thread")

    async def create_connection(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a socket")

    async def create_server(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a socket")

    async def subprocess_exec(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a subprocess")

    async def subprocess_shell(self, *_: Any, **__: Any) -> NoReturn:
        self._refuse("a subprocess")

    @staticmethod
    def _refuse(what: str) -> NoReturn:
        message = f"Virtual time cannot wait for {what}: use a real event loop for that."
        raise SchedulerError(message)


def run(main: Coroutine[Any, Any, T], clock: clocks.VirtualClock | None = None) -> T:
    """Run a coroutine to its end in virtual time."""
    chosen = clock if clock is not None else VirtualClock()
    with asyncio.Runner(loop_factory=lambda: VirtualLoop(chosen)) as runner:
        return runner.run(main)


class Crash(BaseException):
    """The process ends here, as far as a workflow can see."""


FUNCTIONS = ("prepare", "mutate", "reconcile", "next", "producer")
#: What a run of a consumer has reached once the checkpoint after a function is stored.
_STORED = {"prepared": "prepare", "mutated": "mutate", "committed": "next"}


class WorkflowTest:
    """A workflow in virtual time, for its author's tests: days pass in milliseconds.

    >>> with WorkflowTest(workflow) as test:
    ...     test.publish("mail", {"subject": "Hello"}, message_id="1")
    ...     test.advance("1d")
    ...     print([event["status"] for event in test.events("mail")])
    ['consumed']

    `fail_in` and `crash_in` take `prepare`, `mutate`, `reconcile`, `next`, `producer`, or the name of a handler: then
    it is whichever function of it comes next.
    """

    def __init__(self, workflow: Workflow, *, start: datetime | None = None) -> None:
        self.clock = VirtualClock(start) if start is not None else VirtualClock()
        self._name = workflow.name
        self._places = (*FUNCTIONS, *workflow.handlers)
        self._errors: dict[str, list[BaseException]] = {}
        self._crashes: dict[str, bool] = {}
        self._published = 0
        self._loop = VirtualLoop(self.clock)
        self._runner = asyncio.Runner(loop_factory=lambda: self._loop)
        self._scheduler = _WatchedScheduler("sqlite://", clock=self.clock, timezone="UTC", seed=1)
        self._scheduler.on_stored = self._stored
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

    def publish(self, topic: str, payload: Any = None, *, message_id: str | None = None) -> str:
        """Publish an event by hand, and let happen what follows from it at once; its message id."""
        self._published += 1
        chosen = message_id if message_id is not None else f"test-{self._published}"
        by_hand = load("wakeful.workflows.input_actions:ByHand")(topic, chosen, payload)
        self._act("input_actions:publish_by_hand", by_hand, who="test")
        return chosen

    def advance(self, interval: str | float | timedelta) -> None:
        """Let that much time pass, and everything that is due in it happen."""
        self._runner.run(self.clock.sleep(interval))

    def fail_in(self, phase: str, error: BaseException, times: int = 1) -> None:
        """Raise the error where that function would be called, the next so many times."""
        self._check_name(phase)
        self._errors.setdefault(phase, []).extend([error] * times)

    def crash_in(self, phase: str, *, after_commit: bool = True) -> None:
        """Let the process die once: after that function, and after its checkpoint is stored or just before."""
        self._check_name(phase)
        self._crashes[phase] = after_commit

    def approve(self) -> None:
        """Approve the run that asks."""
        self._act("actions:approve", self._waiting(), who="test")

    def resume(self) -> None:
        """Resume the workflow, as a person does after a correction."""
        self._act("actions:resume", who="test")

    def settle(self, verdict: str, result: Any = None) -> None:
        """Say what became of an uncertain mutation: `happened`, `did_not_happen` or `skip`."""
        self._act("actions:settle", self._waiting(), verdict, who="test", result=result)

    # -- what there is --------------------------------------------------------------------------------------------

    def workflow(self) -> dict[str, Any]:
        """Status, issue, schedule and handlers, as `/api/workflows/NAME` shows them."""
        return self._look(lambda tx: load("wakeful.workflows.views:workflow_view")(tx, self._name))

    def events(self, topic: str) -> list[dict[str, Any]]:
        """The events of a topic, oldest first."""
        topics, views = load("wakeful.workflows.topics.tables:Topics"), load("wakeful.workflows.views:event_views")
        return self._look(lambda tx: views(tx, tx.of(topics).matching(self._name, topic, None, None, 10_000)[::-1]))

    def runs(self) -> list[dict[str, Any]]:
        """The runs of all handlers, oldest first."""
        table, view = load("wakeful.workflows.tables:Workflows"), load("wakeful.workflows.views:run_view")
        return self._look(lambda tx: [view(tx, one) for one in tx.of(table).runs(self._name, 10_000)[::-1]])

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

    def _look(self, work: Callable[[Transaction], T]) -> T:
        return self._runner.run(self._scheduler.look(work))

    def _act(self, action: str, *args: Any, **kwargs: Any) -> None:
        chosen = load(f"wakeful.workflows.{action}")

        async def act() -> None:
            await self._scheduler.transact(lambda tx, context: chosen(tx, context, self._name, *args, **kwargs))
            await self._loop.settle()

        self._runner.run(act())

    def _waiting(self) -> str:
        issue = self.workflow()["issue"]
        if issue is None or issue["run"] is None:
            message = f"{self._name} does not wait for a person."
            raise SchedulerError(message)
        return str(issue["run"])

    def _watched(self, workflow: Workflow) -> Workflow:
        """The workflow, with its functions wrapped so that they can be made to fail; its own is left as it is."""
        watched = copy.copy(workflow)
        watched.version = workflow.code_version()
        watched.handlers = {name: copy.copy(handler) for name, handler in workflow.handlers.items()}
        for handler in watched.handlers.values():
            for phase, (function, _) in handler.functions().items():
                name = "run" if phase == "producer" else f"on_{phase}"
                setattr(handler, name, self._wrapped(phase, handler.name, function))
        return watched

    def _wrapped(self, phase: str, handler: str, function: Callable[..., Awaitable[Any]]) -> Any:
        @functools.wraps(function)
        async def called(*given: Any) -> Any:
            for name in (phase, handler):
                if self._errors.get(name):
                    raise self._errors[name].pop(0)
            value = await function(*given)
            for name in (phase, handler):
                if self._crashes.get(name) is False:
                    del self._crashes[name]
                    raise Crash
            return value

        return called

    def _check_name(self, name: str) -> None:
        if name not in self._places:
            message = f"{self._name} has no function {name!r:.80}. It has: {', '.join(self._places)}."
            raise SchedulerError(message)

    def _stored(self, result: Any) -> None:
        """A transaction is stored: die, where that is what it waits for."""
        function, handler = _function_before(result)
        for name in (function, handler if function in ("next", "producer") else None):
            if name is not None and self._crashes.get(name):
                del self._crashes[name]
                raise Crash


def _function_before(result: Any) -> tuple[str | None, str | None]:
    """The function whose checkpoint a transaction has stored, where it is one; and its handler."""
    attempt = getattr(result, "attempt", result)
    phase, handler = getattr(attempt, "phase", None), getattr(attempt, "handler", None)
    if phase in ("mutating", "mutated") and attempt.begins == "reconcile":
        return "reconcile", handler
    if attempt is not result or phase is None:  # it failed, or is no checkpoint
        return None, None
    if attempt.type == "producer":
        return ("producer" if phase == "committed" else None), handler
    return _STORED.get(phase), handler


class _WatchedScheduler(Scheduler):
    """A scheduler that lets a test see each transaction of a domain once it is stored."""

    on_stored: Callable[[Any], None] = staticmethod(lambda _: None)

    async def transact(self, work: Callable[[Transaction, Context], T], *, wakes: bool = True) -> T:
        """As every scheduler does."""
        result = await super().transact(work, wakes=wakes)
        self.on_stored(result)
        return result
