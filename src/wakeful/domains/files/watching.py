"""A server's configuration file, watched while it serves: what changes in it is applied, and a mistake is reported.

It is applied before anything starts. From then on it is looked at twice a second by its size, times and inode, and read
once two looks in a row saw the same: so a file that is being written is left alone until it is whole. What cannot be
used changes nothing, neither jobs nor what else is in the file, and opens one alert.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from wakeful.clock import ManualClock
from wakeful.domains.files import CONFIG_ALERT, DEFAULT_FLEET
from wakeful.domains.files.applying import apply_fleet, check_fleet, place_of, ready_fleet, replaced_by, terms_of
from wakeful.domains.files.tables import AppliedRow, Fleets
from wakeful.errors import SchedulerError, StoreError
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.rules.parking import Unsettled
from wakeful.services import Service
from wakeful.threads import room

if TYPE_CHECKING:
    from wakeful.config.entries import FleetFile
    from wakeful.domains.files.planning import Plan
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LOOK_S = 0.5
log = logging.getLogger("wakeful.config")
T = TypeVar("T")

Signature = tuple[tuple[str, int, int, int], ...]
Note = tuple[Any, ...]  # as `log.log` takes it


class Beside(Protocol):
    """What else is in a file, besides its jobs."""

    async def take(self) -> None:
        """Take over what was read last; nothing where that is what holds already."""

    async def put_back(self) -> None:
        """Back to what held before: the jobs of what was read last could not be applied."""

    def is_taken(self) -> bool:
        """Whether what was read last is what holds."""


class FileWatch(Service):
    """Alongside the engine of a scheduler: applies its file before the first turn, and whenever it changes.

    Where that is refused at the start, nothing that the file owns starts here until it is settled: the file was
    changed, or a person applied it or another one.
    """

    def __init__(
        self,
        scheduler: Scheduler,
        path: Path,
        load: Callable[[], FleetFile],
        included: Callable[[FleetFile | None], Iterable[Path]],
        beside: Beside | None = None,
    ) -> None:
        super().__init__(f"the watch over {path.name}", LOOK_S)
        self._scheduler = scheduler
        self._path = path
        self._load = load
        self._included = included
        self._beside = beside
        self._file: FleetFile | None = None
        self._taken: Signature | None = None  # the state of the file that was taken over, or refused
        self._latest: AppliedRow | None = None  # what was applied last, when the file was refused at the start
        self._unsettled: Unsettled | None = None
        self._reported = ""  # the mistake that was last reported
        self._before: Signature | None = None  # the state of the file at the last look
        self._notes: list[Note] | None = None  # what is to be logged of a start, once the server is there

    async def prepare(self) -> None:
        """Before anything fires: apply the file, or withhold what it owns."""
        self._notes = []
        self._release()
        seen = await self._aside(self._signature)
        if await self._safely(is_start=True):
            is_whole = self._beside is None or self._beside.is_taken()
            self._taken = seen if is_whole else None

    def report(self) -> None:
        """Log what became of the file at the start; a server does so once it has said that it serves."""
        notes, self._notes = self._notes or [], None
        for note in notes:
            log.log(*note)

    def _log(self, level: int, text: str, *values: object) -> None:
        if self._notes is None:
            log.log(level, text, *values)
        else:
            self._notes.append((level, text, *values))

    def begin(self) -> None:
        self._before = None
        super().begin()

    async def run_once(self) -> None:
        """Look at the file; apply it once it has changed and is whole."""
        if self._before is not None:  # a server that has not said yet what became of the file does so now
            self.report()
        seen = await self._aside(self._signature)
        if self._unsettled is not None and await self._was_settled():
            self._release()
            self._taken = None
        if seen != self._taken and (self._taken is None or seen == self._before):
            self._taken = seen if await self._safely() else self._taken
        self._before = seen

    async def _safely(self, *, is_start: bool = False) -> bool:
        """After an error with one state of the file, the next one is looked at; False where it is tried again."""
        try:
            return await self._take_over(is_start=is_start)
        except Exception as error:
            log.exception("%s could not be applied", self._path)
            if is_start:
                await self._withhold()
            return await self._alert(f"It was not applied: {type(error).__name__}: {error}")

    async def _aside(self, work: Callable[[], T]) -> T:
        """A disk may be slow; virtual time has no place for threads."""
        return work() if isinstance(self._scheduler.clock, ManualClock) else await room("configuration").call(work)

    def _signature(self) -> Signature:
        return tuple(_signature(path) for path in (self._path, *self._included(self._file)))

    async def _take_over(self, *, is_start: bool) -> bool:
        """Apply what the file says now; False where that must be tried again."""
        try:
            self._file = file = await self._aside(self._load)
            await self._apply(file, is_start=is_start)
            self._reported = ""
        except StoreError as error:
            self._log(logging.WARNING, "%s was not applied yet: %s", self._path, error)
            if is_start:
                await self._withhold()
            return False
        except SchedulerError as error:
            if is_start:
                await self._withhold()
            return await self._alert(str(error))
        self._release()
        return True

    async def _apply(self, file: FleetFile, *, is_start: bool) -> None:
        """Make the store and this process what the file says, or leave both as they were."""
        fleet, terms = ready_fleet(self._scheduler, file), terms_of(file, self._scheduler.clock.now())
        await self._scheduler.read(lambda tx: check_fleet(tx, fleet, terms))
        beside = self._beside if not is_start else None  # was installed with what it takes
        try:
            if beside is not None:
                await beside.take()
            plan = await self._scheduler.transact(
                lambda tx, context: apply_fleet(tx, context, fleet, terms, confirmed=False, unless_applied=True)
            )
        except Exception:  # whatever it was: a file is taken over as a whole, or not at all
            if beside is not None:
                await beside.put_back()
            raise
        if plan is not None:
            for note in _notes_on(self._path, plan):
                self._log(*note)
            return
        if (why := await self._scheduler.read(lambda tx: replaced_by(tx, fleet))) is not None:
            self._log(logging.WARNING, "%s", why)
        await self._scheduler.transact(lambda tx, context: close_alert(tx, context, CONFIG_ALERT, place_of(self._path)))

    # -- a file that is refused at the start --------------------------------------------------------------------------

    async def _withhold(self) -> None:
        fleet = self._file.name if self._file is not None else DEFAULT_FLEET

        def work(tx: Transaction) -> tuple[Unsettled, AppliedRow | None]:
            jobs = frozenset(row.job_id for row in tx.of(Fleets).owned(fleet))
            return Unsettled(fleet, jobs), tx.of(Fleets).latest(fleet)

        self._unsettled, self._latest = await self._scheduler.read(work)
        self._scheduler.host.withhold(self._unsettled)

    def _release(self) -> None:
        self._unsettled = None
        self._scheduler.host.withhold(None)

    async def _was_settled(self) -> bool:
        """Whether a person applied this file, or another one of its fleet."""
        fleet = self._unsettled.fleet if self._unsettled is not None else DEFAULT_FLEET
        try:
            return await self._scheduler.read(lambda tx: tx.of(Fleets).latest(fleet)) != self._latest
        except StoreError:
            return False

    async def _alert(self, why: str) -> bool:
        message = why if why.startswith(str(self._path)) else f"{self._path}: {why}"
        if self._unsettled is not None:
            message = f"{message.rstrip('.')}. Until this is settled, none of its jobs starts here."
        if message == self._reported:
            return True
        self._log(logging.ERROR, "the configuration was not applied: %s", message)
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


def _notes_on(path: Path, plan: Plan) -> list[Note]:
    """What is logged of a file that was applied."""
    notes: list[Note] = [(logging.WARNING, "%s: %s", path, note) for note in plan.notes]
    if plan.is_empty:
        return [(logging.INFO, "%s: jobs are as the file has them", path), *notes]
    made, changed, gone = len(plan.create), len(plan.update), len(plan.remove)
    return [(logging.INFO, "%s applied: %s added, %s changed, %s removed", path, made, changed, gone), *notes]
