"""What a kind of job is: who runs it, what its payload must look like, and what it adds to the engine's transactions.

A kind is a value. Domains declare theirs; a kind that only has a handler, such as one made with `on_job_due`, needs no
declaration. Hooks are functions of the transaction in which the engine admits, claims or ends a run: what they write is
stored with that decision or not at all. A kind without hooks costs nothing.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from wakeful.errors import InvalidJob
from wakeful.kernel.hooks import (
    Admit,
    Alerted,
    ByHand,
    CheckWriter,
    Claimed,
    Delivers,
    Ended,
    Hooks,
    Joined,
    Overdue,
    Rearmed,
    Released,
    Reported,
    Resumed,
    SetBack,
    Spread,
    Stored,
    Succeeded,
    Swept,
    TakesLanes,
    Waiting,
)

if TYPE_CHECKING:
    from wakeful.kernel.model.run import Run
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef
    from wakeful.triggers import Trigger

Handler = Callable[["Run"], Any]
AnyHandler = Callable[["Run"], Any] | Callable[[], Any]
"""What users register: a function of the run, or one without arguments."""


class Kind(NamedTuple):
    """One kind of job."""

    name: str
    handler: Callable[[Run, Path], Awaitable[Any]] | None = None
    """Runs it in every scheduler that has no handler of its own for it; given the run and the folder for its files."""
    check_payload: Callable[[Any], None] | None = None
    """Raises InvalidJob for a payload that cannot be run; called whenever a job of this kind is written."""
    check_name: Callable[[str, Any], None] | None = None
    """Raises InvalidJob where a job with this payload cannot have this name; called whenever one of them changes."""
    check_writer: CheckWriter | None = None
    """Raises NotAllowed where this caller over the network may not write this payload; given the job as it was."""
    owned_by: Callable[[Any], str] | None = None
    """Whose a job of this kind is, by its payload: not a token's of that name, and not another's by a change."""
    admin_only: bool = False
    """Only callers with full rights may write such jobs over the network."""
    internal: bool = False
    """Part of the machinery: not counted by `max_running`, and left out of listings unless asked for."""
    patient: bool = False
    """Its jobs wait for each other by design: one that waits for a lane for long is not reported as missed."""
    alerts_itself: bool = False
    """When a handler fails, its domain opens an alert: the engine opens no second one, `failing` or `failed`."""
    options: Mapping[str, Any] = MappingProxyType({})
    """Options of its jobs where neither the job nor the scheduler's defaults say otherwise."""
    admit: Admit | None = None
    """Asked in the claiming transaction before a start; may refuse it. If it raises, the job is disabled."""
    by_hand: ByHand | None = None
    """Asked before a start by hand is stored. If it refuses, the caller is refused, and what it wrote is kept."""
    takes_lanes: TakesLanes | None = None
    """The lanes a start takes besides those of its job, each of size 1; given the run where one is queued.

    A run keeps them while it waits to be completed: what it began continues in them.
    """
    keeps_lanes: bool = False
    """A run that waits to be completed keeps the lanes of its job, too: they limit what continues elsewhere."""
    reserved_lanes: tuple[str, ...] = ()
    """How names of lanes begin that follow from what jobs of this kind do: a caller limited to its own names none."""
    lanes_of: Callable[[Any], Collection[str]] | None = None
    """Those among them that a job with this payload is in, whoever wrote it."""
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
    succeeded: Succeeded | None = None
    """Of runs that did not end as a success: those that had stored all they were to do, each with its result.

    Asked where a process ended, a person cancelled or an answer was lost between that and the run's end.
    """
    before_recovery: Callable[[Path, list[str]], Awaitable[None]] | None = None
    """Ends what a killed process left running of these runs, before they are run again."""
    from_outside: Callable[[Any], Any] | None = None
    """The payload as it is kept when it was written over the network; the handler sees what it marks."""
    fields: str | None = None
    """`module:name` of its `Field`s: what its jobs are written with in files and on the command line.

    The first says that a job is of this kind. None for a kind that a file cannot write.
    """
    finish: str | None = None
    """`module:name` of a function: the payload, from what the fields of a job in a file gave and the file's folder."""
    trigger: str | None = None
    """Jobs with a trigger of this type are of this kind, and jobs of this kind have no other."""
    rearmed: Rearmed | None = None
    """Called when the next start of a job is computed again, after a resume or because the clock was set back.

    Returns the state with an earlier start, or with one more that is queued, for a kind whose jobs are also due for
    reasons of their own.
    """
    resumed: Resumed | None = None
    """Called in the transaction that resumes a job of this kind, when its state is stored; also while it runs.

    Also where an undo does so, or restores a job that was removed.
    """
    set_back: SetBack | None = None
    """Called once when the clock was set back, with by how much and the first id made after that.

    Brings times that the domain stores and that lie ahead into the new time: a wait takes as long as it was to take.
    """
    stored: Stored | None = None
    """Called in the transaction that adds jobs of this kind, or makes jobs to be of this kind."""
    waiting: Waiting | None = None
    """What waits for jobs of this kind that come with a file, or for jobs that are gone with it: sentences for people.

    Given the names of jobs that applying the file adds, and of those that it removes.
    """
    spread: Spread | None = None
    """Given the jobs of this kind that one transaction adds, and the time: the triggers some get instead, by name."""
    redact: Callable[[Any], Any] | None = None
    """The payload as callers without full rights see it."""
    reserves: Callable[[Transaction, Sequence[str]], str | None] | None = None
    """Why new jobs of other kinds may not have one of these names, which have a dot in them; None where they may."""
    keeps_dots: Callable[[Transaction], bool] | None = None
    """Whether names with a dot are kept for jobs of kinds that reserve names, or are internal, in this store."""
    reported: Reported | None = None
    """How a run ended whose end was reported from outside, as this kind writes it; given what was reported."""
    managed: str | None = None
    """Why people may not change or remove jobs of this kind, which their domain writes; None where they may."""
    not_started: str | None = None
    """Why nobody may start jobs of this kind, which run elsewhere, to follow the job's name; None where they may."""
    overdue: Overdue | None = None
    """Called when an expected report did not come in time, for jobs whose trigger says that they are reported."""
    ends_itself: str | None = None
    """Why nobody may report how a waiting run of this kind ended, which its domain ends; None where they may."""
    simulated: Callable[[Kind], Kind] | None = None
    """The kind as a simulation has it: with hooks that touch nothing outside the store. None: its hooks are used as
    they are. In either case a simulation never calls the handler."""


