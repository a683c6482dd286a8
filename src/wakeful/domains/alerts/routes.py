"""`/api/alerts`: what needs a person, and what a person says about it."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful import ids
from wakeful.domains.alerts.route_models import AlertOut, Snooze, Snoozed, SnoozeJob
from wakeful.domains.alerts.settings import snooze
from wakeful.errors import AlertNotFound
from wakeful.kernel.actions import recording
from wakeful.kernel.actions.recording import origin_of
from wakeful.kernel.views.records import Alert, alert_views
from wakeful.routing.auth import Allowed, Operator, Viewer
from wakeful.routing.idempotency import answer, respond, undoable
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, id_page
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched
from wakeful.store.interface import Transaction

router = APIRouter(prefix="/api", tags=["alerts"])

Ref = Annotated[str, Path(max_length=100, description="an alert's id", examples=["alr_1hbm1n0w2c9kd"])]


def _number(text: str) -> int:
    number = ids.alert_number(text)
    if number is None:
        message = f"There is no alert {text!r}: an alert's id looks like alr_0000000000000."
        raise AlertNotFound(message)
    return number


def _found(tx: Transaction, number: int) -> Alert:
    row = tx.alerts.get(number)
    if row is None:
        message = f"There is no alert {ids.encode('alr', number)}."
        raise AlertNotFound(message)
    return alert_views(tx, [row])[0]


@router.get(
    "/alerts",
    operation_id="list_alerts",
    response_model=Page[AlertOut],
    responses=answers(),
    summary="Alerts that need a person, newest first",
)
async def list_alerts(
    scheduler: Sched,
    _: Viewer,
    open_only: Annotated[bool, Query(alias="open", description="only what is not over yet")] = True,  # noqa: FBT002
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    async def read(last: int | None, number: int) -> list[dict[str, Any]]:
        found = await scheduler.read(
            lambda tx: alert_views(tx, tx.alerts.latest(number, before=last, open_only=open_only))
        )
        return [alert.to_dict() for alert in found]

    return respond(await id_page("alert", limit, cursor, read))


@router.get(
    "/alerts/{alert_id}",
    operation_id="get_alert",
    response_model=AlertOut,
    responses=answers(404),
    summary="One alert",
)
async def get_alert(scheduler: Sched, _: Viewer, alert_id: Ref) -> Response:
    number = _number(alert_id)
    return respond(answer(200, (await scheduler.read(lambda tx: _found(tx, number))).to_dict()))


@router.post(
    "/alerts/{alert_id}/ack",
    operation_id="ack_alert",
    response_model=AlertOut,
    responses=answers(404),
    summary="Acknowledge an alert; repeating it changes nothing",
)
async def acknowledge(scheduler: Sched, _: Operator, rights: Allowed, alert_id: Ref) -> Response:
    number = _number(alert_id)
    row, action = await scheduler.transact(
        lambda tx, context: recording.acknowledge(tx, number, origin_of(context)), rights=rights
    )
    found = await scheduler.read(lambda tx: alert_views(tx, [row])[0])
    return respond(answer(200, found.to_dict(), **undoable(action)))


@router.post(
    "/alerts/{alert_id}/snooze",
    operation_id="snooze_alert",
    response_model=AlertOut,
    responses=answers(404),
    summary="Send no message about it for a time",
)
async def snooze_one(scheduler: Sched, _: Operator, rights: Allowed, alert_id: Ref, given: Snooze) -> Response:
    _number(alert_id)
    done = await scheduler.transact(lambda tx, node: snooze(tx, [alert_id], given.for_, origin_of(node)), rights=rights)
    return respond(answer(200, done.alerts[0].to_dict(), **undoable(done.action)))


@router.post(
    "/alerts:snooze",
    operation_id="snooze_job_alerts",
    response_model=Snoozed,
    responses=answers(404),
    summary="Send no message about a job for a time",
)
async def snooze_all(scheduler: Sched, _: Operator, rights: Allowed, given: SnoozeJob) -> Response:
    done = await scheduler.transact(
        lambda tx, node: snooze(tx, [given.job], given.for_, origin_of(node)), rights=rights
    )
    return respond(answer(200, {"items": [alert.to_dict() for alert in done.alerts]}, **undoable(done.action)))
