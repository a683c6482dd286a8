"""Settings of sessions: the session server's address, how many sessions are kept, how long an answer may take."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

HOUR_MS = 3_600_000


@dataclass(frozen=True)
class SessionSettings:
    """Settings of one server's sessions, fixed when it starts."""

    url: str | None = None
    """Where sessions live (`server.sessions.url`): POST /sessions and /sessions/ID/messages are sent there."""
    callback_url: str | None = None
    """Where this server can be reached by the session server, such as http://127.0.0.1:7878; None asks for no calls."""
    token: str | None = None
    """Sent to the session server as a bearer token."""
    done: Literal["answer", "report"] = "answer"
    """What says that the work is done: a plain 200, or only a report (a final status, or a call back)."""
    max_kept: int = 100
    """How many sessions are kept of each owner; beyond that the one used longest ago is forgotten."""
    deadline_ms: int = 2 * HOUR_MS
    """How long a run waits for the report of its end, where its schedule does not say."""
    busy_ms: int = HOUR_MS
    """When a slot is tried again whose session was busy."""
    retry_ms: int = HOUR_MS // 2
    """When a slot is tried again after the session server failed."""
    connect_s: float = 10.0
    answer_s: float = 600.0
    """How long the session server may take to connect, and to answer."""
    poll_s: tuple[float, float] = (5.0, 60.0)
    """How soon the status of a waiting run is polled, and how far apart the polls grow."""
    name: str = "server.sessions.url"
    """The key under which the address is configured, for messages."""
    transport: Any = None
    """An httpx transport in place of the network: for your own tests."""
