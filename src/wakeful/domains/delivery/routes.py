"""`/api/deliveries` and `/api/connectors`: what was sent and what waits, and sending it again."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful.domains.delivery import outbox
from wakeful.domains.delivery.registry import ConnectorRegistry, require_connector
from wakeful.domains.delivery.route_models import ConnectorOut, DeliveryOut, Requeue, Requeued, Status
from wakeful.domains.delivery.tables import DeliveryFilter
from wakeful.domains.delivery.views import (
    delivery_number,
    delivery_text,
    get_delivery,
    list_connectors,
    list_deliveries,
)
from wakeful.errors import DeliveryNotFound
from wakeful.routing import addresses
from wakeful.routing.auth import Operator, Viewer
from wakeful.routing.idempotency import answer, respond
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, id_page
from wakeful.routing.problems import ApiError, answers
from wakeful.routing.wiring import Sched

router = APIRouter(tags=["deliveries"])

Ref = Annotated[str, Path(max_length=200, description="the delivery's id", examples=["dlv_1hbm1n0w2c9kd"])]
Name = Annotated[str, Path(max_length=200, description="the connector's name", examples=["phone"]), addresses.AS_SENT]
Connector = Annotated[str | None, Query(max_length=200, description="only to this connector", examples=["phone"])]
Job = Annotated[str | None, Query(max_length=200, description="only about this job", examples=["backup"])]
Agent = Annotated[str | None, Query(max_length=200, description="only from this agent", examples=["reporter"])]


@router.get(
    "/api/deliveries",
    operation_id="list_deliveries",
    response_model=Page[DeliveryOut],
    responses=answers(400),
    summary="Messages, the newest first",
)
async def all_deliveries(
    scheduler: Sched,
    _: Viewer,
    *,
    status: Status | None = None,
    connector: Connector = None,
    job: Job = None,
    agent: Agent = None,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    wanted = DeliveryFilter(status, connector, job, agent)

    async def read(last: int | None, number: int) -> list[dict[str, Any]]:
        chosen = wanted._replace(before=last, limit=number)
        return await scheduler.read(lambda tx: list_deliveries(tx, chosen))

    return respond(await id_page("dlv", limit, cursor, read))


@router.get(
    "/api/deliveries/{delivery_id}",
    operation_id="get_delivery",
    response_model=DeliveryOut,
    responses=answers(404),
    summary="One message with all its attempts",
)
async def one_delivery(scheduler: Sched, _: Viewer, delivery_id: Ref) -> Response:
    number = delivery_number(delivery_id)
    return respond(answer(200, await scheduler.read(lambda tx: get_delivery(tx, number))))


@router.post(
    "/api/deliveries/{delivery_id}/requeue",
    operation_id="requeue_delivery",
    response_model=DeliveryOut,
    responses=answers(404, 409),
    summary="Send a message again, from the first attempt",
)
async def requeue_delivery(scheduler: Sched, _: Operator, delivery_id: Ref) -> Response:
    number = delivery_number(delivery_id)

    def work(tx: Any, _: Any) -> dict[str, Any]:
        row, why = outbox.requeue(tx, number)
        if row is None:
            raise DeliveryNotFound(f"There is no delivery {delivery_text(number)}.")
        if why is not None:
            raise ApiError(409, "conflict", f"{delivery_text(number)} is {why}: it cannot be queued again.")
        return get_delivery(tx, number)

    return respond(answer(200, await scheduler.transact(work)))


@router.post(
    "/api/deliveries:requeue",
    operation_id="requeue_deliveries",
    response_model=Requeued,
    responses=answers(),
    summary="Send all messages of one status again",
)
async def requeue_deliveries(scheduler: Sched, _: Operator, given: Requeue) -> Response:
    count = await scheduler.transact(lambda tx, context: outbox.requeue_all(tx, context, given.status))
    return respond(answer(200, {"requeued": count}))


@router.get(
    "/api/connectors",
    operation_id="list_connectors",
    response_model=Page[ConnectorOut],
    responses=answers(),
    summary="Where messages go",
)
async def all_connectors(scheduler: Sched, _: Viewer) -> Response:
    found = await scheduler.read(list_connectors)
    return respond(answer(200, {"items": found, "next": None}))


@router.post(
    "/api/connectors/{name}/test",
    operation_id="test_connector",
    response_model=DeliveryOut,
    responses=answers(404),
    summary="Send a test message through a connector, and return the result",
)
async def try_connector(scheduler: Sched, _: Operator, name: Name) -> Response:
    registry = scheduler.connectors
    assert isinstance(registry, ConnectorRegistry)  # noqa: S101 - ours
    if registry.find(name) is None:
        await scheduler.read(lambda tx: require_connector(tx, name))
    number = await registry.test(name)
    return respond(answer(200, await scheduler.read(lambda tx: get_delivery(tx, number))))
