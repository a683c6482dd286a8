"""`/ping/KEY`: where outside jobs report in, with `curl` or anything else; and a new key for a monitor.

No token is needed: the key in the address is the secret. `GET` and `HEAD` work like `POST`, for tools that send only
those. A key that is used too often gets 429.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from typing import TYPE_CHECKING, Annotated, Any, cast

from fastapi import APIRouter, Path, Query, Request
from pydantic import WithJsonSchema
from starlette.responses import PlainTextResponse, Response

from wakeful.clock import Clock
from wakeful.domains.monitors import MAX_BODY
from wakeful.domains.monitors.keys import rotate
from wakeful.domains.monitors.pinging import Report, read_text, receive
from wakeful.domains.monitors.tables import Monitors
from wakeful.kernel.actions.authorization import own_job
from wakeful.kernel.actions.recording import note, origin_of
from wakeful.routing.addresses import JobRef
from wakeful.routing.auth import Allowed, Editor, Gate, address_of
from wakeful.routing.models import JobOut
from wakeful.routing.problems import ApiError, answers
from wakeful.routing.rendering import answer_job
from wakeful.routing.wiring import Sched, Settings
from wakeful.scheduler import Scheduler

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

router = APIRouter(tags=["monitors"])

BURST = 60  # pings a key may send at once
PER_S = 1.0  # and as many a second from then on
MOST_KEYS = 10_000
HIGHEST_EXIT = 255

Key = Annotated[str, Path(max_length=100, description="the monitor's key")]
What = Annotated[
    str,
    Path(max_length=20, description="start, fail, log, or an exit code from 0 to 255"),
    WithJsonSchema({"type": "string", "pattern": "^(start|fail|log|[0-9]{1,2}|1[0-9]{2}|2[0-4][0-9]|25[0-5])$"}),
]
Rid = Annotated[
    str | None,
    Query(max_length=1000, description="identifies one of several overlapping runs, such as a UUID"),
    WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9._:-]{1,64}$"}),
]
_RID = re.compile(r"[A-Za-z0-9._:-]{1,64}")
_ANSWERS: dict[int | str, dict[str, Any]] = {
    **answers(404, 429),
    200: {"description": "taken", "content": {"text/plain": {"schema": {"const": "OK"}}}},
}


class Allowance:
    """How often a key may be used: a burst, then a steady rate. The keys that were used longest ago are forgotten."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left: OrderedDict[str, tuple[float, int]] = OrderedDict()

    def take(self, key: str) -> None:
        """Let one ping through, or answer 429 with when to come again."""
        now = self._clock.boot()
        left, since = self._left.pop(key, (float(BURST), now))
        left = min(float(BURST), left + (now - since) / 1000 * PER_S)
        self._left[key] = (left - 1 if left >= 1 else left, now)
        while len(self._left) > MOST_KEYS:
            self._left.popitem(last=False)
        if left < 1:
            wait = {"Retry-After": str(max(1, round((1 - left) / PER_S)))}
            raise ApiError(
                429, "too_many_pings", "This key is used too often: send at most one ping per second.", headers=wait
            )


def _allowance(request: Request) -> Allowance:
    state = request.app.state
    if not hasattr(state, "ping_allowance"):
        state.ping_allowance = Allowance(state.gate.clock)
    return cast("Allowance", state.ping_allowance)


def _read(what: str | None, rid: str | None, text: str) -> Report:
    """What the address says; 404 for a word, and 400 for a number or a rid, that means nothing."""
    rid = rid or None
    if rid is not None and _RID.fullmatch(rid) is None:
        raise ApiError(400, "bad_rid", "A rid has 1 to 64 letters, digits, dots, colons, dashes or underscores.")
    if what is None:
        return Report("success", None, rid, text)
    if what in ("start", "fail", "log"):
        return Report(what, None, rid, text)
    if not (what.isascii() and what.isdigit()):
        raise ApiError(404, "not_found", "After the key comes start, fail, log or an exit code.")
    code = int(what)
    if code > HIGHEST_EXIT:
        raise ApiError(400, "bad_exit_code", f"An exit code is a number from 0 to {HIGHEST_EXIT}.")
    return Report("success" if code == 0 else "fail", code, rid, text)


async def _take(request: Request, scheduler: Scheduler, key: str, what: str | None, rid: str | None) -> Response:
    _allowance(request).take(key)
    report = _read(what, rid, "")
    # Who guesses occupies neither the writer nor the memory.
    known = await scheduler.read(lambda tx: tx.of(Monitors).job_of(key))
    if known is not None and request.method == "POST":
        report = report._replace(text=read_text(await request.body()))
    if known is None or await scheduler.transact(lambda tx, context: receive(tx, context, key, report)) is None:
        gate: Gate = request.app.state.gate
        wrong = ApiError(404, "not_found", "There is no monitor with this key.")
        raise gate.failures.refusal(address_of(request), wrong)
    return PlainTextResponse("OK", headers={"Ping-Body-Limit": str(MAX_BODY)})


@router.get(
    "/ping/{key}", operation_id="get_ping", response_class=PlainTextResponse, responses=_ANSWERS, summary="It succeeded"
)
async def get_ping(request: Request, scheduler: Sched, key: Key, rid: Rid = None) -> Response:
    return await _take(request, scheduler, key, None, rid)


@router.post(
    "/ping/{key}", operation_id="ping", response_class=PlainTextResponse, responses=_ANSWERS, summary="It succeeded"
)
async def ping(request: Request, scheduler: Sched, key: Key, rid: Rid = None) -> Response:
    return await _take(request, scheduler, key, None, rid)


@router.get(
    "/ping/{key}/{what}",
    operation_id="get_ping_what",
    response_class=PlainTextResponse,
    responses=_ANSWERS,
    summary="Report a start, a failure, an exit code or a log message",
)
async def get_ping_what(request: Request, scheduler: Sched, key: Key, what: What, rid: Rid = None) -> Response:
    return await _take(request, scheduler, key, what, rid)


@router.post(
    "/ping/{key}/{what}",
    operation_id="ping_what",
    response_class=PlainTextResponse,
    responses=_ANSWERS,
    summary="Report a start, a failure, an exit code or a log message",
)
async def ping_what(request: Request, scheduler: Sched, key: Key, what: What, rid: Rid = None) -> Response:
    return await _take(request, scheduler, key, what, rid)


@router.post(
    "/api/jobs/{ref}/rotate-key",
    operation_id="rotate_key",
    response_model=JobOut,
    responses=answers(404),
    summary="Give a monitor a new key; the old one stops working",
)
async def rotate_key(scheduler: Sched, caller: Editor, rights: Allowed, settings: Settings, ref: JobRef) -> Response:
    def work(tx: Transaction, context: Context) -> None:
        job, _ = own_job(tx, ref, rights)
        rotate(tx, job)
        note(tx, origin_of(context), "edit", job)

    await scheduler.transact(work, rights=rights)
    return await answer_job(scheduler, settings, caller, rights, ref)
