"""A scripted session server to try schedules against: real HTTP on loopback, in a thread of its own.

`python -m tests.agents.session_server PORT` runs one by hand that answers each message at once.
"""

from __future__ import annotations

import json
import sys
import threading
from http.server import BaseHTTPRequestHandler

from tests.loopback import LoopbackServer

HUGE = 3 * 1024 * 1024


class SessionServer(LoopbackServer):
    """`behave(reply, …)` says how the next messages are answered, the last one for all that follow.

    A reply is a name below (`done`, `accepts`, `accepts-with-status`, `missing`, `busy`, `broken`, `hangs`, `closes`,
    `garbage`, `nonsense`, `huge`, `moved`, `refuses`, `goes-on`, `elsewhere`, `failed`) or (status, body, headers).
    """

    def __init__(self, port=0):
        super().__init__(Handler, "sessions", port)
        self.sessions = {}  # id -> the messages it got
        self.made = []  # bodies of POST /sessions
        self.messages = []  # (session, body, headers)
        self.discarded = []
        self.polled = 0
        self.states = {}  # message number -> what its status address says
        self.replies = ["done"]
        self.replies_to = {}  # schedule -> replies of its own
        self.on_create = None  # (status, body) in place of a new session
        self.changed = threading.Condition()
        self.release = threading.Event()

    def __exit__(self, *_):
        self.release.set()
        super().__exit__()

    def behave(self, *replies):
        with self.changed:
            self.replies = list(replies)

    def wait_for(self, condition, seconds=20):
        """Wait until the condition holds; what it then says."""
        with self.changed:
            assert self.changed.wait_for(lambda: condition(self), seconds), "it did not come to that"
            return condition(self)

    def say(self, number, **status):
        """What the status address of a message says from now on."""
        with self.changed:
            self.states[number] = status

    # -- what it does -------------------------------------------------------------------------------------------------

    def create(self, body):
        with self.changed:
            self.made.append(body)
            self.changed.notify_all()
            if self.on_create is not None:
                return self.on_create
            session = f"s-{len(self.made)}"
            self.sessions[session] = []
            return 201, {"id": session}

    def status(self, number):
        with self.changed:
            self.polled += 1
            self.changed.notify_all()
            return self.states.get(number, {"status": "running"})

    def discard(self, session):
        with self.changed:
            self.discarded.append(session)
            self.changed.notify_all()
            return self.sessions.pop(session, None) is not None

    def message(self, session, body, headers):
        with self.changed:
            self.messages.append((session, body, headers))
            number = len(self.messages)
            known = session in self.sessions
            if known:
                self.sessions[session].append(body)
            replies = self.replies_to.get(body["schedule"], self.replies)
            reply = replies.pop(0) if len(replies) > 1 else replies[0]
            self.changed.notify_all()
        if not known:
            return 404, {"error": "no such session"}, {}
        return self.answer(reply, number)

    def answer(self, reply, number):
        at = f"/status/{number}"
        if not isinstance(reply, str):
            return reply
        return {
            "done": (200, {"reply": f"answer {number}"}, {}),
            "accepts": (202, {"status": "accepted"}, {}),
            "accepts-with-status": (202, {}, {"Location": at}),
            "goes-on": (200, {"status": "running", "statusUrl": self.url + at}, {}),
            "elsewhere": (202, {"statusUrl": "http://169.254.169.254/latest"}, {}),
            "missing": (404, {"error": "no such session"}, {}),
            "busy": (409, {"error": "still working"}, {}),
            "broken": (500, {"error": "resume failed"}, {}),
            "refuses": (403, {"error": "not yours"}, {}),
            "moved": (307, None, {"Location": "http://127.0.0.1:9/sessions"}),
            "failed": (200, {"status": "failed", "error": "context window exceeded"}, {}),
            "nonsense": (200, b"{not json", {}),
            "huge": (200, b"x" * HUGE, {}),
        }.get(reply, reply)


class Handler(BaseHTTPRequestHandler):
    """One connection; the server decides what it does."""

    protocol_version = "HTTP/1.1"
    sessions: SessionServer

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))) or b"null")
        parts = self.path.strip("/").split("/")
        if parts == ["sessions"]:
            self.reply(*self.sessions.create(body), {})
        elif len(parts) == 3 and parts[2] == "messages":
            self.react(self.sessions.message(parts[1], body, dict(self.headers)))
        else:
            self.reply(404, {"error": "no such place"}, {})

    def do_GET(self):
        self.reply(200, self.sessions.status(int(self.path.rpartition("/")[2])), {})

    def do_DELETE(self):
        self.reply(204 if self.sessions.discard(self.path.rpartition("/")[2]) else 404, None, {})

    def react(self, reply):
        if reply == "hangs":
            self.sessions.release.wait(60)
            self.close_connection = True
        elif reply == "closes":
            self.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nhalf")
            self.close_connection = True
        elif reply == "garbage":
            self.wfile.write(b"\x00\xff not HTTP at all\r\n\r\n")
            self.close_connection = True
        else:
            self.reply(*reply)

    def reply(self, status, body, headers):
        content = body if isinstance(body, bytes) else b"" if body is None else json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        try:
            self.wfile.write(content)
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True  # who asked has heard enough

    def log_message(self, *_):
        """Say nothing."""


if __name__ == "__main__":
    with SessionServer(int(sys.argv[1])) as running:
        print(running.url, flush=True)
        threading.Event().wait()
