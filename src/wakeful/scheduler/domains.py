"""What domains built on the scheduler need beside what users do: transactions of their own, and a life beside its own.

A domain keeps its rules in functions of a transaction, as the kernel does, and registers handlers for its kinds.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wakeful.domains import load_part
from wakeful.scheduler.core import Core

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.actions.drafts import NewJob
    from wakeful.kernel.actions.recording import Origin
    from wakeful.kernel.cluster.nodes import Seen
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Draft
    from wakeful.kernel.kinds import Kinds
    from wakeful.kernel.rules.parking import Unsettled
    from wakeful.store.interface import Transaction

T = TypeVar("T")


class Companion(Protocol):
    """Something that lives beside the engine."""

    def begin(self) -> None:
        """The engine runs."""

    async def end(self) -> None:
        """The engine is about to stop; nothing more of this may go on when it returns."""


class Domains(Core):
    """The seam for what is built on jobs and runs."""

    @property
    def clock(self) -> Clock:
        return self._clock

    def add_workflow(self, workflow: Any) -> Awaitable[None]:
        """Let this scheduler run a `Workflow`. It is stored when the scheduler starts; where it runs already, await it.

        >>> scheduler.add_workflow(workflow)
        """
        added: Awaitable[None] = load_part("add_workflow")(self)(workflow)
        return added

    def new_id(self) -> int:
        """A number that nothing in this store has, larger than those before."""
        return self._ids.next()

    @property
    def kinds(self) -> Kinds:
        """The kinds this scheduler knows; hooks see the same."""
        return self._kinds

    def write_at_start(self, name: str, work: Callable[[Transaction, Context], None]) -> None:
        """Run `work` in a transaction of its own each time before the engine starts; the last of a name counts."""
        self._at_start[name] = work

    @property
    def handled_kinds(self) -> frozenset[str]:
        """The kinds of job this scheduler has a handler for."""
        return self._kinds.handled()

    @property
    def node_id(self) -> int:
        """Which node this is while the engine runs."""
        return self._identify().id

    @property
    def default_zone(self) -> str:
        """The zone of what names none."""
        return self._default_zone()

    @property
    def max_running(self) -> int | None:
        """How many runs may be active at once; None without a limit."""
        return self._max_running

    @property
    def seen(self) -> Seen:
        """Which servers are alive, as far as this process can see."""
        return self._seen()

    @property
    def log_folder(self) -> Path:
        """Where files beside the store go."""
        return self._log_folder()

    @property
    def job_defaults(self) -> Mapping[str, Any]:
        """The options of what has none of its own."""
        return self._job_defaults

    def acting(self) -> Origin:
        """The rights of this program, if no others are given. What it does with one of these is one recorded action."""
        return self._origin()

    def drafted(self, new: NewJob, source: str, defaults: Mapping[str, Any]) -> Draft:
        """A job as it can be stored, or InvalidJob; `defaults` are the options it does not give itself."""
        return self._draft(new, source, defaults)

    async def transact(self, work: Callable[[Transaction, Context], T], *, wakes: bool = True) -> T:
        """Run `work` in one durable transaction; the engine looks at what it changed at once, unless not `wakes`."""
        context = self._identify()
        return await self._write(lambda tx: work(tx, context), wakes=wakes)

    async def look(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot; it must not write."""
        return await self._store.read(work)

    def before_start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Let `work` be done at every start, before anything fires."""
        self._preparations.append(work)

    def offer_labels(self, labels: Iterable[str]) -> None:
        """From here on this node also has these labels, and runs what waits for them."""
        self._engine.offer_labels(frozenset(labels))

    def withdraw_labels(self, labels: Iterable[str]) -> None:
        """This node no longer has these labels."""
        self._engine.offer_labels(without=frozenset(labels))

    def withhold(self, unsettled: Unsettled | None) -> None:
        """Start nothing here of what belongs to a file that could not be applied; None: it is settled."""
        self._engine.context = self._engine.context._replace(unsettled=unsettled)
        self._engine.offer_labels()  # what waited for this is put back

    def accompany(self, companion: Companion) -> None:
        """Let something begin and end with the engine."""
        self._companions.append(companion)
        if self._status == "running":
            companion.begin()
