"""`/api/stats` and `/api/nodes`: the scheduler in figures, and who runs jobs."""

from __future__ import annotations

import math
from typing import Annotated

from fastapi import APIRouter, Path
from starlette.responses import Response

from wakeful.kernel.rules.parking import parked_reason
from wakeful.kernel.views.statistics import Figures
from wakeful.routing.addresses import AS_SENT
from wakeful.routing.auth import Admin, Allowed, Viewer
from wakeful.routing.idempotency import answer, respond
from wakeful.routing.models import NodeOut, Stats
from wakeful.routing.paging import Page
from wakeful.routing.problems import answers
from wakeful.routing.wiring import Sched
from wakeful.scheduler import Scheduler
from wakeful.services import running
from wakeful.store.jobs import STATUS_SQL
from wakeful.triggers import iso, to_ms

router = APIRouter(prefix="/api")

NodeName = Annotated[str, Path(max_length=300, description="a node's name"), AS_SENT]


@router.get(
    "/stats",
    operation_id="get_stats",
    response_model=Stats,
    responses=answers(),
    summary="Statistics of the scheduler",
    tags=["stats"],
)
async def get_stats(scheduler: Sched, _: Viewer) -> Response:
    return respond(answer(200, _shape(await scheduler.server_side.get_figures(), scheduler)))


def _shape(figures: Figures, scheduler: Scheduler) -> dict[str, object]:
    engine = scheduler.get_state()
    parked = [{"waits_for": key, "reason": parked_reason(key), "count": count} for key, count in figures.parked.items()]
    statuses = {status: figures.jobs.get(status, 0) for status in STATUS_SQL}
    return {
        "at": iso(figures.at),
        "jobs": {"total": sum(statuses.values()), **statuses},
        "runs_24h": figures.runs_day,
        "runs_7d": figures.runs_week,
        "open_runs": figures.open_runs,
        "queue_depth": figures.overdue + figures.open_runs.get("queued", 0),
        "parked": parked,
        "lateness": figures.lateness._asdict(),
        "next_alarm_at": iso(figures.next_alarm) if figures.next_alarm is not None else None,
        "open_alerts": figures.open_alerts,
        "engine": {
            "status": engine.status,
            "started_at": iso(to_ms(engine.started_at)) if engine.started_at is not None else None,
            "check_count": engine.check_count,
            "trigger_count": engine.trigger_count,
            "last_check_at": iso(to_ms(engine.last_check_at)) if engine.last_check_at is not None else None,
            "running": scheduler.running_count(),
        },
        "services": [
            {
                "name": one.name,
                "every_s": one.every if math.isfinite(one.every) else None,
                "failing": one.trouble is not None,
            }
            for one in running()
        ],
    }


@router.get(
    "/nodes",
    operation_id="list_nodes",
    response_model=Page[NodeOut],
    responses=answers(),
    summary="Nodes that run jobs of this store, or did recently",
    tags=["nodes"],
)
async def list_nodes(scheduler: Sched, _: Viewer) -> Response:
    return respond(answer(200, {"items": [node.to_dict() for node in await scheduler.list_nodes()], "next": None}))


@router.post(
    "/nodes/{name}/drain",
    operation_id="drain_node",
    response_model=NodeOut,
    responses=answers(404, 409),
    summary="Drain a node: it starts no new runs and finishes those it has",
    tags=["nodes"],
)
async def drain_node(scheduler: Sched, _: Admin, rights: Allowed, name: NodeName) -> Response:
    return respond(answer(200, (await scheduler.server_side.drain_node(name, rights)).to_dict()))


@router.post(
    "/nodes/{name}/undrain",
    operation_id="undrain_node",
    response_model=NodeOut,
    responses=answers(404, 409),
    summary="End the draining of a node: it starts jobs again",
    tags=["nodes"],
)
async def undrain_node(scheduler: Sched, _: Admin, rights: Allowed, name: NodeName) -> Response:
    return respond(answer(200, (await scheduler.server_side.drain_node(name, rights, drain=False)).to_dict()))
