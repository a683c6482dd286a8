"""`/api/verdict`: whether all is well."""

from __future__ import annotations

from fastapi import APIRouter
from starlette.responses import Response

from wakeful.api.auth import Viewer
from wakeful.api.idempotency import answer, respond
from wakeful.api.problems import answers
from wakeful.api.record_models import VerdictOut
from wakeful.api.wiring import Sched

router = APIRouter(prefix="/api")


@router.get(
    "/verdict",
    operation_id="get_verdict",
    response_model=VerdictOut,
    responses=answers(),
    summary="Whether all is well, in one sentence",
    tags=["stats"],
)
async def get_verdict(scheduler: Sched, _: Viewer) -> Response:
    return respond(answer(200, (await scheduler.get_verdict()).to_dict()))
