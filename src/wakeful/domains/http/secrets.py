"""Which parts of a request are secret, and how they are shown to callers who may not see them."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from wakeful.outbound import WebAddress, read_address

if TYPE_CHECKING:
    from wakeful.domains.http.spec import RequestSpec

HIDDEN = "***"
SHORTEST = 6  # replacing shorter values would shred ordinary text
_SECRET_NAME = re.compile(r"auth|token|key|secret|passw|pwd|cookie|sig|session|credential", re.IGNORECASE)
_USER = re.compile(r"^(?P<scheme>[a-z]+://)(?P<user>[^/?#@]*)@", re.IGNORECASE)


def redacted(payload: Any) -> Any:
    """A payload without the values of its headers, its password, and keys in its address."""
    if not isinstance(payload, dict):
        return payload
    shown = dict(payload)
    if isinstance(shown.get("headers"), dict):
        shown["headers"] = dict.fromkeys(shown["headers"], HIDDEN)
    if isinstance(shown.get("url"), str):
        shown["url"] = redacted_url(shown["url"])
    return shown


def redacted_url(url: str) -> str:
    """An address without its password and the values of parameters that look like keys."""
    plain, mark, fragment = url.partition("#")
    address, question, query = plain.partition("?")
    found = _USER.match(address)
    if found is not None:
        user, colon, _ = found["user"].partition(":")
        # A user without a password is where some services want the key.
        shown = f"{user}:{HIDDEN}" if colon else HIDDEN
        address = f"{found['scheme']}{shown}@{address[found.end() :]}"
    pairs = "&".join(_redacted_pair(pair) for pair in query.split("&"))
    return f"{address}{question}{pairs}{mark}{fragment}"


def _redacted_pair(pair: str) -> str:
    name, equals, _ = pair.partition("=")
    return f"{name}={HIDDEN}" if equals and _SECRET_NAME.search(unquote(name)) else pair


def hides(payload: Mapping[str, Any]) -> str | None:
    """The part of a payload that holds the placeholder of a hidden value; None if there is none."""
    headers = payload.get("headers")
    if isinstance(headers, Mapping):
        for name, value in headers.items():
            if value == HIDDEN:
                return f"headers.{name}"
    url = payload.get("url")
    return "url" if isinstance(url, str) and _holds_hidden(url) else None


def _holds_hidden(url: str) -> bool:
    address, _, query = url.partition("#")[0].partition("?")
    found = _USER.match(address)
    if found is not None and found["user"].rpartition(":")[2] == HIDDEN:
        return True
    pairs = (pair.partition("=") for pair in query.split("&"))
    return any(value == HIDDEN and _SECRET_NAME.search(unquote(name)) for name, _, value in pairs)


def secret_values(spec: RequestSpec) -> list[str]:
    """The values that must be redacted from a stored answer, longest first."""
    found = [*spec.secrets, *(value for name, value in spec.headers.items() if _SECRET_NAME.search(name))]
    found += [value.partition(" ")[2] for value in found]  # without "Bearer"
    address = read_address(spec.url)
    found += [address.password or "", basic(address)]
    pairs = (pair.partition("=") for pair in address.target.partition("?")[2].split("&"))
    for name, _, value in pairs:
        if _SECRET_NAME.search(unquote(name)):
            found += [value, unquote(value)]
    return sorted({value for value in found if len(value) >= SHORTEST}, key=len, reverse=True)


def basic(address: WebAddress) -> str:
    """User and password as they are sent; empty where there are none."""
    if address.user is None:
        return ""
    return base64.b64encode(f"{address.user}:{address.password or ''}".encode()).decode("ascii")


def without(text: str, secrets: Iterable[str]) -> str:
    """A text with every secret in it replaced."""
    for secret in secrets:
        text = text.replace(secret, HIDDEN)
    return text
