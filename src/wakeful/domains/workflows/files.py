"""The workflow files of a server: deployed at the start and whenever one changes; a broken one stops its workflow."""

from __future__ import annotations

import asyncio
import itertools
import logging
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.adding import add_workflow, install
from wakeful.domains.workflows.deploying import remove_workflow
from wakeful.domains.workflows.issues import Issue, raise_issue
from wakeful.domains.workflows.loading import CannotLoad, FileRef, load_file, source_files
from wakeful.domains.workflows.tables import WorkflowRow, WorkflowVerbs
from wakeful.domains.workflows.versions.on_nodes import forget_version
from wakeful.errors import SchedulerError, StoreError
from wakeful.services import Service
from wakeful.threads import room

if TYPE_CHECKING:
    from wakeful.domains.workflows.authoring import Workflow
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

LOOK_S = 2.0
UNLISTED = "workflows that are listed no more"
log = logging.getLogger("wakeful.workflows")

Signature = tuple[tuple[str, int, int, int], ...]


class WorkflowList(NamedTuple):
    """The workflows that a configuration file lists, and which file that is."""

    refs: Sequence[FileRef]
    owner: str | None = None

    @property
    def sources(self) -> frozenset[str]:
        return frozenset(ref.source for ref in self.refs)


class WorkflowFiles(Service):
    """The workflow files of a scheduler, watched while its engine runs."""

    def __init__(self, scheduler: Scheduler, listed: WorkflowList) -> None:
        super().__init__("the watch over workflow files", LOOK_S, first=LOOK_S)
        self._scheduler = scheduler
        self._listed = listed
        self._seen: dict[str, Signature] = {}
        self._names: dict[str, str] = {}
        self._clashing: set[str] = set()  # files whose workflow has a name that another file's has
        self._looking = asyncio.Lock()

    def load_all(self) -> None:
        """Give the scheduler the code of all files; they are deployed when it starts."""
        for ref in self._listed.refs:
            self._seen[ref.source] = _signature(ref)
            self._take(ref, load_file(ref))
        if self._listed.owner is not None:
            # After all others: what moved to another file is listed there by then.
            self._scheduler.host.write_at_start(UNLISTED, self._remove_unlisted)

    def _remove_unlisted(self, tx: Transaction, context: Context) -> None:
        remove_unlisted(tx, context, self._listed)

    async def run_once(self) -> None:
        """Deploy the files that have changed since they were looked at last."""
        async with self._looking:
            signatures = {ref.source: await room("workflow files").call(_signature, ref) for ref in self._listed.refs}
            changed = [ref for ref in self._listed.refs if signatures[ref.source] != self._seen.get(ref.source)]
            if changed:
                await self._deploy_all(changed, signatures)

    async def relist(self, listed: WorkflowList) -> None:
        """Take over another list."""
        async with self._looking:
            before = {ref.source: ref for ref in self._listed.refs}
            self._listed = listed
            changed = [ref for ref in listed.refs if before.get(ref.source) != ref]
            signatures = {ref.source: await room("workflow files").call(_signature, ref) for ref in changed}
            await self._deploy_all(changed, signatures)
            gone = set(before) - listed.sources
            if gone:
                removed = await self._scheduler.transact(lambda tx, context: remove_unlisted(tx, context, listed))
                for name in removed:
                    install(self._scheduler).drop(name)
                log.info("workflows removed: %s", ", ".join(sorted(removed)) or "none")

    async def _deploy_all(self, changed: Sequence[FileRef], signatures: Mapping[str, Signature]) -> None:
        """Deploy changed files, and those that waited for a name that may be free now."""
        waiting = [ref for ref in self._listed.refs if ref.source in self._clashing and ref not in changed]
        loaded = [(ref, await room("workflow files").call(load_file, ref)) for ref in [*changed, *waiting]]
        before = dict(self._names)
        for ref in changed:  # what the store does not take is looked at again
            self._seen.pop(ref.source, None)
        for ref, found in loaded:  # first, because another of them may have the name now
            if not isinstance(found, CannotLoad) and found.name != before.get(ref.source):
                self._names.pop(ref.source, None)
        for ref, found in loaded:
            await self._deploy(ref, found, before.get(ref.source))
            if ref.source in signatures:
                self._seen[ref.source] = signatures[ref.source]

    async def _deploy(self, ref: FileRef, found: Workflow | CannotLoad, before: str | None) -> None:
        """The code of a file becomes what this scheduler runs, or its workflow, called `before`, is stopped."""
        try:
            found = self._refuse_taken(ref, found)
            if not isinstance(found, CannotLoad):
                self._names[ref.source] = found.name
                await add_workflow(self._scheduler, found, owner=self._listed.owner)
                return
        except StoreError:  # no fault of the file
            if before is not None:
                self._names[ref.source] = before
            raise
        except SchedulerError as error:
            found = CannotLoad(ref, str(error))
        self._report(found)
        if before is not None and before not in self._others(ref):
            install(self._scheduler).drop(before)
        broken = found
        await self._scheduler.transact(lambda tx, context: mark_broken(tx, context, broken, self._listed))

    def _take(self, ref: FileRef, found: Workflow | CannotLoad) -> None:
        """The same before the start: written when the scheduler does."""
        try:
            found = self._refuse_taken(ref, found)
            if not isinstance(found, CannotLoad):
                self._names[ref.source] = found.name
                add_workflow(self._scheduler, found, owner=self._listed.owner)
                return
        except SchedulerError as error:
            found = CannotLoad(ref, str(error))
        self._report(found)
        install(self._scheduler)
        broken = found
        self._scheduler.host.write_at_start(
            ref.source, lambda tx, context: mark_broken(tx, context, broken, self._listed)
        )

    def _refuse_taken(self, ref: FileRef, found: Workflow | CannotLoad) -> Workflow | CannotLoad:
        """The same, unless another of the files has a workflow of that name."""
        taken = None if isinstance(found, CannotLoad) else self._others(ref).get(found.name)
        if isinstance(found, CannotLoad) or taken is None:
            self._clashing.discard(ref.source)
            return found
        self._clashing.add(ref.source)
        return CannotLoad(ref, same_name(found.name, taken))

    def _others(self, ref: FileRef) -> dict[str, str]:
        """The names of other files' workflows, each with its file."""
        listed = self._listed.sources - {ref.source}
        return {name: source for source, name in self._names.items() if source in listed}

    def _report(self, found: CannotLoad) -> None:
        log.error("%s cannot be loaded: %s", found.ref.path, found.message, extra={"trace": found.trace})


