"""Is it there, is it well: for supervisors and load balancers, without a token and without a secret."""

from __future__ import annotations

from typing import Literal

from fastapi import APIRouter, Response
from pydantic import BaseModel

from wakeful import __version__
from wakeful.routing.problems import GONE
from wakeful.routing.wiring import Ending, Sched
from wakeful.scheduler import Scheduler

router = APIRouter(tags=["health"])


class Health(BaseModel):
    """How the server is; `reasons` say why it is not ready."""

    status: Literal["ok", "unavailable"]
    version: str
    reasons: list[str] = []


class Alive(BaseModel):
    """The process answers."""

    status: Literal["ok"] = "ok"


def reasons_against(scheduler: Scheduler, *, ending: bool) -> list[str]:
    """Why this server should be given no work, in sentences; none when it is ready."""
    state = scheduler.get_state()
    found = []
    if ending or state.status == "stopping":
        found.append("The server is stopping.")
    elif state.status != "running":
        found.append("The engine is not running.")
    if state.store_gone:
        found.append(GONE)
    elif state.trouble is not None:
        found.append("The database is unavailable: the server's log says why.")  # it names hosts, which are for us
    if state.draining:
        found.append("This node is being drained.")
    return found


@router.get("/livez", operation_id="livez")
async def livez() -> Alive:
    """The process answers."""
    return Alive()


@router.get("/readyz", operation_id="readyz", responses={503: {"model": Health}})
async def readyz(scheduler: Sched, ending: Ending, response: Response) -> Health:
    """The engine runs, the store can be reached, and the server is not about to stop."""
    return _health(scheduler, response, ending=ending.is_set())


@router.get("/healthz", operation_id="healthz", responses={503: {"model": Health}})
async def healthz(scheduler: Sched, ending: Ending, response: Response) -> Health:
    """How the server is, in one word."""
    return _health(scheduler, response, ending=ending.is_set())


def _health(scheduler: Scheduler, response: Response, *, ending: bool) -> Health:
    reasons = reasons_against(scheduler, ending=ending)
    response.status_code = 503 if reasons else 200
    return Health(status="unavailable" if reasons else "ok", version=__version__, reasons=reasons)
