"""What a request is: the payload of its job, checked before anything is stored or sent."""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from wakeful.domains.http.referring import sample, values_looked_up
from wakeful.domains.http.secrets import hides
from wakeful.errors import InvalidJob, SchedulerError
from wakeful.outbound import read_address
from wakeful.triggers.durations import interval_ms

BODY_MOST = 512 * 1024
HEADERS_MOST = 100
VALUE_MOST = 8_000
EXPECT_MOST = 100
_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,200}", re.ASCII)
_CLASS = re.compile(r"[1-5]xx", re.ASCII)
#: What the connection says about itself, not the job.
_OURS = frozenset(
    {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer", "keep-alive", "expect"}
)


@dataclass(frozen=True, slots=True)
class RequestSpec:
    """What to ask for, and which answers are good."""

    url: str
    method: str = "GET"
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str | None = None
    expect: tuple[int | str, ...] = ("2xx",)
    timeout: int | None = None  # milliseconds, for the whole of it; the job's own limit holds besides it
    follow_redirects: bool = True
    guarded: bool = False  # written over the network: obeys the outbound policy
    references: bool = False  # ${NAME} in url, headers and body is looked up for each run
    secrets: tuple[str, ...] = ()  # what was looked up, and must not be kept

    @classmethod
    def from_payload(cls, payload: object) -> RequestSpec:
        """Read a job's payload; InvalidJob says in one sentence what is wrong with it."""
        if not isinstance(payload, Mapping):
            raise InvalidJob('An http job needs a payload such as {"url": "https://example.org/health"}.')
        given = {key: value for key, value in payload.items() if value is not None}
        for key in given:
            _refuse_unknown(key)
        if given.get("references") is True:
            if given.get("guarded"):
                raise InvalidJob("References are for jobs of a file or a program: over the network, write the values.")
            given = sample(given)
        if "url" not in given:
            raise InvalidJob('An http job needs a url, such as "https://example.org/health".')
        hidden = hides(given)
        if hidden is not None:
            raise InvalidJob(f"The {hidden} of an http job holds ***, which hides a value: write the value.")
        fields = {key: _CHECKS[key](value) for key, value in given.items()}
        if isinstance(given.get("body"), Mapping | list):
            typed = {name.lower() for name in fields.get("headers", {})}
            if "content-type" not in typed:
                fields["headers"] = {**fields.get("headers", {}), "Content-Type": "application/json"}
        return cls(**fields)

    @classmethod
    def to_send(cls, payload: Any, known: Mapping[str, str]) -> RequestSpec:
        """The same with every reference looked up."""
        if not isinstance(payload, Mapping) or payload.get("references") is not True:
            return cls.from_payload(payload)
        cls.from_payload(payload)
        full, secrets = values_looked_up(payload, known)
        return replace(cls.from_payload(full), secrets=secrets)

    def expects(self, status: int) -> bool:
        """Whether an answer with this status is a good one."""
        return any(code in (status, f"{status // 100}xx") for code in self.expect)


def check_field(key: str, value: object) -> None:
    """InvalidJob, where this part of the payload cannot be used."""
    _CHECKS[key](value)


def _refuse_unknown(key: object) -> None:
    if key in _CHECKS:
        return
    near = difflib.get_close_matches(str(key), _CHECKS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_CHECKS)}."
    raise InvalidJob(f"An http job has no {str(key)[:80]!r}: {hint}")


def _url(value: object) -> str:
    try:
        read_address(value)
    except ValueError as error:
        raise InvalidJob(f"The url of an http job {error}.") from None
    return str(value)


def _method(value: object) -> str:
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z]{1,20}", value, re.ASCII):
        raise InvalidJob("The method of an http job must be a word such as GET or POST.")
    if value.upper() in ("CONNECT", "TRACE"):
        raise InvalidJob(f"An http job cannot use the method {value.upper()}.")
    return value.upper()


def _headers(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidJob('The headers of an http job must map names to values, such as {"Accept": "text/html"}.')
    if len(value) > HEADERS_MOST:
        raise InvalidJob(f"An http job has {HEADERS_MOST} headers at most, not {len(value)}.")
    if len({str(name).lower() for name in value}) < len(value):
        raise InvalidJob("The headers of an http job name one header twice.")
    return {_header_name(name): _header_value(name, text) for name, text in value.items()}


def _header_name(name: object) -> str:
    if not isinstance(name, str) or not _TOKEN.fullmatch(name):
        raise InvalidJob(f"{str(name)[:80]!r} is not the name of a header.")
    if name.lower() in _OURS or name.lower().startswith("proxy-"):
        raise InvalidJob(f"The header {name} is set by the connection itself: leave it out.")
    return name


def _header_value(name: object, value: object) -> str:
    good = isinstance(value, str) and value.isascii() and value.isprintable() and len(value) <= VALUE_MOST
    if not good:
        raise InvalidJob(f"The header {name} must be one line of printable ASCII, {VALUE_MOST} characters at most.")
    return str(value).strip()


def _body(value: object) -> str:
    text = value if isinstance(value, str) else None
    if isinstance(value, Mapping | list):
        text = json.dumps(value)
    if text is None:
        raise InvalidJob("The body of an http job must be a text, or a map or list that is sent as JSON.")
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        raise InvalidJob("The body of an http job contains half a surrogate pair, which is not text.") from None
    if size > BODY_MOST:
        raise InvalidJob(f"The body of an http job has {BODY_MOST} bytes at most, not {size}.")
    return text


def _expect(value: object) -> tuple[int | str, ...]:
    codes = value if isinstance(value, list | tuple) else [value]
    if not 0 < len(codes) <= EXPECT_MOST:
        raise InvalidJob(f"expect has 1 to {EXPECT_MOST} status codes.")
    return tuple(_code(code) for code in codes)


def _code(value: object) -> int | str:
    if isinstance(value, str) and _CLASS.fullmatch(value.lower()):
        return value.lower()
    number = (
        int(value) if isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 4 else value
    )
    if isinstance(number, bool) or not isinstance(number, int) or not 100 <= number <= 599:
        raise InvalidJob(f"expect takes status codes such as 200 or 2xx, not {str(value)[:80]!r}.")
    return number


def _timeout(value: object) -> int:
    try:
        return interval_ms(value)  # type: ignore[arg-type]
    except (SchedulerError, TypeError) as error:
        raise InvalidJob(
            f"The timeout of an http job must be a duration such as 10s ({str(error).rstrip('.')})."
        ) from error


def _flag(name: str) -> Callable[[object], bool]:
    def read(value: object) -> bool:
        if not isinstance(value, bool):
            raise InvalidJob(f"{name} of an http job must be true or false.")
        return value

    return read


_CHECKS: dict[str, Callable[[object], Any]] = {
    "url": _url,
    "method": _method,
    "headers": _headers,
    "body": _body,
    "expect": _expect,
    "timeout": _timeout,
    "follow_redirects": _flag("follow_redirects"),
    "guarded": _flag("guarded"),
    "references": _flag("references"),
}
