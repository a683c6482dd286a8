"""What a server does for monitors: it puts on record where it is reached, so that commands can say where to ping."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wakeful.errors import SchedulerError

if TYPE_CHECKING:
    from wakeful.kernel.domain import ServerAddress
    from wakeful.scheduler import Scheduler


class PingAddress:
    """Stored whenever the engine begins."""

    def __init__(self, scheduler: Scheduler, url: str) -> None:
        self._scheduler = scheduler
        self._url = url
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._store())

    async def end(self) -> None:
        if self._task is not None:
            await self._task

    async def _store(self) -> None:
        try:
            await self._scheduler.transact(lambda tx, _: tx.facts.put({"server_url": self._url}))
        except SchedulerError:  # the engine reports a store that is away; the address is stored with the next start
            return


def install(scheduler: Scheduler, settings: Any, server: ServerAddress) -> None:  # noqa: ARG001 - all are called alike
    """Keep the address on record."""
    scheduler.host.add_service(PingAddress(scheduler, server.public_url or server.url))
