"""HTTP servers for tests: real ones on 127.0.0.1, each in a thread of its own."""

from __future__ import annotations

import threading
from http.server import ThreadingHTTPServer


class _Quiet(ThreadingHTTPServer):
    """It goes on when a client is killed in the middle of a request."""

    daemon_threads = True

    def handle_error(self, *_):
        """Say nothing."""


class LoopbackServer:
    """Serves from `with` on, and is gone after it. Handlers find it under the name given."""

    def __init__(self, handler, name, port=0):
        self._server = _Quiet(("127.0.0.1", port), type("Bound", (handler,), {name: self}))
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join(120)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"
