"""`/api/jobs`: make, read, change, run, pause and resume jobs."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Path, Query
from starlette.responses import Response

from wakeful import ids
from wakeful.kernel.actions import authorized
from wakeful.kernel.actions.selections import BulkResult, JobSelection, pause_many, resume_many, run_many
from wakeful.kernel.model.job import Job
from wakeful.kernel.model.run import Run
from wakeful.routing.addresses import AS_SENT, JobRef
from wakeful.routing.auth import Allowed, Anyone, Caller, Editor
from wakeful.routing.idempotency import Key, StoredAnswer, answer, respond, undoable
from wakeful.routing.models import (
    Explained,
    JobCreate,
    JobOut,
    JobPatch,
    JobPut,
    Noted,
    RunNow,
    RunOut,
    Status,
    Upcoming,
)
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, cursor_of, page, page_answer, read_cursor
from wakeful.routing.problems import ApiError, answers
from wakeful.routing.rendering import etag, has_secrets, job_shape, local, run_shape, whole_job, with_secrets, zone_of
from wakeful.routing.wiring import Sched, Settings
from wakeful.scheduler import Scheduler
from wakeful.store.jobs import JobFilter
from wakeful.surfaces.api.bulk_models import ManyDone, ManyJobs, ManyPreview, PreviewJobs
from wakeful.surfaces.api.definitions import IfMatch, IfNew, IfNoneMatch, changes, condition, new_job, unchanged
from wakeful.triggers import iso, to_ms

router = APIRouter(prefix="/api", tags=["jobs"])
SOURCE = "api"  # of the jobs that are made here

Ref = JobRef
Word = Annotated[str | None, Query(max_length=1000)]
_ETAG = {"ETag": {"description": "the job's revision, in quotes", "schema": {"type": "string"}}}
_LOCATION = {"Location": {"description": "where it is", "schema": {"type": "string"}}}


def _render(job: Job, caller: Caller, scheduler: Scheduler, status: int = 200) -> StoredAnswer:
    headers = {"ETag": etag(job.revision)}
    if status == 201:
        headers["Location"] = f"/api/jobs/{job.id}"
    return answer(status, job_shape(job, caller, scheduler.host.default_zone), **headers)


@router.get(
    "/jobs", operation_id="list_jobs", response_model=Page[JobOut], responses=answers(), summary="Jobs, by name"
)
async def list_jobs(
    *,
    scheduler: Sched,
    caller: Anyone,
    rights: Allowed,
    kind: Word = None,
    owner: Word = None,
    source: Word = None,
    status: Status | None = None,
    enabled: bool | None = None,
    q: Annotated[str | None, Query(max_length=1000, description="in the name")] = None,
    internal: Annotated[bool, Query(description="also jobs of internal kinds, such as deliveries")] = False,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> Response:
    hidden, zone = () if internal else scheduler.host.hidden_kinds, scheduler.host.default_zone
    wanted = JobFilter(kind, owner, source, status, enabled, contains=q or None, hidden=hidden)
    items, last = await page(
        limit,
        read_cursor("job", cursor),
        lambda after, count: scheduler.server_side.list_jobs(wanted._replace(after=after, limit=count), rights),
        lambda job: job.name,
        lambda job: job_shape(job, caller, zone),
    )
    return respond(page_answer(items, cursor_of("job", last) if last is not None else None))


@router.post(
    "/jobs",
    operation_id="create_job",
    response_model=JobOut,
    status_code=201,
    responses={**answers(409), 201: {"description": "made", "headers": {**_ETAG, **_LOCATION}}},
    summary="Make a job",
)
async def create_job(
    *, scheduler: Sched, caller: Editor, rights: Allowed, settings: Settings, written: JobCreate, key: Key
) -> Response:
    new, enabled = new_job(written, written.name), written.enabled is not False
    draft = scheduler.host.draft(new, SOURCE)
    response = await key.transact(
        scheduler,
        lambda tx, context: authorized.create_job(tx, context, draft, enabled=enabled),
        lambda job: _render(job, caller, scheduler, 201),
        rights=rights,
    )
    return await with_secrets(response, scheduler, settings) if has_secrets(new) else response


@router.post(
    "/jobs:pause",
    operation_id="pause_jobs",
    response_model=ManyDone,
    responses=answers(404, 409),
    summary="Pause many jobs in one transaction",
)
async def pause_jobs(scheduler: Sched, _: Editor, rights: Allowed, many: ManyJobs, key: Key) -> Response:
    meant = _meant(many, scheduler.host.hidden_kinds)
    return await key.transact(
        scheduler, lambda tx, context: pause_many(tx, context, meant, many.note), _render_many, rights=rights
    )


@router.post(
    "/jobs:resume",
    operation_id="resume_jobs",
    response_model=ManyDone,
    responses=answers(404, 409),
    summary="Resume many jobs in one transaction",
)
async def resume_jobs(scheduler: Sched, _: Editor, rights: Allowed, many: ManyJobs, key: Key) -> Response:
    meant = _meant(many, scheduler.host.hidden_kinds)
    return await key.transact(
        scheduler, lambda tx, context: resume_many(tx, context, meant), _render_many, rights=rights
    )


@router.post(
    "/jobs:run",
    operation_id="run_jobs",
    response_model=ManyDone,
    responses=answers(404, 409),
    summary="Start many jobs now, in one transaction; it cannot be undone",
)
async def run_jobs(scheduler: Sched, _: Editor, rights: Allowed, many: ManyJobs, key: Key) -> Response:
    meant = _meant(many, scheduler.host.hidden_kinds)
    return await key.transact(scheduler, lambda tx, context: run_many(tx, context, meant), _render_many, rights=rights)


@router.post(
    "/jobs:preview",
    operation_id="preview_jobs",
    response_model=ManyPreview,
    responses=answers(404, 409),
    summary="What starting, pausing or resuming many jobs would do; nothing is changed",
)
async def preview_jobs(scheduler: Sched, _: Editor, rights: Allowed, many: PreviewJobs) -> Response:
    meant = _meant(many, scheduler.host.hidden_kinds)
    found = await scheduler.server_side.preview_jobs(many.do, meant, rights)
    return respond(
        answer(
            200, {"count": found.changes, "unchanged": found.unchanged, "refused": found.refused, "says": found.says}
        )
    )


def _meant(many: ManyJobs, hidden: tuple[str, ...]) -> JobSelection:
    """The jobs that the list shows for the same filter; those of internal kinds only by their names or their kind."""
    if sum(part is not None for part in (many.ids, many.filter, many.all)) != 1:
        raise ApiError(422, "invalid", 'Name the jobs: give ids, filter or "all": true.')
    if many.ids is not None:
        return JobSelection(refs=tuple(many.ids))
    if many.filter is None:
        return JobSelection(wanted=JobFilter(hidden=hidden))
    given = many.filter
    wanted = JobFilter(
        given.kind, given.owner, given.source, given.status, given.enabled, contains=given.q, hidden=hidden
    )
    return JobSelection(wanted=wanted)


def _render_many(done: BulkResult) -> StoredAnswer:
    body = {
        "count": len(done.changed), "names": done.changed, "unchanged": done.unchanged, "refused": done.refused,
    }  # fmt: skip
    return answer(200, body, **undoable(done.action))


@router.get(
    "/jobs/{ref}",
    operation_id="get_job",
    response_model=JobOut,
    responses={
        **answers(404),
        200: {"description": "the job", "headers": _ETAG},
        304: {"description": "the caller has this revision already", "headers": _ETAG},
    },
    summary="One job",
)
async def get_job(
    *,
    scheduler: Sched,
    caller: Anyone,
    rights: Allowed,
    settings: Settings,
    ref: Ref,
    if_none_match: IfNoneMatch = None,
) -> Response:
    job = await scheduler.server_side.get_job(ref, rights)
    if unchanged(if_none_match, job.revision):
        return Response(status_code=304, headers={"ETag": etag(job.revision)})
    return respond(await whole_job(job, caller, scheduler, settings))


@router.put(
    "/jobs/{ref}",
    operation_id="put_job",
    response_model=JobOut,
    responses={
        **answers(404, 409, 412),
        200: {"description": "replaced, or unchanged", "headers": _ETAG},
        201: {"description": "made", "model": JobOut, "headers": {**_ETAG, **_LOCATION}},
    },
    summary="Make a job, or replace the one of this name",
)
async def put_job(
    *,
    scheduler: Sched,
    caller: Editor,
    rights: Allowed,
    written: JobPut,
    name: Annotated[
        str, Path(alias="ref", max_length=1000, description="the job's name, or the id of one there is"), AS_SENT
    ],
    if_match: IfMatch = None,
    if_none_match: IfNew = None,
) -> Response:
    wanted = condition(if_match, if_none_match)
    if ids.decode(name) is not None:
        name = (await scheduler.server_side.get_job(name, rights)).name
    if written.name not in (None, name):
        raise ApiError(400, "invalid_job", f"The address says {name!r:.300} and the body says another name.")
    draft, enabled = scheduler.host.draft(new_job(written, name), SOURCE), written.enabled
    changed = await scheduler.transact(
        lambda tx, context: authorized.put_job(tx, context, draft, wanted, enabled=enabled), rights=rights
    )
    rendered = _render(changed.job, caller, scheduler, 201 if changed.created else 200)
    return respond(rendered, **undoable(changed.action))


@router.patch(
    "/jobs/{ref}",
    operation_id="patch_job",
    response_model=JobOut,
    responses={**answers(404, 409, 412), 200: {"description": "the job as it is now", "headers": _ETAG}},
    summary="Change some of a job",
)
async def patch_job(
    *, scheduler: Sched, caller: Editor, rights: Allowed, ref: Ref, written: JobPatch, if_match: IfMatch = None
) -> Response:
    wanted, given = condition(if_match), changes(written)
    changed = await scheduler.transact(
        lambda tx, context: authorized.patch_job(tx, context, ref, given, wanted), rights=rights
    )
    return respond(_render(changed.job, caller, scheduler), **undoable(changed.action))


@router.delete(
    "/jobs/{ref}",
    operation_id="delete_job",
    status_code=204,
    response_class=Response,
    responses=answers(404, 412),
    summary="Remove a job; its history stays",
)
async def delete_job(scheduler: Sched, _: Editor, rights: Allowed, ref: Ref, if_match: IfMatch = None) -> Response:
    wanted = condition(if_match)
    action = await scheduler.transact(
        lambda tx, context: authorized.remove_job(tx, context, ref, wanted), rights=rights
    )
    return Response(status_code=204, headers=undoable(action))


@router.post(
    "/jobs/{ref}/run",
    operation_id="run_job",
    response_model=RunOut,
    status_code=202,
    responses={**answers(404, 409), 202: {"description": "it will start", "headers": _LOCATION}},
    summary="Run a job now",
)
async def run_job(
    scheduler: Sched, _: Editor, rights: Allowed, ref: Ref, key: Key, given: RunNow | None = None
) -> Response:
    payload: Any = given.payload if given is not None else None

    def render(run: Run) -> StoredAnswer:
        return answer(202, run_shape(run), Location=f"/api/runs/{run.id}")

    return await key.transact(
        scheduler, lambda tx, context: authorized.run_job(tx, context, ref, payload), render, rights=rights
    )


@router.post(
    "/jobs/{ref}/pause",
    operation_id="pause_job",
    response_model=JobOut,
    responses={**answers(404), 200: {"description": "the job as it is now", "headers": _ETAG}},
    summary="Pause a job: it no longer starts by time",
)
async def pause_job(
    scheduler: Sched, caller: Editor, rights: Allowed, ref: Ref, given: Noted | None = None
) -> Response:
    note = given.note if given is not None else None
    one = JobSelection(refs=(ref,))
    done = await scheduler.transact(lambda tx, context: pause_many(tx, context, one, note), rights=rights)
    job = await scheduler.server_side.get_job(ref, rights)
    return respond(_render(job, caller, scheduler), **undoable(done.action))


@router.post(
    "/jobs/{ref}/resume",
    operation_id="resume_job",
    response_model=JobOut,
    responses={**answers(404, 409), 200: {"description": "the job as it is now", "headers": _ETAG}},
    summary="Resume a job: it starts by time again",
)
async def resume_job(scheduler: Sched, caller: Editor, rights: Allowed, ref: Ref) -> Response:
    one = JobSelection(refs=(ref,))
    done = await scheduler.transact(lambda tx, context: resume_many(tx, context, one), rights=rights)
    for refusal in done.refused.values():
        raise ApiError(409, "refused", refusal)
    job = await scheduler.server_side.get_job(ref, rights)
    return respond(_render(job, caller, scheduler), **undoable(done.action))


@router.get(
    "/jobs/{ref}/explain",
    operation_id="explain_job",
    response_model=Explained,
    responses=answers(404),
    summary="Explain why it ran or did not run, and when it runs next",
)
async def explain_job(scheduler: Sched, caller: Anyone, rights: Allowed, ref: Ref) -> Response:
    job = await scheduler.server_side.get_job(ref, rights)
    found = (await scheduler.server_side.explain(job.id, rights)).to_dict()
    found["facts"]["job"] = job_shape(job, caller, scheduler.host.default_zone)
    return respond(answer(200, found))


@router.get(
    "/jobs/{ref}/upcoming",
    operation_id="upcoming",
    response_model=Upcoming,
    responses=answers(404),
    summary="When it would start next",
)
async def upcoming(
    scheduler: Sched, _: Anyone, rights: Allowed, ref: Ref, n: Annotated[int, Query(ge=1, le=500)] = 5
) -> Response:
    job = await scheduler.server_side.get_job(ref, rights)
    zone = zone_of(job, scheduler.host.default_zone)
    times = [{"at": iso(to_ms(at)), "local": local(at, zone)} for at in job.upcoming(n)]
    return respond(answer(200, {"job": job.name, "zone": zone, "schedule": job.schedule, "items": times}))
