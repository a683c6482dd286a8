"""What domains and surfaces need of the scheduler they are part of, and its users do not.

A domain keeps its rules in functions of a transaction, as the kernel does, and registers handlers for its kinds. What
lives as long as the engine, or is done before it starts, is registered here.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from wakeful.kernel.actions.recording import Origin, origin_of
from wakeful.kernel.cluster.nodes import Seen
from wakeful.kernel.hooks import Draft
from wakeful.kernel.rules.parking import Unsettled

if TYPE_CHECKING:
    from wakeful.kernel.actions.drafts import NewJob
    from wakeful.kernel.context import Context
    from wakeful.kernel.kinds import Kinds
    from wakeful.scheduler.core import Wiring
    from wakeful.store.interface import Transaction


class Companion(Protocol):
    """Something that lives alongside the engine."""

    def begin(self) -> None:
        """The engine runs."""

    async def end(self) -> None:
        """The engine is about to stop; nothing more of this may continue when it returns."""


class Host:
    """The seam for what is built on jobs and runs: `scheduler.host`."""

    def __init__(self, wiring: Wiring, kinds: Kinds, job_defaults: Mapping[str, Any], max_running: int | None) -> None:
        self._wiring = wiring
        self.kinds = kinds
        """The kinds this scheduler knows; hooks see the same."""
        self.job_defaults = job_defaults
        """The options of what has none of its own."""
        self.max_running = max_running
        """How many runs may be active at once; None without a limit."""
        self.companions: list[Companion] = []
        self.preparations: list[Callable[[], Awaitable[None]]] = []
        self.at_start: dict[str, Callable[[Transaction, Context], None]] = {}

    @property
    def hidden_kinds(self) -> tuple[str, ...]:
        """The kinds that listings and counts leave out unless requested."""
        return self._wiring.hidden_kinds

    @property
    def handled_kinds(self) -> frozenset[str]:
        """The kinds of job this scheduler has a handler for."""
        return self.kinds.handled()

    @property
    def node_id(self) -> int:
        """Which node this is while the engine runs."""
        return self._wiring.identify().id

    @property
    def default_zone(self) -> str:
        """The zone of what names none."""
        return self._wiring.default_zone()

    @property
    def seen(self) -> Seen:
        """Which servers are alive, as far as this process can see."""
        return self._wiring.seen()

    @property
    def log_folder(self) -> Path:
        """Where files next to the store go."""
        return self._wiring.store.folder

    def new_id(self) -> int:
        """A number that nothing in this store has, larger than those before."""
        return self._wiring.identify().new_id()

    def origin(self) -> Origin:
        """The rights of this program, if no others are given. What it does with one of these is one recorded action."""
        return origin_of(self._wiring.identify())

    def draft(self, new: NewJob, source: str, defaults: Mapping[str, Any] | None = None) -> Draft:
        """A job as it can be stored, or InvalidJob; `defaults` or the scheduler's are the options it leaves out."""
        return self._wiring.draft(new, source, defaults)

    # -- before the engine starts, and alongside it --------------------------------------------------------------------

    def before_start(self, work: Callable[[], Awaitable[None]]) -> None:
        """Let `work` be done at every start, before anything fires."""
        self.preparations.append(work)

    def write_at_start(self, name: str, work: Callable[[Transaction, Context], None]) -> None:
        """Run `work` in a transaction of its own each time before the engine starts; the last of a name counts."""
        self.at_start[name] = work

    def add_service(self, service: Companion) -> None:
        """Let something begin and end with the engine."""
        self.companions.append(service)
        if self._wiring.is_running():
            service.begin()

    # -- what this node runs ------------------------------------------------------------------------------------------

    def offer_labels(self, labels: Iterable[str]) -> None:
        """From here on this node also has these labels, and runs what waits for them."""
        self._wiring.engine.offer_labels(frozenset(labels))

    def withdraw_labels(self, labels: Iterable[str]) -> None:
        """This node no longer has these labels."""
        self._wiring.engine.offer_labels(without=frozenset(labels))

    def withhold(self, unsettled: Unsettled | None) -> None:
        """Start nothing here of what belongs to a file that could not be applied; None: it is settled."""
        engine = self._wiring.engine
        engine.context = engine.context._replace(unsettled=unsettled)
        engine.offer_labels()  # what waited for this is put back
