"""How often nodes that share a store send heartbeats, and how long a heartbeat counts."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.store.nodes import LEASE_MS


class LeaseTimes(NamedTuple):
    """All nodes of a store use the same."""

    beat_ms: int = 5_000
    lease_ms: int = LEASE_MS
    #: A node stops admitting this long before others may call it dead.
    margin_ms: int = 5_000
    #: A loop that is blocked for this long is reported, and for this long counts as dead, though its node beats.
    stalled_ms: int = 30_000
    given_up_ms: int = 600_000
