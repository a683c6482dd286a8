"""`/api/work`: the work items of agents."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful.domains.agents import work
from wakeful.domains.agents.route_models import WorkIn, WorkOut
from wakeful.routing.auth import Operator, Viewer
from wakeful.routing.idempotency import Key, answer, respond
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, id_page
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched

router = APIRouter(prefix="/api/work", tags=["agents"])

Ref = Annotated[str, Path(max_length=200, description="the work item's id", examples=["wrk_1hbm1n0w2c9kd"])]
WorkStatus = Annotated[
    Literal["ready", "claimed", "done", "failed"] | None, Query(description="only these", examples=["ready"])
]
Orphaned = Annotated[bool, Query(description="only of agents that no longer exist", examples=[True])]
OfAgent = Annotated[str | None, Query(max_length=200, description="only of this agent", examples=["reporter"])]


@router.get(
    "",
    operation_id="list_work",
    response_model=Page[WorkOut],
    responses=answers(400, 404),
    summary="Work items, the newest first",
)
async def list_work(
    scheduler: Sched,
    _: Viewer,
    *,
    agent: OfAgent = None,
    status: WorkStatus = None,
    orphaned: Orphaned = False,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    async def read(last: int | None, number: int) -> list[dict[str, Any]]:
        return await scheduler.read(lambda tx: work.list_items(tx, agent, status, last, number, orphaned=orphaned))

    return respond(await id_page("wrk", limit, cursor, read))


@router.post(
    "",
    operation_id="add_work",
    status_code=201,
    response_model=WorkOut,
    responses={**answers(404, 409), 200: {"description": "there already", "model": WorkOut}},
    summary="Add a work item to an agent's queue",
)
async def add_work(scheduler: Sched, _: Operator, given: WorkIn, key: Key) -> Response:
    new = work.NewItem(given.title, given.body, given.external_id, given.priority)
    return await key.transact(
        scheduler,
        lambda tx, context: work.add_item(tx, context, given.agent, new),
        lambda found: answer(201 if found[1] else 200, found[0]),
    )


@router.get(
    "/{item_id}",
    operation_id="get_work",
    response_model=WorkOut,
    responses=answers(404),
    summary="One work item",
)
async def get_work(scheduler: Sched, _: Viewer, item_id: Ref) -> Response:
    return respond(answer(200, await scheduler.read(lambda tx: work.get_item(tx, item_id))))


@router.post(
    "/{item_id}/release",
    operation_id="release_work",
    response_model=WorkOut,
    responses=answers(404, 409),
    summary="Release an item that no run works on any more",
)
async def release_work(scheduler: Sched, _: Operator, item_id: Ref) -> Response:
    return respond(answer(200, await scheduler.transact(lambda tx, _: work.release_item(tx, item_id))))


@router.post(
    "/{item_id}/retry",
    operation_id="retry_work",
    response_model=WorkOut,
    responses=answers(404, 409),
    summary="Let a done or failed item be worked on again",
)
async def retry_work(scheduler: Sched, _: Operator, item_id: Ref, key: Key) -> Response:
    return await key.transact(
        scheduler, lambda tx, context: work.retry_item(tx, context, item_id), lambda found: answer(200, found)
    )
