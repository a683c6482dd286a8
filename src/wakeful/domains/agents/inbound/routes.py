"""`/hooks/AGENT/SCHEDULE`, where others start schedules; `/api/messages`; and `/api/requests`, what came in.

A hook needs no token: the request is signed with the schedule's secret. Who sends wrong bearer secrets must wait after
a few.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Mapping
from pathlib import Path as FilePath
from typing import Annotated, Any

from fastapi import APIRouter, Path, Query, Request
from starlette.responses import JSONResponse, Response

from wakeful import ids
from wakeful.domains.agents.inbound import messages
from wakeful.domains.agents.inbound.payloads import UnreadableBody, read_body, values_in
from wakeful.domains.agents.inbound.receiving import (
    WEBHOOK,
    Inbound,
    ReceivedRequest,
    TurnedAway,
    get_request,
    list_requests,
    replay,
    request_text,
    take,
)
from wakeful.domains.agents.inbound.route_models import HookTaken, MessageIn, MessageTaken, RequestDetail, RequestOut
from wakeful.domains.agents.inbound.sections import secrets_of
from wakeful.domains.agents.inbound.signatures import Scheme, SignedRequest, key_of, scheme_of, verify
from wakeful.domains.agents.naming import AGENT
from wakeful.errors import InvalidSetting, SchedulerError
from wakeful.references import filled
from wakeful.routing import addresses
from wakeful.routing.auth import Gate, Operator, Viewer, address_of
from wakeful.routing.idempotency import Key, StoredAnswer, answer, respond
from wakeful.routing.paging import LIMIT, Cursor, Limit, Page, id_page
from wakeful.routing.problems import ApiError, answers
from wakeful.routing.wiring import Sched
from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.agents")

router = APIRouter(tags=["agents"])

#: What is kept of a request's headers, for people who look at it.
KEPT_HEADERS = ("content-type", "user-agent", "x-github-event", "x-gitlab-event", "linear-event", "x-slack-retry-num")
LONGEST_HEADER = 200

AgentName = Annotated[
    str, Path(max_length=200, description="the agent's name", examples=["reporter"]), addresses.AS_SENT
]
ScheduleName = Annotated[
    str, Path(max_length=200, description="the schedule's name", examples=["deploy"]), addresses.AS_SENT
]
Ref = Annotated[str, Path(max_length=200, description="the request's id", examples=["req_1hbm1n0w2c9kd"])]
OfJob = Annotated[str | None, Query(max_length=200, description="only of this schedule", examples=["reporter.deploy"])]


# -- webhooks ----------------------------------------------------------------------------------------------------------


@router.post(
    "/hooks/{agent}/{schedule}",
    operation_id="call_hook",
    status_code=202,
    response_model=HookTaken,
    responses={
        **answers(404, 409, 413, 415, 429),
        200: {"description": "a greeting of the sender, which starts nothing", "content": {"application/json": {}}},
        202: {"description": "stored", "model": HookTaken},
    },
    openapi_extra={"requestBody": {"content": {"application/json": {}, "text/plain": {}}}},
    summary="Start a webhook schedule with a signed request",
)
async def call_hook(request: Request, scheduler: Sched, agent: AgentName, schedule: ScheduleName) -> Response:
    name = f"{agent}.{schedule}"
    webhook = await scheduler.read(lambda tx: _webhook_of(tx, name))  # who guesses does not occupy the writer
    gate: Gate = request.app.state.gate
    if webhook is None:
        raise ApiError(404, "not_found", "There is no webhook at this address.")
    body = await request.body()
    scheme = scheme_of(webhook)
    headers = {key: request.headers.getlist(key) for key in request.headers}
    form = request.headers.get("content-type")
    given = SignedRequest(headers, body, lambda: values_in(body.decode("utf-8", "replace"), form))
    verified = verify(scheme, _keys(scheme, webhook, name), given, scheduler.clock.now())
    if verified is None:
        wrong = ApiError(
            401, "unauthorized", "The signature of this request is missing or wrong.", headers=_challenge(scheme)
        )
        # A signature cannot be guessed, a token can.
        raise gate.failures.refusal(address_of(request), wrong) if scheme.algorithm == "token" else wrong
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise ApiError(415, "encoded", "The body is compressed: send it as it is.")
    try:
        text, data = read_body(body, form)
    except UnreadableBody as error:
        raise ApiError(400, "invalid_body", str(error)) from None
    if (greeting := _greeting(webhook, request, data)) is not None:
        return greeting
    about = {key: request.headers[key][:LONGEST_HEADER] for key in KEPT_HEADERS if key in request.headers}
    inbound = Inbound(WEBHOOK, verified.delivery_id, about, text, digest=verified.digest)

    def work(tx: Transaction, context: Any) -> Any:
        pair = tx.jobs.by_name(name)
        if pair is None or _section(pair[0]) is None:
            raise ApiError(404, "not_found", "There is no webhook at this address.")
        return take(tx, context, pair, inbound)

    found = _accepted(await scheduler.transact(work))
    return respond(answer(202, _taken(found), Location=f"/api/runs/{ids.run_text(found.run_id)}"))


def _accepted(found: ReceivedRequest | TurnedAway) -> ReceivedRequest:
    """What was stored; 429 where too many wait, now that this is counted."""
    if isinstance(found, TurnedAway):
        raise _later(found.error)
    return found


def _later(error: SchedulerError) -> ApiError:
    """The refusal of what may be sent again in a while."""
    return ApiError(error.status, error.code, str(error), headers={"Retry-After": "60"})


def _webhook_of(tx: Transaction, name: str) -> Mapping[str, Any] | None:
    found = tx.jobs.by_name(name)
    return None if found is None else _section(found[0])


def _section(job: Any) -> Mapping[str, Any] | None:
    """The settings of a webhook schedule; None for every other job."""
    found = json.loads(job.payload).get(WEBHOOK) if job.kind == AGENT else None
    return found if isinstance(found, dict) else None


def _keys(scheme: Scheme, webhook: Mapping[str, Any], name: str) -> list[bytes]:
    """What requests are signed with; 503 where this server does not know it."""
    try:
        return [key_of(scheme, filled(secret, FilePath("/"), os.environ)) for secret in secrets_of(webhook)]
    except InvalidSetting as error:
        log.warning("the secret of %s %s", name, error)
        sentence = "The server cannot verify requests to this webhook now."
        raise ApiError(503, "no_secret", sentence, headers={"Retry-After": "60"}) from None


def _challenge(scheme: Scheme) -> dict[str, str]:
    return {"WWW-Authenticate": 'Bearer realm="wakeful"'} if scheme.header == "authorization" else {}


def _greeting(webhook: Mapping[str, Any], request: Request, data: Any) -> Response | None:
    """The answer to a sender that only tries out the address."""
    if webhook.get("verify") == "github" and request.headers.get("x-github-event") == "ping":
        return JSONResponse({"ok": True})
    is_challenge = isinstance(data, dict) and data.get("type") == "url_verification"
    if webhook.get("verify") == "slack" and is_challenge and isinstance(data.get("challenge"), str):
        return JSONResponse({"challenge": data["challenge"]})
    return None


def _taken(found: ReceivedRequest) -> dict[str, Any]:
    return {
        "run": ids.run_text(found.run_id) if found.run_id else None,
        "request": request_text(found.request_id),
        "duplicate": found.is_duplicate,
    }


# -- chat --------------------------------------------------------------------------------------------------------------


@router.post(
    "/api/messages",
    operation_id="pass_on_message",
    status_code=202,
    response_model=MessageTaken,
    responses=answers(404, 409, 429),
    summary="Pass on a chat message, which starts the schedules that match it",
)
async def pass_on_message(scheduler: Sched, _: Operator, given: MessageIn, key: Key) -> Response:
    message = messages.InboundMessage(given.connector, given.sender, given.text, given.message_id)
    return await key.do(lambda once: messages.pass_on(scheduler, message, given.agent, once), _passed_on)


def _passed_on(found: messages.Received) -> StoredAnswer:
    if found.turned_away and not found.taken:
        raise _later(found.turned_away[0])
    runs = [ids.run_text(one.run_id) for one in found.taken if one.run_id]
    first: dict[str, Any] = {"run": None, "request": None, "duplicate": False}
    return answer(202, {**first, **(_taken(found.taken[0]) if found.taken else {}), "runs": runs})


# -- what came in ------------------------------------------------------------------------------------------------------


@router.get(
    "/api/requests",
    operation_id="list_requests",
    response_model=Page[RequestOut],
    responses=answers(400, 404),
    summary="Requests from outside, the newest first",
)
async def list_inbound(
    scheduler: Sched, _: Viewer, *, job: OfJob = None, limit: Limit = LIMIT, cursor: Cursor = None
) -> Response:
    async def read(last: int | None, number: int) -> list[dict[str, Any]]:
        return await scheduler.read(lambda tx: list_requests(tx, job, last, number))

    return respond(await id_page("req", limit, cursor, read))


@router.get(
    "/api/requests/{request_id}",
    operation_id="get_request",
    response_model=RequestDetail,
    responses=answers(404),
    summary="One request with its content",
)
async def get_inbound(scheduler: Sched, _: Operator, request_id: Ref) -> Response:
    return respond(answer(200, await scheduler.read(lambda tx: get_request(tx, request_id))))


@router.post(
    "/api/requests/{request_id}/replay",
    operation_id="replay_request",
    status_code=202,
    response_model=HookTaken,
    responses=answers(404, 409, 429),
    summary="Replay a request: start its schedule again with the same content",
)
async def replay_request(scheduler: Sched, _: Operator, request_id: Ref, key: Key) -> Response:
    return await key.transact(scheduler, lambda tx, context: replay(tx, context, request_id), _replayed)


def _replayed(found: ReceivedRequest | TurnedAway) -> StoredAnswer:
    taken = _accepted(found)
    return answer(202, _taken(taken), Location=f"/api/runs/{ids.run_text(taken.run_id)}")
