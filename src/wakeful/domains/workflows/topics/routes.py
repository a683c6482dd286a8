"""`/api/workflows/{name}/events` and `/inputs`: what came in, what became of it, and what a person does about it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful.domains.workflows import input_actions, views
from wakeful.domains.workflows.lookup import find_listed
from wakeful.domains.workflows.route_models import (
    AgainOut,
    EventOut,
    InputOut,
    PublishIn,
    ReasonIn,
    ReplayedOut,
    ReplayIn,
    SkippedOut,
)
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.routing import addresses
from wakeful.routing.auth import Operator, Viewer
from wakeful.routing.idempotency import Key, answer, respond
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, cursor_of, read_id_cursor
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

router = APIRouter(prefix="/api/workflows", tags=["workflows"])

Name = Annotated[
    str, Path(max_length=100, description="The workflow's name.", examples=["invoices"]), addresses.AS_SENT
]
EventId = Annotated[str, Path(max_length=100, description="The event's id.", examples=["evt_1frc87n80sngk"])]
InputId = Annotated[str, Path(max_length=100, description="The input's id.", examples=["inp_1frc87n80sngk"])]
Topic = Annotated[str, Path(max_length=100, description="The topic.", examples=["mail"]), addresses.AS_SENT]
OfTopic = Annotated[str | None, Query(max_length=100, description="Only events of this topic.", examples=["mail"])]
EventStatus = Annotated[
    Literal["pending", "reserved", "consumed", "skipped", "parked"] | None,
    Query(description="Only events with this status.", examples=["pending"]),
]
InputStatus = Annotated[
    Literal["pending", "done", "skipped"] | None,
    Query(description="Only inputs with this status.", examples=["pending"]),
]


async def page_of(
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
        find_listed(tx, name)
        return read(tx, before, limit + 1)

    rows, shown = await scheduler.read(work)
    more = cursor_of(prefix, str(rows[limit - 1].id)) if len(rows) > limit else None
    return respond(answer(200, {"items": shown[:limit], "next": more}))


@router.get(
    "/{name}/events",
    operation_id="list_workflow_events",
    response_model=Page[EventOut],
    responses=answers(404),
    summary="Events, newest first",
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

    return await page_of(scheduler, name, "evt", limit=limit, cursor=cursor, read=read)


@router.post(
    "/{name}/topics/{topic}",
    operation_id="publish_event",
    status_code=201,
    response_model=EventOut,
    responses={**answers(404, 409), 200: {"description": "the message id is known", "model": EventOut}},
    summary="Publish an event by hand",
)
async def publish_event(
    scheduler: Sched, caller: Operator, *, name: Name, topic: Topic, given: PublishIn, key: Key
) -> Response:
    by_hand = input_actions.ByHand(topic, given.message_id, given.payload)

    def work(tx: Transaction, context: Any) -> tuple[bool, dict[str, Any]]:
        found = input_actions.publish_by_hand(tx, context, name, by_hand, who=caller.name)
        event = tx.of(Topics).get(found.event_id)
        shown = views.event_views(tx, [event])[0] if event is not None else views.pruned_view(found.event_id, by_hand)
        return found.new, shown

    return await key.transact(scheduler, work, lambda found: answer(201 if found[0] else 200, found[1]))


@router.get(
    "/{name}/inputs",
    operation_id="list_workflow_inputs",
    response_model=Page[InputOut],
    responses=answers(404),
    summary="Inputs with what each caused, newest first",
)
async def list_inputs(
    scheduler: Sched, _: Viewer, name: Name, *, status: InputStatus = None, limit: Limit = LIMIT, cursor: Cursor = None
) -> Response:
    def read(tx: Transaction, before: int | None, most: int) -> tuple[list[Any], list[dict[str, Any]]]:
        rows = tx.of(Topics).inputs(name, status, before, most)
        return rows, [views.input_view(tx, row) for row in rows]

    return await page_of(scheduler, name, "inp", limit=limit, cursor=cursor, read=read)


@router.post(
    "/{name}/inputs/{input_id}/skip",
    operation_id="skip_input",
    response_model=SkippedOut,
    responses=answers(404, 409),
    summary="Skip an input: its pending events are not consumed",
)
async def skip_input(scheduler: Sched, caller: Operator, name: Name, input_id: InputId, given: ReasonIn) -> Response:
    skipped = await scheduler.transact(
        lambda tx, context: input_actions.skip_input(tx, context, name, input_id, reason=given.reason, who=caller.name)
    )
    return respond(answer(200, {"id": input_id, "skipped": skipped}))


@router.post(
    "/{name}/inputs/{input_id}/rerun",
    operation_id="rerun_input",
    response_model=AgainOut,
    responses=answers(404, 409),
    summary="Run an input again, as new events",
)
async def rerun_input(
    scheduler: Sched, caller: Operator, *, name: Name, input_id: InputId, given: ReasonIn, key: Key
) -> Response:
    who, reason = caller.name, given.reason
    return await key.transact(
        scheduler,
        lambda tx, context: input_actions.rerun_input(tx, context, name, input_id, reason=reason, who=who),
        lambda made: answer(200, {"id": input_id, "events": made}),
    )


@router.post(
    "/{name}/events/{event_id}/skip",
    operation_id="skip_event",
    response_model=SkippedOut,
    responses=answers(404, 409),
    summary="Skip a pending event",
)
async def skip_event(scheduler: Sched, caller: Operator, name: Name, event_id: EventId, given: ReasonIn) -> Response:
    skipped = await scheduler.transact(
        lambda tx, context: input_actions.skip_event(tx, context, name, event_id, reason=given.reason, who=caller.name)
    )
    return respond(answer(200, {"id": event_id, "skipped": skipped}))


@router.post(
    "/{name}/parked/replay",
    operation_id="replay_parked",
    response_model=ReplayedOut,
    responses=answers(404, 409),
    summary="Continue all parked events",
)
async def replay_parked(
    scheduler: Sched, caller: Operator, name: Name, key: Key, given: ReplayIn | None = None
) -> Response:
    wanted = given if given is not None else ReplayIn()
    return await key.transact(
        scheduler,
        lambda tx, context: input_actions.replay_all_parked(
            tx, context, name, reason=wanted.reason or "", who=caller.name, start_over=wanted.start_over
        ),
        lambda made: answer(200, {"name": name, "events": made}),
    )


@router.post(
    "/{name}/events/{event_id}/replay",
    operation_id="replay_event",
    status_code=201,
    response_model=AgainOut,
    responses=answers(404, 409),
    summary="Publish a consumed event again, as a new one; continue a parked one",
)
async def replay_event(
    scheduler: Sched, caller: Operator, *, name: Name, event_id: EventId, key: Key, given: ReplayIn | None = None
) -> Response:
    wanted = given if given is not None else ReplayIn()
    return await key.transact(
        scheduler,
        lambda tx, context: input_actions.replay_event(
            tx, context, name, event_id, reason=wanted.reason or "", who=caller.name, start_over=wanted.start_over
        ),
        lambda made: answer(201, {"id": event_id, "events": [made]}),
    )
