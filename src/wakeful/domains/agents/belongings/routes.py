"""Moving what waits for one agent to another: `/api/work/ID/move` and `/api/agents/NAME/move`."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import BaseModel, Field
from starlette.responses import Response

from wakeful.domains.agents.belongings import moving
from wakeful.domains.agents.route_models import WorkOut
from wakeful.routing import addresses
from wakeful.routing.auth import Operator
from wakeful.routing.idempotency import answer, respond
from wakeful.routing.problems import answers
from wakeful.routing.strict import Strict
from wakeful.routing.wiring import Sched

router = APIRouter(prefix="/api", tags=["agents"])


class MoveIn(Strict):
    """Who gets what is moved."""

    agent: str = Field(max_length=200, description="the agent that gets it", examples=["reporter"])


class MovedOut(BaseModel):
    """What was moved."""

    agent: str = Field(description="the agent it waited for", examples=["writer"])
    to: str = Field(description="the agent that has it now", examples=["reporter"])
    items: int = Field(description="how many work items were moved", examples=[3])
    events: int = Field(description="how many events were moved", examples=[1])
    left: int = Field(description="how many items were left: known there, or of another source", examples=[0])


@router.post(
    "/work/{item_id}/move",
    operation_id="move_work",
    response_model=WorkOut,
    responses=answers(404, 409),
    summary="Move a work item to another agent",
)
async def move_work(
    scheduler: Sched,
    _: Operator,
    item_id: Annotated[str, Path(max_length=200, description="the work item's id", examples=["wrk_1hbm1n0w2c9kd"])],
    given: MoveIn,
) -> Response:
    return respond(answer(200, await scheduler.transact(lambda tx, _: moving.move_item(tx, item_id, given.agent))))


@router.post(
    "/agents/{name}/move",
    operation_id="move_belongings",
    response_model=MovedOut,
    responses=answers(404, 409),
    summary="Move the work items and events that wait for an agent, also one that is gone, to another",
)
async def move_belongings(
    scheduler: Sched,
    _: Operator,
    name: Annotated[str, Path(max_length=200, description="the agent's name", examples=["writer"]), addresses.AS_SENT],
    given: MoveIn,
) -> Response:
    moved = await scheduler.transact(lambda tx, context: moving.move_all(tx, context, name, given.agent))
    return respond(answer(200, moved._asdict()))
