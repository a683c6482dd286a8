"""Deploying: a version of a workflow's code becomes what its jobs run. State, topics, events and runs stay."""

from __future__ import annotations

import json
import logging
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains.workflows import KIND, LANE
from wakeful.domains.workflows.arming import DEPLOYED, LockedJobs, arm, look_again, look_at_pending
from wakeful.domains.workflows.authoring import Consumer, Handler, Producer, Workflow
from wakeful.domains.workflows.fixes.deciding import lapse
from wakeful.domains.workflows.issues import resolve_issue
from wakeful.domains.workflows.phases import ACTIVE
from wakeful.domains.workflows.removed import finish_removed
from wakeful.domains.workflows.steps.authoring import StepHandler
from wakeful.domains.workflows.steps.deploying import drop_handler, refuse_other_type, store_steps
from wakeful.domains.workflows.steps.places import STEPS, arm_places, is_place, place_names
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.versions.on_nodes import forget_version, is_last_word, note_version, version_words
from wakeful.domains.workflows.wiring import mistakes
from wakeful.errors import InvalidJob, JobExists
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.actions.jobs import add_jobs, remove_job
from wakeful.kernel.actions.runs import end_waiting
from wakeful.kernel.hooks import Draft
from wakeful.kernel.rules.outcome import Result
from wakeful.triggers import Manual

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
    drafts = tuple(
        scheduler.host.draft(_job(workflow.name, handler, name), owner, {})
        for handler in handlers
        for name in names_of(handler)
    )
    version, origin = workflow.code_version(), workflow.origin or source
    return Deployment(workflow.name, version, origin, handlers, drafts, scheduler.host.default_zone, forced)


def names_of(handler: Handler) -> list[str]:
    """The handler, and its further places where several of its runs are active at a time."""
    return place_names(handler.name, handler.concurrency) if isinstance(handler, StepHandler) else [handler.name]


def _job(workflow: str, handler: Handler, name: str) -> NewJob:
    is_producer, is_beside = isinstance(handler, Producer), isinstance(handler, StepHandler) and handler.beside
    calls = 1 if isinstance(handler, StepHandler) else PHASES_PER_RUN
    return NewJob(
        f"{workflow}.{name}",
        handler.trigger if isinstance(handler, Producer) else Manual(),
        kind=KIND,
        payload={"workflow": workflow, "handler": name},
        lanes={} if is_beside else {LANE + workflow: 1},
        priority=0 if is_producer else CONSUMER_PRIORITY,
        overlap="queue" if is_producer else None,
        max_errors=0,
        timeout=(handler.timeout * calls) / 1000 + 60,
    )


def deploy(tx: Transaction, context: Context, wanted: Deployment) -> bool:
    """Store the version, unless it is the stored one, or an older one that only starts; True when it was deployed."""
    table = tx.of(WorkflowVerbs)
    tx.of(WorkflowVerbs).lock_jobs(wanted.name)
    row = table.lock(wanted.name)
    after = note_version(tx, context, wanted.name, wanted.version)
    if row is not None and not _is_news(tx, context, row, wanted, after):
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
    _store_handlers(tx, context, wanted, job_ids)
    if row is not None and _is_over(row, wanted):
        resolve_issue(tx, context, row)
        look_again(tx, wanted.name)
    for name in table.left_open(wanted.name):
        finish_removed(tx, context, wanted.name, name)
    look_at_pending(tx, context, wanted.name)
    for handler in wanted.handlers:
        if isinstance(handler, StepHandler):
            arm_places(tx, context, LockedJobs(tx, wanted.name), handler.name)
    tx.events.emit("workflow", {"type": "deployed", "workflow": wanted.name, "version": wanted.version})
    return True


def _moved(tx: Transaction, row: WorkflowRow, wanted: Deployment) -> None:
    """The same code in another file, or listed by another one."""
    owner = wanted.owner if wanted.owner is not None else row.owner
    if (row.source, row.owner) != (wanted.source, owner):
        tx.of(WorkflowVerbs).change(row.name, tx.now, source=wanted.source, owner=owner)


def remove_workflow(tx: Transaction, context: Context, name: str) -> bool:
    """Take a workflow out of service; False where it is not deployed.

    A run in progress ends. State and events stay for when it comes back, and what follows a change that was made. A
    question whether a change happened stays open.
    """
    table = tx.of(WorkflowVerbs)
    tx.of(WorkflowVerbs).lock_jobs(name)
    row = table.lock(name)
    if row is None or row.removed_at is not None:
        return False
    handlers = table.handlers(name)
    # First: an open question is cancelled with the job, and that is no rejection by a person.
    table.change(name, tx.now, removed_at=tx.now, owner=None)
    for handler in handlers:
        table.change_handler(name, handler.name, job_id=None)
    if row.issue != "reconciliation":
        resolve_issue(tx, context, row)
    for handler in handlers:
        remove_job(tx, context, f"{name}.{handler.name}")
    for one in table.left_open(name):
        finish_removed(tx, context, name, one)
    lapse(tx, name)
    forget_version(tx, context, name)
    tx.events.emit("workflow", {"type": "removed", "workflow": name})
    return True


