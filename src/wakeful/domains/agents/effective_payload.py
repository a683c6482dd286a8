"""What a schedule that was added outside the file inherits from its agent: how it is called, and its limits."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.naming import wake_job

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

INHERITED = ("runner", "budget", "untrusted", "deliver")


def effective_payload(tx: Transaction, payload: dict[str, Any]) -> dict[str, Any]:
    """The payload with what the agent says for a schedule that does not say it itself."""
    if payload["does"] != "ask" or "runner" in payload:
        return payload
    found = tx.jobs.by_name(wake_job(payload["agent"]))
    if found is None:
        return payload
    own: dict[str, Any] = json.loads(found[0].payload)
    inherited = {key: own[key] for key in INHERITED if key in own}
    return {**inherited, "session": own.get("schedule_session", "persistent"), **payload}
