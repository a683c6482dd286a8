"""What the end of a run sends, stored in the transaction that ends it: no result without its message."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.delivery.outbox import enqueue
from wakeful.domains.delivery.post import Post
from wakeful.domains.delivery.routing import NOWHERE
from wakeful.domains.delivery.rules import changed, wanted
from wakeful.domains.delivery.summary import (
    FailureSubject,
    described,
    failure,
    next_start_of,
    output_text,
    subject_of,
    success,
    work_of,
)
from wakeful.domains.delivery.tables import Outbox
from wakeful.kernel.rules.options import from_text

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

PUBLIC_URL = "public_url"


def deliver_result(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result, *, last: bool) -> None:
    """Store what the run's handler asked to send, and its result if the job asks for that."""
    if result.outcome in ("success", "noop"):
        for message in result.messages:
            post = Post(message.text, message.to, title=message.title, job_id=job.id, job=job.name, run_id=run.id)
            enqueue(tx, context, post._replace(outcome=result.outcome, agent=job.owner))
    deliver = from_text(job.options).deliver
    if deliver is None or deliver[0] == NOWHERE or not wanted(deliver[1], result.outcome, last=last):
        return
    to, on = deliver
    output = output_text(run.kind, json.loads(result.output) if result.output is not None else None)
    if on == "change" and not _is_change(tx, job.id, result, output):
        return
    title, text = result_message(tx, job, run, result, output)
    enqueue(
        tx,
        context,
        Post(text, to, "output", title, job.id, job.name, run.id, job.owner, result.outcome),
    )


def _is_change(tx: Transaction, job_id: int, result: Result, output: str) -> bool:
    outbox = tx.of(Outbox)
    outcome = "success" if result.outcome == "success" else "failure"
    said = output if outcome == "success" else f"{result.error_type}: {result.error}"
    found = hashlib.sha256(said.encode("utf-8", "replace")).hexdigest()
    before = outbox.last_result(job_id)
    outbox.keep_result(job_id, outcome, found)
    return changed(before, outcome, found)


def node_of(tx: Transaction, run: RunRow | None) -> str | None:
    """The name of the node that a run was on."""
    return tx.nodes.names_of([run.node]).get(run.node) if run is not None and run.node is not None else None


def result_message(tx: Transaction, job: JobDef, run: RunRow, result: Result, output: str) -> tuple[str, str]:
    """Title and text of the message about a run that has ended."""
    run_id = ids.run_text(run.id)
    if result.outcome == "success":
        return success(subject_of(job), output, run_id)
    state = tx.jobs.states([job.id]).get(job.id)
    public = tx.facts.of([PUBLIC_URL]).get(PUBLIC_URL)
    about = FailureSubject(
        subject_of(job),
        work_of(job.kind, json.loads(job.payload)),
        result.outcome,
        result.error,
        output,
        run=run_id,
        link=f"{public.rstrip('/')}/runs/{run_id}" if public else None,
        node=node_of(tx, run),
    )
    if state is not None:
        about = about._replace(
            errors=state.errors, since=state.failing_since, next_at=next_start_of(state), disabled=not state.enabled
        )
        about = described(about, job, state)
    return failure(about)
