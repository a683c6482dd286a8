"""`/api/schedule`: what is sent to sessions and when, in a plainer shape than jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path
from starlette.responses import Response

from wakeful.domains.agents import schedules
from wakeful.domains.agents.route_models import (
    MINUTE_MS,
    ScheduleChange,
    ScheduleIn,
    ScheduleOut,
    Started,
    Written,
)
from wakeful.domains.agents.schedules import Schedule, ScheduleSpec
from wakeful.domains.agents.task import Task
from wakeful.domains.agents.timing import camel, timing_of
from wakeful.kernel.hooks import Showing
from wakeful.kernel.rules.options import OPTION_NAMES
from wakeful.routing import addresses
from wakeful.routing.auth import Allowed, Anyone, Editor
from wakeful.routing.idempotency import Key, StoredAnswer, answer, respond, undoable
from wakeful.routing.problems import ApiError, answers
from wakeful.routing.rendering import local, zone_of
from wakeful.routing.wiring import Sched
from wakeful.store.interface import Transaction
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
    def work(tx: Transaction, showing: Showing) -> list[Schedule]:
        found = schedules.find_all(tx, rights)
        showing.add(*[one.job.id for one in found])
        return found

    found = await scheduler.server_side.show(rights.run, work)
    return respond(answer(200, [shape(one, scheduler.host.default_zone) for one in found]))


@router.get(
    "/{slug}",
    operation_id="get_schedule",
    response_model=ScheduleOut,
    responses=answers(404),
    summary="One schedule with its state",
)
async def get_schedule(scheduler: Sched, _: Anyone, rights: Allowed, slug: Slug) -> Response:
    def work(tx: Transaction, showing: Showing) -> Schedule:
        found = schedules.find(tx, slug, rights)
        showing.add(found.job.id)
        return found

    found = await scheduler.server_side.show(rights.run, work)
    return respond(answer(200, shape(found, scheduler.host.default_zone)))


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
    wanted = ScheduleSpec(task, given.timing.to_data(), given.enabled, given.agent, options_of(given.options))
    defaults = scheduler.host.job_defaults
    found, created, action = await scheduler.transact(
        lambda tx, context: schedules.put(tx, context, slug, wanted, defaults), rights=rights
    )
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
    for name in ("prompt", "timing", "enabled", "options"):
        if name in given.model_fields_set and getattr(given, name) is None:
            sentence = f"{'schedule' if name == 'timing' else name} cannot be null: leave it out to keep it as it is."
            raise ApiError(422, "invalid", sentence)

    def work(tx: Any, node: Any) -> tuple[Schedule, str | None]:
        found = schedules.find(tx, slug, rights)
        if "agent" in given.model_fields_set and given.agent != found.agent:
            raise ApiError(400, "invalid_job", "A schedule stays with its agent: remove it, and make another one.")
        task = _onto(found.task, given)
        _refuse_session(found.agent, task)
        timing = given.timing.to_data() if given.timing is not None else None
        wanted = ScheduleSpec(task, timing, given.enabled, options=options_of(given.options))
        return schedules.patch(tx, node, slug, wanted)

    found, action = await scheduler.transact(work, rights=rights)
    return respond(answer(200, shape(found, scheduler.host.default_zone), **undoable(action)))


@router.delete(
    "/{slug}",
    operation_id="delete_schedule",
    status_code=204,
    response_class=Response,
    responses=answers(404),
    summary="Remove a schedule; a run in progress finishes",
)
async def delete_schedule(scheduler: Sched, _: Editor, rights: Allowed, slug: Slug) -> Response:
    action = await scheduler.transact(lambda tx, context: schedules.remove(tx, context, slug), rights=rights)
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
    return await key.transact(
        scheduler, lambda tx, context: schedules.start(tx, context, slug), _started, rights=rights
    )


def _onto(task: Task, given: ScheduleChange) -> Task | None:
    """The task with what is to be changed about it; None where nothing is."""
    if given.model_fields_set.isdisjoint({"prompt", "session_config"}):
        return None
    if given.prompt is not None:
        task = task._replace(prompt=given.prompt)
    if "session_config" in given.model_fields_set:
        task = given.session_config.onto(task) if given.session_config is not None else Task(task.prompt)
    return task


def options_of(given: dict[str, Any] | None) -> dict[str, Any] | None:
    """Options in the words of jobs. What is read-only is left out."""
    names = {camel(name): name for name in (*OPTION_NAMES, "hooks")}
    unknown = next((key for key in given or () if key not in names), None)
    if unknown is not None:
        known = ", ".join(sorted(names.keys() - {"bounded"}))
        raise ApiError(422, "invalid", f"options has no {unknown!r:.60}: known are {known}.")
    return None if given is None else {names[key]: value for key, value in given.items() if key != "bounded"}


def _refuse_session(agent: str | None, task: Task | None) -> None:
    if agent is not None and task is not None and task != Task(task.prompt):
        sentence = "A schedule of an agent has no sessionConfig: the agent has sessions of its own."
        raise ApiError(400, "invalid_job", sentence)


def _refuse_another(slug: str, said: str | None) -> None:
    if said not in (None, slug):
        raise ApiError(
            400, "invalid_job", f"The address says {slug!r:.120}, the body {said!r:.120}: use the same name."
        )


def _started(found: tuple[str, str | None]) -> StoredAnswer:
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
        "schedule": timing_of(job.trigger, zone),
        "agent": schedule.agent,
        "sessionConfig": config if schedule.agent is None else None,
        "options": {camel(name): value for name, value in schedule.options.items()},
        "lastRun": iso(to_ms(job.last_run_at)) if job.last_run_at is not None else None,
        "lastResult": schedule.last_result,
        "lastError": schedule.last_error,
        "sessionId": schedule.session,
        "nextRun": iso(schedule.next_at) if schedule.next_at is not None else None,
        "nextRunLocal": local(next_run, place),
        "timezone": place,
        "description": job.trigger.brief(),
        "status": job.status,
        "currentRun": job.current_run,
        "owner": job.owner,
    }
