"""Connections are bounded in number and in time: a client that holds them open stops neither other clients nor jobs.

Every connection costs a file descriptor, and so does every command the engine starts. A client without a token must
not be able to use them up. So there are only so many places, and one address has its share of them; when they are
taken, the connection that has been idle longest is closed for a new one. A request's head has a time to
arrive, an idle connection ends, and an answer has to be read. (The time of a request's body is the guard's.) An answer
in progress, such as a stream of events, takes as long as it takes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from functools import cache
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, NamedTuple, cast

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from wakeful.clock import Clock, SystemClock
from wakeful.routing.problems import problem, title
from wakeful.routing.settings import ConnectionLimits
from wakeful.surfaces.api.guard import HEADERS

LEAST_READ = 64 * 1024  # of an answer, within the time for reading it


class ConnectionOwner(NamedTuple):
    """Whose share a connection counts against."""

    name: str
    is_proxy: bool
    """Whether others come through it."""


@cache
def _networks(proxies: tuple[str, ...]) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(text, strict=False) for text in proxies)


def origin_of(host: str, proxies: tuple[str, ...]) -> ConnectionOwner:
    """An address; of IPv6 its /64, all of which one machine may have."""
    try:
        address = ip_address(host)
    except ValueError:
        return ConnectionOwner(host, is_proxy=False)
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    is_proxy = any(address in network for network in _networks(proxies))
    if isinstance(address, IPv6Address) and not is_proxy:
        return ConnectionOwner(str(IPv6Network((int(address), 64), strict=False)), is_proxy)
    return ConnectionOwner(str(address), is_proxy)


class Connections(ServerState):
    """All connections of a server, and who has how many; once it is ending, there are no new ones."""

    def __init__(self, limits: ConnectionLimits, clock: Clock | None = None) -> None:
        super().__init__()
        self.limits = limits
        self.clock = clock if clock is not None else SystemClock()
        self.ending = False
        self._places = limits.places
        self._shares = {is_proxy: limits.share(is_proxy=is_proxy) for is_proxy in (True, False)}
        self._held: dict[str, dict[BoundedProtocol, None]] = {}  # by address, the oldest first

    def admit(self, newcomer: BoundedProtocol) -> bool:
        """A place for the newcomer, if need be that of one who waits; False when there is none."""
        if self.ending:
            return False
        origin = newcomer.origin
        own = self._held.get(origin.name, {})
        if len(own) >= self._shares[origin.is_proxy] and not self._make_room(own):
            return False
        everybody = [one for some in self._held.values() for one in some]
        if len(everybody) >= self._places and not self._make_room(everybody):
            return False
        self._held.setdefault(origin.name, {})[newcomer] = None
        return True

    def _make_room(self, among: Iterable[BoundedProtocol]) -> bool:
        """Close the connection that has been idle longest, first at the address that holds most."""
        waiting = [one for one in among if one.may_give_way]
        if not waiting:
            return False
        chosen = min(waiting, key=lambda one: (-len(self._held[one.origin.name]), one.since))
        chosen.transport.abort()
        self.release(chosen)
        return True

    def release(self, connection: BoundedProtocol) -> None:
        """Free the place it has, if it has one."""
        own = self._held.get(connection.origin.name, {})
        own.pop(connection, None)
        if not own:
            self._held.pop(connection.origin.name, None)

    def sweep(self) -> None:
        """End every connection whose time is over."""
        now = self.clock.boot()
        for connection in list(self.connections):
            if isinstance(connection, BoundedProtocol):
                connection.check(now)


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 as uvicorn speaks it, within a number of connections and with time limits for requests."""

    origin: ConnectionOwner
    since: int
    """When the wait for a request began."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._all = cast("Connections", self.server_state)
        self._limits = self._all.limits
        self.origin = origin_of(self.client[0] if self.client else "", self._limits.proxies)
        self._unread: tuple[int, int] | None = None  # how much of an answer was left, and when
        self._head_began = False
        self._wait_for(self._limits.head_s)
        if not self._all.admit(self):
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        self._all.release(self)
        super().connection_lost(exc)

    # -- waiting for a request ----------------------------------------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether no request is in progress."""
        request: Any = self.cycle  # the last one, or None before the first
        return request is None or request.response_complete

    @property
    def may_give_way(self) -> bool:
        """Whether nothing is lost if this connection ends now."""
        return self.is_waiting and not self.transport.is_closing() and not self.transport.get_write_buffer_size()

    def _wait_for(self, seconds: float) -> None:
        self.since = self._all.clock.boot()
        self._until = self.since + int(seconds * 1000)

    def data_received(self, data: bytes) -> None:
        if self.is_waiting and not self._head_began and self.conn.their_state is h11.IDLE:
            self._begin_head()
        super().data_received(data)

    def _begin_head(self) -> None:
        self._head_began = True
        if self.cycle is not None:  # the first head's time runs from the start: sending nothing does not extend it
            self._wait_for(self._limits.head_s)

    def on_response_complete(self) -> None:
        self._head_began = False
        self._wait_for(self._limits.idle_s)
        super().on_response_complete()
        self._unset_keepalive_if_required()  # the next data would stop that timer; a sweep is not stopped
        if self.is_waiting and self.conn.their_state is h11.IDLE and self.conn.trailing_data[0]:
            self._begin_head()  # it arrived while the answer was on its way

    # -- the end ------------------------------------------------------------------------------------------------------

    def check(self, now: int) -> None:
        """End the connection if its time is over."""
        if self.transport.is_closing() or self.flow.write_paused:
            self._check_reading(now)
        elif self.is_waiting and now >= self._until:
            if self._head_began:
                sentence = f"The request's head did not arrive within {self._limits.head_s:g} s."
                self._refuse(408, "too_slow", sentence)
            else:
                self.transport.close()

    def _check_reading(self, now: int) -> None:
        """Close the connection of a client that does not read; the buffer does not grow while this is checked."""
        left = self.transport.get_write_buffer_size()
        if self._unread is None or left <= self._unread[0] - LEAST_READ:
            self._unread = (left, now)
        elif now >= self._unread[1] + int(self._limits.drain_s * 1000):
            self.transport.abort()

    def resume_writing(self) -> None:
        self._unread = None
        super().resume_writing()

    def send_400_response(self, msg: str) -> None:
        self._refuse(400, "bad_request", msg)

    def _refuse(self, status: int, code: str, sentence: str) -> None:
        """Answer what never became a request, if nothing was answered yet, and close."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            answer = problem(status, code, sentence, headers={"Connection": "close"})
            headers = [*self.server_state.default_headers, *answer.raw_headers, *HEADERS.items()]
            head = h11.Response(status_code=status, headers=headers, reason=title(status).encode())
            for event in (head, h11.Data(data=bytes(answer.body)), h11.EndOfMessage()):
                self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # the client of a request in progress is gone
        self.transport.close()
