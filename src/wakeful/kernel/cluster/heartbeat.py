"""The heartbeat of a node: from a thread of its own, so that a node with a busy loop does not look dead.

A beat carries how long the loop has been blocked, so that other nodes can distinguish a busy node from one that hangs.
Its result is handed to the loop. A failed beat is not reported here: the lease runs out, and the loop logs why.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wakeful.errors import SchedulerError
from wakeful.kernel.cluster.membership import Beat, Lease, beat

if TYPE_CHECKING:
    from wakeful.clock import Clock
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
