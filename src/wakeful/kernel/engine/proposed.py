"""The end of a proposal: the run by which an owner asked a person to allow its job, or a change of it."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from wakeful.kernel.engine.ending import Ending, end_runs
from wakeful.kernel.rules.outcome import Result
from wakeful.kernel.rules.settle import Settled
from wakeful.store.proposals import Proposals
from wakeful.store.records import Finish, RunDetails

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

MCP = "mcp"  # the source of jobs that agents made
PROPOSED = "proposed"  # the reason of such a run
NO_OPTIONS = "{}"


def digest(job: JobDef) -> str:
    """What a definition is recognised by."""
    text = json.dumps([job.name, job.kind, job.trigger, job.payload, job.options])
    return hashlib.sha256(text.encode()).hexdigest()


def open_proposal(tx: Transaction, job: JobDef) -> RunRow | None:
    """The run by which this job waits for a person's answer; None where none does."""
    found = tx.of(Proposals).of([job.id]).get(job.id) if job.source == MCP else None
    run = tx.runs.get(found.run_id) if found is not None and found.run_id is not None else None
    return run if run is not None and run.status == "waiting" else None


def end_proposal(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """End the run, whatever the job does meanwhile; the job's state stays, and nothing is delivered."""
    finish = Finish(run.id, "done", result.outcome, run.started_at, tx.now, None)
    details = RunDetails(run.id, error_type=result.error_type, error=result.error) if result.error else None
    settled = Settled(None, finish, details=details)
    end_runs(tx, context, [Ending(job._replace(options=NO_OPTIONS), run, result, settled)], announce=True)
    known = tx.of(Proposals).of([job.id]).get(job.id)
    if known is not None and known.run_id == run.id:
        tx.of(Proposals).put(known._replace(run_id=None, expires_at=None))
