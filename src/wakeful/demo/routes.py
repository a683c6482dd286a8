"""The routes of the demo: what its page asks for and does. They exist on its server alone.

Only a person who is signed in as admin may use them, from a page of this server.
"""

from __future__ import annotations

import os
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Query, Request

from wakeful.clock import SystemClock
from wakeful.demo.place import DemoFolder
from wakeful.demo.story import is_over, latest
from wakeful.demo.tricks import Tricks
from wakeful.routing.auth import COOKIE, Admin, presented
from wakeful.routing.problems import ApiError
from wakeful.routing.strict import Strict
from wakeful.routing.wiring import Sched
from wakeful.triggers.moments import iso


class PhoneState(Strict):
    """Whether the phone is to refuse what is sent to it."""

    broken: bool


async def on_our_page(request: Request, caller: Admin) -> None:
    """A person, on a page of this server: the guard has compared the origin with our own."""
    if presented(request) != request.cookies.get(COOKIE):
        raise ApiError(403, "forbidden", f"{caller.name} has a token: sign in, and use the page of the demo.")
    if request.method != "GET" and "origin" not in request.headers:
        raise ApiError(403, "forbidden_origin", "Only the page of the demo may do this.")


def make_router(place: DemoFolder, tricks: Tricks) -> APIRouter:
    """The routes, for one demo."""
    router = APIRouter(prefix="/demo", include_in_schema=False, dependencies=[Depends(on_our_page)])

    @router.get("/state")
    async def get_state(scheduler: Sched) -> dict[str, Any]:
        state = place.read()
        if state.visited_at is None:
            state = place.change(visited_at=SystemClock().now())
        step = latest(state)
        return {
            "now": iso(scheduler.clock.now()),
            "process": os.getpid(),
            "kills": state.kills,
            "slept_h": state.offset_ms // 3_600_000,
            "story": {"text": step.text, "link": step.link, "over": is_over(state)},
            "phone": await tricks.phone(),
        }

    @router.post("/kill")
    async def kill() -> dict[str, Any]:
        return await tricks.kill()

    @router.get("/killed/{run}")
    async def after_kill(run: str) -> dict[str, Any]:
        return await tricks.after_kill(run)

    @router.post("/sleep")
    async def sleep_an_hour() -> dict[str, Any]:
        return await tricks.sleep_an_hour()

    @router.get("/slept")
    async def after_sleep(since: Annotated[datetime, Query()]) -> dict[str, Any]:
        return await tricks.after_sleep(since)

    @router.post("/phone")
    async def set_phone(wanted: PhoneState) -> dict[str, Any]:
        return await tricks.set_phone(broken=wanted.broken)

    @router.get("/messages/{delivery}")
    async def get_message(delivery: str) -> dict[str, Any]:
        return await tricks.message(delivery)

    return router
