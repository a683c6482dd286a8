"""Carrying a whole store into another one, of whichever dialect: all of it or nothing.

Both stores are held while it lasts: no server runs on either, none can start, and nothing is changed in the one that
is read. The other is filled in one transaction. What a dead server left running is carried as it is found, so that the
next start recovers it there as it would have here.
"""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import shutil
import threading
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wakeful.errors import JobExists, StoreLocked, StoreUnusable
from wakeful.private_files import make_private_folder, open_private, open_unlinked
from wakeful.store.nodes import LEASE_MS
from wakeful.store.process_identity import is_dead
from wakeful.store.records import NodeDetails, RunDetails
from wakeful.store.schema_shape import Table
from wakeful.store.tables import OWN_FACTS, known_tables
from wakeful.threads import room

if TYPE_CHECKING:
    from wakeful.store.interface import Store, Transaction
    from wakeful.store.session import Row

PAGE = 1_000
KEY_BYTES = 32
#: People sign in to each store anew.
STAY = ("page_codes", "page_sessions")

Report = Callable[[str, int, int], None]


class Copied(NamedTuple):
    """What was carried: rows of each table, files next to the store, and files that were not where the store is."""

    rows: dict[str, int]
    files: int
    elsewhere: int


Finish = Callable[["Transaction"], None]


def _as_it_is(_: Transaction) -> None:
    pass


async def copy_store(
    source: Store, target: Store, report: Report, finish: Finish = _as_it_is, anew: Collection[str] = ()
) -> Copied:
    """Carry everything from one open store into another, empty one.

    `report(table, done, all)` is called from a thread as it proceeds. Cancelled, or failed in any way, it leaves the
    target empty. `finish` changes what was carried, in the transaction that stores it. `anew` names facts that are
    secret keys: the target gets others in their place, and never holds those of the source.
    """
    who = {"pid": os.getpid(), "host": os.uname().nodename, "node": "wakeful copy"}
    loop, stop = asyncio.get_running_loop(), threading.Event()
    await source.become_engine(who)
    try:
        await target.become_engine(who)
        try:
            carrier = _Carrier(source, target, report, stop, finish, anew=anew)
            await target.read(lambda tx: _refuse_full(tx, target))
            # Before the transactions: one that is idle while gigabytes of logs are copied burdens the server.
            await room("copying").call(carrier.files.carry, stop)
            return await source.write(lambda tx: carrier.carry(tx, loop))
        finally:
            stop.set()
            await target.resign()
    finally:
        await source.resign()


async def back_up(source: Store, target: Store, report: Report, finish: Finish, anew: Collection[str] = ()) -> Copied:
    """Carry what an open store holds at one moment into another, empty one; servers continue working on the source."""
    who = {"pid": os.getpid(), "host": os.uname().nodename, "node": "wakeful backup"}
    loop, stop = asyncio.get_running_loop(), threading.Event()
    await target.become_engine(who)
    try:
        carrier = _Carrier(source, target, report, stop, finish, anew=anew)
        await target.read(lambda tx: _refuse_full(tx, target))
        # First: a run's file is there before the run's end is stored.
        await room("copying").call(carrier.files.carry, stop)
        return await source.read(lambda tx: carrier.carry_snapshot(tx, loop))
    finally:
        stop.set()
        await target.resign()


class _Carrier:
    """One move; everything here runs on threads of the two stores, one waiting for the other."""

    def __init__(
        self,
        source: Store,
        target: Store,
        report: Report,
        stop: threading.Event,
        finish: Finish,
        *,
        anew: Collection[str],
    ) -> None:
        self._finish = finish
        self._anew = anew
        self._source = source
        self._target = target
        self._report = report
        self._stop = stop
        self._tables = [table for table in known_tables() if table.name not in STAY]
        self.files = _Files(source.folder, target.folder)

    def carry(self, origin: Transaction, loop: asyncio.AbstractEventLoop) -> Copied:
        """Inside the transaction that holds the source, fill the target in one of its own."""
        try:
            origin.tables.hold(self._tables)
            _refuse_living(origin, self._source)
        except BaseException:
            self.files.undo()
            raise
        return self.carry_snapshot(origin, loop)

    def carry_snapshot(self, origin: Transaction, loop: asyncio.AbstractEventLoop) -> Copied:
        """The same inside a transaction that only reads."""
        try:
            _refuse_newer(origin, self._source)
            rows = asyncio.run_coroutine_threadsafe(
                self._target.write(lambda tx: self._fill(origin, tx)), loop
            ).result()
        except BaseException:
            self.files.undo()
            raise
        return Copied(rows, len(self.files.carried), self.files.elsewhere)

    def _fill(self, origin: Transaction, tx: Transaction) -> dict[str, int]:
        """May be run again from the start, if the database asks for it."""
        tx.tables.hold(self._tables)
        _refuse_living(tx, self._target)
        _refuse_full(tx, self._target)
        tx.tables.clear(self._tables)
        self.files.elsewhere = 0
        totals = {table.name: origin.tables.count(table.name) for table in self._tables}
        change = _changes(origin, self.files, tx.facts.database_now(), self._anew)
        for table in self._tables:
            self._fill_table(origin, tx, table, totals[table.name], change.get(table.name, _same))
        tx.tables.go_on_counting()
        self._finish(tx)
        return totals

    def _fill_table(self, origin: Transaction, tx: Transaction, table: Table, total: int, change: Change) -> None:
        page, done = origin.tables.page(table, None, PAGE), 0
        while page:
            _refuse_stopped(self._stop)
            tx.tables.fill(table, change(page))
            done += len(page)
            self._report(table.name, done, total)
            page = origin.tables.page(table, page[-1], PAGE) if len(page) == PAGE else []


