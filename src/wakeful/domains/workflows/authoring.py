"""How workflows are written: producers that look for new things, consumers that work on them, and what they return."""

from __future__ import annotations

import functools
import hashlib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from wakeful.domains.workflows.function_source import source_or_code
from wakeful.domains.workflows.steps import authoring as of_steps
from wakeful.domains.workflows.steps.authoring import StepHandler
from wakeful.errors import InvalidJob
from wakeful.triggers import Trigger
from wakeful.triggers.base import TimedTrigger
from wakeful.triggers.durations import interval_ms

if TYPE_CHECKING:
    from wakeful.domains.workflows.fixes.hook import FixRequest
    from wakeful.domains.workflows.loading import FileRef

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
OF_AGENTS = ("heartbeat", "wake")  # jobs that every agent may have: `reporter.wake`
DEFAULT_TIMEOUT_MS = 300_000
NEXT_ARGUMENTS = 3

Function = Callable[..., Any]  # async, or a plain one that is called in a thread
F = TypeVar("F", bound=Function)
#: In place of the function where a decorator is written with parentheses.
MISSING: Any = object()


def check_name(what: str, name: object) -> str:
    """A name that workflows, handlers and topics may have, or InvalidJob with the rule."""
    if not isinstance(name, str) or not NAME.fullmatch(name):
        message = (
            f"The name of a {what} has 1 to 64 small letters, digits, _ and -, and begins with a letter or digit, "
            f"not {name!r:.80}."
        )
        raise InvalidJob(message)
    if what == "handler" and name in OF_AGENTS:
        message = f"A handler cannot be called {name!r}: jobs named NAME.{name} are those of agents. Rename it."
        raise InvalidJob(message)
    return name


def check_hook(hook: Any) -> Any:
    """A hook for corrections: None, a function, or a program with its arguments; else InvalidJob."""
    is_argv = isinstance(hook, list | tuple) and bool(hook) and all(isinstance(part, str) for part in hook)
    if hook is None or callable(hook) or (is_argv and hook[0]):
        return hook
    message = f"auto_fix is a function, or a program with its arguments as a list of texts, not {hook!r:.80}."
    raise InvalidJob(message)


@dataclass(frozen=True, slots=True)
class Event:
    """An event of a topic, as handlers see it."""

    id: str
    message_id: str
    topic: str
    payload: Any
    at: datetime
    input: str | None


class Events(list[Event]):
    """What peek found, oldest first. `more`: further events are pending; read on with `after=events[-1]`."""

    def __init__(self, found: Iterable[Event] = (), *, more: bool = False) -> None:
        super().__init__(found)
        self.more = more


@dataclass(frozen=True, slots=True)
class Prepared:
    """What prepare returns: which events to work on, data for the next phases, when to look again, and a title.

    `reserve` maps topics to ids of events. It may be empty: then nothing is mutated, and `next` still runs. `wake_at`
    is an aware datetime or ISO text; leaving it out clears the last one. `title` says to people what is being done.
    """

    reserve: Mapping[str, Sequence[str]] = field(default_factory=dict)
    data: Any = None
    wake_at: datetime | str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True)
class Applied:
    """What reconcile returns when the mutation did happen; `result` is what mutate would have returned."""

    result: Any = None


