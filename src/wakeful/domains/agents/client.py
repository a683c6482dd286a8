"""Talking to the session server: bounded in time and size, never redirected, and every failure is an `Answer`."""

from __future__ import annotations

import asyncio
import json
import math
import ssl
from typing import Any
from urllib.parse import quote, urlsplit, urlunsplit

import httpx

from wakeful.domains.agents.answers import ServerResponse
from wakeful.domains.agents.settings import SessionSettings
from wakeful.errors import SchedulerError
from wakeful.threads import room
from wakeful.trace_context import trace_headers

MAX_ANSWER = 1024 * 1024


class NoSessionServer(SchedulerError):
    """No session server is configured."""

    code = "no_session_server"
    traced = False


class SessionClient:
    """One session server. Nothing here decides; what comes back is handed on as it is."""

    def __init__(self, settings: SessionSettings) -> None:
        self._settings = settings
        self._http: httpx.AsyncClient | None = None

    @property
    def base(self) -> str:
        """Where sessions live, without a slash at the end."""
        url = self._settings.url
        if not url:
            message = "No session server is configured: set server.sessions.url to where sessions live."
            raise NoSessionServer(message)
        return url.rstrip("/")

    def messages_url(self, session: str) -> str:
        return f"{self.base}/sessions/{quote(session, safe='')}/messages"

    async def create(self, model: str | None, key: str) -> ServerResponse:
        """Ask for a new session."""
        return await self._ask("POST", f"{self.base}/sessions", {"model": model} if model else {}, key)

    async def send(self, session: str, message: dict[str, Any], key: str) -> ServerResponse:
        """Send a message; `key` is the same when, after a crash, we cannot know whether it was sent."""
        return await self._ask("POST", self.messages_url(session), message, key)

    async def status(self, url: str) -> ServerResponse:
        """The status of a run. Only the server that is configured now is asked, even if the run went elsewhere."""
        if _origin(url) != _origin(self.base):
            why = f"{without_secrets(url)} is not on the server of {self._settings.name}"
            return ServerResponse(problem=why, lasting=True)
        return await self._ask("GET", url, patience=min(30.0, self._settings.answer_s))

    async def discard(self, session: str) -> ServerResponse:
        """Delete a session that is no longer needed."""
        return await self._ask("DELETE", f"{self.base}/sessions/{quote(session, safe='')}", patience=10.0)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.aclose()
            self._http = None

    async def _ask(
        self, method: str, url: str, body: dict[str, Any] | None = None, key: str | None = None, patience: float = 0
    ) -> ServerResponse:
        seconds = patience or self._settings.answer_s
        # In ASCII: a prompt may hold half of a surrogate pair, which no other encoding can carry.
        content = None if body is None else json.dumps(body).encode("ascii")
        try:
            http = await self._client()
            request = http.build_request(
                method, url, content=content, headers=self._headers(key), timeout=self._timeout(seconds)
            )
            async with asyncio.timeout(seconds + self._settings.connect_s):  # also for answers that come in drops
                response = await http.send(request, stream=True)
                try:
                    return await _read(response)
                finally:
                    await response.aclose()
        except (httpx.TimeoutException, TimeoutError) as error:
            what = "could not be reached" if isinstance(error, httpx.ConnectTimeout) else "did not answer"
            return ServerResponse(problem=f"the session server {what} in time ({without_secrets(url)})")
        except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, ValueError) as error:
            said = str(error) or type(error).__name__
            lasting = isinstance(error, (httpx.InvalidURL, httpx.UnsupportedProtocol))
            return ServerResponse(
                problem=f"the request to the session server failed ({without_secrets(url)}): {said}", lasting=lasting
            )

    def _timeout(self, seconds: float) -> httpx.Timeout:
        return httpx.Timeout(seconds, connect=min(self._settings.connect_s, seconds))

    def _headers(self, key: str | None) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if key is not None:
            headers["Idempotency-Key"] = key
        if self._settings.token is not None:
            headers["Authorization"] = f"Bearer {self._settings.token}"
        return {**headers, **trace_headers()}

    async def _client(self) -> httpx.AsyncClient:
        if self._http is None:
            transport = self._settings.transport
            # Reading the system's certificates takes long enough to delay others on the same loop.
            trusted = await room("certificates").call(ssl.create_default_context) if transport is None else True
            made = httpx.AsyncClient(
                verify=trusted, follow_redirects=False, trust_env=False, transport=transport, headers=_WHO
            )
            if self._http is None:
                self._http = made
        return self._http


def _origin(url: str) -> tuple[str, str, int | None] | None:
    """Where an address leads, as the very library reads it that will go there."""
    try:
        found = httpx.URL(url)
    except httpx.InvalidURL:
        return None
    return found.scheme, found.host, found.port


_WHO = {"User-Agent": "wakeful"}


async def _read(response: httpx.Response) -> ServerResponse:
    """The answer, as far as it can be read; at most as much as we keep."""
    encoding = response.headers.get("content-encoding", "identity")
    if encoding != "identity":
        return ServerResponse(
            problem=f"the session server answered in {encoding}, which was not asked for", lasting=True
        )
    found = bytearray()
    async for chunk in response.aiter_bytes():
        found += chunk
        if len(found) > MAX_ANSWER:
            return ServerResponse(
                problem=f"the session server's answer is longer than {MAX_ANSWER} bytes", lasting=True
            )
    location = response.headers.get("location")
    body: Any = bytes(found).decode("utf-8", "replace").strip() or None
    if body is not None and "json" in response.headers.get("content-type", ""):
        try:
            body = json.loads(body, parse_constant=_refuse_constant, parse_float=_finite)
        except (ValueError, RecursionError):
            if response.is_success:
                return ServerResponse(problem="the session server's answer is not valid JSON")
    return ServerResponse(response.status_code, body, location)


def _refuse_constant(name: str) -> None:
    message = f"{name} is not JSON"
    raise ValueError(message)


def _finite(text: str) -> float | None:
    """A number; one that is too large to be one, such as 1e999, is nothing, because no answer of ours could hold it."""
    found = float(text)
    return found if math.isfinite(found) else None


def without_secrets(url: str) -> str:
    """An address as it may be shown: no user, no password, no query."""
    try:
        parts = urlsplit(url)
        host = parts.hostname or ""
        place = f"{host}:{parts.port}" if parts.port else host
        return urlunsplit((parts.scheme, place, parts.path, "", ""))
    except ValueError:
        return "an address that cannot be read"
