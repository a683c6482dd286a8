"""What a failure means: classified by where it arose and by its type, never by its message. Pure."""

from __future__ import annotations

import errno
import socket
import ssl
import traceback
from collections.abc import Collection
from pathlib import Path
from typing import Literal

from wakeful.domains.workflows.phases import Failure
from wakeful.kernel.rules.outcome import ApprovalNeeded, TransientError, clean

Place = Literal["handler", "call", "mutate", "unsure", "timeout", "timeout_in_mutate", "engine"]
"""Where: in a handler's own code, in a call it made through `ctx`, in mutate, in mutate after its call had ended well
or while a thread of it worked on, a call's time limit, our own code.
"""


OURS = Path(__file__).resolve().parents[2]
MAX_TRACE = 4_000
HTTP_ERRORS = range(400, 600)
REFUSED = (401, 403, 407)
BUSY = (408, 425, 429)
SERVER_ERROR = 500
NOT_REFUSED = (408, 409)  # it may be at work, or done already
#: Under which names the status is found: of an answer, and of the error itself.
OF_ANSWER = ("status_code", "status")
OF_ERROR = ("status", "status_code", "http_status", "code")
#: Errors of HTTP clients that are no ConnectionError: package and class.
TRANSPORT = frozenset(
    {
        ("httpx", "TransportError"),
        ("requests", "ConnectionError"),
        ("requests", "Timeout"),
        ("requests", "ChunkedEncodingError"),
        ("http", "IncompleteRead"),
        ("aiohttp", "ClientConnectionError"),
        ("aiohttp", "ClientPayloadError"),
    }
)
#: Those of them that say that the request itself is wrong: sent again, it would be no other.
UNSENDABLE = frozenset({("httpx", "UnsupportedProtocol"), ("httpx", "LocalProtocolError")})
#: Errors of the network for which Python has no class of its own: no way to the other side.
NO_WAY = (errno.ENETDOWN, errno.ENETUNREACH, errno.EHOSTDOWN, errno.EHOSTUNREACH)
#: Those of them that say that the other side was never reached.
UNREACHED = frozenset(
    {
        ("httpx", "ConnectError"),
        ("httpx", "ConnectTimeout"),
        ("httpx", "PoolTimeout"),
        ("httpx", "UnsupportedProtocol"),
        ("requests", "ConnectTimeout"),
        ("aiohttp", "ClientConnectorError"),
    }
)
#: What HTTP clients raise for an answer that is an error.
ANSWERS = frozenset(
    {
        ("httpx", "HTTPStatusError"),
        ("requests", "HTTPError"),
        ("urllib", "HTTPError"),
        ("aiohttp", "ClientResponseError"),
    }
)


