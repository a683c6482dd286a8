"""`/api/workflows`: what workflows do, what waits for a person, and what the person says."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful.api.auth import Operator, Viewer
from wakeful.api.idempotency import answer, respond
from wakeful.api.paging import LIMIT, Cursor, Limit, cursor_of, read_id_cursor
from wakeful.api.problems import answers
from wakeful.api.wiring import Sched
from wakeful.workflows import actions, input_actions, views
from wakeful.workflows.lookup import find_workflow
from wakeful.workflows.route_models import AnswerIn, MessageIn, PauseIn, ReasonIn, SettleIn
from wakeful.workflows.tables import Workflows
from wakeful.workflows.topics.tables import Topics

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

router = APIRouter(prefix="/api/workflows", tags=["workflows"])

Name = Annotated[str, Path(max_length=100, description="The workflow's name.", examples=["invoices"])]
InputId = Annotated[str, Path(max_length=100, description="The input's id.", examples=["inp_1frc87n80sngk"])]
Topic = Annotated[str, Path(max_length=100, description="The topic.", examples=["mail"])]
OfTopic = Annotated[str | None, Query(max_length=100, description="Only events of this topic.", examples=["mail"])]
EventStatus = Annotated[
    Literal["pending", "reserved", "consumed", "skipped"] | None,
    Query(description="Only events with this status.", examples=["pending"]),
]
InputStatus = Annotated[
    Literal["pending", "done", "skipped"] | None,
    Query(description="Only inputs with this status.", examples=["pending"]),
]


async def _page(
    scheduler: Scheduler,
    name: str,
    prefix: str,
    *,
    limit: int,
    cursor: str | None,
    read: Callable[[Transaction, int | None, int], tuple[list[Any], list[dict[str, Any]]]],
) -> Response:
    """A page of rows in the order of ids, newest first."""
    before = read_id_cursor(prefix, cursor)

    def work(tx: Transaction) -> tuple[list[Any], list[dict[str, Any]]]:
        find_workflow(tx, name)
        return read(tx, before, limit + 1)

    rows, shown = await scheduler.look(work)
    more = cursor_of(prefix, str(rows[limit - 1].id)) if len(rows) > limit else None
    return respond(answer(200, {"items": shown[:limit], "next": more}))


@router.get("", operation_id="list_workflows", responses=answers(), summary="All workflows with their handlers")
async def list_workflows(scheduler: Sched, _: Viewer) -> Response:
    return respond(answer(200, {"items": await scheduler.look(views.workflow_views), "next": None}))


@router.get("/{name}", operation_id="get_workflow", responses=answers(404), summary="One workflow with its handlers")
async def get_workflow(scheduler: Sched, _: Viewer, name: Name) -> Response:
    return respond(answer(200, await scheduler.look(lambda tx: views.workflow_view(tx, name))))


@router.post(
    "/{name}/run",
    operation_id="run_workflow",
    status_code=202,
    responses=answers(404, 409),
    summary="Run all producers now",
)
async def run_workflow(scheduler: Sched, caller: Operator, name: Name) -> Response:
    runs = await scheduler.transact(lambda tx, context: actions.run_now(tx, context, name, who=caller.name))
    return respond(answer(202, {"name": name, "runs": runs}))


@router.post("/{name}/pause", operation_id="pause_workflow", responses=answers(404), summary="Start nothing more of it")
async def pause_workflow(scheduler: Sched, caller: Operator, name: Name, given: PauseIn | None = None) -> Response:
    note = given.note if given is not None else None
    await scheduler.transact(lambda tx, context: actions.pause(tx, context, name, who=caller.name, note=note))
    return respond(answer(200, await scheduler.look(lambda tx: views.workflow_view(tx, name))))


@router.post("/{name}/resume", operation_id="resume_workflow", responses=answers(404, 409), summary="Let it go on")
async def resume_workflow(scheduler: Sched, caller: Operator, name: Name) -> Response:
    await scheduler.transact(lambda tx, context: actions.resume(tx, context, name, who=caller.name))
    return respond(answer(200, await scheduler.look(lambda tx: views.workflow_view(tx, name))))


@router.post(
    "/{name}/settle",
    operation_id="settle_workflow",
    responses=answers(404, 409),
    summary="Say whether a mutation happened that was cut off",
)
async def settle_workflow(scheduler: Sched, caller: Operator, name: Name, given: SettleIn) -> Response:
    await scheduler.transact(
        lambda tx, context: actions.settle(
            tx, context, name, given.run, given.verdict, who=caller.name, result=given.result, note=given.note
        )
    )
    return respond(answer(200, {"run": given.run, "verdict": given.verdict}))


@router.post(
    "/{name}/approve", operation_id="approve_workflow", responses=answers(404, 409), summary="Say yes to a run"
)
async def approve_workflow(scheduler: Sched, caller: Operator, name: Name, given: AnswerIn) -> Response:
    again = await scheduler.transact(
        lambda tx, context: actions.approve(tx, context, name, given.run, who=caller.name, note=given.note)
    )
    return respond(answer(200, {"run": given.run, "continued_by": again}))


@router.post("/{name}/reject", operation_id="reject_workflow", responses=answers(404, 409), summary="Say no to a run")
async def reject_workflow(scheduler: Sched, caller: Operator, name: Name, given: AnswerIn) -> Response:
    await scheduler.transact(
        lambda tx, context: actions.reject(tx, context, name, given.run, who=caller.name, note=given.note)
    )
    return respond(answer(200, {"run": given.run}))


@router.get("/{name}/runs", operation_id="list_workflow_runs", responses=answers(404), summary="Attempts, newest first")
async def list_runs(scheduler: Sched, _: Viewer, name: Name, limit: Limit = LIMIT, cursor: Cursor = None) -> Response:
    def read(tx: Transaction, before: int | None, most: int) -> tuple[list[Any], list[dict[str, Any]]]:
        rows = tx.of(Workflows).runs(name, most, before)
        return rows, [views.run_view(tx, row) for row in rows]

    return await _page(scheduler, name, "run", limit=limit, cursor=cursor, read=read)


@router.get(
    "/{name}/events", operation_id="list_workflow_events", responses=answers(404), summary="Events, newest first"
)
async def list_events(
    scheduler: Sched,
    _: Viewer,
    name: Name,
    *,
    topic: OfTopic = None,
    status: EventStatus = None,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    def read(tx: Transaction, before: int | None, most: int) -> tuple[list[Any], list[dict[str, Any]]]:
        rows = tx.of(Topics).matching(name, topic, status, before, most)
        return rows, views.event_views(tx, rows)

    return await _page(scheduler, name, "evt", limit=limit, cursor=cursor, read=read)


@router.post(
    "/{name}/topics/{topic}",
    operation_id="publish_event",
    status_code=201,
    responses={**answers(404), 200: {"description": "the message id is known"}},
    summary="Publish an event by hand",
)
async def publish_event(scheduler: Sched, caller: Operator, name: Name, topic: Topic, given: MessageIn) -> Response:
    by_hand = input_actions.ByHand(topic, given.message_id, given.payload)

    def work(tx: Transaction, context: Any) -> tuple[bool, dict[str, Any]]:
        found = input_actions.publish_by_hand(tx, context, name, by_hand, who=caller.name)
        event = tx.of(Topics).get(found.event_id)
        shown = views.event_views(tx, [event])[0] if event is not None else {"message_id": given.message_id}
        return found.new, shown

    new, shown = await scheduler.transact(work)
    return respond(answer(201 if new else 200, shown))


@router.get(
    "/{name}/inputs",
    operation_id="list_workflow_inputs",
    responses=answers(404),
    summary="Inputs with what each caused, newest first",
)
async def list_inputs(
    scheduler: Sched, _: Viewer, name: Name, *, status: InputStatus = None, limit: Limit = LIMIT, cursor: Cursor = None
) -> Response:
    def read(tx: Transaction, before: int | None, most: int) -> tuple[list[Any], list[dict[str, Any]]]:
        rows = tx.of(Topics).inputs(name, status, before, most)
        return rows, [views.input_view(tx, row) for row in rows]

    return await _page(scheduler, name, "inp", limit=limit, cursor=cursor, read=read)


@router.post(
    "/{name}/inputs/{input_id}/skip",
    operation_id="skip_input",
    responses=answers(404, 409),
    summary="Let nothing more happen to an input",
)
async def skip_input(scheduler: Sched, caller: Operator, name: Name, input_id: InputId, given: ReasonIn) -> Response:
    skipped = await scheduler.transact(
        lambda tx, context: input_actions.skip_input(tx, context, name, input_id, reason=given.reason, who=caller.name)
    )
    return respond(answer(200, {"id": input_id, "skipped": skipped}))


@router.post(
    "/{name}/inputs/{input_id}/rerun",
    operation_id="rerun_input",
    responses=answers(404, 409),
    summary="Work on an input once more, as new events",
)
async def rerun_input(scheduler: Sched, caller: Operator, name: Name, input_id: InputId, given: ReasonIn) -> Response:
    made = await scheduler.transact(
        lambda tx, context: input_actions.rerun_input(tx, context, name, input_id, reason=given.reason, who=caller.name)
    )
    return respond(answer(200, {"id": input_id, "events": made}))
