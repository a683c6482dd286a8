"""Deploying: a version of a workflow's code becomes what its jobs run. State, topics, events and runs stay."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.errors import InvalidJob, JobExists
from wakeful.kernel.actions.drafts import Draft, NewJob
from wakeful.kernel.actions.jobs import add_jobs, remove_job
from wakeful.triggers import Manual
from wakeful.workflows import KIND
from wakeful.workflows.arming import DEPLOYED, arm, look_again
from wakeful.workflows.authoring import Handler, Producer, Workflow
from wakeful.workflows.fixes.deciding import lapse
from wakeful.workflows.issues import resolve_issue
from wakeful.workflows.removed import finish_removed
from wakeful.workflows.tables import HandlerRow, WorkflowRow, Workflows
from wakeful.workflows.topics.tables import Topics
from wakeful.workflows.wiring import mistakes

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.workflows")
CONSUMER_PRIORITY = 1  # above producers: existing events are consumed before more are fetched
PHASES_PER_RUN = 4


class Deployment(NamedTuple):
    """A workflow, checked and ready to be stored."""

    name: str
    version: str
    source: str
    handlers: tuple[Handler, ...]
    drafts: tuple[Draft, ...]
    zone: str
    forced: bool  # also over a newer version
    owner: str | None = None  # the configuration file that lists it


def plan_deployment(scheduler: Scheduler, workflow: object, source: str, *, forced: bool) -> Deployment:
    """The workflow as it can be stored; InvalidJob says everything that is wrong with it."""
    if not isinstance(workflow, Workflow):
        message = f"A workflow is made with Workflow(name), not {workflow!r:.80}."
        raise InvalidJob(message)
    wrong = mistakes(workflow)
    if workflow.ref is None and workflow.auto_fix is not None and not callable(workflow.auto_fix):
        wrong.append("auto_fix is a program, which corrects files: give a function to a workflow that is made in code.")
    if wrong:
        message = f"The workflow {workflow.name} cannot be deployed. {' '.join(wrong)}"
        raise InvalidJob(message)
    handlers = tuple(workflow.handlers.values())
    owner = source if workflow.origin is None else "file"
    drafts = tuple(scheduler.drafted(_job(workflow.name, handler), owner, {}) for handler in handlers)
    version, origin = workflow.code_version(), workflow.origin or source
    return Deployment(workflow.name, version, origin, handlers, drafts, scheduler.default_zone, forced)


def _job(workflow: str, handler: Handler) -> NewJob:
    is_producer = isinstance(handler, Producer)
    return NewJob(
        f"{workflow}.{handler.name}",
        handler.trigger if isinstance(handler, Producer) else Manual(),
        kind=KIND,
        payload={"workflow": workflow, "handler": handler.name},
        lanes={f"workflow:{workflow}": 1},
        priority=0 if is_producer else CONSUMER_PRIORITY,
        overlap="queue" if is_producer else None,
        max_errors=0,
        timeout=(handler.timeout * PHASES_PER_RUN) / 1000 + 60,
    )


def deploy(tx: Transaction, context: Context, wanted: Deployment) -> bool:
    """Store the version, unless it is the stored one, or an older one that only starts; True when it was deployed."""
    table = tx.of(Workflows)
    tx.of(Workflows).lock_jobs(wanted.name)
    row = table.lock(wanted.name)
    if row is not None and not _is_news(tx, row, wanted):
        if row.version == wanted.version and row.issue == "load":
            resolve_issue(tx, context, row)
        if row.version == wanted.version:
            _moved(tx, row, wanted)
        return False
    _refuse_taken(tx, wanted)
    if row is None:
        table.add(WorkflowRow.new(wanted.name, wanted.version, wanted.source, tx.now)._replace(owner=wanted.owner))
    else:
        owner = wanted.owner if wanted.owner is not None else row.owner
        table.change(wanted.name, tx.now, version=wanted.version, source=wanted.source, owner=owner, removed_at=None)
    lapse(tx, wanted.name, wanted.version)
    table.add_version(wanted.name, wanted.version, tx.now)
    _drop_placeholder(tx, context, wanted)
    job_ids = add_jobs(tx, context, wanted.drafts, "update", wanted.zone)
    gone = _store_handlers(tx, context, wanted, job_ids)
    if row is not None and _is_over(row, wanted):
        resolve_issue(tx, context, row)
        look_again(tx, job_ids)
    for name in gone:
        finish_removed(tx, context, wanted.name, name)
    tx.journal.emit("workflow", {"type": "deployed", "workflow": wanted.name, "version": wanted.version})
    return True


def _moved(tx: Transaction, row: WorkflowRow, wanted: Deployment) -> None:
    """The same code in another file, or listed by another one."""
    owner = wanted.owner if wanted.owner is not None else row.owner
    if (row.source, row.owner) != (wanted.source, owner):
        tx.of(Workflows).change(row.name, tx.now, source=wanted.source, owner=owner)


def remove_workflow(tx: Transaction, context: Context, name: str) -> None:
    """Take a workflow out of service. A run in progress ends; state, events and runs stay for when it comes back."""
    table = tx.of(Workflows)
    tx.of(Workflows).lock_jobs(name)
    row = table.lock(name)
    if row is None or row.removed_at is not None:
        return
    for handler in table.handlers(name):
        remove_job(tx, context, f"{name}.{handler.name}")
        table.change_handler(name, handler.name, job_id=None)
    lapse(tx, name)
    resolve_issue(tx, context, row)
    table.change(name, tx.now, removed_at=tx.now, owner=None)
    tx.journal.emit("workflow", {"type": "removed", "workflow": name})


def _is_news(tx: Transaction, row: WorkflowRow, wanted: Deployment) -> bool:
    if row.removed_at is not None:
        return True
    if row.version == wanted.version:
        return False
    if wanted.forced or tx.exclusive or not tx.of(Workflows).had_version(wanted.name, wanted.version):
        return True
    log.warning(
        "%s: this node has the version %s, which was replaced by %s; it does not run this workflow",
        wanted.name,
        wanted.version,
        row.version,
    )
    return False


def _drop_placeholder(tx: Transaction, context: Context, wanted: Deployment) -> None:
    """The placeholder for this file while it could not be loaded, under the file's own name."""
    for row in tx.of(Workflows).all():
        if row.source == wanted.source and row.name != wanted.name and not row.version:
            resolve_issue(tx, context, row)
            tx.of(Workflows).change(row.name, tx.now, removed_at=tx.now)


