"""`/api/verdict`, `/api/ledger`, `/api/hold` and `/api/actions`.

Whether all is well, what became of every slot, pausing everything, what people did, undo.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful.ids import action_number
from wakeful.kernel.rules.holding import Hold
from wakeful.kernel.views.ledger import read_since
from wakeful.routing.addresses import JobRef
from wakeful.routing.auth import Allowed, Anyone, Editor, Viewer
from wakeful.routing.idempotency import StoredAnswer, answer, respond, undoable
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, cursor_of, read_id_cursor
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched
from wakeful.surfaces.api.record_models import ActionOut, HoldIn, HoldOut, LedgerOut, SlotOut, UndoneOut, VerdictOut
from wakeful.triggers.moments import read_moment

router = APIRouter(prefix="/api")

Named = Annotated[str | None, Query(max_length=1000, description="a job's id or name; else all jobs")]
Since = Annotated[
    str, Query(max_length=100, description="a duration up to now, or a time", examples=["7d", "2026-01-29T09:00:00Z"])
]
SlotTime = Annotated[
    str, Path(max_length=100, description="the slot's nominal time, with its offset", examples=["2026-01-29T09:00:00Z"])
]


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


@router.get(
    "/ledger",
    operation_id="get_ledger",
    response_model=LedgerOut,
    responses=answers(404),
    summary="What became of every slot that was due",
    tags=["stats"],
)
async def get_ledger(
    scheduler: Sched, _: Anyone, rights: Allowed, job: Named = None, since: Since = "7d", limit: Limit = LIMIT
) -> Response:
    found = await scheduler.server_side.get_ledger(job, partial(read_since, since), rights)
    return respond(answer(200, found.to_dict(limit)))


@router.get(
    "/jobs/{ref}/slots/{time}",
    operation_id="get_slot",
    response_model=SlotOut,
    responses=answers(404),
    summary="What became of one slot",
    tags=["jobs"],
)
async def get_slot(scheduler: Sched, _: Anyone, rights: Allowed, ref: JobRef, time: SlotTime) -> Response:
    found = await scheduler.server_side.get_slot(ref, read_moment(time, "slot"), rights)
    return respond(answer(200, found.to_dict()))


@router.get(
    "/hold",
    operation_id="get_hold",
    response_model=HoldOut,
    responses=answers(),
    summary="Whether everything is paused",
    tags=["actions"],
)
async def get_hold(scheduler: Sched, _: Viewer) -> Response:
    return respond(_held(await scheduler.server_side.get_hold()))


@router.post(
    "/hold",
    operation_id="hold_all",
    response_model=HoldOut,
    responses=answers(403),
    summary="Pause everything: nothing starts on any node; what runs finishes",
    tags=["actions"],
)
async def hold_all(scheduler: Sched, _: Editor, rights: Allowed, wanted: HoldIn) -> Response:
    done = await scheduler.server_side.hold_all(wanted.note, rights, messages=wanted.messages)
    return respond(_held(done.hold, done.action))


@router.delete(
    "/hold",
    operation_id="release_all",
    response_model=HoldOut,
    responses=answers(403),
    summary="Resume everything; jobs that were paused one by one stay paused",
    tags=["actions"],
)
async def release_all(scheduler: Sched, _: Editor, rights: Allowed) -> Response:
    done = await scheduler.server_side.release_all(rights)
    return respond(_held(done.hold, done.action))


def _held(hold: Hold | None, action: str | None = None) -> StoredAnswer:
    about = hold.to_dict() if hold is not None else {"since": None, "by": None, "note": None, "messages": False}
    return answer(200, {"held": hold is not None, **about}, **undoable(action))


@router.get(
    "/actions",
    operation_id="list_actions",
    response_model=Page[ActionOut],
    responses=answers(),
    summary="Actions of people and programs, newest first",
    tags=["actions"],
)
async def list_actions(scheduler: Sched, _: Viewer, limit: Limit = LIMIT, cursor: Cursor = None) -> Response:
    before = read_id_cursor("action", cursor)
    found = await scheduler.server_side.list_actions(before, limit + 1)
    more = cursor_of("action", str(action_number(found[limit - 1].id))) if len(found) > limit else None
    return respond(answer(200, {"items": [action.to_dict() for action in found[:limit]], "next": more}))


@router.post(
    "/actions/{action_id}/undo",
    operation_id="undo_action",
    response_model=UndoneOut,
    responses=answers(404, 409),
    summary="Undo an action within ten minutes; later changes are kept",
    tags=["actions"],
)
async def undo_action(
    scheduler: Sched,
    _: Editor,
    rights: Allowed,
    action_id: Annotated[str, Path(max_length=100, description="An action's id.", examples=["act_1frc87n80sngk"])],
) -> Response:
    return respond(answer(200, (await scheduler.server_side.undo(action_id, rights)).to_dict()))
