"""A GitHub to try work sources against: issues and comments over real HTTP on loopback, in a thread of its own."""

from __future__ import annotations

import hashlib
import json
import re
import threading
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler
from urllib.parse import parse_qs, unquote, urlsplit

from tests.loopback import LoopbackServer

REPO = "/repos/owner/name"
PER_PAGE = 100


class FakeGitHub(LoopbackServer):
    """Issues by number. `limit`: (status, headers, message) that every request is answered with while it is set."""

    def __init__(self):
        super().__init__(_Handler, "github")
        self.issues = {}
        self.comments = {}  # id -> comment
        self.requests = []  # (method, path)
        self.unchanged = 0  # how many requests were answered with 304
        self.tokens = set()
        self.limit = None
        self.on_comment = None  # called with the number of an issue before a comment is made
        self._ticks = 0
        self._ids = 1000
        self.lock = threading.RLock()

    def now(self):
        """A second passes with every change, so that their order shows."""
        self._ticks += 1
        return (datetime.now(UTC) + timedelta(seconds=self._ticks)).strftime("%Y-%m-%dT%H:%M:%SZ")

    def issue(self, number, title="A roof", body="It leaks.", labels=("ready",), **more):
        self.issues[number] = {
            "number": number, "title": title, "body": body, "state": "open", "updated_at": self.now(),
            "labels": [{"name": name} for name in labels], **more,
        }  # fmt: skip
        return self.issues[number]

    def label(self, number, name):
        self.issues[number]["labels"].append({"name": name})
        self.issues[number]["updated_at"] = self.now()

    def labels(self, number):
        return [one["name"] for one in self.issues[number]["labels"]]

    def comment(self, number, body, association="MEMBER", login="other"):
        self._ids += 1
        made = {
            "id": self._ids, "body": body, "created_at": self.now(), "author_association": association,
            "user": {"login": login, "type": "User"}, "issue": number,
        }  # fmt: skip
        self.comments[self._ids] = made
        self.issues[number]["updated_at"] = made["created_at"]
        return made

    def said(self, number):
        return [one["body"] for one in self.comments.values() if one["issue"] == number]

    # -- what it answers ----------------------------------------------------------------------------------------------

    def answer(self, method, path, query, body):
        """Status, body and headers."""
        if method == "GET" and path == f"{REPO}/issues":
            wanted = [one for one in self.issues.values() if one["state"] == "open"]
            wanted = [one for one in wanted if query["labels"][0] in [label["name"] for label in one["labels"]]]
            return self._page(sorted(wanted, key=lambda one: one["number"]), path, query)
        if found := re.fullmatch(rf"{REPO}/issues/comments/(\d+)", path):
            return self._of_comment(method, int(found[1]), body)
        found = re.fullmatch(rf"{REPO}/issues/(\d+)(/comments|/labels/(.+))?", path)
        number = int(found[1]) if found is not None else 0
        if number not in self.issues:
            return 404, {"message": "Not Found"}, {}
        return self._of_issue(method, number, (found[2] or "").partition("/labels/"), (query, body))

    def _of_issue(self, method, number, rest, given):
        issue, (query, body) = self.issues[number], given
        if rest[0] == "/comments" and method == "GET":
            found = sorted((one for one in self.comments.values() if one["issue"] == number), key=lambda one: one["id"])
            return self._page(found, f"{REPO}/issues/{number}/comments", query)
        if rest[0] == "/comments":
            if self.on_comment is not None:
                self.on_comment(number)
            return 201, self.comment(number, body["body"], "OWNER", "me"), {}
        if rest[1]:
            before = self.labels(number)
            issue["labels"] = [{"name": name} for name in before if name != unquote(rest[2])]
            issue["updated_at"] = self.now()
            return (200 if unquote(rest[2]) in before else 404), issue["labels"], {}
        if method == "PATCH":
            issue.update(body, updated_at=self.now())
        return 200, issue, {}

    def _of_comment(self, method, number, body):
        if number not in self.comments:
            return 404, {"message": "Not Found"}, {}
        if method == "DELETE":
            del self.comments[number]
            return 204, None, {}
        self.comments[number].update(body)
        return 200, self.comments[number], {}

    def _page(self, found, path, query):
        page = int(query.get("page", ["1"])[0])
        part = found[(page - 1) * PER_PAGE : page * PER_PAGE]
        if len(found) <= page * PER_PAGE:
            return 200, part, {}
        more = "&".join(f"{key}={value[0]}" for key, value in query.items() if key != "page")
        return 200, part, {"Link": f'<{self.url}{path}?{more}&page={page + 1}>; rel="next"'}


class _Handler(BaseHTTPRequestHandler):
    github: FakeGitHub
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        """Say nothing."""

    def _do(self):
        parts = urlsplit(self.path)
        length = int(self.headers.get("content-length") or 0)
        body = json.loads(self.rfile.read(length)) if length else None
        with self.github.lock:
            self.github.requests.append((self.command, parts.path))
            self.github.tokens.add(self.headers.get("authorization"))
            if self.github.limit is not None:
                status, headers, message = self.github.limit
                answered = (status, {"message": message}, headers)
            else:
                answered = self.github.answer(self.command, parts.path, parse_qs(parts.query), body)
        self._send(*answered)

    def _send(self, status, body, headers):
        content = b"" if body is None else json.dumps(body).encode()
        etag = f'"{hashlib.sha256(content).hexdigest()[:16]}"'
        if self.command == "GET" and status == 200 and self.headers.get("if-none-match") == etag:
            self.github.unchanged += 1
            status, content = 304, b""
        self.send_response(status)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", etag)
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    do_GET = do_POST = do_PATCH = do_DELETE = _do  # noqa: N815 - the parent's names
