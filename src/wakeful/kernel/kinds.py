"""What a kind of job is: who runs it, what its payload must look like, and what it adds to the engine's transactions.

A kind is a value. Domains declare theirs; a kind that only has a handler, such as one made with `on_job_due`, needs no
declaration. Hooks are functions of the transaction in which the engine admits, claims or ends a run: what they write is
stored with that decision or not at all. A kind without hooks costs nothing.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from wakeful.errors import InvalidJob

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.kernel.views.models import Run
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

Handler = Callable[["Run"], Any]


class Refused(NamedTuple):
    """A start that a kind does not admit now.

    Without `until` a slot is passed over and a requested start is cancelled. With it, either waits until then.
    """

    reason: str  # one of the reasons the kind's domain explains
    detail: str | None = None
    until: int | None = None  # epoch milliseconds


@dataclass(frozen=True)
class WrittenForm:
    """How a job of a kind is written in a configuration file, beside what every job takes."""

    key: str
    """The key that says a job is of this kind, such as `command`."""
    fields: Mapping[str, Callable[[Any, Path], Mapping[str, Any]]]
    """Each key of the kind, with what it adds to the payload; given what is written and the file's folder."""
    finish: Callable[[dict[str, Any], Path], Mapping[str, Any]] = lambda payload, _: payload
    """The whole payload, from what the keys gave and the file's folder."""
    with_references: frozenset[str] = frozenset()
    """The keys whose texts may hold `${NAME}`: the payload keeps it, and the kind looks it up when it runs."""
    names: Mapping[str, str] = field(default_factory=dict)
    """Parts of the payload that have another name in the file, and that name."""
    schema: Mapping[str, Any] = field(default_factory=dict)
    """The JSON Schema of each key."""


Admit = Callable[["Transaction", "Context", "JobDef", "JobState"], Refused | None]
Claimed = Callable[["Transaction", "Context", "JobDef", "RunRow"], Mapping[str, Any] | None]
Ended = Callable[["Transaction", "Context", "JobDef", "RunRow", "Result"], None]


class Delivers(Protocol):
    """Sends what a run's job or handler wants sent; `last`: there is no further attempt after this one."""

    def __call__(
        self, tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result, *, last: bool
    ) -> None: ...


@dataclass(frozen=True)
class Kind:
    """One kind of job."""

    name: str
    handler: Callable[[Run, Path], Awaitable[Any]] | None = None
    """Runs it in every scheduler that has no handler of its own for it; given the run and the folder for its files."""
    check_payload: Callable[[Any], None] | None = None
    """Raises InvalidJob for a payload that cannot be run; called whenever a job of this kind is written."""
    admin_only: bool = False
    """Only callers with full rights may write such jobs over the network."""
    internal: bool = False
    """Part of the machinery: not counted by `max_running`, and left out of listings unless asked for."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Options of its jobs where neither the job nor the scheduler's defaults say otherwise."""
    admit: Admit | None = None
    """Asked in the claiming transaction before a start; may refuse it. If it raises, the job is disabled."""
    claimed: Claimed | None = None
    """Called in the claiming transaction; what it returns is added to the payload the handler is given.

    Called again for the same run where that was given back before its handler was called: what it writes must be
    keyed by the run. If it raises, nothing of it is stored and the job is disabled.
    """
    ended: Ended | None = None
    """Called in the transaction that ends a run, whichever way it ends, also one that was never claimed.

    If it raises, nothing of it is stored: the run is ended as an error instead, and if that fails too, tried again with
    each sweep. An engine that cannot end what a crash left does not start.
    """
    before_recovery: Callable[[Path, list[str]], Awaitable[None]] | None = None
    """Ends what a killed process left running of these runs, before they are run again."""
    from_outside: Callable[[Any], Any] | None = None
    """The payload as it is kept when somebody wrote it over the network; what it marks, the handler can tell."""
    written: Callable[[], WrittenForm] | None = None
    """How it is written in a configuration file; None for a kind that cannot be."""
    redact: Callable[[Any], Any] | None = None
    """The payload as callers without full rights see it."""


class Hooks(NamedTuple):
    """The kinds that have something to do in the engine's transactions, by name."""

    admit: Mapping[str, Admit] = {}
    claimed: Mapping[str, Claimed] = {}
    ended: Mapping[str, Ended] = {}
    internal: frozenset[str] = frozenset()
    delivers: tuple[Delivers, ...] = ()  # of domains, for runs of any kind


NO_HOOKS = Hooks()


class Kinds:
    """The kinds one scheduler knows: what was declared, and who handles what."""

    def __init__(self, declared: Iterable[Kind] = (), delivers: Iterable[Delivers] = ()) -> None:
        self._declared = {kind.name: kind for kind in declared}
        self._handlers: dict[str, tuple[Handler, bool]] = {}
        self.hooks = Hooks(
            {name: kind.admit for name, kind in self._declared.items() if kind.admit is not None},
            {name: kind.claimed for name, kind in self._declared.items() if kind.claimed is not None},
            {name: kind.ended for name, kind in self._declared.items() if kind.ended is not None},
            frozenset(name for name, kind in self._declared.items() if kind.internal),
            tuple(delivers),
        )

    def handle(self, kind: str, handler: Handler) -> None:
        """Register who runs a kind; the last one given counts."""
        call = getattr(handler, "__call__", None)  # noqa: B004 - objects with an async __call__ are handlers too
        if call is None:
            message = f"The handler of {kind!r} must be a function, not {handler!r}."
            raise InvalidJob(message)
        awaits = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
        self._handlers[kind] = (handler, awaits)

    def handled(self) -> frozenset[str]:
        """The kinds this process can run."""
        return frozenset(self._handlers)

    def handler(self, kind: str) -> tuple[Handler, bool]:
        """The handler of a kind, and whether it is a coroutine function."""
        return self._handlers[kind]

    def declared(self, name: str) -> Kind:
        """The kind of that name; one that nobody declared has neither rules nor hooks."""
        return self._declared.get(name) or Kind(name)

    def handle_builtin(self, folder: Callable[[], Path]) -> None:
        """Register the handlers that kinds bring themselves, where nobody brought another."""
        for kind in self._declared.values():
            if kind.handler is not None and kind.name not in self._handlers:
                self.handle(kind.name, _in_folder(kind.handler, folder))

    def with_recovery(self) -> list[Kind]:
        return [kind for kind in self._declared.values() if kind.before_recovery is not None]


def _in_folder(handler: Callable[[Run, Path], Awaitable[Any]], folder: Callable[[], Path]) -> Handler:
    async def run_in_folder(run: Run) -> Any:
        return await handler(run, folder())

    return run_in_folder
