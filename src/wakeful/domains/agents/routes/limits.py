"""`/api/limits`: the accounts that are at their rate limit."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from wakeful.domains.agents.route_models import LimitOut
from wakeful.routing import addresses
from wakeful.routing.auth import Operator, Viewer
from wakeful.routing.idempotency import answer, respond
from wakeful.routing.paging import Page
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched

router = APIRouter(prefix="/api/limits", tags=["agents"])

Account = Annotated[str, Path(max_length=1000, description="the account", examples=["claude"]), addresses.AS_SENT]


@router.get(
    "",
    operation_id="list_limits",
    response_model=Page[LimitOut],
    responses=answers(),
    summary="The accounts that are at their rate limit",
)
async def list_limits(scheduler: Sched, _: Viewer) -> Response:
    return respond(answer(200, {"items": await scheduler.agents.rate_limits(), "next": None}))


@router.post(
    "/{account}/clear",
    operation_id="clear_limit",
    response_model=LimitOut,
    responses=answers(404),
    summary="End the rate limit of an account; what waits for it starts now",
)
async def clear_limit(scheduler: Sched, _: Operator, account: Account) -> Response:
    return respond(answer(200, await scheduler.agents.clear_rate_limit(account)))
