"""The server's app: its routes, put together around one scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial

from fastapi import APIRouter, Depends, FastAPI

from wakeful import __version__
from wakeful.domains import domains
from wakeful.kernel.domain import load_routers
from wakeful.routing.auth import Gate
from wakeful.routing.problems import Missing, add_handlers
from wakeful.routing.settings import ServerSettings
from wakeful.routing.strict import refuse_unknown_names
from wakeful.scheduler import Scheduler
from wakeful.surfaces.api import description, events, foresight, health, jobs, me, metrics, record, runs, stats
from wakeful.surfaces.api.run_logs import Downloads

ROUTES = (health, description, me, jobs, runs, events, stats, record, metrics, foresight)


def all_routers() -> list[APIRouter]:
    """The routes of the server itself, and those of every domain."""
    return [*(module.router for module in ROUTES), *(one for domain in domains() for one in load_routers(domain))]


def create_app(
    scheduler: Scheduler,
    settings: ServerSettings,
    pages: Sequence[APIRouter] = (),
    missing: Missing | None = None,
    *,
    first: Sequence[APIRouter] = (),
) -> FastAPI:
    """The HTTP application of this scheduler: all its routes, and the pages of a dashboard if it is given them.

    Routes are tried in order: `first` has those that are requested most.
    """
    app = FastAPI(
        title="Wakeful",
        summary="A durable scheduler: jobs at the right time, once, and why.",
        version=__version__,
        openapi_url=None,
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,
        dependencies=[Depends(refuse_unknown_names)],
    )
    app.state.scheduler = scheduler
    app.state.settings = settings
    app.state.gate = Gate(scheduler)
    app.state.measuring = scheduler.server_side.measuring(settings.metrics.per_job)
    app.state.missing = missing
    app.state.ending = asyncio.Event()
    app.state.downloads = Downloads(settings.connections.most_streams)
    add_handlers(app)
    for router in (*first, *all_routers(), *pages):
        app.include_router(router)
    app.state.allowed = partial(description.allowed, [route for router in all_routers() for route in router.routes])
    app.openapi = partial(description.describe, app)  # type: ignore[method-assign]
    return app
