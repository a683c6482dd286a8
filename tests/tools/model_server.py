"""A server that answers agent programs in place of a model: on this machine, without a key, always the same.

The case is the first part of the address: `http://127.0.0.1:PORT/limit` is the base address of an account at its limit.

| case | answer |
|---|---|
| `answers` | the number of the user's messages, and the last of them |
| `shell` | a call of the program's shell, then what it printed |
| `long` | 200,000 characters, none of its lines twice |
| `limit` | 429 and the time when the limit ends, an hour from now |
| `overload` | 503, or 529 of the interface that has it |
| `refused` | 401 or what the interface answers to a wrong key |
"""

from __future__ import annotations

import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from typing import Any, Self

from tests.tools.wire import Anthropic, Asked, Call, Gemini, Interface, fits, interface_of, shell_call

CASES = ("answers", "shell", "long", "limit", "overload", "refused")
LONG, HOUR = 200_000, 3600
COMMAND, PRINTED = "echo the-shell-ran", "the-shell-ran"
Problem = tuple[int, dict[str, str], dict[str, Any]]


class ModelServer:
    """The server, on a free port, while it is entered."""

    def __enter__(self) -> Self:
        self._server = _Server(("127.0.0.1", 0), _Handler)
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def saw(self, text: str) -> bool:
        """Whether any request had this text in it."""
        return any(text.encode() in body for body in self._server.bodies)

    def url(self, case: str) -> str:
        """The base address of a case, without `/v1`."""
        return f"http://127.0.0.1:{self._server.server_address[1]}/{case}"


def reply(case: str, asked: Asked) -> str | Call:
    """What a case that works answers."""
    if asked.schema is not None:
        return json.dumps(fits(asked.schema))
    if case == "long":
        return "".join(f"line {number} of a long answer\n" for number in range(LONG))[:LONG]
    if case == "shell":
        if asked.tool_said is not None:
            return f"The shell printed: {asked.tool_said.strip()}"
        return shell_call(asked, COMMAND) or "There is no shell."
    last = asked.words[-1].strip() if asked.words else ""
    return f"Heard {len(asked.words)}, the last: {last[-200:]}"


def problem(case: str, interface: Interface, now: int) -> Problem | None:
    """What a case that fails answers, in the manner of each interface."""
    if isinstance(interface, Anthropic):
        return _anthropic_problem(case, now)
    return _gemini_problem(case) if isinstance(interface, Gemini) else _openai_problem(case, now)


def _anthropic_problem(case: str, now: int) -> Problem | None:
    found = {
        "limit": (429, "rate_limit_error", "This request would exceed your account's rate limit."),
        "overload": (529, "overloaded_error", "Overloaded"),
        "refused": (401, "authentication_error", "invalid x-api-key"),
    }.get(case)
    if found is None:
        return None
    status, kind, text = found
    headers = {"retry-after": str(HOUR), "anthropic-ratelimit-unified-reset": str(now + HOUR)} if status == 429 else {}
    return status, headers, {"type": "error", "error": {"type": kind, "message": text}}


def _gemini_problem(case: str) -> Problem | None:
    daily = {"@type": "type.googleapis.com/google.rpc.QuotaFailure",
             "violations": [{"quotaId": "GenerateRequestsPerDayPerProjectPerModel"}]}  # fmt: skip
    found: Any = {
        "limit": (429, "RESOURCE_EXHAUSTED", "You exceeded your current quota.", [daily]),
        "overload": (503, "UNAVAILABLE", "The model is overloaded. Please try again later.", []),
        "refused": (400, "INVALID_ARGUMENT", "API key not valid. Please pass a valid API key.", []),
    }.get(case)
    if found is None:
        return None
    status, name, text, details = found
    return status, {}, {"error": {"code": status, "status": name, "message": text, "details": details}}


def _openai_problem(case: str, now: int) -> Problem | None:
    until = {"plan_type": "plus", "resets_at": now + HOUR, "resets_in_seconds": HOUR}
    found: Any = {
        "limit": (429, "usage_limit_reached", "The usage limit has been reached", until),
        "overload": (503, "service_unavailable_error", "The server is overloaded. Please try again later.", {}),
        "refused": (401, "invalid_request_error", "Incorrect API key provided.", {"code": "invalid_api_key"}),
    }.get(case)
    if found is None:
        return None
    status, kind, text, more = found
    return status, {}, {"error": {"type": kind, "message": text, **more}}


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.bodies: list[bytes] = []

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A program that is stopped does not say goodbye; anything else is a mistake of ours."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    numbers = count(1)

    def log_message(self, *_: object) -> None:
        """Nothing is logged: what programs print is what counts."""

    def do_GET(self) -> None:
        if self.path.partition("?")[0].endswith("/models"):
            self._send(200, {"object": "list", "data": [{"id": "stand-in", "object": "model"}]})
        else:
            self._send(404, {"error": {"message": "there is nothing here"}})

    def do_HEAD(self) -> None:
        self._send(200, {})

    def do_POST(self) -> None:
        raw = self.rfile.read(int(self.headers.get("content-length") or 0))
        self.server.bodies.append(raw)
        body = json.loads(raw or b"{}")
        address, _, query = self.path.partition("?")
        case, interface = address.split("/")[1], interface_of(address)
        if address.endswith(("count_tokens", ":countTokens")):
            self._send(200, {"input_tokens": 100, "totalTokens": 100})
        elif interface is None or case not in CASES:
            self._send(404, {"error": {"message": f"there is nothing at {address}"}})
        elif (wrong := problem(case, interface, int(time.time()))) is not None:
            self._send(wrong[0], wrong[2], wrong[1])
        else:
            streams = bool(body.get("stream")) or "alt=sse" in query or ":stream" in address
            self._answer(interface, body, case, streams=streams)

    def _answer(self, interface: Interface, body: dict[str, Any], case: str, *, streams: bool) -> None:
        whole, events = interface.answer(body, next(self.numbers), reply(case, interface.asked(body)))
        if not streams:
            self._send(200, whole)
            return
        self.send_response(200)
        self.send_header("content-type", "text/event-stream")
        self.send_header("connection", "close")
        self.end_headers()
        self.close_connection = True
        for name, event in events:
            data = event if isinstance(event, str) else json.dumps(event)
            self.wfile.write(f"{f'event: {name}{chr(10)}' if name else ''}data: {data}\n\n".encode())

    def _send(self, status: int, content: dict[str, Any], headers: dict[str, str] | None = None) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(data)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