def _refuse_stopped(stop: threading.Event) -> None:
    if stop.is_set():
        message = "The copy was interrupted; nothing was stored."
        raise StoreLocked(message)


Change = Callable[[Sequence["Row"]], Sequence["Row"]]


def _same(rows: Sequence[Row]) -> Sequence[Row]:
    return rows


def _changes(origin: Transaction, files: _Files, now: int, anew: Collection[str]) -> dict[str, Change]:
    """What does not go as it is."""
    holders = origin.tables.holders()

    def node(row: Row) -> Row:
        old = NodeDetails._make(row)
        if old.id in holders:
            # It is gone, and its runs are not settled: the next start must find it dead, and take over from it.
            return old._replace(stopped_at=None, taken_by=None, draining=0, seen_at=min(old.seen_at, now - LEASE_MS))
        return old._replace(stopped_at=old.stopped_at if old.stopped_at is not None else old.seen_at, draining=0)

    def fact(row: Row) -> Row:
        return (row[0], secrets.token_hex(KEY_BYTES)) if row[0] in anew else row

    return {
        "meta": lambda rows: [fact(row) for row in rows if row[0] not in OWN_FACTS],
        "nodes": lambda rows: [node(row) for row in rows],
        "run_details": lambda rows: [files.moved(RunDetails._make(row)) for row in rows],
    }


class _Files:
    """What lies next to a store: carried first, so that no row points to nothing."""

    def __init__(self, source: Path, target: Path) -> None:
        self._source = source
        self._target = target
        self.carried: dict[str, Path] = {}
        self._made: list[Path] = []
        self.elsewhere = 0

    def carry(self, stop: threading.Event) -> None:
        """Copy logs, long outputs, and the notes that say which process a run was; all of them or none."""
        if not self._source.is_dir():
            return
        make_private_folder(self._target)
        try:
            for path in sorted(self._source.glob("run_*")):
                _refuse_stopped(stop)
                if path.is_file() and not path.is_symlink():
                    there = self.carried[path.name] = self._target / path.name
                    self._made += [] if there.exists() else [there]
                    _copy_file(path, there)
        except BaseException:
            self.undo()
            raise

    def moved(self, details: RunDetails) -> RunDetails:
        """The details with their file where it is now; one that lies on another machine stays there."""
        if details.log_file is None:
            return details
        here = self.carried.get(Path(details.log_file).name)
        if here is None:
            self.elsewhere += 1
            return details
        return details._replace(log_file=str(here))

    def undo(self) -> None:
        """Leave nothing behind that was not there before."""
        for path in self._made:
            path.unlink(missing_ok=True)


def _copy_file(source: Path, target: Path) -> None:
    with open_unlinked(source) as here:
        fd = open_private(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        with os.fdopen(fd, "wb") as there:
            shutil.copyfileobj(here, there)
    shutil.copystat(source, target, follow_symlinks=False)


def _refuse_living(tx: Transaction, store: Store) -> None:
    """A file's lock is ours already; where nodes share a store, none of them may be alive."""
    if tx.exclusive:
        return
    seen = tx.nodes.living(tx.facts.database_now() - LEASE_MS)
    living = [node for node in seen if not is_dead(node.id, json.loads(node.details))]
    if living:
        listed = ", ".join(f"{node.name} ({_where(node)})" for node in living)
        message = f"{_name(store)} is in use by {listed}: stop {'it' if len(living) == 1 else 'them'} first."
        raise StoreLocked(message)


def _where(node: NodeDetails) -> str:
    about = json.loads(node.details)
    return f"process {about.get('pid')} on {about.get('host')}"


def _refuse_newer(tx: Transaction, store: Store) -> None:
    if tx.tables.too_new():
        message = f"{_name(store)} was written by a newer Wakeful: copy it with that version."
        raise StoreUnusable(message)
    if domains := tx.tables.unknown_domains():
        message = (
            f"{_name(store)} has tables of {', '.join(domains)} that this program does not know: "
            "copy it with a program that does."
        )
        raise StoreUnusable(message)


def _refuse_full(tx: Transaction, store: Store) -> None:
    found = tx.tables.row_counts()
    if found:
        ones = {"deliveries": "delivery"}
        listed = " and ".join(
            f"{number} {name if number != 1 else ones.get(name, name.removesuffix('s'))}"
            for name, number in found.items()
        )
        message = f"{_name(store)} is not empty ({listed}): choose an empty store to copy into."
        raise JobExists(message)


def _name(store: Store) -> str:
    return str(getattr(store, "path", None) or getattr(store, "url", "the store"))
