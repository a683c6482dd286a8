"""`/api/workflows`: what workflows do, what waits for a person, and what the person says."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fastapi import APIRouter
from starlette.responses import Response

from wakeful.domains.workflows import actions, views
from wakeful.domains.workflows.draining import drain
from wakeful.domains.workflows.fixes.tables import Fixes
from wakeful.domains.workflows.route_models import (
    AnswerIn,
    ApprovedOut,
    FixOut,
    PauseIn,
    RejectedOut,
    RemovedOut,
    SettledOut,
    SettleIn,
    StartedOut,
    WorkflowOut,
    WorkflowRunOut,
)
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.routes import Name, page_of
from wakeful.kernel.actions.recording import Origin
from wakeful.routing.auth import Operator, Viewer
from wakeful.routing.idempotency import Key, answer, respond, undoable
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page
from wakeful.routing.problems import answers
from wakeful.routing.rendering import trace_for
from wakeful.routing.wiring import Sched

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

router = APIRouter(prefix="/api/workflows", tags=["workflows"])


@router.get(
    "",
    operation_id="list_workflows",
    response_model=Page[WorkflowOut],
    responses=answers(),
    summary="All workflows with their handlers",
)
async def list_workflows(scheduler: Sched, caller: Viewer) -> Response:
    seen = scheduler.host.seen
    found = await scheduler.read(lambda tx: views.workflow_views(tx, seen))
    return respond(answer(200, {"items": [_for(caller, one) for one in found], "next": None}))


@router.get(
    "/{name}",
    operation_id="get_workflow",
    response_model=WorkflowOut,
    responses=answers(404),
    summary="One workflow with its handlers",
)
async def get_workflow(scheduler: Sched, caller: Viewer, name: Name) -> Response:
    return respond(answer(200, await _shown(scheduler, caller, name)))


@router.post(
    "/{name}/run",
    operation_id="run_workflow",
    status_code=202,
    response_model=StartedOut,
    responses=answers(404, 409),
    summary="Run all producers now",
)
async def run_workflow(scheduler: Sched, caller: Operator, name: Name, key: Key) -> Response:
    return await key.transact(
        scheduler,
        lambda tx, context: actions.run_now(tx, context, name, who=caller.name),
        lambda runs: answer(202, {"name": name, "runs": runs}),
    )


@router.post(
    "/{name}/pause",
    operation_id="pause_workflow",
    response_model=WorkflowOut,
    responses=answers(404),
    summary="Pause a workflow: it starts nothing more",
)
async def pause_workflow(scheduler: Sched, caller: Operator, name: Name, given: PauseIn | None = None) -> Response:
    note = given.note if given is not None else None
    action = await scheduler.transact(
        lambda tx, node: actions.pause(tx, node, name, who=caller.name, origin=_origin(node, caller), note=note)
    )
    return respond(answer(200, await _shown(scheduler, caller, name), **undoable(action)))


@router.post(
    "/{name}/drain",
    operation_id="drain_workflow",
    status_code=202,
    response_model=WorkflowOut,
    responses=answers(404, 409),
    summary="Drain a workflow: finish what has been published, then pause it",
)
async def drain_workflow(scheduler: Sched, caller: Operator, name: Name, given: PauseIn | None = None) -> Response:
    note = given.note if given is not None else None
    _, action = await scheduler.transact(
        lambda tx, node: drain(tx, node, name, who=caller.name, origin=_origin(node, caller), note=note)
    )
    return respond(answer(202, await _shown(scheduler, caller, name), **undoable(action)))


@router.post(
    "/{name}/resume",
    operation_id="resume_workflow",
    response_model=WorkflowOut,
    responses=answers(404, 409),
    summary="Resume a workflow",
)
async def resume_workflow(scheduler: Sched, caller: Operator, name: Name) -> Response:
    action = await scheduler.transact(
        lambda tx, node: actions.resume(tx, node, name, who=caller.name, origin=_origin(node, caller))
    )
    return respond(answer(200, await _shown(scheduler, caller, name), **undoable(action)))


@router.delete(
    "/{name}",
    operation_id="remove_workflow",
    response_model=RemovedOut,
    responses=answers(404),
    summary="Remove a workflow; its state, events and runs stay for when it is deployed again",
)
async def remove_workflow(scheduler: Sched, caller: Operator, name: Name) -> Response:
    left = await scheduler.transact(lambda tx, context: actions.remove(tx, context, name, who=caller.name))
    return respond(answer(200, {"name": name, "to_settle": left}))


async def _shown(scheduler: Sched, caller: Viewer, name: str) -> dict[str, Any]:
    seen = scheduler.host.seen
    return _for(caller, await scheduler.read(lambda tx: views.workflow_view(tx, name, seen)))


def _for(caller: Viewer, workflow: dict[str, Any]) -> dict[str, Any]:
    """A workflow as this caller may see it."""
    issue = workflow["issue"]
    return workflow if issue is None else {**workflow, "issue": {**issue, "trace": trace_for(caller, issue["trace"])}}


def _origin(context: Context, caller: Operator) -> Origin:
    return Origin(caller.name, "api", context.new_id())


@router.post(
    "/{name}/settle",
    operation_id="settle_workflow",
    response_model=SettledOut,
    responses=answers(404, 409),
    summary="Settle a mutation that was cut off: did it happen?",
)
async def settle_workflow(scheduler: Sched, caller: Operator, name: Name, given: SettleIn) -> Response:
    await scheduler.transact(
        lambda tx, context: actions.settle(
            tx, context, name, given.run, given.verdict, who=caller.name, result=given.result, note=given.note
        )
    )
    return respond(answer(200, {"run": given.run, "verdict": given.verdict}))


@router.post(
    "/{name}/approve",
    operation_id="approve_workflow",
    response_model=ApprovedOut,
    responses=answers(404, 409),
    summary="Approve a run that asks, or the correction of one that failed",
)
async def approve_workflow(scheduler: Sched, caller: Operator, name: Name, given: AnswerIn, key: Key) -> Response:
    return await key.transact(
        scheduler,
        lambda tx, context: actions.approve(tx, context, name, given.run, who=caller.name, note=given.note),
        lambda again: answer(200, {"run": given.run, "continued_by": again}),
    )


@router.post(
    "/{name}/reject",
    operation_id="reject_workflow",
    response_model=RejectedOut,
    responses=answers(404, 409),
    summary="Reject a run that asks, or the correction of one that failed",
)
async def reject_workflow(scheduler: Sched, caller: Operator, name: Name, given: AnswerIn) -> Response:
    await scheduler.transact(
        lambda tx, context: actions.reject(tx, context, name, given.run, who=caller.name, note=given.note)
    )
    return respond(answer(200, {"run": given.run}))


@router.get(
    "/{name}/runs",
    operation_id="list_workflow_runs",
    response_model=Page[WorkflowRunOut],
    responses=answers(404),
    summary="Attempts, newest first",
)
async def list_runs(scheduler: Sched, _: Viewer, name: Name, limit: Limit = LIMIT, cursor: Cursor = None) -> Response:
    def read(tx: Transaction, before: int | None, most: int) -> tuple[list[Any], list[dict[str, Any]]]:
        rows = tx.of(WorkflowVerbs).runs(name, most, before)
        return rows, [views.run_view(tx, row) for row in rows]

    return await page_of(scheduler, name, "run", limit=limit, cursor=cursor, read=read)


@router.get(
    "/{name}/fixes",
    operation_id="list_workflow_fixes",
    response_model=Page[FixOut],
    responses=answers(404),
    summary="Corrections of its code, newest first",
)
async def list_fixes(
    scheduler: Sched, _: Operator, name: Name, limit: Limit = LIMIT, cursor: Cursor = None
) -> Response:
    def read(tx: Transaction, before: int | None, most: int) -> tuple[list[Any], list[dict[str, Any]]]:
        rows = tx.of(Fixes).of(name, most, before)
        return rows, [views.fix_view(row) for row in rows]

    return await page_of(scheduler, name, "fix", limit=limit, cursor=cursor, read=read)
