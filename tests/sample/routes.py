"""`/api/letters`: how many stamps are left."""

from __future__ import annotations

from fastapi import APIRouter

from tests.sample.tables import Letters
from wakeful.routing.auth import Anyone
from wakeful.routing.wiring import Sched

router = APIRouter(prefix="/api/letters", tags=["letters"])


@router.get("", operation_id="letters", summary="Letters and stamps")
async def letters(scheduler: Sched, _: Anyone) -> dict[str, int]:
    return await scheduler.read(lambda tx: {"letters": len(tx.of(Letters).all()), "stamps": tx.of(Letters).stamps()})
