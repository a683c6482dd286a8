"""`/api/schedule`, what is sent to sessions and when, in a plainer shape than jobs; and `/api/agents`."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful.agents import run_requests, schedules, whole, work
from wakeful.agents.route_models import (
    MINUTE_MS,
    AgentOut,
    AgentSummary,
    EventAdded,
    EventIn,
    ScheduleChange,
    ScheduleIn,
    ScheduleOut,
    SessionsForgotten,
    Started,
    WakeIn,
    WakeOut,
    WorkIn,
    WorkOut,
    Written,
)
from wakeful.agents.schedules import Schedule, ScheduleSpec
from wakeful.agents.task import Task
from wakeful.api import addresses
from wakeful.api.auth import Anyone, Operator, OperatorOrRun, Viewer, ViewerOrRun
from wakeful.api.idempotency import Answer, Key, answer, respond
from wakeful.api.models import Page
from wakeful.api.paging import LIMIT, Cursor, Limit, cursor_of, id_number, page, page_answer, read_id_cursor
from wakeful.api.problems import ApiError, answers
from wakeful.api.record import undoable
from wakeful.api.rights import Allowed, Editor
from wakeful.api.shapes import local, zone_of
from wakeful.api.wiring import Sched
from wakeful.kernel.actions.authorized import WriteTerms
from wakeful.kernel.actions.idempotency import run_idempotent
from wakeful.kernel.actions.recording import origin_of
from wakeful.triggers import from_ms, iso, to_ms

router = APIRouter(prefix="/api/schedule", tags=["schedule"])

Slug = Annotated[
    str, Path(max_length=1000, description="the schedule's name", examples=["daily-standup"]), addresses.AS_SENT
]


@router.get(
    "",
    operation_id="list_schedules",
    response_model=list[ScheduleOut],
    responses=answers(),
    summary="All schedules with their state",
)
async def list_schedules(scheduler: Sched, _: Anyone, rights: Allowed) -> Response:
    found = await scheduler.look(lambda tx: schedules.find_all(tx, rights))
    return respond(answer(200, [shape(one, scheduler.default_zone) for one in found]))


@router.get(
    "/{slug}",
    operation_id="get_schedule",
    response_model=ScheduleOut,
    responses=answers(404),
    summary="One schedule with its state",
)
async def get_schedule(scheduler: Sched, _: Anyone, rights: Allowed, slug: Slug) -> Response:
    found = await scheduler.look(lambda tx: schedules.find(tx, slug, rights))
    return respond(answer(200, shape(found, scheduler.default_zone)))


@router.put(
    "/{slug}",
    operation_id="put_schedule",
    response_model=Written,
    responses={**answers(404, 409), 200: {"description": "changed"}, 201: {"description": "made", "model": Written}},
    summary="Make a schedule, or change all of it",
)
async def put_schedule(scheduler: Sched, _: Editor, rights: Allowed, slug: Slug, given: ScheduleIn) -> Response:
    _refuse_another(slug, given.slug)
    task = Task(given.prompt)
    if given.session_config is not None:
        task = given.session_config.onto(task)
    _refuse_session(given.agent, task)
    wanted = ScheduleSpec(task, given.timing.to_data(), given.enabled, given.agent)
    terms = WriteTerms(rights, scheduler.default_zone, defaults=scheduler.job_defaults)
    found, created, action = await scheduler.transact(lambda tx, node: schedules.put(tx, node, slug, wanted, terms))
    next_run = iso(found.next_at) if found.next_at is not None else None
    body = {"slug": slug, "nextRun": next_run, "created": created}
    return respond(answer(201 if created else 200, body, **undoable(action)))


@router.patch(
    "/{slug}",
    operation_id="patch_schedule",
    response_model=ScheduleOut,
    responses=answers(404, 409),
    summary="Change some of a schedule; enabled pauses and resumes it",
)
async def patch_schedule(scheduler: Sched, _: Editor, rights: Allowed, slug: Slug, given: ScheduleChange) -> Response:
    _refuse_another(slug, given.slug)
    for name in ("prompt", "timing", "enabled"):
        if name in given.model_fields_set and getattr(given, name) is None:
            sentence = f"{'schedule' if name == 'timing' else name} cannot be null: leave it out to keep it as it is."
            raise ApiError(422, "invalid", sentence)
    terms = WriteTerms(rights, scheduler.default_zone)

    def work(tx: Any, node: Any) -> tuple[Schedule, str | None]:
        found = schedules.find(tx, slug, rights)
        if "agent" in given.model_fields_set and given.agent != found.agent:
            raise ApiError(400, "invalid_job", "A schedule stays with its agent: remove it, and make another one.")
        task = _onto(found.task, given)
        _refuse_session(found.agent, task)
        timing = given.timing.to_data() if given.timing is not None else None
        return schedules.patch(tx, node, slug, ScheduleSpec(task, timing, given.enabled), terms)

    found, action = await scheduler.transact(work)
    return respond(answer(200, shape(found, scheduler.default_zone), **undoable(action)))


@router.delete(
    "/{slug}",
    operation_id="delete_schedule",
    status_code=204,
    response_class=Response,
    responses=answers(404),
    summary="Remove a schedule; a run in progress finishes",
)
async def delete_schedule(scheduler: Sched, _: Editor, rights: Allowed, slug: Slug) -> Response:
    terms = WriteTerms(rights, scheduler.default_zone)
    action = await scheduler.transact(lambda tx, context: schedules.remove(tx, context, slug, terms))
    return Response(status_code=204, headers=undoable(action))


@router.post(
    "/{slug}/run",
    operation_id="run_schedule",
    response_model=Started,
    status_code=202,
    responses={**answers(404, 409), 202: {"description": "asked for", "model": Started}},
    summary="Run a schedule now",
)
async def run_schedule(scheduler: Sched, _: Editor, rights: Allowed, slug: Slug, key: Key) -> Response:
    async def work(once: Any) -> tuple[str, str | None]:
        return await scheduler.transact(
            lambda tx, node: run_idempotent(tx, once, lambda: schedules.start(tx, node, slug, rights))
        )

    return await key.do(work, _started)


def _onto(task: Task, given: ScheduleChange) -> Task | None:
    """The task with what is to be changed about it; None where nothing is."""
    if given.model_fields_set.isdisjoint({"prompt", "session_config"}):
        return None
    if given.prompt is not None:
        task = task._replace(prompt=given.prompt)
    if "session_config" in given.model_fields_set:
        task = given.session_config.onto(task) if given.session_config is not None else Task(task.prompt)
    return task


def _refuse_session(agent: str | None, task: Task | None) -> None:
    if agent is not None and task is not None and task != Task(task.prompt):
        sentence = "A schedule of an agent has no sessionConfig: the agent has sessions of its own."
        raise ApiError(400, "invalid_job", sentence)


def _refuse_another(slug: str, said: str | None) -> None:
    if said not in (None, slug):
        raise ApiError(
            400, "invalid_job", f"The address says {slug!r:.120}, the body {said!r:.120}: use the same name."
        )


def _started(found: tuple[str, str | None]) -> Answer:
    run_id, session = found
    body = {"status": "queued", "runId": run_id, "sessionId": session}
    return answer(202, body, Location=f"/api/runs/{run_id}")


def shape(schedule: Schedule, zone: str) -> dict[str, Any]:
    """A schedule as it travels."""
    job, task = schedule.job, schedule.task
    place = zone_of(job, zone)
    next_run = from_ms(schedule.next_at) if schedule.next_at is not None else None
    config: dict[str, Any] = {"model": task.model, "persistSession": task.persist}
    if task.session is not None:
        config["sessionId"] = task.session
    if task.deadline_ms is not None:
        config["timeoutMinutes"] = task.deadline_ms / MINUTE_MS
    return {
        "slug": job.name,
        "prompt": task.prompt,
        "enabled": schedule.enabled,
        "schedule": schedules.timing_of(job.trigger, zone),
        "agent": schedule.agent,
        "sessionConfig": config if schedule.agent is None else None,
        "lastRun": iso(to_ms(job.last_run_at)) if job.last_run_at is not None else None,
        "lastResult": schedule.last_result,
        "lastError": schedule.last_error,
        "sessionId": schedule.session,
        "nextRun": iso(schedule.next_at) if schedule.next_at is not None else None,
        "nextRunLocal": local(next_run, place),
        "timezone": place,
        "description": job.trigger.describe(),
        "status": job.status,
        "currentRun": job.current_run,
        "owner": job.owner,
    }


# -- agents -----------------------------------------------------------------------------------------------------------

agent_router = APIRouter(tags=["agents"])

AgentName = Annotated[
    str, Path(max_length=200, description="the agent's name", examples=["reporter"]), addresses.AS_SENT
]


@agent_router.get(
    "/api/agents",
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


@agent_router.get(
    "/api/agents/{name}",
    operation_id="get_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="One agent with its schedules, sessions and events",
)
async def get_agent(scheduler: Sched, caller: ViewerOrRun, name: AgentName) -> Response:
    if caller.run is not None:
        return respond(answer(200, await run_requests.see_agent(scheduler, caller.run, name)))
    return respond(answer(200, await scheduler.agents.get(name)))


@agent_router.post(
    "/api/agents/{name}/wake",
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


@agent_router.post(
    "/api/agents/{name}/events",
    operation_id="add_agent_event",
    status_code=202,
    response_model=EventAdded,
    responses=answers(404, 409),
    summary="Leave an agent something to hear when it is next woken",
)
async def add_agent_event(scheduler: Sched, caller: OperatorOrRun, name: AgentName, given: EventIn) -> Response:
    if caller.run is not None:
        return respond(answer(202, await run_requests.leave_event(scheduler, caller.run, name, given)))
    added = await scheduler.agents.add_event(
        name, given.text, source=given.source, context_key=given.context_key, wake=given.wake
    )
    return respond(answer(202, added))


@agent_router.post(
    "/api/agents/{name}/pause",
    operation_id="pause_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="Pause all jobs of an agent",
)
async def pause_agent(scheduler: Sched, _: Operator, rights: Allowed, name: AgentName) -> Response:
    done = await scheduler.transact(
        lambda tx, context: whole.pause_agent(tx, context, name, origin_of(context, rights))
    )
    return respond(answer(200, done.agent, **undoable(done.action)))


@agent_router.post(
    "/api/agents/{name}/resume",
    operation_id="resume_agent",
    response_model=AgentOut,
    responses=answers(404),
    summary="Resume all jobs of an agent",
)
async def resume_agent(scheduler: Sched, _: Operator, rights: Allowed, name: AgentName) -> Response:
    done = await scheduler.transact(
        lambda tx, context: whole.resume_agent(tx, context, name, origin_of(context, rights))
    )
    return respond(answer(200, done.agent, **undoable(done.action)))


@agent_router.post(
    "/api/agents/{name}/reset-session",
    operation_id="reset_agent_session",
    response_model=SessionsForgotten,
    responses=answers(404),
    summary="Forget the sessions of an agent, so that new ones begin",
)
async def reset_agent_session(scheduler: Sched, _: Operator, name: AgentName) -> Response:
    return respond(answer(200, {"forgotten": await scheduler.agents.reset_session(name)}))


Ref = Annotated[str, Path(max_length=200, description="the work item's id", examples=["wrk_1hbm1n0w2c9kd"])]
WorkStatus = Annotated[
    Literal["ready", "claimed", "done", "failed"] | None, Query(description="only these", examples=["ready"])
]
OfAgent = Annotated[str | None, Query(max_length=200, description="only of this agent", examples=["reporter"])]


@agent_router.get(
    "/api/work",
    operation_id="list_work",
    response_model=Page[WorkOut],
    responses=answers(400, 404),
    summary="Work items, the newest first",
)
async def list_work(
    scheduler: Sched,
    _: Viewer,
    *,
    agent: OfAgent = None,
    status: WorkStatus = None,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    async def read(last: int | None, number: int) -> list[dict[str, Any]]:
        return await scheduler.look(lambda tx: work.list_items(tx, agent, status, last, number))

    items, last = await page(
        limit, read_id_cursor("wrk", cursor), read, lambda item: id_number(item["id"]), lambda item: item
    )
    return respond(page_answer(items, cursor_of("wrk", str(last)) if last is not None else None))


@agent_router.post(
    "/api/work",
    operation_id="add_work",
    status_code=201,
    response_model=WorkOut,
    responses={**answers(404, 409), 200: {"description": "there already", "model": WorkOut}},
    summary="Add a work item to an agent's queue",
)
async def add_work(scheduler: Sched, _: Operator, given: WorkIn) -> Response:
    new = work.NewItem(given.title, given.body, given.external_id, given.priority)
    item, is_new = await scheduler.transact(lambda tx, context: work.add_item(tx, context, given.agent, new))
    return respond(answer(201 if is_new else 200, item))


@agent_router.get(
    "/api/work/{item_id}",
    operation_id="get_work",
    response_model=WorkOut,
    responses=answers(404),
    summary="One work item",
)
async def get_work(scheduler: Sched, _: Viewer, item_id: Ref) -> Response:
    return respond(answer(200, await scheduler.look(lambda tx: work.get_item(tx, item_id))))


@agent_router.post(
    "/api/work/{item_id}/release",
    operation_id="release_work",
    response_model=WorkOut,
    responses=answers(404, 409),
    summary="Give back an item that nobody works on any more",
)
async def release_work(scheduler: Sched, _: Operator, item_id: Ref) -> Response:
    return respond(answer(200, await scheduler.transact(lambda tx, _: work.release_item(tx, item_id))))


@agent_router.post(
    "/api/work/{item_id}/retry",
    operation_id="retry_work",
    response_model=WorkOut,
    responses=answers(404, 409),
    summary="Let a done or failed item be worked on again",
)
async def retry_work(scheduler: Sched, _: Operator, item_id: Ref) -> Response:
    return respond(answer(200, await scheduler.transact(lambda tx, _: work.retry_item(tx, item_id))))
