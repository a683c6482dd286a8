"""`/api/runs`: what was started, why, and how it ended; end it, try it again, approve it, report its end."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Annotated, NamedTuple

from fastapi import APIRouter, Depends, Path, Query, Request
from pydantic import WithJsonSchema
from starlette.responses import PlainTextResponse, Response

from wakeful.errors import InvalidTrigger, WrongCallbackToken
from wakeful.ids import first_id_at
from wakeful.kernel.actions import authorized
from wakeful.kernel.context import Rights
from wakeful.kernel.model.run import Run
from wakeful.kernel.rules.outcome import APPROVAL
from wakeful.routing.addresses import JobRef
from wakeful.routing.auth import Allowed, Anyone, Caller, Editor, Gate, Operator, address_of, anyone, callback_token_in
from wakeful.routing.idempotency import Key, StoredAnswer, answer, respond
from wakeful.routing.models import Completed, Completion, Explained, Noted, Outcome, RunDetail, RunOut, RunStatus
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, cursor_of, id_number, page, page_answer, read_id_cursor
from wakeful.routing.problems import ApiError, answers
from wakeful.routing.rendering import run_detail, run_shape
from wakeful.routing.wiring import Sched
from wakeful.scheduler import Scheduler
from wakeful.store.runs import RunFilter
from wakeful.surfaces.api.run_logs import Downloads, LogAnswer, tail_of
from wakeful.threads import room
from wakeful.triggers.moments import read_moment

router = APIRouter(prefix="/api", tags=["runs"])

Ref = Annotated[str, Path(max_length=100, description="a run's id")]
Word = Annotated[str | None, Query(max_length=1000)]
Time = Annotated[
    str | None,
    Query(max_length=100, description="ISO 8601 with an offset, or Z"),
    WithJsonSchema({"type": "string", "format": "date-time", "maxLength": 100}),
]
LOG_MOST = 16 * 1024 * 1024
_LOCATION = {"Location": {"description": "where it is", "schema": {"type": "string"}}}


class _Wanted(NamedTuple):
    """The filters of a list of runs, and how many of them."""

    filter: RunFilter
    limit: int


async def _wanted(
    *,
    kind: Word = None,
    status: RunStatus | None = None,
    outcome: Outcome | None = None,
    reason: Word = None,
    phase: Word = None,
    node: Word = None,
    since: Time = None,
    until: Time = None,
    limit: Limit = LIMIT,
    cursor: Cursor = None,
) -> _Wanted:
    before = read_id_cursor("run", cursor)
    ends = [end for end in (before, _id_at("until", until)) if end is not None]
    wanted = RunFilter(
        kind=kind,
        status=status,
        outcome=outcome,
        reason=reason,
        phase=phase,
        node=node,
        from_id=_id_at("since", since),
        before_id=min(ends) if ends else None,
    )
    return _Wanted(wanted, limit)


def _id_at(field: str, text: str | None) -> int | None:
    if text is None:
        return None
    try:
        # A plus that was not escaped arrives as a space.
        return min(first_id_at(read_moment(text.replace(" ", "+"), field)), 2**63 - 1)
    except (InvalidTrigger, OverflowError) as error:
        raise ApiError(400, "invalid_time", str(error)) from None


Wanted = Annotated[_Wanted, Depends(_wanted)]


async def _page(scheduler: Scheduler, rights: Rights, wanted: _Wanted, job: str | None) -> Response:
    def read(before: int | None, count: int) -> Awaitable[list[Run]]:
        return scheduler.server_side.list_runs(wanted.filter._replace(before_id=before, limit=count), rights, job=job)

    items, last = await page(wanted.limit, wanted.filter.before_id, read, lambda run: id_number(run.id), run_shape)
    return respond(page_answer(items, cursor_of("run", str(last)) if last is not None else None))


@router.get(
    "/runs",
    operation_id="list_runs",
    response_model=Page[RunOut],
    responses=answers(404),
    summary="Runs, the newest first",
)
async def list_runs(scheduler: Sched, _: Anyone, rights: Allowed, wanted: Wanted, job: Word = None) -> Response:
    return await _page(scheduler, rights, wanted, job)


@router.get(
    "/approvals",
    operation_id="list_approvals",
    response_model=Page[RunOut],
    responses=answers(),
    summary="Runs that wait for approval, the newest first; the last of `approvals` is the open question",
)
async def list_approvals(
    scheduler: Sched, _: Anyone, rights: Allowed, limit: Limit = LIMIT, cursor: Cursor = None
) -> Response:
    wanted = RunFilter(status="waiting", phase=APPROVAL, before_id=read_id_cursor("run", cursor))
    return await _page(scheduler, rights, _Wanted(wanted, limit), None)


@router.get(
    "/jobs/{ref}/runs",
    operation_id="list_job_runs",
    response_model=Page[RunOut],
    responses=answers(404),
    summary="A job's runs, the newest first; also a removed job's",
)
async def list_job_runs(scheduler: Sched, _: Anyone, rights: Allowed, ref: JobRef, wanted: Wanted) -> Response:
    return await _page(scheduler, rights, wanted, ref)


@router.get(
    "/runs/{run_id}",
    operation_id="get_run",
    response_model=RunDetail,
    responses=answers(404),
    summary="One run with all its details",
)
async def get_run(scheduler: Sched, caller: Anyone, rights: Allowed, run_id: Ref) -> Response:
    return await _shown(scheduler, await scheduler.server_side.get_run(run_id, rights), caller)


async def _shown(scheduler: Scheduler, run: Run, caller: Caller) -> Response:
    has_log = await room("logs").call(scheduler.log_path(run.id).exists)
    return respond(answer(200, run_detail(run, caller, has_log=has_log)))


@router.get(
    "/runs/{run_id}/log",
    operation_id="get_run_log",
    response_class=PlainTextResponse,
    responses=answers(404),
    summary="The output of a run as text; for a command also while it runs",
)
async def get_run_log(
    request: Request,
    scheduler: Sched,
    _: Anyone,
    rights: Allowed,
    run_id: Ref,
    most: Annotated[int, Query(alias="bytes", ge=1, le=LOG_MOST, description="how many bytes, from the end")] = 1024
    * 1024,
) -> Response:
    run = await scheduler.server_side.get_run(run_id, rights)
    downloads: Downloads = request.app.state.downloads
    downloads.check()
    tail = await room("logs").call(tail_of, scheduler.log_path(run.id), most, run)
    if rights.run is not None:  # what was written since the first look may be words from outside
        await scheduler.server_side.get_run(run_id, rights)
    return LogAnswer(tail, downloads)


@router.get(
    "/runs/{run_id}/explain",
    operation_id="explain_run",
    response_model=Explained,
    responses=answers(404),
    summary="Explain why it was started and how it ended",
)
async def explain_run(scheduler: Sched, _: Anyone, rights: Allowed, run_id: Ref) -> Response:
    run = await scheduler.server_side.get_run(run_id, rights)
    return respond(answer(200, (await scheduler.server_side.explain(run.id, rights)).to_dict()))


# -- doing something to a run ------------------------------------------------------------------------------------------


@router.post(
    "/runs/{run_id}/cancel",
    operation_id="cancel_run",
    response_model=RunDetail,
    responses=answers(404, 409),
    summary="End a run",
)
async def cancel_run(scheduler: Sched, caller: Editor, rights: Allowed, run_id: Ref) -> Response:
    run = await scheduler.transact(
        lambda tx, context: authorized.cancel_run(tx, context, run_id), rights=rights, cancels=True
    )
    return await _shown(scheduler, run, caller)


@router.post(
    "/runs/{run_id}/retry",
    operation_id="retry_run",
    response_model=RunOut,
    status_code=202,
    responses={**answers(404, 409), 202: {"description": "it will start", "headers": _LOCATION}},
    summary="Retry a run that has ended",
)
async def retry_run(scheduler: Sched, _: Editor, rights: Allowed, run_id: Ref, key: Key) -> Response:
    return await key.transact(
        scheduler, lambda tx, context: authorized.retry_run(tx, context, run_id), _goes_on, rights=rights
    )


@router.post(
    "/runs/{run_id}/approve",
    operation_id="approve_run",
    response_model=RunOut,
    status_code=202,
    responses={**answers(404, 409), 202: {"description": "the run that continues", "headers": _LOCATION}},
    summary="Approve a run that waits for approval",
)
async def approve_run(
    scheduler: Sched, _: Operator, rights: Allowed, run_id: Ref, key: Key, given: Noted | None = None
) -> Response:
    note = given.note if given is not None else None
    return await key.transact(
        scheduler, lambda tx, context: authorized.approve_run(tx, context, run_id, note), _goes_on, rights=rights
    )


@router.post(
    "/runs/{run_id}/reject",
    operation_id="reject_run",
    response_model=RunDetail,
    responses=answers(404, 409),
    summary="Reject a run that waits for approval",
)
async def reject_run(
    scheduler: Sched, caller: Operator, rights: Allowed, run_id: Ref, given: Noted | None = None
) -> Response:
    note = given.note if given is not None else None
    run = await scheduler.transact(lambda tx, context: authorized.reject_run(tx, context, run_id, note), rights=rights)
    return await _shown(scheduler, run, caller)


def _goes_on(run: Run) -> StoredAnswer:
    return answer(202, run_shape(run), Location=f"/api/runs/{run.id}")


class Reporter(NamedTuple):
    """Who reports the end of a run: an operator, or the run's own callback token."""

    token: str | None
    gate: Gate
    address: str


