"""A pooler in transaction mode, in this process: every transaction of a client goes to another server connection.

What PgBouncer does when it is busy, this does always, so whatever a program leaves behind in a session (prepared
statements, settings, session locks) is missing in its very next transaction, and met by somebody else. It speaks just
enough of the protocol for that: no TLS, no passwords, no cancelling, one answer for each request.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import deque
from typing import NamedTuple

SSL_REQUEST = 80877103
GSS_REQUEST = 80877104


class Message(NamedTuple):
    """One message of the protocol: its kind, and all of it."""

    kind: bytes
    whole: bytes


class Link:
    """One end of a connection, message by message."""

    def __init__(self, end: socket.socket) -> None:
        self.end = end
        end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # small messages one after the other
        self._read = end.makefile("rb")

    def message(self) -> Message:
        kind = self._exactly(1)
        size = self._exactly(4)
        return Message(kind, kind + size + self._exactly(struct.unpack("!i", size)[0] - 4))

    def startup(self) -> bytes:
        """The message a client begins with; offers of encryption are declined."""
        while True:
            size = self._exactly(4)
            body = self._exactly(struct.unpack("!i", size)[0] - 4)
            if struct.unpack("!i", body[:4])[0] not in (SSL_REQUEST, GSS_REQUEST):
                return size + body
            self.end.sendall(b"N")

    def until_ready(self, client: Link | None = None) -> bytes:
        """Pass on what the server answers; the state of its transaction at the end of it."""
        while True:
            message = self.message()
            if client is not None:
                client.end.sendall(message.whole)
            if message.kind == b"Z":
                return message.whole[-1:]

    def close(self) -> None:
        self._read.close()
        self.end.close()

    def _exactly(self, count: int) -> bytes:
        data = self._read.read(count)
        if len(data) < count:
            raise ConnectionError
        return data


class TransactionPooler:
    """Listens on `port` from its making until `close`, with `size` connections to the server behind it."""

    def __init__(self, target: int, size: int = 3) -> None:
        self._target = ("127.0.0.1", target)
        self._size = size
        self._free = threading.Condition()
        self._servers: deque[Link] = deque()
        self._made = 0
        self._startup = self._greeting = b""
        self._links: list[Link] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port = int(self._listener.getsockname()[1])
        self.transactions = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with self._free:
            for link in self._links:
                link.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            threading.Thread(target=self._serve, args=(Link(client),), daemon=True).start()

    def _serve(self, client: Link) -> None:
        try:
            self._fill(client.startup())
            # A made-up process number, as poolers give: the connection is to none in particular.
            client.end.sendall(self._greeting + b"K" + struct.pack("!iii", 12, 1, 1) + b"Z\0\0\0\5I")
            while self._transaction(client):
                pass
        except OSError:
            return  # the client left
        finally:
            client.close()

    def _transaction(self, client: Link) -> bool:
        """One transaction of a client on the server connection that has rested longest; False when it says goodbye."""
        message = client.message()
        if message.kind == b"X":
            return False
        with self._free:
            self._free.wait_for(lambda: self._servers)
            server = self._servers.popleft()
            self.transactions += 1
        state = b"E"
        try:
            while True:
                server.end.sendall(message.whole)
                if message.kind in b"QS":
                    state = server.until_ready(client)
                    if state == b"I":
                        return True
                message = client.message()
        finally:
            if state != b"I":  # the client left in the middle of it, or the server did
                server = self._mended(server)
            with self._free:
                self._servers.append(server)
                self._free.notify()

    def _mended(self, server: Link) -> Link:
        try:
            server.end.sendall(b"Q" + struct.pack("!i", 13) + b"ROLLBACK\0")
            server.until_ready()
        except OSError:
            server.close()
            return self._connect()
        return server

    def _connect(self) -> Link:
        server = Link(socket.create_connection(self._target))
        server.end.sendall(self._startup)
        told = b""
        while (message := server.message()).kind != b"Z":
            told += message.whole if message.kind in b"RS" else b""
        self._greeting = told
        self._links.append(server)
        return server

    def _fill(self, startup: bytes) -> None:
        """Connect to the server, as the first client would have."""
        with self._free:
            self._startup = self._startup or startup
            while self._made < self._size:
                self._servers.append(self._connect())
                self._made += 1