@dataclass(frozen=True, slots=True)
class NotApplied:
    """What reconcile returns when the mutation did not happen: it is prepared again."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """What reconcile returns when it does not know yet; it is called again, and finally a person decides."""


@dataclass(frozen=True, slots=True)
class MutationResult:
    """What `next` is given: `applied` with the value, `none` where nothing was to be mutated, or `skipped`."""

    status: str
    value: Any = None


class Producer:
    """A handler that runs on a schedule and publishes what it finds."""

    type = "producer"

    def __init__(
        self, name: str, trigger: Trigger, run: Function, publishes: Sequence[str] | None, timeout: int
    ) -> None:
        self.name = name
        self.trigger = trigger
        self.run = run
        self.subscribes: tuple[str, ...] = ()
        self.publishes = publishes
        self.timeout = timeout

    def functions(self) -> dict[str, tuple[Function, int]]:
        """Its functions, each with the number of arguments it gets."""
        return {"producer": (self.run, 2)}


class Consumer:
    """A handler that works on events: prepare, then at most one mutation, then next.

    >>> append = workflow.consumer("append", subscribes=["mail"])
    >>> @append.prepare
    ... async def prepare(ctx, state):
    ...     mails = await ctx.peek("mail", limit=10)
    ...     return Prepared(reserve={"mail": [mail.id for mail in mails]})
    """

    type = "consumer"

    def __init__(self, name: str, subscribes: Sequence[str], publishes: Sequence[str] | None, timeout: int) -> None:
        self.name = name
        self.subscribes = tuple(subscribes)
        self.publishes = publishes
        self.timeout = timeout
        self.on_prepare: Function | None = None
        self.on_mutate: Function | None = None
        self.on_reconcile: Function | None = None
        self.on_next: Function | None = None

    def prepare(self, function: F = MISSING) -> F:
        """Register what chooses the events to work on, called with ctx and the state; it returns Prepared."""
        self.on_prepare = self._checked("prepare", function, self.on_prepare)
        return function

    def mutate(self, function: F = MISSING) -> F:
        """Register the one change outside, called with ctx and what was prepared; what it returns is the result."""
        self.on_mutate = self._checked("mutate", function, self.on_mutate)
        return function

    def reconcile(self, function: F = MISSING) -> F:
        """Register who finds out whether a mutation happened: returns Applied, NotApplied or Unknown."""
        self.on_reconcile = self._checked("reconcile", function, self.on_reconcile)
        return function

    def next(self, function: F = MISSING) -> F:
        """Register what follows: `async def next_(ctx, prepared, result)`; it returns the new state.

        With a further argument `state` it is given the state that it is about to replace.
        """
        self.on_next = self._checked("next", function, self.on_next)
        return function

    def __call__(self, *_: object) -> NoReturn:
        """A consumer is no decorator: InvalidJob says so."""
        name = self.name
        message = f"{name} is a consumer: put @{name}.prepare before the function that chooses its events."
        raise InvalidJob(message)

    def _checked(self, phase: str, function: Any, known: Function | None) -> Any:
        if function is MISSING:
            message = f"Write @{self.name}.{phase} without parentheses."
            raise InvalidJob(message)
        if not callable(function):
            message = f"@{self.name}.{phase} is put before a function, not {function!r:.80}."
            raise InvalidJob(message)
        if known is not None:
            message = f"{self.name} has two functions for {phase}: remove one."
            raise InvalidJob(message)
        return function

    def functions(self) -> dict[str, tuple[Function, int]]:
        """Its functions, each with the number of arguments it gets."""
        given = {
            "prepare": (self.on_prepare, 2),
            "mutate": (self.on_mutate, 2),
            "reconcile": (self.on_reconcile, 2),
            "next": (self.on_next, NEXT_ARGUMENTS),
        }
        return {name: (function, count) for name, (function, count) in given.items() if function is not None}


Handler = Producer | Consumer | StepHandler


@functools.lru_cache(maxsize=256)  # looked at with every run
def asks_for_state(function: Function) -> bool:
    """Whether `next` has an argument for the state besides the three that it always gets."""
    try:
        return "state" in list(inspect.signature(function).parameters)[NEXT_ARGUMENTS:]
    except ValueError:  # a class of C code does not say what it takes
        return False


def with_state(function: Function, state: Any) -> Function:
    """`next`, as it is called with three arguments."""
    return functools.partial(function, state=state) if asks_for_state(function) else function


class Workflow:
    """Producers and consumers that work together through topics, one run at a time.

    >>> workflow = Workflow("invoices")
    >>> @workflow.producer(Interval("5m"), publishes=["mail"])
    ... async def poll(ctx, state):
    ...     await ctx.publish("mail", message_id="1", payload={"subject": "Hello"})
    """

    def __init__(
        self,
        name: str,
        *,
        auto_fix: Callable[[FixRequest], Any] | Sequence[str] | None = None,
        auto_fix_apply: bool = False,
        auto_fix_env: Sequence[str] = (),
    ) -> None:
        """`auto_fix`: a function or a program that may answer a failure of the code with a correction.

        `auto_fix_env`: what the program gets of the environment: NAME, which is passed on, or NAME=value.
        """
        self.name = check_name("workflow", name)
        self.handlers: dict[str, Handler] = {}
        self.config: Any = {}
        self.version: str | None = None  # None: of the code of its functions
        self.origin: str | None = None  # the file it was loaded from
        self.ref: FileRef | None = None  # the same, where this process loaded it
        self.auto_fix = check_hook(auto_fix)
        self.auto_fix_apply = bool(auto_fix_apply)
        self.auto_fix_env = auto_fix_env

    def producer(
        self,
        trigger: Trigger,
        *,
        name: str | None = None,
        publishes: Sequence[str] | None = None,
        timeout: str | float | timedelta | None = None,
    ) -> Callable[[F], F]:
        """Register a producer, as a decorator: `async def poll(ctx, state)`; it returns the new state."""
        if not isinstance(trigger, TimedTrigger):
            message = (
                f'A producer has a trigger with times, such as Interval("5m") or Cron("0 9 * * *"), not {trigger!r}.'
            )
            raise InvalidJob(message)

        def register(function: F) -> F:
            called = check_name("handler", name if name is not None else getattr(function, "__name__", None))
            self._add(Producer(called, trigger, function, _topics(publishes), _timeout(timeout)))
            return function

        return register

    def consumer(
        self,
        name: str,
        *,
        subscribes: Sequence[str],
        publishes: Sequence[str] | None = None,
        timeout: str | float | timedelta | None = None,
    ) -> Consumer:
        """Make a consumer of these topics; register its phases with its decorators."""
        topics = _topics(subscribes)
        if not topics:
            message = f"The consumer {name!r} subscribes to no topic: name at least one."
            raise InvalidJob(message)
        consumer = Consumer(check_name("handler", name), topics, _topics(publishes), _timeout(timeout))
        self._add(consumer)
        return consumer

    def on(
        self,
        topic: str,
        *,
        key: Callable[[Event], Any] | None = None,
        concurrency: int = 1,
        retry: Sequence[str | float | timedelta] | None = None,
        on_failure: str = "stop",
        publishes: Sequence[str] | None = None,
        name: str | None = None,
        timeout: str | float | timedelta | None = None,
    ) -> Callable[[F], F]:
        """Register a function that is called once per event, as a decorator: `async def ship(ctx, event)`.

        What it does outside, it does in steps: `await ctx.step("label", buy_label, order)`. `key`: of events with the
        same key, one is worked on at a time. `retry`: how long to wait after each failure. `on_failure`: what follows
        the last one; `stop` stops the workflow, `park` sets the event aside.
        """
        if callable(topic):
            message = '@workflow.on is given a topic, as in @workflow.on("orders").'
            raise InvalidJob(message)
        subscribed = check_name("topic", topic)

        def register(function: F) -> F:
            called = check_name("handler", name if name is not None else getattr(function, "__name__", None))
            handler = StepHandler(
                called,
                subscribed,
                function,
                publishes=_topics(publishes, of_others=True),
                key=of_steps.read_key(key),
                concurrency=of_steps.read_concurrency(concurrency),
                retry=of_steps.read_retry(retry),
                on_failure=of_steps.read_on_failure(on_failure),
                timeout=of_steps.read_limit(timeout, of_steps.DEFAULT_LIMIT_MS),
            )
            self._add(handler)
            return function

        return register

    def _add(self, handler: Handler) -> None:
        if handler.name in self.handlers:
            message = f"{self.name} has two handlers called {handler.name!r}: rename one."
            raise InvalidJob(message)
        self.handlers[handler.name] = handler

    def code_version(self) -> str:
        """The hash that identifies this version of its code."""
        if self.version is not None:
            return self.version
        functions = [function for handler in self.handlers.values() for function, _ in handler.functions().values()]
        functions += [one.key for one in self.handlers.values() if isinstance(one, StepHandler) and one.key is not None]
        return self.version_of(source_or_code(function) for function in functions)

    def version_of(self, sources: Iterable[str]) -> str:
        """The hash of these sources and of how its handlers are declared: triggers, topics and time limits."""
        declared = [
            (
                handler.name,
                handler.type,
                handler.subscribes,
                handler.publishes,
                handler.timeout,
                handler.trigger.to_data() if isinstance(handler, Producer) else None,
                *(handler.declared() if isinstance(handler, StepHandler) else ()),
            )
            for handler in self.handlers.values()
        ]
        parts = [self.name, *map(repr, declared), *sources]
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]

    def __repr__(self) -> str:
        return f"<Workflow {self.name} {', '.join(self.handlers) or 'without handlers'}>"


def _topics(names: Any, *, of_others: bool = False) -> tuple[str, ...] | None:
    if isinstance(names, str):
        message = f"Topics are a list of names: [{names!r}]."
        raise InvalidJob(message)
    if names is not None and not isinstance(names, Sequence):  # the order of a set is another in every process
        message = f"Topics are a list of names, not {names!r:.80}."
        raise InvalidJob(message)
    return None if names is None else tuple(_topic(name, of_others=of_others) for name in names)


def _topic(name: Any, *, of_others: bool) -> str:
    """The name of a topic; also of one of another workflow, WORKFLOW.TOPIC, where that is allowed."""
    workflow, dot, topic = name.partition(".") if of_others and isinstance(name, str) else (name, "", "")
    return f"{check_name('workflow', workflow)}.{check_name('topic', topic)}" if dot else check_name("topic", name)


def _timeout(given: str | float | timedelta | None) -> int:
    return DEFAULT_TIMEOUT_MS if given is None else interval_ms(given)
