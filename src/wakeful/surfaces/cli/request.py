"""Jobs that send a request, on the command line: from a payload to words. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def request_line(payload: Mapping[str, Any]) -> str:
    """The request in one line, without its secrets."""
    from wakeful.domains.http.secrets import redacted_url

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
