"""Approvals: what a run asked a person, and what the person said. Pure: the record they are kept in.

A run that asks ends its handler and waits, holding nothing, for as long as it takes. The answer ends it: approved, it
is deferred and a further attempt at the same slot begins that knows who approved; rejected, it is cancelled. An
approval is passed on to runs that continue that attempt by themselves (a retry, a recovery), so that these need not ask
again; what a person starts again is asked again. A kind may let an approval hold for less: in workflows it holds for
the change that was asked about.

The record is a JSON list of questions, the newest last. One without a verdict is open.
"""

from __future__ import annotations

import json
from typing import Any

from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import APPROVAL, ApprovalNeeded, clean

APPROVED, REJECTED = "approved", "rejected"
ABOUT = "about"  # not shown: it means something to the kind of job alone
MAX_NOTE = 2_000

__all__ = ["APPROVAL", "APPROVED", "REJECTED", "approvals", "asked", "decided", "is_approved", "question_before"]


def approvals(record: str | None) -> list[dict[str, Any]]:
    """Every question with what became of it."""
    return json.loads(record) if record is not None else []


def is_approved(record: str | None) -> bool:
    return any(entry["verdict"] == APPROVED for entry in approvals(record))


def asked(record: str | None, question: str, now: int, about: Any = None) -> str:
    """The record with one more question, which is open; `about` is what its kind needs to know what was asked."""
    entry = {"question": question, "asked_at": now, "verdict": None, "by": None, "note": None, "decided_at": None}
    return json.dumps([*approvals(record), {**entry, ABOUT: about} if about is not None else entry])


def decided(record: str | None, verdict: str, by: str, note: str | None, now: int) -> str:
    """The record with the open question answered."""
    entries = approvals(record) or [{"question": "", "asked_at": now}]
    said = clean(note)[:MAX_NOTE] if note else None
    entries[-1] = {**entries[-1], "verdict": verdict, "by": clean(by)[:MAX_NOTE], "note": said, "decided_at": now}
    return json.dumps(entries)


def question_before(job_name: str, options: str, record: str | None) -> ApprovalNeeded | None:
    """The question before the handler is called: only if the job requires approval, and once per attempt."""
    if not from_text(options).approval or is_approved(record):
        return None
    return ApprovalNeeded(f"Run {job_name}?")
