"""One run at a time per session: the lanes that a start takes for the sessions it will work in.

A job of an agent works in the session of its schedule, of the person who wrote, or in one that agents share. A job of
kind `session` works in the session it names or keeps. Who names a session also takes the lane of the job that keeps it:
that job may be in its first run, in which the session was made.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.agents.effective_payload import effective_payload
from wakeful.domains.agents.inbound.receiving import CHAT, request_of
from wakeful.domains.agents.naming import LANE, session_name
from wakeful.domains.agents.runners.spec import account_lane
from wakeful.domains.agents.tables import Sessions

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow


def lanes_of_agent(tx: Transaction, job: JobDef, run: RunRow | None) -> Collection[str]:
    """The sessions in which a run of an agent's job may work: its own, and the one for what others feed.

    Also the account, where its runs take turns.
    """
    payload = {**effective_payload(tx, json.loads(job.payload)), **given_to(tx, run)}
    if payload["does"] not in ("ask", "wake"):
        return ()
    request = request_of(tx, run) if run is not None and CHAT in payload else None
    chat = json.loads(request.about) if request is not None else None
    limited = (payload.get("untrusted") or {}).get("session")
    policies = {payload.get("session", "persistent"), limited or payload.get("session", "persistent")}
    names = {session_name(job.name, {**payload, "session": policy}, chat) for policy in policies - {"ephemeral"}}
    # A schedule that was added outside the file follows its agent to another account.
    alone = [lane for lane, size in account_lane(payload.get("runner") or {}).items() if size == 1]
    return sorted([*(LANE + name for name in names), *alone])


def lanes_of_session_job(tx: Transaction, job: JobDef, run: RunRow | None) -> Collection[str]:
    """The session that a run of kind `session` works in, by its name and by the jobs that keep it."""
    task: dict[str, Any] = given_to(tx, run) or json.loads(job.payload)
    sessions, named = tx.of(Sessions), task.get("session")
    if named is not None:
        return [LANE + named, *(_kept_by(keeper) for keeper in sessions.keepers(named))]
    if not task.get("persist", True):
        return ()
    kept = sessions.of(job.id)
    return [_kept_by(job.id), *([] if kept is None else [LANE + kept.session])]


def chat_of(payload: dict[str, Any]) -> dict[str, Any] | None:
    """Who wrote the message that a run works on."""
    request = payload.get("request") or {}
    return request.get("about") if request.get("type") == CHAT else None


def given_to(tx: Transaction, run: RunRow | None) -> dict[str, Any]:
    """What a queued run was given instead of its job's payload, or besides it."""
    given = tx.runs.given(run.id).payload if run is not None else None
    payload = json.loads(given) if given is not None else None
    return payload if isinstance(payload, dict) else {}


def _kept_by(job_id: int) -> str:
    return LANE + ids.job_text(job_id)
