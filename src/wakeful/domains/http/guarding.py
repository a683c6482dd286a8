"""What callers over the network may not write into an http job, said when they write it.

And what looks wrong about a request, judged by how it is written.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.domains.http import HTTP
from wakeful.domains.http.referring import sample
from wakeful.errors import NotAllowed
from wakeful.outbound import literal_ip, read_address

if TYPE_CHECKING:
    from wakeful.kernel.hooks import Writer
    from wakeful.store.records import JobDef


def check_writer(writer: Writer, payload: str, before: JobDef | None) -> None:
    """NotAllowed for an address that can be seen to be private, and for a caller that may write no such job.

    What was stored before stays allowed in its job: the policy is asked again with every run.
    """
    if before is not None and (before.kind, before.payload) == (HTTP, payload):
        return
    if not writer.may_send:
        message = (
            f"{writer.name} is an agent, and agents may not write jobs of kind {HTTP} here: "
            "an operator can allow it with server.outbound.agents in wakeful.yaml."
        )
        raise NotAllowed(message)
    said = json.loads(payload)
    if said.get("guarded"):
        writer.outbound.check_host(read_address(said["url"]).host)


def oddities(payload: Mapping[str, Any], _: Path | None = None) -> list[str]:
    """Sentences for people."""
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
