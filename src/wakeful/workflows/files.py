"""The workflow files of a server: deployed at the start and whenever one changes; a broken one stops its workflow."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful import clock
from wakeful.errors import SchedulerError
from wakeful.workflows.adding import add_workflow, install
from wakeful.workflows.issues import Issue, raise_issue
from wakeful.workflows.loading import CannotLoad, FileRef, load_file, source_files
from wakeful.workflows.tables import WorkflowRow, Workflows

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LOOK_S = 2.0
log = logging.getLogger("wakeful.workflows")

Signature = tuple[tuple[str, int, int, int], ...]


class WorkflowFiles:
    """A companion of a scheduler: its workflow files."""

    def __init__(self, scheduler: Scheduler, refs: Sequence[FileRef]) -> None:
        self._scheduler = scheduler
        self._refs = refs
        self._seen: dict[str, Signature] = {}
        self._names: dict[str, str] = {}
        self._task: asyncio.Task[None] | None = None

    def load_all(self) -> None:
        """Give the scheduler the code of all files; they are deployed when it starts."""
        for ref in self._refs:
            self._seen[ref.source] = _signature(ref)
            self._load(ref)

    def begin(self) -> None:
        """The engine runs."""
        self._task = asyncio.ensure_future(self._watch())

    async def end(self) -> None:
        """Nothing more is deployed."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def look(self) -> None:
        """Deploy the files that have changed since they were looked at last."""
        for ref in self._refs:
            now = await asyncio.to_thread(_signature, ref)
            if now == self._seen.get(ref.source):
                continue
            self._seen[ref.source] = now
            await self._load(ref, running=True)

    def _load(self, ref: FileRef, *, running: bool = False) -> asyncio.Future[None]:
        found = load_file(ref)
        try:
            if not isinstance(found, CannotLoad):
                self._names[ref.source] = found.name
                return asyncio.ensure_future(_awaited(add_workflow(self._scheduler, found, forced=running)))
        except SchedulerError as error:
            found = CannotLoad(ref, str(error))
        log.error("%s cannot be loaded: %s", ref.path, found.message, extra={"trace": found.trace})
        install(self._scheduler).drop(self._names.get(ref.source, stem(ref)))

        def broken(tx: Transaction, context: Context) -> None:
            mark_broken(tx, context, found)

        if running:
            return asyncio.ensure_future(self._scheduler.transact(broken))
        self._scheduler.write_at_start(self._names.get(ref.source, stem(ref)), broken)
        return asyncio.ensure_future(_awaited(None))

    async def _watch(self) -> None:
        while True:
            await clock.sleep(LOOK_S)
            try:
                await self.look()
            except SchedulerError as error:
                log.warning("a workflow file was not deployed; trying again when it changes: %s", error)


async def _awaited(work: object) -> None:
    if hasattr(work, "__await__"):
        await work


def stem(ref: FileRef) -> str:
    """The name of a workflow whose file cannot say it."""
    return re.sub(r"[^a-z0-9_-]", "-", ref.path.stem.lower()).strip("-_")[:64] or "workflow"


def mark_broken(tx: Transaction, context: Context, broken: CannotLoad) -> None:
    """The workflow of that file is stopped, until it can be loaded; others go on."""
    ref, message = broken.ref, f"{broken.message}\n{broken.trace}".strip()
    table = tx.of(Workflows)
    row = next((one for one in table.all() if one.source == ref.source), None) or table.get(stem(ref))
    if row is None:
        row = WorkflowRow.new(stem(ref), "", ref.source, tx.now)
        table.add(row)
    raise_issue(tx, context, row.name, Issue("load", row.issue_handler, row.issue_run, message))


def _signature(ref: FileRef) -> Signature:
    found = []
    try:
        names = sorted(source_files(ref.path))
    except OSError:
        names = [ref.path.name]
    for name in names:
        try:
            stat = (ref.path.parent / name).stat()
            found.append((name, stat.st_mtime_ns, stat.st_size, stat.st_ino))
        except OSError:
            found.append((name, 0, 0, 0))
    return tuple(found)