def _is_news(tx: Transaction, context: Context, row: WorkflowRow, wanted: Deployment, after: int | None) -> bool:
    """Whether it is to be deployed; `after`: the number of what was when this node was given it."""
    if row.removed_at is not None:
        return True
    if row.version == wanted.version:
        return False
    if wanted.forced or tx.exclusive or not tx.of(WorkflowVerbs).had_version(wanted.name, wanted.version):
        return True
    if is_last_word(tx, context, row, after):
        return True
    log.warning(
        "%s: this node has version %s, and %s is deployed; this node does not run it (%s)",
        wanted.name,
        wanted.version,
        row.version,
        version_words(tx, context.lease, wanted.name),
    )
    return False


def is_other(tx: Transaction, wanted: Deployment) -> bool:
    """Whether another node has deployed another version."""
    row = None if tx.exclusive else tx.of(WorkflowVerbs).get(wanted.name)
    return row is not None and row.removed_at is None and row.version != wanted.version


def deploy_again(tx: Transaction, context: Context, wanted: Deployment) -> bool:
    """Deploy what this node was given last, once no other node has the deployed version; True when it did."""
    row = tx.of(WorkflowVerbs).get(wanted.name)
    if row is None or not is_other(tx, wanted):
        return False
    after = note_version(tx, context, wanted.name, wanted.version)
    return is_last_word(tx, context, row, after) and deploy(tx, context, wanted._replace(forced=True))


def _drop_placeholder(tx: Transaction, context: Context, wanted: Deployment) -> None:
    """The placeholder for this file while it could not be loaded, under the file's own name."""
    for row in tx.of(WorkflowVerbs).all():
        if row.source == wanted.source and row.name != wanted.name and not row.version:
            resolve_issue(tx, context, row)
            tx.of(WorkflowVerbs).change(row.name, tx.now, removed_at=tx.now)


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
    for handler in wanted.handlers:
        refuse_other_type(tx, wanted.name, handler.name, handler.type)


def _store_handlers(tx: Transaction, context: Context, wanted: Deployment, job_ids: Sequence[int]) -> None:
    """Define the handlers, and remove the jobs of missing ones."""
    table = tx.of(WorkflowVerbs)
    before = {handler.name: handler for handler in table.handlers(wanted.name)}
    awaited = {topic for handler in wanted.handlers for topic in handler.subscribes}
    dropped = {topic for handler in before.values() for topic in handler.topics()} - awaited
    tx.of(Topics).await_no_more(wanted.name, sorted(dropped), tx.now)
    parts = [(handler, name) for handler in wanted.handlers for name in names_of(handler)]
    for (handler, name), job_id in zip(parts, job_ids, strict=True):
        table.save_handler(_handler_row(wanted.name, handler, name, job_id))
        known = before.pop(name, None)
        if isinstance(handler, StepHandler):
            store_steps(tx, context, wanted.name, handler, name=name, known=known)
            continue
        _ask_again(tx, context, wanted.name, handler, is_back=known is None)
        if known is None or known.topics() != list(handler.subscribes) or known.open_run is not None:
            tx.of(Topics).await_again(wanted.name, handler.subscribes)
            _start_at_once(tx, context, job_id)
    for gone in before.values():
        # First: an open question is cancelled with the job, and that is no rejection of the workflow.
        table.change_handler(wanted.name, gone.name, job_id=None)
        remove_job(tx, context, f"{wanted.name}.{gone.name}")
        if gone.type == STEPS and not is_place(gone.name):
            drop_handler(tx, context, wanted.name, gone.name)


def _handler_row(workflow: str, handler: Handler, name: str, job_id: int) -> HandlerRow:
    """The handler as it is stored; a further place of it has no topics."""
    publishes = None if handler.publishes is None else json.dumps(handler.publishes)
    topics: Any = json.dumps(handler.subscribes if name == handler.name else [])
    row = HandlerRow(
        workflow=workflow, name=name, job_id=job_id, type=handler.type, subscribes=topics, publishes=publishes,
        timeout=handler.timeout,
    )  # fmt: skip
    return row._replace(on_failure=handler.on_failure) if isinstance(handler, StepHandler) else row


def _ask_again(tx: Transaction, context: Context, workflow: str, handler: Handler, *, is_back: bool) -> None:
    """A run asks a person what became of its change: the new code's reconcile finds out, or a person is asked again.

    So does a job that is back (`is_back`): the run that asks is of the job that was removed.
    """
    table = tx.of(WorkflowVerbs)
    found = table.handler(workflow, handler.name)
    attempt = table.run(found.open_run) if found is not None and found.open_run is not None else None
    if attempt is None or attempt.status == ACTIVE:
        return
    reconciles = isinstance(handler, Consumer) and handler.on_reconcile is not None and attempt.mutation == "in_flight"
    if reconciles:
        table.save_run(attempt._replace(tries=0, updated_at=tx.now))
    run = tx.runs.get(attempt.id) if reconciles or is_back else None
    if run is not None and run.status == "waiting":
        why = (
            f"{handler.name} is back, and continues" if is_back else "a new version is deployed: its reconcile is asked"
        )
        end_waiting(tx, context, run.id, Result("deferred", error=why))


def _start_at_once(tx: Transaction, context: Context, job_id: int) -> None:
    """A trigger may be due at once by itself, as an interval that never ran."""
    next_at = tx.jobs.states([job_id])[job_id].next_at
    if next_at is None or next_at > tx.now:
        arm(tx, context, job_id, tx.now, DEPLOYED)