def _is_over(row: WorkflowRow, wanted: Deployment) -> bool:
    """Whether new code may settle what stopped the workflow; what waits for a person still does."""
    gone = row.issue_handler is not None and row.issue_handler not in {handler.name for handler in wanted.handlers}
    return row.issue in ("logic", "load", "internal") or (gone and row.issue != "reconciliation")


def _refuse_taken(tx: Transaction, wanted: Deployment) -> None:
    for draft in wanted.drafts:
        found = tx.jobs.by_name(draft.name)
        if found is not None and found[0].kind != KIND:
            message = f"A job named {draft.name!r} already exists: rename it, or the handler."
            raise JobExists(message)


def _store_handlers(tx: Transaction, context: Context, wanted: Deployment, job_ids: Sequence[int]) -> list[str]:
    """Define the handlers, and remove the jobs of missing ones; their names."""
    table = tx.of(Workflows)
    before = {handler.name: handler for handler in table.handlers(wanted.name)}
    awaited = {topic for handler in wanted.handlers for topic in handler.subscribes}
    dropped = {topic for handler in before.values() for topic in handler.topics()} - awaited
    tx.of(Topics).await_no_more(wanted.name, sorted(dropped), tx.now)
    for handler, job_id in zip(wanted.handlers, job_ids, strict=True):
        publishes = None if handler.publishes is None else json.dumps(handler.publishes)
        topics: Any = json.dumps(handler.subscribes)
        table.save_handler(
            HandlerRow(wanted.name, handler.name, job_id, handler.type, topics, publishes, handler.timeout)
        )
        known = before.pop(handler.name, None)
        if known is None or known.topics() != list(handler.subscribes) or known.open_run is not None:
            tx.of(Topics).await_again(wanted.name, handler.subscribes)
            _start_at_once(tx, context, job_id)
    for gone in before.values():
        # First: an open question is cancelled with the job, and that is no rejection of the workflow.
        table.change_handler(wanted.name, gone.name, job_id=None)
        remove_job(tx, context, f"{wanted.name}.{gone.name}")
    return list(before)


def _start_at_once(tx: Transaction, context: Context, job_id: int) -> None:
    """A trigger may be due at once by itself, as an interval that never ran."""
    next_at = tx.jobs.states([job_id])[job_id].next_at
    if next_at is None or next_at > tx.now:
        arm(tx, context, job_id, tx.now, DEPLOYED)
