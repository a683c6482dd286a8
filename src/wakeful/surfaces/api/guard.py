"""What every request must get past before a route sees it, and what every answer carries.

A request is refused that calls the server by a foreign name (403, against DNS rebinding), that a foreign page made
(403, by `Origin` and `Sec-Fetch-Site`), that carries a body without a valid token (401, before any of it is read),
something other than JSON (415, so no form of another site gets in), more than the limit (413, before it is read), JSON
nested too deeply (400, before it is parsed), a name twice in one object, two lengths, or a NUL (400). Nothing of a
fault of ours is shown but an id. At paths that are secrets themselves, such as `/ping/KEY`, callers need neither token
nor JSON nor our origin, and a body is read only when the route asks for it; everything else holds there too, but for
the length of a body of which only the beginning counts. There are no CORS headers: other origins read nothing.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from wakeful.clock import Clock, SystemClock
from wakeful.errors import SchedulerError
from wakeful.routing.addresses import CUT_PATHS, OPEN_PATHS, keep_slashes
from wakeful.routing.problems import ApiError, fault, problem, public_text
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.bodies import Bodies, Body, Replay, check_json, read_beginning
from wakeful.surfaces.api.sending import PIECE, SendBudget, length_of, pieces

log = logging.getLogger("wakeful.access")

SAFE = ("GET", "HEAD")
OWN_PAGE = ("same-origin", "none")
#: Where a page without script sends a form: signing in and out, which need no caller, and the theme.
SIGN_IN, SIGN_OUT = "/in", "/out"
FORM = "application/x-www-form-urlencoded"
FORMS = (SIGN_IN, SIGN_OUT, "/theme")
LARGEST_FORM = 4096
#: The address of a webhook: an agent and a schedule, by names that are no secret.
WEBHOOK = re.compile(r"/hooks/[a-z0-9][a-z0-9_-]{0,63}/[a-z0-9][a-z0-9_-]{0,63}")
_OUR_COOKIE = re.compile(r"(?:^|;)\s*wakeful=")

HEADERS = {
    b"x-content-type-options": b"nosniff",
    b"referrer-policy": b"no-referrer",
    b"content-security-policy": b"default-src 'none'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    b"cross-origin-resource-policy": b"same-origin",
    b"cache-control": b"no-store",
}


class Name(NamedTuple):
    """What a server may be called: a host, and a port or any."""

    host: str
    port: int | None


def read_name(text: str, default_port: int | None = None) -> Name | None:
    """`example.org:8080` or `[::1]:80` as a host and a port; None for anything else."""
    if not text or re.search(r"[\s/@?#\\,]", text):
        return None
    try:
        parts = urlsplit(f"//{text}")
        port = parts.port if parts.port is not None else default_port
    except ValueError:
        return None
    return Name(parts.hostname.lower(), port) if parts.hostname else None


class Guard:
    """ASGI middleware around the whole app."""

    def __init__(
        self,
        app: ASGIApp,
        settings: ServerSettings,
        clock: Clock | None = None,
        admit: Callable[[Request], Awaitable[None]] | None = None,
    ) -> None:
        self._app = app
        self._settings = settings
        self._who = admit
        self._clock = clock if clock is not None else SystemClock()
        own = [Name(host, settings.port) for host in ("127.0.0.1", "::1", "localhost", settings.host.lower())]
        self._names = {*own, Name("localhost", None), *self._given()}
        self._public = self._origin_of_public()
        self._bodies = Bodies(settings, self._clock)
        self._room = SendBudget()

    def _given(self) -> list[Name]:
        found = [read_name(text) for text in self._settings.allowed_hosts]
        if self._settings.public_url is not None:
            parts = urlsplit(self._settings.public_url)
            found.append(Name(parts.hostname or "", parts.port))
        return [name for name in found if name is not None]

    def _origin_of_public(self) -> str | None:
        if self._settings.public_url is None:
            return None
        parts = urlsplit(self._settings.public_url)
        return f"{parts.scheme}://{parts.netloc}".lower()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        scope = {**keep_slashes(scope), "state": dict(scope.get("state") or {})}
        answer = ResponseWriter(scope, send, self._room)
        began = self._clock.boot()
        try:
            await self._admit(scope, receive, answer)
        except ApiError as error:
            await answer.refuse(error)
        except asyncio.CancelledError:  # the server ends, and has waited long enough for this
            await answer.cut_off()
        except Exception as error:  # noqa: BLE001 - logged under an id, which the caller gets
            if answer.status is None:
                await answer.give(fault(error))
            elif answer.status != 500:  # such an answer has its log entry; this one stays incomplete
                fault(error)
        finally:
            answer.end()
            self._log(scope, answer.status, self._clock.boot() - began)

    async def _admit(self, scope: Scope, receive: Receive, answer: ResponseWriter) -> None:
        headers = Headers(scope=scope)
        self._check_address(scope)
        host = self._check_host(scope, headers)
        is_open = scope["path"].startswith(OPEN_PATHS)
        if not is_open:
            self._check_origin(scope["method"], headers, host)
        self._check_length(headers)
        if scope["method"] == "HEAD":
            scope = {**scope, "method": "GET", "state": {**scope["state"], "head_only": True}}
        if scope["method"] == "GET":
            await self._app(scope, receive, answer)
            return
        usual = FORM if scope["path"] == SIGN_OUT else ""  # of a form that has no fields
        if scope["path"] in FORMS and headers.get("content-type", usual).startswith(FORM):
            await self._take_form(scope, headers, receive, answer)
            return
        if not is_open:
            await self._check_caller(scope, headers)
        kept = next((most for begin, most in CUT_PATHS.items() if scope["path"].startswith(begin)), None)
        if kept is not None:
            beginning = await read_beginning(receive, kept, self._settings.connections.body_s)
            await self._app(scope, Replay(beginning, receive), answer)
            return
        body = Body(self._bodies, headers, receive, is_known=not is_open)
        try:
            if is_open:  # its route looks up whose address it is first; what it does not read, nobody keeps
                receive = body
            else:
                whole = await body.whole()
                check_json(headers, whole, self._settings.max_depth)
                receive = Replay(whole, receive)
            await self._app(scope, receive, answer)
        finally:
            body.end()

    async def _take_form(self, scope: Scope, headers: Headers, receive: Receive, answer: ResponseWriter) -> None:
        if scope["path"] not in (SIGN_IN, SIGN_OUT):
            await self._check_caller(scope, headers)
        form = await read_beginning(receive, LARGEST_FORM, self._settings.connections.body_s)
        await self._app(scope, Replay(form, receive), answer)

    # -- the rules ----------------------------------------------------------------------------------------------------

    def _check_address(self, scope: Scope) -> None:
        query = scope.get("query_string", b"")
        if "\0" in scope["path"] or b"%00" in query or b"\0" in query:
            raise ApiError(400, "bad_address", "The address has a NUL character in it.")

    def _check_host(self, scope: Scope, headers: Headers) -> Name:
        name = read_name(headers.get("host", ""), 80)
        server = scope.get("server") or ("", None)
        # The address the connection came in on is ours, and not a name that a foreign DNS server could point here.
        if name is not None and (name in self._names or Name(name.host, None) in self._names or name == tuple(server)):
            return name
        sentence = (
            "This server does not answer to that host name: add it to server.allowed_hosts, or set server.public_url."
        )
        raise ApiError(403, "forbidden_host", sentence)

    def _check_origin(self, method: str, headers: Headers, host: Name) -> None:
        # Without our cookie a page of another site learns no more than anybody does.
        if method in SAFE and _OUR_COOKIE.search(headers.get("cookie", "")) is None:
            return
        origin = headers.get("origin")
        site = headers.get("sec-fetch-site")
        foreign = site is not None and site not in OWN_PAGE
        if origin is not None:
            foreign = not self._is_own(origin.lower(), host)
        if foreign:
            raise ApiError(403, "forbidden_origin", "Pages of other origins may not use this server.")

    def _is_own(self, origin: str, host: Name) -> bool:
        if self._public is not None and origin == self._public:
            return True
        scheme, separator, rest = origin.partition("://")
        if not separator or scheme not in ("http", "https"):
            return False
        # The host was found to be ours, so a page it served is, too. A proxy that ends TLS leaves out the port.
        named = read_name(rest, 443 if scheme == "https" else 80)
        return named == host or (scheme == "https" and named == Name(host.host, 443) and host.port == 80)

    def _check_length(self, headers: Headers) -> None:
        """One length: where there are two, a proxy and we could see two different requests in the same bytes."""
        if "transfer-encoding" in headers and "content-length" in headers:
            sentence = "The request has both Content-Length and Transfer-Encoding: send one of them."
            raise ApiError(400, "two_lengths", sentence, headers={"Connection": "close"})

    async def _check_caller(self, scope: Scope, headers: Headers) -> None:
        """A caller without access is rejected at the cost of the headers alone."""
        if self._who is None:
            return
        try:
            await self._who(Request(scope))
        except SchedulerError as error:
            if error.status == 500:  # a fault of ours, which is reported as one
                raise
            # What comes after the headers is not read: the connection cannot be used for anything else.
            unread = headers.get("content-length", "0") != "0" or "transfer-encoding" in headers
            close = {"Connection": "close"} if unread else {}
            raise ApiError(
                error.status, error.code, public_text(error), headers={**getattr(error, "headers", {}), **close}
            ) from error

    def _log(self, scope: Scope, status: int | None, took: int) -> None:
        """One line per request; reads are logged only on request. Without the query: there could be a token in it."""
        quiet = scope["method"] in SAFE and status is not None and status < 500
        path = scope.get("raw_path", scope["path"].encode()).decode("ascii", "replace").partition("?")[0]
        for begin in (*OPEN_PATHS, f"{SIGN_IN}/"):
            if scope["path"].startswith(begin) and not WEBHOOK.fullmatch(path):
                path = f"{begin}***"  # what follows may be a secret
        log.log(
            logging.DEBUG if quiet else logging.INFO,
            "%s %s %s in %s ms",
            scope["method"],
            path[:200],
            status if status is not None else "left unanswered",
            took,
        )


class ResponseWriter:
    """The way out: adds the headers every answer carries, and ends the answer to HEAD where its body would begin.

    A long answer is sent in pieces while there is room for it. Whoever makes one must `end` it.
    """

    def __init__(self, scope: Scope, send: Send, room: SendBudget) -> None:
        self.status: int | None = None
        self._head = scope["method"] == "HEAD"
        self._send = send
        self._ended = False
        self._scope = scope
        self._room = room
        self._size, self._is_known = 0, False

    async def __call__(self, message: Message) -> None:
        if self._ended:
            return
        if message["type"] == "http.response.start":
            try:
                self._reserve(length_of(message))
            except ApiError as error:
                await self.refuse(error)
                return
            self.status = message["status"]
            given = message.get("headers", [])
            known = {name.lower() for name, _ in given}
            message["headers"] = [*given, *((name, value) for name, value in HEADERS.items() if name not in known)]
            await self._send(message)
        elif message["type"] == "http.response.body":
            if self._head:
                message = {"type": "http.response.body", "body": b"", "more_body": False}
            self._ended = not message.get("more_body", False)
            for piece in pieces(message):
                await self._send(piece)

    def _reserve(self, size: int) -> None:
        """Take the room for a long answer; ApiError where there is none.

        Only for reading: what was done is answered in any case, or it would be done again.
        """
        if size > PIECE and self._scope["method"] == "GET":
            is_known = self._scope["state"].get("caller") is not None
            self._room.take(size, is_known=is_known)
            self._size, self._is_known = size, is_known

    def end(self) -> None:
        """It was sent, or will not be."""
        self._room.give_back(self._size, is_known=self._is_known)
        self._size = 0

    async def cut_off(self) -> None:
        """End the answer here."""
        if self.status is None:
            await self.give(problem(503, "stopping", "The server is stopping.", headers={"Connection": "close"}))
        else:
            await self({"type": "http.response.body", "body": b"", "more_body": False})

    async def refuse(self, error: ApiError) -> None:
        await self.give(problem(error.status, error.code, str(error), headers=error.headers, **error.more))

    async def give(self, response: Response) -> None:
        if self.status is None:
            await response(self._scope, _nothing, self)


async def _nothing() -> Message:
    return {"type": "http.disconnect"}