class LogicError(Exception):
    """The workflow's code or data is wrong: a retry does not help; a person or a new version must correct it."""

    trace = ""  # through the author's code, where this stands for an error of an earlier run

    @property
    def traced(self) -> bool | str:
        """Whether a trace leads through the author's code; to a mistake that Wakeful found it does not."""
        if self.trace.startswith("File"):
            return f"Traceback (most recent call last):\n  {self.trace}"
        return any(not _is_ours(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(self.__traceback__))


def deciding(error: BaseException, place: Place) -> BaseException:
    """The first error of a group, such as that of a `TaskGroup`, if all mean the same; else the group."""
    found = leaves(error)
    return found[0] if len({_meaning(one, place) for one in found}) == 1 else error


def _meaning(error: BaseException, place: Place) -> tuple[object, ...]:
    failure = classify(error, place)
    if failure != "reconciliation":
        return (failure,)
    return failure, without_change(error, place), is_refused(error, place)


def shown(value: object) -> str:
    """The beginning of how an author's value is written; its type where Python cannot write it."""
    try:
        return f"{value!r:.80}"
    except Exception:  # noqa: BLE001 - how a class of the author is written is not what is said about its value
        return f"<{type(value).__name__}>"


def leaves(error: BaseException) -> list[BaseException]:
    """The errors in a group and in the groups in it, or the error itself."""
    if not isinstance(error, BaseExceptionGroup):
        return [error]
    return [leaf for one in error.exceptions for leaf in leaves(one)]


def classify(error: BaseException, place: Place) -> Failure:
    """The class of a failure that arose in that place."""
    if place == "engine":
        return "internal"
    said = None if place == "unsure" else _of_author(error)
    if said is not None:
        return said
    if place in ("mutate", "unsure", "timeout_in_mutate"):
        return "reconciliation"  # whether it changed something outside is not known
    if place == "timeout":
        return "transient"
    return _of_call(error) if place == "call" else _of_handler(error)


def without_change(error: BaseException, place: Place) -> Failure:
    """The class of an error in mutate, once it is known that nothing changed outside."""
    if place == "timeout_in_mutate" or _of_author(error) is not None:
        return "transient"  # a question is asked again, by the attempt that it is about
    return _of_call(error)


def is_refused(error: BaseException, place: Place) -> bool:
    """Whether the other side refused the change or was never reached: then most likely nothing changed."""
    if place == "unsure":
        return False
    status = _http_status(error)
    if status is not None:
        return status < SERVER_ERROR and status not in NOT_REFUSED
    cause = _reason(error)
    return isinstance(cause, ConnectionRefusedError | PermissionError | socket.gaierror) or _is_one_of(cause, UNREACHED)


def _of_author(error: BaseException) -> Failure | None:
    """The class that a handler named itself."""
    if isinstance(error, ApprovalNeeded):
        return "approval"
    return "transient" if isinstance(error, TransientError) else None


def _of_call(error: BaseException) -> Failure:
    """What the outside said: busy or away, not allowed, or that the request itself is wrong."""
    status = _http_status(error)
    if status in REFUSED or isinstance(error, PermissionError):
        return "approval"
    if status is not None:
        return _of_status(status)
    return "transient" if _is_away(error) else "logic"


def _of_handler(error: BaseException) -> Failure:
    """Outside of `ctx.call` only an error of the network, or of an HTTP client, is about the other side."""
    status = _http_status(error) if _is_one_of(error, ANSWERS) else None
    if status is not None:
        return _of_status(status)
    return "transient" if _is_away(error) else "logic"


def _of_status(status: int) -> Failure:
    return "transient" if status in BUSY or status >= SERVER_ERROR else "logic"


def _is_away(error: BaseException) -> bool:
    """Whether the other side could not be reached, or took too long."""
    cause = _reason(error)
    if isinstance(cause, ConnectionError | TimeoutError | socket.gaierror | ssl.SSLEOFError | ssl.SSLZeroReturnError):
        return True
    if isinstance(cause, OSError) and cause.errno in NO_WAY:
        return True
    return _is_one_of(cause, TRANSPORT) and not _is_one_of(cause, UNSENDABLE)


def _reason(error: BaseException) -> BaseException:
    """The error that urllib wrapped, or the error itself."""
    reason = _part(error, "reason") if _is_one_of(error, frozenset({("urllib", "URLError")})) else None
    return reason if isinstance(reason, BaseException) else error


def _http_status(error: BaseException) -> int | None:
    """The status of the answer that httpx, requests, urllib or aiohttp made an error of."""
    response = _part(error, "response")
    found = [*(_part(response, name) for name in OF_ANSWER), *(_part(error, name) for name in OF_ERROR)]
    return next((one for one in found if type(one) is int and one in HTTP_ERRORS), None)


def _part(owner: object, name: str) -> object:
    """What an error, or the answer it has, says under that name; None where asking for it fails."""
    try:
        return getattr(owner, name, None)
    except Exception:  # noqa: BLE001 - a property of another package, and an error on the way to its own would hide that
        return None


def _is_one_of(error: BaseException, classes: Collection[tuple[str, str]]) -> bool:
    """Whether the error is of one of these classes of other packages, which need not be installed."""
    return any((one.__module__.partition(".")[0], one.__name__) in classes for one in type(error).__mro__)


def author_trace(error: BaseException) -> str:
    """The lines of the author's own code that led to the error, and the error."""
    if isinstance(error, LogicError) and error.trace:
        return error.trace
    if isinstance(error, BaseExceptionGroup):
        return "\n".join(author_trace(leaf) for leaf in leaves(error))[-MAX_TRACE:]
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if not _is_ours(frame.filename)]
    lines = [*traceback.format_list(own), *traceback.format_exception_only(error)]
    return clean("".join(lines)[-MAX_TRACE:]).strip()


def _is_ours(file: str) -> bool:
    return Path(file).is_relative_to(OURS)