def without_hooks(kind: Kind) -> Kind:
    """The kind with its rules for listings and options, and with nothing of its own in the engine's transactions."""
    return Kind(kind.name, internal=kind.internal, patient=kind.patient, options=kind.options)


class Kinds:
    """The kinds one scheduler knows: what was declared, and who handles what."""

    def __init__(
        self,
        declared: Iterable[Kind] = (),
        delivers: Iterable[Delivers] = (),
        alerted: Iterable[Alerted] = (),
        released: Iterable[Released] = (),
        *,
        swept: Iterable[Swept] = (),
        joined: Iterable[Joined] = (),
    ) -> None:
        self._declared = {kind.name: kind for kind in declared}
        for kind in self._declared.values():
            if kind.handler is not None and not _takes(kind.handler, 2):
                message = f"The handler of kind {kind.name!r} must take two arguments, the run and a folder."
                raise InvalidJob(message)
        self._by_trigger = {kind.trigger: kind.name for kind in self._declared.values() if kind.trigger is not None}
        self._reserving = [kind for kind in self._declared.values() if kind.reserves is not None]
        self._handlers: dict[str, tuple[Handler, bool]] = {}
        self._plain = Kind("")  # the last undeclared kind that was looked up: many jobs in a row are of one kind
        self.hooks = Hooks(
            {name: kind.admit for name, kind in self._declared.items() if kind.admit is not None},
            {name: kind.takes_lanes for name, kind in self._declared.items() if kind.takes_lanes is not None},
            {name: kind.claimed for name, kind in self._declared.items() if kind.claimed is not None},
            {name: kind.ended for name, kind in self._declared.items() if kind.ended is not None},
            {name: kind.overdue for name, kind in self._declared.items() if kind.overdue is not None},
            frozenset(name for name, kind in self._declared.items() if kind.internal),
            frozenset(name for name, kind in self._declared.items() if kind.patient),
            frozenset(name for name, kind in self._declared.items() if kind.alerts_itself),
            tuple(delivers),
            tuple(alerted),
            tuple(released),
            tuple(swept),
            tuple(joined),
        )

    def handle(self, kind: str, handler: AnyHandler) -> None:
        """Register who runs a kind; the last one given counts. It takes the run, or nothing."""
        call = getattr(handler, "__call__", None)  # noqa: B004 - objects with an async __call__ are handlers too
        if call is None:
            message = f"The handler of {kind!r} must be a function, not {handler!r}."
            raise InvalidJob(message)
        awaits = inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(call)
        if not _takes(handler, 1):
            handler = _without_run(kind, handler, awaits=awaits)
        self._handlers[kind] = (cast("Handler", handler), awaits)

    def names(self) -> tuple[str, ...]:
        """The kinds that were declared."""
        return tuple(self._declared)

    def handled(self) -> frozenset[str]:
        """The kinds this process can run."""
        return frozenset(self._handlers)

    def handler(self, kind: str) -> tuple[Handler, bool]:
        """The handler of a kind, and whether it is a coroutine function."""
        return self._handlers[kind]

    def declared(self, name: str) -> Kind:
        """The kind of that name; an undeclared one has neither rules nor hooks."""
        found = self._declared.get(name) or self._plain
        if found.name != name:
            found = self._plain = Kind(name)
        return found

    def for_trigger(self, trigger: Trigger, name: str) -> str:
        """The kind of a job with that trigger and kind `name`; InvalidJob if they do not match."""
        owner = self._by_trigger.get(trigger.type)
        if owner is None and (wanted := self.declared(name).trigger) is not None:
            message = f"A job of kind {name} has a {wanted} trigger, not one of type {trigger.type}."
            raise InvalidJob(message)
        if owner is None or name in ("job", owner):
            return owner or name
        message = f"A job with a {trigger.type} trigger runs nothing here: it is of kind {owner}, not {name}."
        raise InvalidJob(message)

    def handle_builtin(self, folder: Callable[[], Path]) -> None:
        """Register the handlers that kinds bring themselves, where no other is registered."""
        for kind in self._declared.values():
            if kind.handler is not None and kind.name not in self._handlers:
                self.handle(kind.name, _in_folder(kind.handler, folder))

    def refuse_reserved(self, tx: Transaction, new: Iterable[tuple[str, str]]) -> None:
        """InvalidJob for a new name that belongs to jobs of another kind; those have dots. With each name, its kind."""
        dotted = [(name, kind) for name, kind in new if "." in name]
        for other in self._reserving:
            names = [name for name, kind in dotted if kind != other.name]
            why = other.reserves(tx, names) if names and other.reserves is not None else None
            if why is not None:
                raise InvalidJob(why)
        plain = [name for name, kind in dotted if not (self.declared(kind).reserves or self.declared(kind).internal)]
        if plain and any(other.keeps_dots is not None and other.keeps_dots(tx) for other in self._reserving):
            message = f"{plain[0]!r:.120} has a dot, as schedules of agents have: choose a name without one."
            raise InvalidJob(message)
        for name, kind in dotted:
            owner = name.partition(".")[0]
            if owner != kind and owner in self.hooks.internal:
                message = f"{name!r:.120} would be a job of {owner} itself: choose another name."
                raise InvalidJob(message)

    def is_reserved_lane(self, lane: str) -> bool:
        """Whether a lane of that name follows from what jobs of some kind do."""
        return lane.startswith(tuple(begin for kind in self._declared.values() for begin in kind.reserved_lanes))

    def for_admins(self) -> tuple[str, ...]:
        """The kinds whose jobs only callers with full rights write over the network."""
        return tuple(sorted(kind.name for kind in self._declared.values() if kind.admin_only))

    def apart(self) -> tuple[str, ...]:
        """The kinds whose jobs have owners that are not tokens."""
        return tuple(name for name, kind in self._declared.items() if kind.owned_by is not None)

    def check_names(self, jobs: Iterable[JobDef]) -> None:
        """InvalidJob for a job that cannot have its name, as its kind says."""
        for job in jobs:
            check = self.declared(job.kind).check_name
            if check is not None:
                check(job.name, json.loads(job.payload))

    def refuse_managed(self, job: JobDef) -> None:
        """InvalidJob for a change or removal of a job that belongs to its domain."""
        why = self.declared(job.kind).managed
        if why is not None:
            message = f"{job.name} cannot be changed or removed: {why}."
            raise InvalidJob(message)

    def set_back(self, tx: Transaction, back_ms: int, newer: int) -> None:
        """Let every kind bring the times it stores into the new time."""
        for kind in self._declared.values():
            if kind.set_back is not None:
                kind.set_back(tx, back_ms, newer)

    def with_recovery(self) -> list[Kind]:
        return [kind for kind in self._declared.values() if kind.before_recovery is not None]


def _takes(function: Callable[..., Any], count: int) -> bool:
    """Whether a function can be called with so many arguments; one that does not say is taken to."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # such as some that are written in C
        return True
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True


def _without_run(kind: str, handler: Callable[..., Any], *, awaits: bool) -> Handler:
    """A handler that takes no argument, as one that is given the run."""
    if not _takes(handler, 0):
        called = getattr(handler, "__name__", None) or repr(handler)
        message = (
            f"The handler of {kind!r} must take one argument, the run, or none: "
            f"{called}{inspect.signature(handler)} cannot be called that way."
        )
        raise InvalidJob(message)
    if not awaits:
        return lambda _: handler()

    async def call(_: Run) -> Any:
        return await handler()

    return call


def _in_folder(handler: Callable[[Run, Path], Awaitable[Any]], folder: Callable[[], Path]) -> Handler:
    async def run_in_folder(run: Run) -> Any:
        return await handler(run, folder())

    return run_in_folder
