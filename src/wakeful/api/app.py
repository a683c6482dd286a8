"""The server's app: its routes, put together around one scheduler."""

from __future__ import annotations

import asyncio
from functools import partial

from fastapi import APIRouter, Depends, FastAPI

from wakeful import __version__
from wakeful.api import description, events, front, health, jobs, me, record, runs, stats
from wakeful.api.auth import Gate
from wakeful.api.problems import add_handlers
from wakeful.api.run_logs import Downloads
from wakeful.api.settings import ServerSettings
from wakeful.api.strict import refuse_unknown_names
from wakeful.domains import domains
from wakeful.kernel.domain import load_routers
from wakeful.scheduler import Scheduler

ROUTES = (front, health, description, me, jobs, runs, events, stats, record)


def all_routers() -> list[APIRouter]:
    """The routes of the server itself, and those of every domain."""
    return [*(module.router for module in ROUTES), *(one for domain in domains() for one in load_routers(domain))]


def create_app(scheduler: Scheduler, settings: ServerSettings) -> FastAPI:
    """The HTTP application of this scheduler, with all its routes."""
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
    app.state.ending = asyncio.Event()
    app.state.downloads = Downloads(settings.connections.most_streams)
    add_handlers(app)
    for router in all_routers():
        app.include_router(router)
    app.state.allowed = partial(description.allowed, [route for router in all_routers() for route in router.routes])
    app.openapi = partial(description.describe, app)  # type: ignore[method-assign]
    return app
