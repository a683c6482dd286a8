"""What a route can ask for by naming it in its signature: `Sched`, `Settings`, `Ending`.

The providers are coroutines though they wait for nothing: a plain function would be called in a thread, each time.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, cast

from fastapi import Depends
from starlette.requests import HTTPConnection

from wakeful.routing.settings import ServerSettings
from wakeful.scheduler import Scheduler


async def scheduler_of(connection: HTTPConnection) -> Scheduler:
    return cast("Scheduler", connection.app.state.scheduler)


async def settings_of(connection: HTTPConnection) -> ServerSettings:
    return cast("ServerSettings", connection.app.state.settings)


async def ending_of(connection: HTTPConnection) -> asyncio.Event:
    return cast("asyncio.Event", connection.app.state.ending)


Sched = Annotated[Scheduler, Depends(scheduler_of)]
"""The scheduler this server runs."""

Settings = Annotated[ServerSettings, Depends(settings_of)]
"""The server's settings."""

Ending = Annotated[asyncio.Event, Depends(ending_of)]
"""Set when the server is asked to stop: streams announce it and end."""
