"""`/api/agents`: agents, what they are given to hear, and what people do to each as a whole."""

from __future__ import annotations

from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from wakeful.domains.agents import pausing, run_requests
from wakeful.domains.agents.route_models import (
    AgentOut,
    AgentSummary,
    EventAdded,
    EventIn,
    SessionsForgotten,
    WakeIn,
    WakeOut,
)
from wakeful.kernel.actions.recording import origin_of
from wakeful.routing import addresses
from wakeful.routing.auth import Allowed, Operator, OperatorOrRun, ViewerOrRun
from wakeful.routing.idempotency import answer, respond, undoable
from wakeful.routing.paging import Page
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched

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
async def wake_agent(scheduler: Sched, caller: OperatorOrRun, name: AgentName, given: WakeIn | None = None) -> Response:
    if caller.run is not None:
        return respond(answer(202, await run_requests.wake(scheduler, caller.run, name)))
    reason = given.reason if given is not None else "manual"
    return respond(answer(202, await scheduler.agents.request_wake(name, reason)))


@router.post(
    "/{name}/events",
    operation_id="add_agent_event",
    status_code=202,
    response_model=EventAdded,
    responses=answers(404, 409, 429),
    summary="Leave an agent something to hear when it is next woken",
)
async def add_agent_event(scheduler: Sched, caller: OperatorOrRun, name: AgentName, given: EventIn) -> Response:
    if caller.run is not None:
        return respond(answer(202, await run_requests.leave_event(scheduler, caller.run, name, given)))
    added = await scheduler.agents.add_event(
        name, given.text, source=given.source, context_key=given.context_key, wake=given.wake
    )
    return respond(answer(202, added))


@router.post(
    "/{name}/pause",
    operation_id="pause_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="Pause all jobs of an agent",
)
async def pause_agent(scheduler: Sched, _: Operator, rights: Allowed, name: AgentName) -> Response:
    done = await scheduler.transact(
        lambda tx, context: pausing.pause_agent(tx, context, name, origin_of(context, rights))
    )
    return respond(answer(200, done.agent, **undoable(done.action)))


@router.post(
    "/{name}/resume",
    operation_id="resume_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="Resume all jobs of an agent",
)
async def resume_agent(scheduler: Sched, _: Operator, rights: Allowed, name: AgentName) -> Response:
    done = await scheduler.transact(
        lambda tx, context: pausing.resume_agent(tx, context, name, origin_of(context, rights))
    )
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
