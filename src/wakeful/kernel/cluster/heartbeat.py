"""The heartbeat of a node: from a thread of its own, so that a node with a busy loop does not look dead.

A beat carries how long the loop has been blocked, so that other nodes can distinguish a busy node from one that hangs.
Its result is handed to the loop. A failed beat is not reported here: the lease runs out, and the loop logs why.

A node keeps here what it knows of itself: may it start anything, was it declared dead, and who else must be taken over
from. One that has its store to itself always may. The engine asks; what beats found while it was busy is kept.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wakeful.errors import SchedulerError
from wakeful.kernel.cluster.membership import Beat, Lease, PeerObserver, beat, take_over_silent
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.store import process_identity

if TYPE_CHECKING:
    from wakeful.clock import Clock
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Store


log = logging.getLogger("wakeful.engine")

LEAVE_S = 2.0  # how long an ending beat is waited for


class Heartbeat:
    """Beats from `start` to `stop`. `node_id` and `turned_at` (by boot time) are read again for every beat."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        lease: Lease,
        *,
        beat_ms: int,
        node_id: Callable[[], int],
        turned_at: Callable[[], int],
        report: Callable[[int, Beat], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._lease = lease
        self._beat_ms = beat_ms
        self._node_id = node_id
        self._turned_at = turned_at
        self._report = report
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._loop, name="wakeful-beat", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        """No further beat. One that hangs on a dead connection ends by itself and is not waited for."""
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(LEAVE_S)

    def _loop(self) -> None:
        while not self._stop.wait(self._beat_ms / 1000):
            try:
                self._beat()
            except SchedulerError as error:
                log.debug("heartbeat failed: %s", error)
            except Exception:
                log.exception("unexpected error in the heartbeat; retrying")

    def _beat(self) -> None:
        asked_at, node_id = self._clock.boot(), self._node_id()
        blocked_ms = max(0, asked_at - self._turned_at())
        found = self._store.write_apart(lambda tx: beat(tx, node_id, blocked_ms))
        if found.alive:
            self._lease.confirm(asked_at)
        if not self._stop.is_set():
            self._report(node_id, found)


class NodeLease:
    """Belongs to the engine's loop; only the lease is also touched by the thread that beats."""

    def __init__(self, store: Store, clock: Clock, times: LeaseTimes, *, virtual: bool) -> None:
        self._store = store
        self._clock = clock
        self._times = times
        self._virtual = virtual  # no threads: the loop beats itself
        self.draining = False
        self.fenced = False  # others took over from us
        self._node_id = 0
        self._turned_at = 0
        self._next_look = 0
        self._lease = Lease(clock, times)
        self._observer = PeerObserver(clock, times)
        self._heartbeat: Heartbeat | None = None
        self._wake: Callable[[], None] = lambda: None

    # -- life ---------------------------------------------------------------------------------------------------------

    def enter(self, node_id: int) -> None:
        """The node is about to join under that id; `end` takes it back."""
        process_identity.leave(self._node_id)
        process_identity.enter(node_id)
        self._node_id = node_id

    def begin(self, node_id: int, wake: Callable[[], None]) -> None:
        """The node has joined, just now."""
        self._lease, self._observer = Lease(self._clock, self._times), PeerObserver(self._clock, self._times)
        self.came_back(node_id, self._clock.boot())
        self._wake = wake
        self._next_look = 0
        if not self._store.exclusive and not self._virtual:
            self._start_heartbeat()

    def _start_heartbeat(self) -> None:
        loop = asyncio.get_running_loop()
        self._heartbeat = Heartbeat(
            self._store,
            self._clock,
            self._lease,
            beat_ms=self._times.beat_ms,
            node_id=lambda: self._node_id,
            turned_at=lambda: self._turned_at,
            report=lambda node_id, found: _on(loop, lambda: self._apply(node_id, found)),
        )
        self._heartbeat.start()

    def end(self) -> None:
        """No further beat: this process does not run the node any more."""
        process_identity.leave(self._node_id)
        if self._heartbeat is not None:
            self._heartbeat.stop()
            self._heartbeat = None

    def came_back(self, node_id: int, asked_at: int) -> None:
        """The node joined again, under another id, requested at that boot time."""
        self.enter(node_id)
        self._turned_at = self._clock.boot()
        self.draining = self.fenced = False
        self._lease.confirm(asked_at)

    # -- what the loop asks -------------------------------------------------------------------------------------------

    def may_admit(self) -> bool:
        return self.holds() and not self.draining

    def holds(self) -> bool:
        """Whether what this node has claimed is surely still its own."""
        return self._store.exclusive or (self._lease.holds() and not self.fenced)

    def next_look(self) -> int | None:
        """When, by boot time, `tick` has something to do again."""
        return None if self._store.exclusive else self._next_look

    async def tick(self, context: Context) -> bool:
        """Once per beat, look after the others; True when there is something new to claim."""
        self._turned_at = self._clock.boot()
        if self._store.exclusive or self._turned_at < self._next_look:
            return False
        self._next_look = self._turned_at + self._times.beat_ms
        if self._virtual:
            await self._beat()
        if self.fenced or not self._lease.holds():
            return False
        look = await self._store.write(lambda tx: take_over_silent(tx, context, self._observer))
        self._observer.note(look.left)
        # Whose lease runs out before that is looked at when it does.
        self._next_look = min(self._next_look, self._clock.boot() + look.soonest)
        taken = look.taken
        for name in taken:
            log.warning("node %s lost its lease; this node took over its runs", name)
        return bool(taken)

    async def _beat(self) -> None:
        asked_at = self._clock.boot()
        found = await self._store.write(lambda tx: beat(tx, self._node_id, 0))
        if found.alive:
            self._lease.confirm(asked_at)
        self._apply(self._node_id, found)

    def _apply(self, node_id: int, found: Beat) -> None:
        if node_id != self._node_id:
            return  # of an id we have given up
        if found.draining and not self.draining:
            log.info("this node is draining: it starts no new runs")
        self.draining, self.fenced = found.draining, not found.alive
        self._wake()


def _on(loop: asyncio.AbstractEventLoop, call: Callable[[], None]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)
