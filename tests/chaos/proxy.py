"""A way to the server that can be cut, slowed and closed: TCP through this process, byte for byte.

A cut is a partition as a program sees it: nothing arrives and nothing is refused, and what was on its way arrives late,
when the cut is over, unless the connections are torn then. It can be set to fail at the worst moment of a claim:
before the request to commit it, with all locks held, on that request, or on the answer, with everything stored and
the client not notified.
"""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Callable
from typing import Literal

CLAIM = re.compile(rb'"type\\?":\\?"started')  # in the last statement before the commit of a claim
COMMITTED = b"COMMIT\x00"  # as it is asked for, and as the server answers
CHUNK = 65_536

Moment = Literal["now", "request", "commit", "answer"]


class Proxy:
    """Listens on `port` from its making until `close`."""

    def __init__(self, target: int) -> None:
        self._target = ("127.0.0.1", target)
        self._through = threading.Event()
        self._through.set()
        self.is_cut = threading.Event()
        self._trap: Moment = "now"
        self._delay_s = 0.0
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self._threads: list[threading.Thread] = []
        self._listener = self._listen(0)
        self.port = int(self._listener.getsockname()[1])
        self._spawn(self._accept, self._listener)

    # -- what can be done to it ---------------------------------------------------------------------------------------

    def cut(self, moment: Moment = "now") -> None:
        """Let nothing more through, now or from the next claim on; `is_cut` says when it happened."""
        self._trap = moment
        if moment == "now":
            self._through.clear()
            self.is_cut.set()

    def delay(self, seconds: float) -> None:
        """Hold back every packet, either way, for that long."""
        self._delay_s = seconds

    def refuse(self) -> None:
        """Close every connection and take no new ones, as a machine does whose server is down."""
        self._listener.close()
        self.tear()

    def tear(self) -> None:
        """Close every connection."""
        with self._lock:
            for end in self._sockets:
                _shut(end)

    def resume(self, *, torn: bool = False) -> None:
        """As before any of it; what a cut held back arrives now, or is lost with the connections if they are torn."""
        self._trap, self._delay_s = "now", 0.0
        if torn:
            self.tear()
        if self._listener.fileno() == -1:
            self._listener = self._listen(self.port)
            self._spawn(self._accept, self._listener)
        self.is_cut.clear()
        self._through.set()

    def close(self) -> None:
        self.refuse()
        self._through.set()
        for thread in self._threads:
            thread.join(120)

    # -- how it works -------------------------------------------------------------------------------------------------

    @staticmethod
    def _listen(port: int) -> socket.socket:
        return socket.create_server(("127.0.0.1", port), backlog=64)

    def _spawn(self, work: Callable[[socket.socket], None], end: socket.socket) -> None:
        thread = threading.Thread(target=work, args=(end,), daemon=True)
        self._threads = [*(each for each in self._threads if each.is_alive()), thread]
        thread.start()

    def _accept(self, listener: socket.socket) -> None:
        listener.settimeout(0.1)  # closing it elsewhere would not wake an accept that waits for ever
        while listener.fileno() != -1:
            try:
                client, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return  # closed
            client.settimeout(None)
            self._spawn(self._serve, client)

    def _serve(self, client: socket.socket) -> None:
        with self._lock:
            self._sockets.add(client)
        self._through.wait()
        try:
            server = socket.create_connection(self._target, timeout=30)
            server.settimeout(None)
        except OSError:
            self._forget(client)
            return
        with self._lock:
            self._sockets.add(server)
        claims = threading.Event()  # whether something is being claimed on this connection
        answers = threading.Thread(target=self._answer, args=(server, client, claims), daemon=True)
        answers.start()
        self._request(client, server, claims)
        answers.join()
        self._forget(client, server)

    def _request(self, client: socket.socket, server: socket.socket, claims: threading.Event) -> None:
        def forward(data: bytes) -> None:
            if COMMITTED in data and claims.is_set() and self._trap == "commit":
                self.cut()
            self._pass(server, data)
            if CLAIM.search(data):
                claims.set()
                if self._trap == "request":
                    self.cut()

        self._pump(client, server, forward)

    def _answer(self, server: socket.socket, client: socket.socket, claims: threading.Event) -> None:
        def forward(data: bytes) -> None:
            if COMMITTED in data and claims.is_set():
                claims.clear()
                if self._trap == "answer":
                    self.cut()
            self._pass(client, data)

        self._pump(server, client, forward)

    def _pump(self, source: socket.socket, sink: socket.socket, forward: Callable[[bytes], None]) -> None:
        try:
            while data := source.recv(CHUNK):
                forward(data)
        except OSError:
            _shut(source)
        self._through.wait()  # the end of a connection is no faster than what was said on it
        _shut(sink)

    def _pass(self, sink: socket.socket, data: bytes) -> None:
        if self._delay_s:
            threading.Event().wait(self._delay_s)
        self._through.wait()
        sink.sendall(data)

    def _forget(self, *ends: socket.socket) -> None:
        with self._lock:
            for end in ends:
                self._sockets.discard(end)
                end.close()


def _shut(end: socket.socket) -> None:
    try:
        end.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # the other side was faster
