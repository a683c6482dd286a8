"""`/api/agents`: agents, what they are given to hear, and what people do to each as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from wakeful.domains.agents import pausing, run_requests
from wakeful.domains.agents.registry import check_labels
from wakeful.domains.agents.route_models import (
    AgentOut,
    AgentSummary,
    EventAdded,
    EventIn,
    SessionsForgotten,
    WakeIn,
    WakeOut,
)
from wakeful.domains.agents.wakes import Requested, request_wake
from wakeful.routing import addresses
from wakeful.routing.auth import Allowed, Operator, OperatorOrRun, ViewerOrRun
from wakeful.routing.idempotency import Key, answer, respond, undoable
from wakeful.routing.paging import Page
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched

if TYPE_CHECKING:
    from wakeful.domains.agents.hops import RequestingAgent
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

router = APIRouter(prefix="/api/agents", tags=["agents"])

AgentName = Annotated[
    str, Path(max_length=200, description="the agent's name", examples=["reporter"]), addresses.AS_SENT
]


@router.get(
    "",
    operation_id="list_agents",
    response_model=Page[AgentSummary],
    responses=answers(),
    summary="All agents with their state",
)
async def list_agents(scheduler: Sched, caller: ViewerOrRun) -> Response:
    if caller.run is not None:
        own = await run_requests.see_agent(scheduler, caller.run)
        return respond(answer(200, {"items": [{**own, "schedules": len(own["schedules"])}], "next": None}))
    return respond(answer(200, {"items": await scheduler.agents.list(), "next": None}))


@router.get(
    "/{name}",
    operation_id="get_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="One agent with its schedules, sessions and events",
)
async def get_agent(scheduler: Sched, caller: ViewerOrRun, name: AgentName) -> Response:
    if caller.run is not None:
        return respond(answer(200, await run_requests.see_agent(scheduler, caller.run, name)))
    return respond(answer(200, await scheduler.agents.get(name)))


@router.post(
    "/{name}/wake",
    operation_id="wake_agent",
    status_code=202,
    response_model=WakeOut,
    responses=answers(404, 409),
    summary="Wake an agent; requests within 250 ms become one run",
)
async def wake_agent(
    scheduler: Sched, caller: OperatorOrRun, name: AgentName, key: Key, given: WakeIn | None = None
) -> Response:
    def work(tx: Transaction, context: Context) -> tuple[Requested, RequestingAgent | None]:
        if caller.run is not None:
            return run_requests.woken(tx, context, caller.run, name)
        return request_wake(tx, context, name, given.reason if given is not None else "manual"), None

    return await key.transact(scheduler, work, lambda found: answer(202, run_requests.shown_wake(*found)))


@router.post(
    "/{name}/events",
    operation_id="add_agent_event",
    status_code=202,
    response_model=EventAdded,
    responses=answers(404, 409, 429),
    summary="Leave an agent something to hear when it is next woken",
)
async def add_agent_event(
    scheduler: Sched, caller: OperatorOrRun, name: AgentName, given: EventIn, key: Key
) -> Response:
    check_labels(given.source, given.context_key)
    return await key.transact(
        scheduler,
        lambda tx, context: run_requests.left(tx, context, caller.run, name, given),
        lambda found: answer(202, run_requests.shown_event(name, found)),
    )


@router.post(
    "/{name}/pause",
    operation_id="pause_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="Pause all jobs of an agent",
)
async def pause_agent(scheduler: Sched, _: Operator, rights: Allowed, name: AgentName) -> Response:
    done = await scheduler.transact(lambda tx, context: pausing.pause_agent(tx, context, name), rights=rights)
    return respond(answer(200, done.agent, **undoable(done.action)))


@router.post(
    "/{name}/resume",
    operation_id="resume_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="Resume all jobs of an agent",
)
async def resume_agent(scheduler: Sched, _: Operator, rights: Allowed, name: AgentName) -> Response:
    done = await scheduler.transact(lambda tx, context: pausing.resume_agent(tx, context, name), rights=rights)
    return respond(answer(200, done.agent, **undoable(done.action)))


@router.post(
    "/{name}/reset-session",
    operation_id="reset_agent_session",
    response_model=SessionsForgotten,
    responses=answers(404),
    summary="Forget the sessions of an agent, so that new ones begin",
)
async def reset_agent_session(scheduler: Sched, _: Operator, name: AgentName) -> Response:
    return respond(answer(200, {"forgotten": await scheduler.agents.reset_session(name)}))
