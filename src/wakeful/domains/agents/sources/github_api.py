"""Asking GitHub: bounded in time and size, one request at a time, and its limits obeyed."""

from __future__ import annotations

import asyncio
import json
import re
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import httpx

from wakeful.clock import sleep
from wakeful.domains.agents.sources.source import SourceAway, SourceFailed, SourceLimited
from wakeful.threads import room

VERSION = "2022-11-28"
MAX_ANSWER = 8 * 1024 * 1024
PATIENCE_S = 30.0
PAUSE_S = 1.0
AT_LEAST_MS = 60_000  # how long to wait when a limit is reached and no time is named
AT_MOST_MS = 86_400_000  # ... and when a time is named that cannot be meant: limits are those of an hour
MOST_PAGES = 10
_NEXT = re.compile(r'<([^<>]+)>\s*;\s*rel="?next"?')
_trusted: ssl.SSLContext | None = None


class CachedPage(NamedTuple):
    """An answer as it may be used again while GitHub says that it is unchanged."""

    etag: str
    body: Any
    following: str | None


class GithubResponse(NamedTuple):
    """What GitHub said."""

    status: int
    body: Any
    following: str | None = None


class GitHub:
    """How a GitHub is reached, and the pages that have not changed since they were read."""

    def __init__(
        self, base: str, token: Callable[[], str | None], now: Callable[[], int], *, pause_s: float = PAUSE_S
    ) -> None:
        """`token`: looked up for every connection. `pause_s`: between two writes."""
        self.base = base.rstrip("/")
        self.now = now
        self.pages: dict[str, CachedPage] = {}
        self.pause_s = pause_s
        self._token = token

    @asynccontextmanager
    async def connected(self) -> AsyncIterator[Connection]:
        """A connection for a few requests."""
        headers = {
            "Accept": "application/vnd.github+json",
            "Accept-Encoding": "identity",
            "X-GitHub-Api-Version": VERSION,
            "User-Agent": "wakeful",
        }
        if token := self._token():
            headers["Authorization"] = f"Bearer {token}"
        async with httpx.AsyncClient(
            verify=await _certificates(), trust_env=False, timeout=PATIENCE_S, headers=headers
        ) as client:
            yield Connection(self, client)


class Connection:
    """Requests to one GitHub, one after the other. Failures raise an error of `source`, unless `expected`."""

    def __init__(self, github: GitHub, client: httpx.AsyncClient) -> None:
        self._github = github
        self._client = client
        self._written = False

    async def ask(
        self, method: str, path: str, body: Any = None, *, expected: tuple[int, ...] = (), keep: bool = False
    ) -> GithubResponse:
        """One request. `keep`: remember the answer, and ask whether it has changed the next time."""
        github = self._github
        url = path if path.startswith(f"{github.base}/") else f"{github.base}{path}"
        known = github.pages.get(url) if keep else None
        if method != "GET":
            await self._pause()
        response, content = await self._send(method, url, body, known)
        if response.status_code == httpx.codes.NOT_MODIFIED and known is not None:
            return GithubResponse(200, known.body, known.following)
        if not (response.is_success or response.status_code in expected):
            raise self._problem(response, content)
        answer = GithubResponse(response.status_code, _json(content), self._next(response))
        etag = response.headers.get("etag")
        if keep and response.is_success and etag is not None:
            if len(github.pages) >= 2 * MOST_PAGES:
                github.pages.clear()
            github.pages[url] = CachedPage(etag, answer.body, answer.following)
        return answer

    async def every(self, path: str, *, keep: bool = False) -> tuple[list[dict[str, Any]], bool]:
        """The items of a list, page by page, and whether these are all."""
        found: list[dict[str, Any]] = []
        page = path
        for _ in range(MOST_PAGES):
            answer = await self.ask("GET", page, keep=keep)
            if not isinstance(answer.body, list):
                raise SourceFailed(f"GitHub answered {path} with something else than a list.")
            found += [item for item in answer.body if isinstance(item, dict)]
            if answer.following is None:
                return found, True
            page = answer.following
        return found, False

    # -- inside -------------------------------------------------------------------------------------------------------

    async def _pause(self) -> None:
        """GitHub wants a second between writes."""
        if self._written:
            await sleep(self._github.pause_s)
        self._written = True

    async def _send(self, method: str, url: str, body: Any, known: CachedPage | None) -> tuple[httpx.Response, bytes]:
        headers = {"If-None-Match": known.etag} if known is not None else {}
        try:
            request = self._client.build_request(method, url, json=body, headers=headers)
            async with asyncio.timeout(2 * PATIENCE_S):
                response = await self._client.send(request, stream=True)
                try:
                    return response, await _read(response)
                finally:
                    await response.aclose()
        except (httpx.HTTPError, TimeoutError, OSError) as error:
            raise SourceAway(f"GitHub cannot be reached: {str(error) or type(error).__name__}.") from None
        except (httpx.InvalidURL, ValueError) as error:
            raise SourceFailed(f"GitHub cannot be asked: {error}.") from None

    def _next(self, response: httpx.Response) -> str | None:
        """The next page, where GitHub says it is; never somewhere else."""
        found = _NEXT.search(response.headers.get("link", ""))
        return found[1] if found is not None and found[1].startswith(f"{self._github.base}/") else None

    def _problem(self, response: httpx.Response, content: bytes) -> SourceFailed:
        body = _json(content)
        said = str(body.get("message", "")) if isinstance(body, dict) else ""
        status = response.status_code
        what = f"GitHub answered {status}{f': {said[:200]}' if said else ''}"
        until = limited_until(status, response.headers, said, self._github.now())
        if until is not None:
            return SourceLimited(what, until)
        if status >= httpx.codes.INTERNAL_SERVER_ERROR:
            return SourceAway(what)
        hint = ". Check repo, and that the token may read and write its issues." if status in (401, 403, 404) else "."
        return SourceFailed(f"{what}{hint}")


def limited_until(status: int, headers: Mapping[str, str], said: str, now: int) -> int | None:
    """When a limit ends that was reached; None where the answer is about something else."""
    if status not in (403, 429):
        return None
    after, left, reset = (headers.get(name) for name in ("retry-after", "x-ratelimit-remaining", "x-ratelimit-reset"))
    if after is not None and after.isdecimal():
        return now + min(int(after[:6]) * 1000, AT_MOST_MS)
    if left == "0" and reset is not None and reset.isdecimal():
        return min(max(int(reset[:12]) * 1000, now + 1000), now + AT_MOST_MS)
    return now + AT_LEAST_MS if status == httpx.codes.TOO_MANY_REQUESTS or "rate limit" in said.lower() else None


async def _read(response: httpx.Response) -> bytes:
    found = bytearray()
    async for chunk in response.aiter_bytes():
        found += chunk
        if len(found) > MAX_ANSWER:
            raise SourceFailed(f"GitHub's answer is longer than {MAX_ANSWER} bytes.")
    return bytes(found)


def _json(content: bytes) -> Any:
    try:
        return json.loads(content) if content.strip() else None
    except (ValueError, RecursionError):
        return None


async def _certificates() -> ssl.SSLContext:
    """Read once, aside: that takes long enough to delay others."""
    global _trusted  # noqa: PLW0603 - the same for all
    if _trusted is None:
        _trusted = await room("certificates").call(ssl.create_default_context)
    return _trusted
