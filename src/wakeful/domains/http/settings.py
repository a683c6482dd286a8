"""What requests are sent with."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from wakeful.outbound import OutboundPolicy, resolve


@dataclass(frozen=True)
class HttpSettings:
    """Settings of one scheduler's requests, fixed when it starts."""

    policy: OutboundPolicy = field(default_factory=OutboundPolicy)
    """Where addresses from the network may lead."""
    connect_s: float = 10.0
    """How long it may take to find a host and to connect to each of its addresses."""
    body_most: int = 64 * 1024
    """How much of an answer is read and kept."""
    resolve: Callable[[str, int], Awaitable[list[str]]] = resolve
    """Finds the addresses of a host."""
    transport: Any = None
    """An httpx transport in place of the network: for your own tests."""
