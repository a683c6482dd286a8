"""A server's configuration file, watched while it serves: what changes in it is applied, and a mistake is reported.

The file is looked at twice a second by its size, times and inode, and read once two looks in a row saw the same: so a
file that is being written is left alone until it is whole. What cannot be used changes nothing and opens one alert.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from wakeful.clock import VirtualClock, sleep
from wakeful.errors import SchedulerError, StoreError
from wakeful.fleet import CONFIG_ALERT
from wakeful.fleet.applying import apply_fleet, place_of, ready_fleet, terms_of
from wakeful.kernel.engine.alerts import close_alert, open_alert

if TYPE_CHECKING:
    from wakeful.fleet.entries import FleetFile
    from wakeful.fleet.planning import Plan
    from wakeful.scheduler import Scheduler

LOOK_S = 0.5
log = logging.getLogger("wakeful.config")
T = TypeVar("T")

Signature = tuple[tuple[str, int, int, int], ...]


class FileWatch:
    """A companion of a scheduler: applies its file at the start and whenever it changes."""

    def __init__(
        self,
        scheduler: Scheduler,
        path: Path,
        load: Callable[[], FleetFile],
        included: Callable[[FleetFile | None], Iterable[Path]],
        loaded: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """`loaded`: takes over what else is in the file, after it was read and before its jobs are applied."""
        self._scheduler = scheduler
        self._path = path
        self._load = load
        self._included = included
        self._loaded = loaded
        self._file: FleetFile | None = None
        self._reported = ""  # the mistake that was last reported
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """The engine runs."""
        self._task = asyncio.get_running_loop().create_task(self._watch())

    async def end(self) -> None:
        """Nothing more is applied."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _watch(self) -> None:
        taken: Signature | None = None
        before: Signature | None = None
        while True:
            seen = await self._aside(self._signature)
            if seen != taken and (taken is None or seen == before):
                taken = seen if await self._safely() else taken
            before = seen
            await sleep(LOOK_S)

    async def _safely(self) -> bool:
        """After an error with one state of the file, the next one is looked at."""
        try:
            return await self._take_over()
        except Exception:
            log.exception("%s could not be applied", self._path)
            return True

    async def _aside(self, work: Callable[[], T]) -> T:
        """A disk may be slow; virtual time has no place for threads."""
        return work() if isinstance(self._scheduler.clock, VirtualClock) else await asyncio.to_thread(work)

    def _signature(self) -> Signature:
        return tuple(_signature(path) for path in (self._path, *self._included(self._file)))

    async def _take_over(self) -> bool:
        """Apply what the file says now; False where that must be tried again."""
        try:
            self._file = file = await self._aside(self._load)
            fleet = ready_fleet(self._scheduler, file)
            if self._loaded is not None:
                await self._loaded()
            terms = terms_of(file, self._scheduler.clock.now())
            plan = await self._scheduler.transact(
                lambda tx, context: apply_fleet(tx, context, fleet, terms, confirmed=False, unless_applied=True)
            )
            if plan is None:
                await self._scheduler.transact(
                    lambda tx, context: close_alert(tx, context, CONFIG_ALERT, place_of(self._path))
                )
            else:
                _log_plan(self._path, plan)
            self._reported = ""
        except StoreError as error:
            log.warning("%s was not applied yet: %s", self._path, error)
            return False
        except SchedulerError as error:
            return await self._alert(str(error))
        return True

    async def _alert(self, why: str) -> bool:
        message = why if why.startswith(str(self._path)) else f"{self._path}: {why}"
        if message == self._reported:
            return True
        log.error("the configuration was not applied: %s", message)
        try:
            await self._scheduler.transact(
                lambda tx, context: open_alert(tx, context, CONFIG_ALERT, place_of(self._path), message)
            )
        except StoreError as error:
            log.warning("no alert could be opened: %s", error)
            return False
        self._reported = message
        return True


def _signature(path: Path) -> tuple[str, int, int, int]:
    try:
        found = path.stat()
    except OSError:
        return (str(path), 0, 0, 0)
    return (str(path), found.st_mtime_ns, found.st_ino, found.st_size)


def _log_plan(path: Path, plan: Plan) -> None:
    if plan.is_empty:
        log.info("%s: jobs are as the file has them", path)
    else:
        made, changed, gone = len(plan.create), len(plan.update), len(plan.remove)
        log.info("%s applied: %s added, %s changed, %s removed", path, made, changed, gone)
