"""Pages of a list: cursors that stay true while rows come and go.

A cursor says what the page ended with (a name, an id), never how many came before: rows added or removed elsewhere
neither repeat nor hide others. To callers it is opaque.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from fastapi import Query
from pydantic import BaseModel

from wakeful import ids
from wakeful.routing.idempotency import StoredAnswer
from wakeful.routing.problems import ApiError

Limit = Annotated[int, Query(ge=1, le=500, description="how many at most")]
Cursor = Annotated[str | None, Query(max_length=2000, description="`next` of the page before")]
LIMIT = 50


T = TypeVar("T")
K = TypeVar("K", str, int)
CHUNK = 100  # read at a time
MOST_CHARS = 4_000_000  # in one page, except for a single item that is longer by itself
AT_ONCE = 4  # pages that are being made; others wait, so that many who ask cost no more memory than a few
_turns: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Semaphore] = WeakKeyDictionary()
_ENCODE = json.JSONEncoder(separators=(",", ":")).encode


class Page(BaseModel, Generic[T]):
    """Some of a list; `next` is the cursor of the next page, null on the last one."""

    items: list[T]
    next: str | None


async def page(
    limit: int,
    last: K | None,
    read: Callable[[K | None, int], Awaitable[list[T]]],
    key: Callable[[T], K],
    shape: Callable[[T], dict[str, Any]],
) -> tuple[str, K | None]:
    """The items of a page as JSON, and what it ended with if there are more. Pages with long items are shorter."""
    async with _turns.setdefault(asyncio.get_running_loop(), asyncio.Semaphore(AT_ONCE)):
        texts: list[str] = []
        size, more = 0, True
        while more and len(texts) < limit and size < MOST_CHARS:
            wanted = min(CHUNK, limit - len(texts)) + 1  # one more than is shown says whether there is more
            found = await read(last, wanted)
            more = len(found) == wanted
            for item in found[: wanted - 1]:
                text = _ENCODE(shape(item))
                if texts and size + len(text) > MOST_CHARS:
                    return f"[{','.join(texts)}]", last
                texts.append(text)
                size += len(text)
                last = key(item)
        return f"[{','.join(texts)}]", last if more else None


async def id_page(
    prefix: str, limit: int, cursor: str | None, read: Callable[[int | None, int], Awaitable[list[dict[str, Any]]]]
) -> StoredAnswer:
    """A page of items in the order of their ids; `prefix` is that of its cursors."""
    items, last = await page(
        limit, read_id_cursor(prefix, cursor), read, lambda item: id_number(item["id"]), lambda item: item
    )
    return page_answer(items, cursor_of(prefix, str(last)) if last is not None else None)


def page_answer(items: str, cursor: str | None) -> StoredAnswer:
    return StoredAnswer(200, {}, f'{{"items":{items},"next":{json.dumps(cursor)}}}')


def cursor_of(kind: str, last: str) -> str:
    """The cursor of a page that ended there."""
    return base64.urlsafe_b64encode(f"{kind}:{last}".encode()).decode().rstrip("=")


def read_cursor(kind: str, cursor: str | None) -> str | None:
    """What the page before ended with; 400 for a cursor that is not one of ours, or of another list."""
    if cursor is None:
        return None
    try:
        raw = base64.b64decode(cursor + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True)
        found, _, last = raw.decode().partition(":")
    except (binascii.Error, ValueError):
        found, last = "", ""
    if found != kind or not last or not last.isprintable():
        raise ApiError(400, "invalid_cursor", "This cursor is not from this list: start again without one.")
    return last


def read_id_cursor(prefix: str, cursor: str | None) -> int | None:
    """The same for lists in the order of ids."""
    last = read_cursor(prefix, cursor)
    if last is None:
        return None
    number = int(last) if last.isascii() and last.isdecimal() and len(last) < 20 else 2**63
    if number >= 2**63:
        raise ApiError(400, "invalid_cursor", "This cursor is not from this list: start again without one.")
    return number


def id_number(text: str) -> int:
    """The number in an id of ours such as run_0000000000000."""
    found = ids.decode(f"run_{text.partition('_')[2]}")
    assert found is not None  # noqa: S101 - we wrote it
    return found[1]
