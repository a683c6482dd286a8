"""Sessions that a job names rather than keeps: who may name which, and what becomes of one that is gone.

A session is ours if a job keeps it: then it was made for that job. Jobs name one in their payload (`session`) to share
it, and those that were made as schedules take turns in a lane of its name.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.agents import SESSION
from wakeful.domains.agents.naming import LANE
from wakeful.domains.agents.tables import Sessions
from wakeful.errors import NotAllowed
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.rules.options import from_text
from wakeful.store.jobs import JobFilter

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Writer
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef


def named_session(kind: str, payload: str) -> str | None:
    """The session a job of this kind and payload names, if it does."""
    said = json.loads(payload) if kind == SESSION else None
    name = said.get("session") if isinstance(said, dict) else None
    return name if isinstance(name, str) else None


def check_writer(tx: Transaction, writer: Writer, payload: str, before: JobDef | None) -> None:
    """NotAllowed where a caller that sees only what it owns names a session that no job of its own keeps.

    What an operator has named in a job stays allowed in that job.
    """
    name = named_session(SESSION, payload) if writer.limited else None
    if name is None or (before is not None and named_session(before.kind, before.payload) == name):
        return
    if not tx.of(Sessions).is_kept_by(writer.name, name):
        message = f"{writer.name} may name only sessions that its own jobs keep, and {name!r:.220} is none of them."
        raise NotAllowed(message)


def replace_session(tx: Transaction, context: Context, old: str, new: str, zone: str) -> None:
    """Jobs that keep or name the old session continue with the new one, in one transaction."""
    tx.of(Sessions).rename(old, new)
    for job, _ in tx.jobs.matching(JobFilter(kind=SESSION)):
        if json.dumps(old) in job.payload and named_session(job.kind, job.payload) == old:
            job_actions.update_job(tx, context, ids.job_text(job.id), _renamed(job, old, new), revision=None, zone=zone)


def _renamed(job: JobDef, old: str, new: str) -> dict[str, Any]:
    changes: dict[str, Any] = {"payload": {**json.loads(job.payload), "session": new}}
    lanes = dict(from_text(job.options).lanes)
    if LANE + old in lanes:
        changes["lanes"] = {LANE + new if lane == LANE + old else lane: size for lane, size in lanes.items()}
    return changes
