"""The store as the kernel sees it: transactions of domain verbs, and nothing else.

A transaction is a plain synchronous function of a `Transaction`. The store runs it alone, commits, and only then
hands back its result, so it is on disk before the caller continues. The function may be run again from the
start if the database asks for it; it must therefore do nothing but read, decide and write through its transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar, cast

from wakeful.store.access import Access
from wakeful.store.actions import Actions
from wakeful.store.alerts import Alerts
from wakeful.store.events import EventVerbs, Skips
from wakeful.store.facts import Facts
from wakeful.store.gauges import Gauges
from wakeful.store.jobs import Jobs
from wakeful.store.lanes import Lanes
from wakeful.store.nodes import Members, NodeVerbs
from wakeful.store.reports import Reports
from wakeful.store.rows import Verbs
from wakeful.store.runs import Runs
from wakeful.store.slots import Slots
from wakeful.store.stretches import Stretches
from wakeful.store.tables import Tables

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.records import EventGroup
    from wakeful.store.session import Session

T = TypeVar("T")
V = TypeVar("V", bound=Verbs)


class _Group(Generic[V]):
    """The verbs of one subject, made when they are first used: a transaction needs few of them."""

    def __init__(self, verbs: type[V]) -> None:
        self._verbs = verbs

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, transaction: Transaction, owner: type) -> V:
        found = transaction.__dict__[self._name] = transaction.of(self._verbs)
        return found


class Transaction:
    """The verbs, grouped by subject."""

    access = _Group(Access)
    actions = _Group(Actions)
    events = _Group(EventVerbs)
    facts = _Group(Facts)
    gauges = _Group(Gauges)
    jobs = _Group(Jobs)
    lanes = _Group(Lanes)
    members = _Group(Members)
    nodes = _Group(NodeVerbs)
    reports = _Group(Reports)
    runs = _Group(Runs)
    skips = _Group(Skips)
    slots = _Group(Slots)
    stretches = _Group(Stretches)
    tables = _Group(Tables)

    def __init__(self, session: Session, now: int) -> None:
        self._session = session
        self._rooms: dict[type[Verbs], Any] = {}
        self.now = session.now = now
        self.exclusive = session.exclusive  # False: other nodes work on this store at the same time

    @cached_property
    def alerts(self) -> Alerts:
        """As above; whoever reads events hears of incidents."""
        return Alerts(self._session, self.events)

    def of(self, verbs: type[V]) -> V:
        """A domain's own verbs (`tx.of(Sessions)`), as part of this transaction."""
        found = self._rooms.get(verbs)
        if found is None:
            found = self._rooms[verbs] = verbs(self._session)
        return cast("V", found)

    def flush(self) -> list[EventGroup]:
        """Write the events that were emitted; what subscribers get after the commit."""
        return self.events.flush(self.now) if "events" in self.__dict__ else []


class Store(Protocol):
    """Where jobs live. `write` and `read` belong to the loop the store was opened on."""

    folder: Path
    """Where files next to the store go: long output, and what commands print."""

    exclusive: bool
    """Whether only one process at a time can be this store's engine; else nodes share it, with leases."""

    clock: Clock
    """The time this store uses: the database's, if nodes share it."""

    async def open(self, *, create: bool = True) -> None:
        """Connect, check that this is a store of ours, and bring its schema up to date."""

    async def close(self) -> None:
        """Finish submitted work and close the database."""

    async def write(self, work: Callable[[Transaction], T], *, not_before: int | None = None) -> T:
        """Run `work` in one transaction, durably; what it raises undoes all of it.

        `not_before`: a moment a few milliseconds away at most, to begin at exactly.
        """

    async def read(self, work: Callable[[Transaction], T]) -> T:
        """Run `work` on one consistent snapshot, alongside the writer; it must not write."""

    def write_apart(self, work: Callable[[Transaction], T]) -> T:
        """Run a small `work` from any one thread, waiting for no other; only where nodes share the store."""

    async def changed_elsewhere(self) -> bool:
        """Whether another process committed since the last call. Cheap enough to call twice a second."""

    async def become_engine(self, who: dict[str, object]) -> None:
        """Become the process that starts this store's jobs, or raise StoreLocked with the holder."""

    def holder(self) -> dict[str, object] | None:
        """Which process that is right now, or None."""

    async def resign(self) -> None:
        """Stop being that process."""

    def on_change(self, listener: Callable[[], None]) -> None:
        """Call `listener` on the loop as soon as another process changes something, where the store can notice it."""

    def on_events(self, listener: Callable[[list[EventGroup]], None]) -> None:
        """Call `listener` with what each transaction of this process emitted, after its commit."""