async def reporter(
    request: Request,
    token: Annotated[str | None, Query(max_length=200, description="the run's own callback token")] = None,
) -> Reporter:
    """A callback token in the address or as the bearer; anything else must be an operator's token."""
    del token  # described here, and read where admission reads it
    gate, address = request.app.state.gate, address_of(request)
    given = callback_token_in(request)
    if given is not None:
        return Reporter(given, gate, address)
    caller = await anyone(request)
    if caller.is_agent or not caller.may("operator"):
        raise ApiError(403, "forbidden", f"Token {caller.name} has the role {caller.role}; this needs operator.")
    return Reporter(None, gate, address)


@router.post(
    "/runs/{run_id}/complete",
    operation_id="complete_run",
    response_model=Completed,
    responses={
        **answers(404, 409),
        200: {"description": "the run has ended"},
        202: {"description": "kept until the run waits for it", "model": Completed},
    },
    summary="Report how work that continues elsewhere has ended",
)
async def complete_run(
    scheduler: Sched, said: Annotated[Reporter, Depends(reporter)], run_id: Ref, given: Completion
) -> Response:
    error = given.error
    if given.outcome == "success" and error is not None:
        raise ApiError(422, "invalid", "A success has no error: leave one of them out.")
    if given.outcome == "error" and error is None:
        error = "reported as failed, without a reason"
    try:
        settled = await scheduler.server_side.report_run(run_id, given.output, error=error, token=said.token)
    except WrongCallbackToken as wrong:
        raise said.gate.failures.refusal(said.address, wrong) from wrong
    return respond(answer(200 if settled else 202, {"run": run_id, "settled": settled}))