def stem(ref: FileRef) -> str:
    """The name of a workflow whose file cannot say it."""
    return re.sub(r"[^a-z0-9_-]", "-", ref.path.stem.lower()).strip("-_")[:64] or "workflow"


def same_name(name: str, source: str) -> str:
    """What is wrong where two files have a workflow of the same name."""
    file, _, attribute = source.removeprefix("file:").rpartition(":")
    return f"the workflow {name} is also in {Path(file).name}:{attribute}: rename one of them"


def mark_broken(tx: Transaction, context: Context, broken: CannotLoad, listed: WorkflowList | None = None) -> None:
    """The workflow of that file is stopped, until it can be loaded; others continue."""
    ref, message = broken.ref, f"{broken.message}\n{broken.trace}".strip()
    table, owner = tx.of(WorkflowVerbs), listed.owner if listed is not None else None
    others = listed.sources - {ref.source} if listed is not None else frozenset[str]()
    row = next((one for one in table.all() if one.source == ref.source), None)
    name = stem(ref) if row is None else row.name
    for number in itertools.count(2):
        row = row or table.get(name)
        if row is None or row.removed_at is not None or row.source not in others:
            break
        name, row = f"{stem(ref)[:56]}-{number}", None  # another file's workflow has that name
    if row is None:
        row = WorkflowRow.new(name, "", ref.source, tx.now)._replace(owner=owner)
        table.add(row)
    elif row.removed_at is not None:
        table.change(row.name, tx.now, removed_at=None, source=ref.source, owner=owner)
    forget_version(tx, context, row.name)
    raise_issue(tx, context, row.name, Issue("load", row.issue_handler, row.issue_run, message))


def remove_unlisted(tx: Transaction, context: Context, listed: WorkflowList) -> list[str]:
    """Remove workflows that this file no longer lists; their names."""
    gone = [row.name for row in tx.of(WorkflowVerbs).all() if is_unlisted(tx, row, listed)]
    for name in gone:
        remove_workflow(tx, context, name)
    return gone


def is_unlisted(tx: Transaction, row: WorkflowRow, listed: WorkflowList) -> bool:
    """Whether a workflow was listed by this file, and is no more.

    A store of one process is used on one machine, whatever that is called: there the path says which file it was.
    Where machines share a store, each may have another file under the same path.
    """
    if listed.owner is None or row.owner is None or row.source in listed.sources:
        return False
    return _file_of(row.owner) == _file_of(listed.owner) if tx.exclusive else row.owner == listed.owner


def _file_of(owner: str) -> str:
    """The path in `machine:path`."""
    return owner.partition(":")[2]


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
