"""What callers over the network may not write into an http job, said when they write it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wakeful.domains.http import HTTP
from wakeful.errors import NotAllowed
from wakeful.outbound import read_address

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
