"""Reports that a run's work elsewhere has ended: who may send them, and which run they end.

A report names the run that asked for the work. By the time it comes that run may still be on its way to waiting, or a
crash may have cut it off, or it may have ended some other way and be tried again. So:

- a waiting run is settled;
- for one that is active or queued the report is kept, and taken up when it ends its own part or is recovered;
- for one that is done it goes to the run that tries the same thing again, if there is one: a success always, because
  what was to be done is done; a failure only after a crash, because then both runs are the same attempt.

The token for a run is derived from a key of the store's own, so nothing is stored per run and it outlives restarts.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from wakeful import ids
from wakeful.errors import ScheduleTriggerError
from wakeful.kernel.actions.lookup import find_run
from wakeful.kernel.actions.runs import complete_run
from wakeful.kernel.context import Context
from wakeful.kernel.rules.outcome import Result
from wakeful.store.interface import Transaction
from wakeful.store.records import RunRow
from wakeful.store.reports import ReportedEnd

KEY = "callback_key"


def callback_token(tx: Transaction, run_id: int) -> str:
    """The token with which the end of this run, and of no other, may be reported. Needs a transaction that writes."""
    key = tx.facts.of([KEY]).get(KEY)
    if key is None:
        key = secrets.token_hex(32)
        tx.facts.put({KEY: key})
    return _token(key, run_id)


def verify(tx: Transaction, run_id: int, token: str) -> bool:
    """Whether the token is that run's; takes as long for a wrong one as for the right one."""
    key = tx.facts.of([KEY]).get(KEY)
    expected = _token(key if key is not None else "", run_id)
    return hmac.compare_digest(expected.encode(), token.encode("utf-8", "replace")) and key is not None


def _token(key: str, run_id: int) -> str:
    return hmac.new(key.encode(), ids.run_text(run_id).encode(), hashlib.sha256).hexdigest()


def report_end(tx: Transaction, context: Context, run_id: int, result: Result) -> bool:
    """Take a report (success or error); True when it settled a run, False when it is kept until one is ready for it."""
    run = _open_end(tx, run_id, result)
    if run.status == "waiting":
        complete_run(tx, context, run.id, result)
        return True
    kept = ReportedEnd(run.id, tx.now, result.outcome, result.output, result.error_type, result.error)
    if not tx.reports.add(kept):
        message = f"The end of {ids.run_text(run_id)} was already reported."
        raise ScheduleTriggerError(message, {"run": ids.run_text(run_id), "reason": "done"})
    return False


def waiting_for(tx: Transaction, run_id: int, result: Result) -> int | None:
    """The run that such a report would settle right now; None when it would be kept, refused when all is over."""
    run = _open_end(tx, run_id, result)
    return run.id if run.status == "waiting" else None


def _open_end(tx: Transaction, run_id: int, result: Result) -> RunRow:
    """The run that the report applies to; refused if that has ended."""
    job, _, run = find_run(tx, run_id)
    tx.jobs.states([run.job_id])  # locks the job: what we read of its runs stays so
    found: RunRow | None = run
    while found is not None:
        found = tx.runs.get(found.id)
        if found is None or found.status != "done":
            break
        run = found
        successor = tx.runs.successor(run.id)
        found = tx.runs.get(successor) if successor is not None else None
        if found is not None and result.outcome != "success" and found.reason != "recovery":
            found = None
    if found is None:
        message = f"{ids.run_text(run_id)} has already ended as {run.outcome}."
        raise ScheduleTriggerError(message, {"job": job.name, "run": ids.run_text(run_id), "reason": "done"})
    return found
