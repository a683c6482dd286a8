"""Servers on loopback that requests are sent to: good ones, slow ones, and ones that mean harm."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

GIGABYTE = 1024 * 1024 * 1024


class Handler(BaseHTTPRequestHandler):
    """Answers by path: /ok, /echo, /status/N, /busy/N, /to?url=, /hang, /drip, /endless, /packed, /bomb."""

    def handle_one_request(self):
        try:
            super().handle_one_request()
        except OSError:  # the client has hung up
            self.close_connection = True

    def do_GET(self):
        target = self.server.target
        parts = urlsplit(self.path)
        size = int(self.headers.get("Content-Length") or 0)
        body = self.rfile.read(size).decode()
        target.seen.append(
            {"method": self.command, "path": self.path, "headers": dict(self.headers.items()), "body": body}
        )
        name, _, rest = parts.path.strip("/").partition("/")
        getattr(self, f"_{name}", self._missing)(rest, parse_qs(parts.query))

    do_POST = do_PUT = do_HEAD = do_DELETE = do_GET  # noqa: N815 - the names the base class calls

    def _answer(self, status, body=b"", **headers):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _ok(self, *_):
        self._answer(200, b"all is well\n", Content_Type="text/plain", Set_Cookie="session=secret-cookie")

    _health = _ok

    def _echo(self, *_):
        self._answer(200, json.dumps(self.server.target.seen[-1]).encode(), Content_Type="application/json")

    def _status(self, code, _):
        self._answer(int(code), f"this is {code}\nmore".encode())

    def _busy(self, seconds, _):
        self._answer(429, b"slow down", Retry_After=seconds)

    def _to(self, _, query):
        self._answer(int(query.get("code", ["302"])[0]), Location=query["url"][0])

    def _loop(self, *_):
        self._answer(302, Location="/loop")

    def _hang(self, *_):
        self.server.target.over.wait(60)

    def _drip(self, *_):
        self.send_response(200)
        self.end_headers()
        while not self.server.target.over.wait(0.05):
            self.wfile.write(b".")

    def _endless(self, *_):
        self.send_response(200)
        self.send_header("Content-Length", str(GIGABYTE))
        self.end_headers()
        chunk = b"x" * 65536
        for _ in range(GIGABYTE // len(chunk)):
            self.wfile.write(chunk)
            self.server.target.sent += len(chunk)

    def _broken(self, *_):
        self.send_response(200)
        self.send_header("Content-Length", "100")
        self.end_headers()
        self.wfile.write(b"half")

    def _packed(self, *_):
        import gzip

        self._answer(200, gzip.compress(b"unpacked"), Content_Encoding="gzip", Content_Type="text/plain")

    def _bomb(self, *_):
        import gzip

        self._answer(200, gzip.compress(b"0" * 50_000_000), Content_Encoding="gzip", Content_Type="text/plain")

    def _picture(self, *_):
        self._answer(200, b"\x89PNG\0\0\0", Content_Type="image/png")

    def _latin(self, *_):
        self._answer(200, "grün".encode("latin-1"), Content_Type="text/plain; charset=iso-8859-1")

    def _drop(self, *_):
        self.close_connection = True  # taken, and no answer

    def _repeat(self, *_):
        self._answer(500, json.dumps(self.server.target.seen[-1]).encode(), Content_Type="text/plain")

    def _missing(self, *_):
        self._answer(404, b"<html><h1>Not here</h1></html>", Content_Type="text/html")

    def log_message(self, *_):
        """A test reads `seen` instead."""


class Target:
    """One server, and what it was asked."""

    def __init__(self, host="127.0.0.1", wrap=None):
        self.seen = []
        self.sent = 0
        self.over = threading.Event()
        self._server = ThreadingHTTPServer((host, 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        self._server.target = self
        if wrap is not None:
            self._server.socket = wrap.wrap_socket(self._server.socket, server_side=True)
        self.host, self.port = self._server.server_address[:2]
        self.url = f"{'https' if wrap is not None else 'http'}://{self.host}:{self.port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def close(self):
        self.over.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


@contextmanager
def target(host="127.0.0.1", wrap=None):
    made = Target(host, wrap)
    try:
        yield made
    finally:
        made.close()
