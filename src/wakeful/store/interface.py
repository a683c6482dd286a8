"""The store as the kernel sees it: transactions of domain verbs, and nothing else.

A transaction is a plain synchronous function of a `Transaction`. The store runs it alone, commits, and only then
hands back its result, so it is on disk before the caller goes on. The function may be run again from the
start if the database asks for it; it must therefore do nothing but read, decide and write through its transaction.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from wakeful.store.access import Access
from wakeful.store.actions import Actions
from wakeful.store.jobs import Jobs
from wakeful.store.journal import Journal
from wakeful.store.lanes import Lanes
from wakeful.store.nodes import Nodes
from wakeful.store.reports import Reports
from wakeful.store.runs import Runs
from wakeful.store.slots import Slots
from wakeful.store.stretches import Stretches
from wakeful.store.tables import Tables

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.store.records import EventGroup
    from wakeful.store.session import Session

T = TypeVar("T")
V = TypeVar("V", bound="Verbs")


_SUBJECTS: dict[str, type[Any]] = {
    "jobs": Jobs,
    "runs": Runs,
    "lanes": Lanes,
    "nodes": Nodes,
    "tables": Tables,
    "access": Access,
    "actions": Actions,
    "slots": Slots,
    "stretches": Stretches,
    "reports": Reports,
}


class Transaction:
    """The verbs, grouped by subject."""

    __slots__ = (
        "_rooms",
        "_session",
        "access",
        "actions",
        "exclusive",
        "jobs",
        "journal",
        "lanes",
        "nodes",
        "now",
        "reports",
        "runs",
        "slots",
        "stretches",
        "tables",
    )

    jobs: Jobs
    runs: Runs
    lanes: Lanes
    nodes: Nodes
    tables: Tables
    access: Access
    actions: Actions
    slots: Slots
    stretches: Stretches
    reports: Reports

    def __init__(self, session: Session, now: int) -> None:
        self._session = session
        self._rooms: dict[type[Any], Any] = {}
        self.now = now
        self.exclusive = session.exclusive  # False: other nodes work on this store at the same time
        self.journal = Journal(session, now)

    def __getattr__(self, name: str) -> Any:
        """The verbs of a subject, when they are first used: a transaction needs few of them."""
        verbs = _SUBJECTS.get(name)
        if verbs is None:
            raise AttributeError(name)
        found = verbs(self._session, self.now) if verbs is Jobs else verbs(self._session)
        setattr(self, name, found)
        return found

    def of(self, verbs: type[V]) -> V:
        """A domain's own verbs (`tx.of(Sessions)`), as part of this transaction."""
        found = self._rooms.get(verbs)
        if found is None:
            found = self._rooms[verbs] = verbs(self._session)
        return cast("V", found)


class Verbs(Protocol):
    """What a domain's `tables.py` has: verbs on its tables, made with the session of one transaction."""

    def __init__(self, session: Session) -> None: ...


class Store(Protocol):
    """Where jobs live. `write` and `read` belong to the loop the store was opened on."""

    folder: Path
    """Where files beside the store go: long output, and what commands print."""

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
        """Run `work` on one consistent snapshot, beside the writer; it must not write."""

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
