"""Bodies of requests on their way in: each within a size and a time, and all of them together within one bound.

What a caller without a token sends is not read before its route asks for it, so an address that leads nowhere costs
nothing, and such callers together have a small part of the memory. Where only the beginning of a body counts, the rest
is read and dropped. What is to be JSON is checked before anything is made of it.
"""

from __future__ import annotations

import asyncio
import json
import re
import sys
from typing import Any

from starlette.datastructures import Headers
from starlette.types import Message, Receive

from wakeful.clock import Clock
from wakeful.counting import counted
from wakeful.routing.problems import ApiError
from wakeful.routing.settings import ServerSettings

MOST_TOGETHER = 64 * 1024 * 1024  # bytes
MOST_UNKNOWN = 16 * 1024 * 1024  # of callers without a token
MOST_PARTS = 50_000  # lists and objects in one body: they take more to read than anything else of their length
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+(?:"|\\?\Z)', re.DOTALL)
_NO_BRACKET = bytes(set(range(256)) - set(b"[]{}"))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_JSON = re.compile(r"application/(?:[\w.+-]+\+)?json\s*(?:;.*)?", re.IGNORECASE)


class Bodies:
    """All bodies of a server that are being read, or worked on."""

    def __init__(self, settings: ServerSettings, clock: Clock) -> None:
        self.most = settings.max_body
        self.patience = settings.connections.body_s
        self.clock = clock
        self._held = {True: 0, False: 0}  # bytes, by whether their callers are known

    def take(self, size: int, *, is_known: bool) -> None:
        """Keep so many bytes more; 503 if there is no room for them."""
        is_full = sum(self._held.values()) + size > MOST_TOGETHER
        if is_full or (not is_known and self._held[False] + size > MOST_UNKNOWN):
            sentence = "The server is reading too many bodies: send this request again in a moment."
            raise ApiError(503, "busy", sentence, headers={"Retry-After": "5", "Connection": "close"})
        self._held[is_known] += size

    def give_back(self, size: int, *, is_known: bool) -> None:
        self._held[is_known] -= size


class Body:
    """One body: hands on what `receive` brings while it is within the limits. Whoever makes it must `end` it."""

    def __init__(self, bodies: Bodies, headers: Headers, receive: Receive, *, is_known: bool) -> None:
        self._bodies = bodies
        self._receive = receive
        self._is_known = is_known
        self._size = 0
        self._until = bodies.clock.boot() + int(bodies.patience * 1000)
        length = headers.get("content-length", "0")
        if length.isdigit() and int(length) > bodies.most:
            raise self._too_large()
        self._is_read = False

    def end(self) -> None:
        """The request is over."""
        self._bodies.give_back(self._size, is_known=self._is_known)
        self._size = 0

    async def __call__(self) -> Message:
        if self._is_read:
            return await self._receive()
        patience = self._bodies.patience
        try:
            async with asyncio.timeout(max(0, self._until - self._bodies.clock.boot()) / 1000):
                message = await self._receive()
        except TimeoutError:
            sentence = f"The body did not arrive within {patience:g} s."
            raise ApiError(408, "too_slow", sentence, headers={"Connection": "close"}) from None
        if message["type"] != "http.request":
            raise ApiError(400, "cut_off", "The request ended before its body did.")
        self._keep(len(message.get("body", b"")))
        self._is_read = not message.get("more_body", False)
        return message

    async def whole(self) -> bytes:
        """All of it."""
        body = bytearray()
        while True:
            message = await self()
            body += message.get("body", b"")
            if not message.get("more_body", False):
                return bytes(body)

    def _keep(self, size: int) -> None:
        if self._size + size > self._bodies.most:
            raise self._too_large()
        self._bodies.take(size, is_known=self._is_known)
        self._size += size

    def _too_large(self) -> ApiError:
        most = self._bodies.most
        sentence = f"The body is larger than {most:,} bytes."
        return ApiError(413, "too_large", sentence, headers={"Connection": "close"})


async def read_beginning(receive: Receive, most: int, patience: float) -> bytes:
    """So much of the body as counts. The rest is read and dropped; one that is slow or cut off is what came of it."""
    body = bytearray()
    try:
        async with asyncio.timeout(patience):
            while True:
                message = await receive()
                body += message.get("body", b"")[: most - len(body)]
                if message["type"] != "http.request" or not message.get("more_body", False):
                    return bytes(body)
    except TimeoutError:
        return bytes(body)


def check_json(headers: Headers, body: bytes, max_depth: int) -> None:
    """ApiError for a body that is not JSON, or JSON that must not be parsed."""
    kind = headers.get("content-type")
    if (body and kind is None) or (kind is not None and _JSON.fullmatch(kind.strip()) is None):
        raise ApiError(415, "not_json", "A body must be JSON: send it with Content-Type: application/json.")
    try:
        body.decode("utf-8")
    except UnicodeDecodeError:
        raise ApiError(400, "invalid_json", "The body is not UTF-8.") from None
    if b"\0" in body:  # JSON in UTF-16 and UTF-32 has such bytes, and what is checked here would not be what is parsed
        raise ApiError(400, "invalid_json", "The body is not JSON in UTF-8: it has a NUL byte.")
    if too_many_parts(body):
        raise ApiError(413, "too_large", f"The JSON has more than {MOST_PARTS:,} lists and objects.")
    if too_deep(body, max_depth):
        sentence = f"The JSON is nested deeper than {counted(max_depth, 'level')}, or its brackets do not match."
        raise ApiError(400, "too_deep", sentence)
    _refuse_doubles(body)


def too_many_parts(body: bytes) -> bool:
    """Whether there are more lists and objects than may be; counted without parsing, in linear time."""
    return _count(body) > MOST_PARTS and _count(_STRING.sub(b"", body)) > MOST_PARTS


def _count(body: bytes) -> int:
    return body.count(b"[") + body.count(b"{")


def too_deep(body: bytes, most: int) -> bool:
    """Whether brackets are nested deeper than `most`, or left open; checked without parsing, in linear time."""
    if _count(body) <= most:
        return False
    brackets = _STRING.sub(b"", body).translate(_ONE_KIND, _NO_BRACKET)
    for _ in range(most):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"")  # the innermost pairs: one level less
    return bool(brackets)


def _refuse_doubles(body: bytes) -> None:
    """A name that appears twice in one object: parsers differ in which of them counts."""
    try:
        json.loads(body, object_pairs_hook=_single)
    except json.JSONDecodeError:
        return  # the code that reads the body reports invalid JSON
    except RecursionError:
        raise ApiError(400, "too_deep", "The JSON is nested too deeply.") from None
    except ValueError as error:  # the interpreter reads no longer ones
        digits = sys.get_int_max_str_digits()
        raise ApiError(400, "invalid_json", f"The body has a whole number of more than {digits:,} digits.") from error


def _single(pairs: list[tuple[str, Any]]) -> None:
    seen: set[str] = set()
    for name, _ in pairs:
        if name in seen:
            raise ApiError(400, "invalid_json", f"The body has {name!r:.60} twice in one object.")
        seen.add(name)


class Replay:
    """Hands the app a body that was read already, and what comes after it."""

    def __init__(self, body: bytes, receive: Receive) -> None:
        self._body: bytes | None = body
        self._receive = receive

    async def __call__(self) -> Message:
        if self._body is None:
            return await self._receive()
        body, self._body = self._body, None
        return {"type": "http.request", "body": body, "more_body": False}
