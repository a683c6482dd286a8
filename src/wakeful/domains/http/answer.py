"""What an answer means: pure functions from what came back to the run's output and its outcome."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from typing import Any, NamedTuple

from wakeful.domains.http.secrets import redacted_url, secret_values, without
from wakeful.domains.http.spec import RequestSpec
from wakeful.kernel.rules.outcome import beginning, clean

SHOWN = (
    "content-type", "content-length", "date", "etag", "last-modified", "location", "retry-after", "server",
    "x-request-id",
)  # fmt: skip
SHOWN_MOST = 1_000
PASSING = (408, 425, 429)  # besides every 5xx: likely to be gone the next time
LONGEST_WAIT = timedelta(days=1)
SAID_MOST = 200
_SECONDS = re.compile(r"(\d+)(?:\.\d+)?", re.ASCII)
_CHARSET = re.compile(r"charset\s*=\s*\"?([\w.:-]{1,40})", re.IGNORECASE | re.ASCII)
_TEXT = re.compile(r"utf-?8|us-ascii|ascii|utf-?16|iso-?8859-?\d{1,2}|latin-?1|windows-12\d\d|cp12\d\d|koi8-[ru]|"
                   r"shift_jis|euc-(jp|kr)|gb(2312|k|18030)|big5", re.IGNORECASE | re.ASCII)  # fmt: skip


class HttpResponse(NamedTuple):
    """An answer as it arrived, as far as it was read."""

    status: int
    headers: Mapping[str, str]  # names in lower case
    body: bytes
    truncated: bool  # there was more
    url: str  # where it came from, without secrets
    elapsed_ms: int
    redirects: int = 0


def output_of(spec: RequestSpec, reply: HttpResponse, most: int) -> dict[str, Any]:
    """The run's output: status, the headers worth keeping, the body as text, and how long it took."""
    secrets = secret_values(spec)
    body, truncated = body_text(reply, most)
    found: dict[str, Any] = {
        "status": reply.status,
        "url": without(reply.url, secrets),
        "headers": {name: without(_header(reply, name), secrets) for name in SHOWN if name in reply.headers},
        "body": None if body is None else without(body, secrets),
        "elapsed_ms": reply.elapsed_ms,
    }
    if truncated:
        found["truncated"] = True
    if reply.redirects:
        found["redirects"] = reply.redirects
    return found


def _header(reply: HttpResponse, name: str) -> str:
    value = clean(reply.headers[name][:SHOWN_MOST])
    return redacted_url(value) if name == "location" else value


def body_text(reply: HttpResponse, most: int) -> tuple[str | None, bool]:
    """The body as text any database takes, and whether some is missing; None where it is not text."""
    data, truncated = _unpacked(reply, most)
    found = _CHARSET.search(reply.headers.get("content-type", ""))
    charset = found[1] if found is not None and _TEXT.fullmatch(found[1]) else "utf-8"
    if b"\0" in data and not charset.lower().startswith("utf-16"):
        return None, truncated
    try:
        return clean(data.decode(charset, "replace")), truncated
    except LookupError:
        return clean(data.decode("utf-8", "replace")), truncated


def _unpacked(reply: HttpResponse, most: int) -> tuple[bytes, bool]:
    """The body before it was compressed, which was not asked for; never more than `most` of it."""
    encoding = reply.headers.get("content-encoding", "").lower()
    if encoding not in ("gzip", "x-gzip", "deflate"):
        return reply.body, reply.truncated
    unpacking = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        data = unpacking.decompress(reply.body, most)
    except zlib.error:
        return reply.body, reply.truncated
    return data, reply.truncated or bool(unpacking.unconsumed_tail)


def passes(status: int) -> bool:
    """Whether an answer that was not expected is likely to be another one the next time."""
    return status >= 500 or status in PASSING


def complaint(spec: RequestSpec, reply: HttpResponse) -> str:
    """One sentence about an answer that was not expected, with the first line it says."""
    wanted = ", ".join(str(code) for code in spec.expect)
    url = without(reply.url, secret_values(spec))
    said = f"{url} answered {reply.status}, and {wanted} was expected"
    location = reply.headers.get("location")
    if 300 <= reply.status < 400 and location is not None and not spec.follow_redirects:
        return f"{said}: it redirects elsewhere, and follow_redirects is false"
    body, _ = body_text(reply, SAID_MOST * 4)
    lines = (
        " ".join("".join(c if c.isprintable() else " " for c in line).split()) for line in (body or "").splitlines()
    )
    first = next((line for line in lines if line), "")
    if not first or first.startswith("<"):  # one line of markup is no useful message
        return said
    return without(f"{said}: {beginning(first, SAID_MOST)}", secret_values(spec))


def retry_at(headers: Mapping[str, str], now: datetime) -> datetime | None:
    """When `Retry-After` asks to be called again: not in the past, and a day ahead at most."""
    text = headers.get("retry-after", "").strip()
    if not text:
        return None
    if (seconds := _SECONDS.fullmatch(text)) is not None:  # some servers add a fraction
        whole = seconds[1]
        wait = timedelta(seconds=math.ceil(float(text))) if len(whole) < 9 else LONGEST_WAIT
        return now + min(wait, LONGEST_WAIT)
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        return None
    found = found if found.tzinfo is not None else found.replace(tzinfo=UTC)
    return min(max(found, now), now + LONGEST_WAIT)
