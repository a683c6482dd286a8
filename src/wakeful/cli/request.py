"""Jobs that send a request, on the command line: from options to a payload, and from a payload to words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from wakeful.cli.failures import WrongUse
from wakeful.outbound import literal_ip, read_address

if TYPE_CHECKING:
    from wakeful.cli.definition import Definition

NONE = "none"
OPTIONS = ("url", "method", "header", "body", "expect", "redirects")


def given(wanted: Definition) -> str | None:
    """The first option about a request that was given; None if there is none."""
    return next((f"--{name}" for name in OPTIONS if getattr(wanted, name) is not None), None)


def request_payload(wanted: Definition, old: Mapping[str, Any] | None = None) -> dict[str, Any] | None:
    """The payload of the request, or None if no option about it was given. `old` is the stored one."""
    if given(wanted) is None:
        return None
    if old is None and wanted.url is None:
        raise WrongUse(f"{given(wanted)} goes with --url ADDRESS.")
    changes: dict[str, Any] = {}
    if wanted.url is not None:
        changes |= {"url": wanted.url, "guarded": None}  # the author of an address sets the trust in it
    if wanted.method is not None:
        changes["method"] = None if wanted.method == NONE else wanted.method.upper()
    if wanted.body is not None:
        changes["body"] = None if wanted.body == NONE else wanted.body
    if wanted.header is not None:
        changes["headers"] = None if wanted.header == [NONE] else dict(_header(text) for text in wanted.header)
    if wanted.expect is not None:
        changes["expect"] = None if wanted.expect == [NONE] else _codes(wanted.expect)
    if wanted.redirects is not None:
        changes["follow_redirects"] = _redirects(wanted.redirects)
    return {key: value for key, value in {**(old or {}), **changes}.items() if value is not None}


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise WrongUse(f"--header {name!r} is not a header: write --header 'Accept: text/html'.")
    return name.strip(), value.strip()


def _codes(texts: list[str]) -> list[int | str]:
    words = [word.strip() for text in texts for word in text.split(",")]
    return [int(word) if word.isascii() and word.isdecimal() and len(word) < 4 else word for word in words]


def _redirects(text: str) -> bool | None:
    known = {"follow": None, "refuse": False, NONE: None}
    if text not in known:
        raise WrongUse(f"--redirects is follow or refuse, not {text!r}.")
    return known[text]


def request_line(payload: Mapping[str, Any]) -> str:
    """The request in one line, without its secrets."""
    from wakeful.http.secrets import redacted_url

    return f"{payload.get('method', 'GET')} {redacted_url(str(payload['url']))}"


def request_facts(payload: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """A request as `show` lists it."""
    facts: list[tuple[str, Any]] = [("request", f"{payload.get('method', 'GET')} {payload['url']}")]
    facts += [("header", f"{name}: {value}") for name, value in (payload.get("headers") or {}).items()]
    known = ("url", "method", "headers", "guarded", "references")
    facts += [(key, value) for key, value in payload.items() if key not in known]
    if payload.get("guarded"):
        facts += [("guarded", "yes: the address came over the network and obeys server.outbound")]
    return facts


def oddities(payload: Mapping[str, Any]) -> list[str]:
    """What looks wrong about a request, judged by how it is written."""
    from wakeful.http.referring import sample

    address = read_address((sample(payload) if payload.get("references") else payload)["url"])
    found = []
    if "#" in payload["url"]:
        found.append("The part of the url after # is not sent.")
    literal = literal_ip(address.host)
    local = address.host == "localhost" or (literal is not None and literal.is_loopback)
    if "." not in address.host and literal is None and not local:
        found.append(f"The host {address.host!r} has no dot: is it a name that the server can find?")
    names = {str(name).lower() for name in payload.get("headers") or {}}
    secret = address.user is not None or bool(names & {"authorization", "cookie", "x-api-key"})
    if address.scheme == "http" and secret and not local:
        found.append("The request carries a secret and is not encrypted: use https.")
    if payload.get("body") is not None and payload.get("method", "GET").upper() in ("GET", "HEAD"):
        found.append("A GET request rarely has a body: did you mean --method POST?")
    return found
