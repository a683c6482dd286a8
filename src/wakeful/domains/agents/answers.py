"""What a session server's answer means: pure functions from an answer to a decision.

| answer to a message | decision |
|---|---|
| 200, or another 2xx | `Done`, and the body is the run's output |
| the same from a server that reports | `GoesOn`, unless the body says that it is done |
| 202, or a body that says it continues | `GoesOn`: the run waits for a call back, or its status address is polled |
| a body that says it failed | `Failed` |
| 404 | `NoSession`: if it was made by us, forget it, make another one, try again |
| 409 | `Busy`: the same slot again in an hour |
| 5xx, 408, 425, 429, no answer, half an answer, nonsense | `Unwell`: the same slot again in half an hour |
| anything else, redirects included | `Failed`: trying again would not help |
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple
from urllib.parse import urljoin, urlsplit

GOING_ON = frozenset(
    {"accepted", "queued", "pending", "running", "processing", "started", "in_progress", "in-progress", "busy"}
)
WENT_WRONG = frozenset({"failed", "failure", "error", "errored", "cancelled", "canceled", "aborted", "timeout"})
WENT_WELL = frozenset({"completed", "complete", "done", "success", "succeeded", "finished", "ok"})
MAX_SAID = 500
MAX_URL = 2_000


class ServerResponse(NamedTuple):
    """What came back: a status with what was in it, or why nothing did."""

    status: int = 0
    body: Any = None  # JSON where it is JSON, else text; None where there is nothing
    location: str | None = None
    problem: str | None = None  # there was no answer, or not one that can be read
    lasting: bool = False  # ... and the next one would be no better


class Done(NamedTuple):
    """The work is done."""

    output: Any


class GoesOn(NamedTuple):
    """The work was accepted and is not done."""

    status_url: str | None
    why: str


class NoSession(NamedTuple):
    """The session is not known there."""

    why: str


class Busy(NamedTuple):
    """The session works on something else."""

    why: str


class Unwell(NamedTuple):
    """It did not work this time."""

    why: str


class RequestRejected(NamedTuple):
    """It did not work, and would not the next time."""

    why: str


Decision = Done | GoesOn | NoSession | Busy | Unwell | RequestRejected


def read_answer(answer: ServerResponse, *, reports: bool = False, key: str = "server.sessions.url") -> Decision:
    """What the answer to a message, or to a request for a session, means.

    A server that `reports` answers when it has accepted a message: it is done when it reports that. `key` is where its
    address is configured.
    """
    if answer.problem is not None:
        return RequestRejected(answer.problem) if answer.lasting else Unwell(answer.problem)
    if 200 <= answer.status < 300:
        return _read_good(answer, reports=reports)
    why = _said(answer)
    if answer.status == 404:
        return NoSession(why)
    if answer.status == 409:
        return Busy(why)
    if answer.status >= 500 or answer.status in (408, 425, 429):
        return Unwell(why)
    if 300 <= answer.status < 400:
        to = f" to {answer.location}" if answer.location else ""
        return RequestRejected(f"the session server sends us elsewhere{to}, which is refused: set {key} to it")
    return RequestRejected(why)


def _read_good(answer: ServerResponse, *, reports: bool) -> Decision:
    said = answer.body if isinstance(answer.body, dict) else {}
    state = str(said.get("status", "")).lower()
    if state in WENT_WRONG:
        return RequestRejected(_reason(said) or f"the session says {state}")
    status_url = _text(said.get("statusUrl")) or _text(said.get("status_url"))
    accepted = answer.status == 202 or state in GOING_ON or (status_url is not None and not state)
    if accepted or (reports and state not in WENT_WELL):
        return GoesOn(status_url or answer.location, f"the session server says {state or 'accepted'}")
    return Done(answer.body)


def read_status(answer: ServerResponse) -> Done | RequestRejected | None:
    """What the answer to "how is it going" means; None: ask again later, the run's deadline decides."""
    if answer.problem is not None or not 200 <= answer.status < 300 or answer.status == 202:
        return None
    said = answer.body if isinstance(answer.body, dict) else {}
    state = str(said.get("status", "")).lower()
    if state in WENT_WRONG:
        return RequestRejected(_reason(said) or f"the session says {state}")
    if state not in WENT_WELL:
        return None  # what does not say that it is done is not done
    return Done(said.get("output", said.get("result", said)))


def session_id(answer: ServerResponse) -> str | None:
    """What a new session is called, in the answer that says it was made."""
    said = answer.body if isinstance(answer.body, dict) else {}
    name = said.get("id", said.get("sessionId", said.get("session_id")))
    name = str(name) if isinstance(name, int) and not isinstance(name, bool) else name
    return name if isinstance(name, str) and usable_id(name) else None


def usable_id(name: str) -> bool:
    """Whether a session's id can be part of an address without meaning another one."""
    return 0 < len(name) <= 200 and name.isprintable() and name.isascii() and name not in (".", "..")


def same_origin(url: str, base: str, asked: str) -> str | None:
    """The status address in full, or None when it does not lie where sessions live. It may be relative to `asked`."""
    if len(url) > MAX_URL or not url.isascii() or not url.isprintable():
        return None
    try:
        full = urljoin(asked, url)
        return full if _origin(full) == _origin(base) else None
    except ValueError:
        return None


def _origin(url: str) -> tuple[str, str | None, int | None]:
    parts = urlsplit(url)
    return parts.scheme, parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)


def _said(answer: ServerResponse) -> str:
    said = _reason(answer.body) if isinstance(answer.body, dict) else _text(answer.body)
    return f"the session server answered {answer.status}" + (f": {said[:MAX_SAID]}" if said else "")


def _reason(said: dict[str, Any]) -> str | None:
    for key in ("error", "message", "detail", "reason"):
        value = said.get(key)
        if isinstance(value, dict):
            value = value.get("message", json.dumps(value))
        if isinstance(value, str) and value:
            return value[:MAX_SAID]
    return None


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
