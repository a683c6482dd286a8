"""What callers over the network may not write into an http job, said when they write it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wakeful.errors import NotAllowed
from wakeful.http import HTTP
from wakeful.outbound import OutboundPolicy, read_address

if TYPE_CHECKING:
    from wakeful.kernel.actions.authorization import PayloadCheck
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef


def within_policy(policy: OutboundPolicy, agent: str | None = None) -> PayloadCheck:
    """A check for one caller: no address that can be seen to be private, and none at all from this `agent`.

    What was stored before stays allowed in its job: the policy is asked again with every run.
    """

    def check(_: Transaction, kind: str, payload: str, before: JobDef | None) -> None:
        if kind != HTTP or (before is not None and (before.kind, before.payload) == (kind, payload)):
            return
        if agent is not None:
            message = (
                f"{agent} is an agent, and agents may not write jobs of kind {HTTP} here: "
                "an operator can allow it with server.outbound.agents in wakeful.yaml."
            )
            raise NotAllowed(message)
        said = json.loads(payload)
        if said.get("guarded"):
            policy.check_host(read_address(said["url"]).host)

    return check
