"""What a failure means: classified by where it arose and by its type, never by its message. Pure."""

from __future__ import annotations

import socket
import traceback
from pathlib import Path
from typing import Literal

from wakeful.kernel.rules.outcome import ApprovalNeeded, TransientError
from wakeful.workflows.phases import Failure

Place = Literal["handler", "call", "mutate", "timeout", "timeout_in_mutate", "engine"]
"""Where: in a handler's own code, in a call it made through `ctx`, in mutate, a call's time limit, our own code."""


OURS = Path(__file__).resolve().parents[1]
MAX_TRACE = 4_000
HTTP_ERRORS = range(400, 600)
REFUSED = (401, 403, 407)
BUSY = (408, 425, 429)
SERVER_ERROR = 500
#: Errors of HTTP clients that are no ConnectionError: package and class.
TRANSPORT = frozenset(
    {
        ("httpx", "TransportError"),
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("aiohttp", "ClientConnectionError"),
    }
)


class LogicError(Exception):
    """The workflow's code or data is wrong: a retry does not help; a person or a new version must correct it."""


def classify(error: BaseException, place: Place) -> Failure:
    """The class of a failure that arose in that place."""
    if place == "engine":
        return "internal"
    if isinstance(error, ApprovalNeeded):
        return "approval"
    if isinstance(error, TransientError):
        return "transient"
    if place in ("mutate", "timeout_in_mutate"):
        return "reconciliation"  # whether it changed something outside is not known
    if place == "timeout":
        return "transient"
    return _of_call(error) if place == "call" else "logic"


def _of_call(error: BaseException) -> Failure:
    """What the outside said: busy or away, not allowed, or that the request itself is wrong."""
    status = _http_status(error)
    if status in REFUSED or isinstance(error, PermissionError):
        return "approval"
    if status is not None:
        return "transient" if status in BUSY or status >= SERVER_ERROR else "logic"
    is_away = isinstance(error, ConnectionError | TimeoutError | socket.gaierror)
    return "transient" if is_away or _is_transport_error(error) else "logic"


def _http_status(error: BaseException) -> int | None:
    """The status of the answer that httpx, requests, urllib or aiohttp made an error of."""
    response = getattr(error, "response", None)
    places = ((response, "status_code"), (response, "status"), (error, "status"), (error, "code"))
    found = [getattr(owner, name, None) for owner, name in places if owner is not None]
    return next((one for one in found if type(one) is int and one in HTTP_ERRORS), None)


def _is_transport_error(error: BaseException) -> bool:
    """Whether a client of its own tree of errors could not reach the other side."""
    return any((one.__module__.partition(".")[0], one.__name__) in TRANSPORT for one in type(error).__mro__)


def author_trace(error: BaseException) -> str:
    """The lines of the author's own code that led to the error, and the error."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not Path(frame.filename).is_relative_to(OURS)]
    return "".join([*traceback.format_list(own), *traceback.format_exception_only(error)])[-MAX_TRACE:].strip()
