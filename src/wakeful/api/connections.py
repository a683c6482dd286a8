"""Connections are bounded in number and in how long they may say nothing: whoever holds them open, jobs go on.

Every connection costs a file descriptor, and so does every command the engine starts. A client without a token must
not be able to use them up.
"""

from __future__ import annotations

import asyncio
import resource
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

MOST = 500
SHARE = 4  # of the process's file descriptors, connections may have one in so many
SILENCE_S = 20.0


def most_connections() -> int:
    """How many there may be at once."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return MOST if soft == resource.RLIM_INFINITY else max(1, min(MOST, soft // SHARE))


class Connections(ServerState):
    """All connections of a server; once it is ending, there are no new ones."""

    def __init__(self) -> None:
        super().__init__()
        self.ending = False


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, for no more than so many at once, and for nobody who does not get to the point."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._waited_after: Any = self  # no request of this connection, so that the first look never ends it
        state = self.server_state
        if len(self.connections) > most_connections() or (isinstance(state, Connections) and state.ending):
            transport.abort()
        else:
            self._look_again()

    def _look_again(self) -> None:
        asyncio.get_running_loop().call_later(SILENCE_S, self._look)

    def _look(self) -> None:
        """Hang up on a connection that was between two requests at the last look, and still is."""
        if self.transport.is_closing():
            return
        request: Any = self.cycle  # the last one, or None before the first
        is_between = request is None or request.response_complete
        if is_between and self._waited_after is request:
            self.transport.abort()
            return
        self._waited_after = request if is_between else self
        self._look_again()
