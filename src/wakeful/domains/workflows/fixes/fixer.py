"""Looks for workflows whose code failed, asks their hooks for corrections, and deploys what is accepted."""

from __future__ import annotations

import json
import logging
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from wakeful import clock
from wakeful.child_processes import EnvironmentList
from wakeful.domains.workflows.fixes import deciding
from wakeful.domains.workflows.fixes.deciding import Apply, Ask, WorkflowCode
from wakeful.domains.workflows.fixes.hook import HookAnswer, NoAnswer, ask
from wakeful.domains.workflows.fixes.syntax import refuse_other_workflow, refuse_syntax
from wakeful.domains.workflows.fixes.trial import try_out
from wakeful.domains.workflows.function_source import source_text
from wakeful.domains.workflows.loading import CannotLoad, FileRef, load_file, source_files
from wakeful.errors import SchedulerError, StoreError
from wakeful.services import Service
from wakeful.threads import room

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wakeful.domains.workflows.authoring import Workflow
    from wakeful.domains.workflows.fixes.tables import FixRow
    from wakeful.domains.workflows.registry import WorkflowRegistry
    from wakeful.scheduler import Scheduler

LOOK_S = 2.0
IDLE_S = 60.0
T = TypeVar("T")
log = logging.getLogger("wakeful.workflows")


class _Made(NamedTuple):
    """A correction that can be deployed: its version, its source, and the workflow itself where it is no file's."""

    version: str | None  # None where only loading shows it, which waits for the approval
    files: Mapping[str, str]
    workflow: Workflow | None = None


class Fixer(Service):
    """Alongside the engine: does one step for each workflow whose code failed."""

    def __init__(
        self, scheduler: Scheduler, registry: WorkflowRegistry, deploy: Callable[[Scheduler, Workflow], Awaitable[None]]
    ) -> None:
        super().__init__("the search for corrections", IDLE_S)
        self._scheduler = scheduler
        self._registry = registry
        self._deploy = deploy
        self._offered: dict[int, Workflow] = {}  # corrections that only this process has

    def begin(self) -> None:
        super().begin()
        self._registry.on_code_failed = self.wake

    async def run_once(self) -> float:
        """Do one step for each workflow whose code failed; soon again if there is any."""
        stuck = False
        for workflow, version in self._registry.all():
            if workflow.auto_fix is None:
                continue
            how = await self._how_stuck(workflow.name)
            stuck = stuck or how is not None
            if how == "hook":
                await self._take_step(workflow, version)
        return LOOK_S if stuck else IDLE_S

    async def _how_stuck(self, name: str) -> str | None:
        return await self._scheduler.read(lambda tx: deciding.how_stuck(tx, name))

    async def _take_step(self, workflow: Workflow, version: str) -> None:
        code = self._code(workflow, version)
        step = await self._scheduler.transact(lambda tx, context: deciding.next_step(tx, context, workflow.name, code))
        if isinstance(step, Ask):
            await self._ask(workflow, step)
        elif isinstance(step, Apply):
            await self._apply(workflow, step.fix)

    def _code(self, workflow: Workflow, version: str) -> WorkflowCode:
        ref = workflow.ref
        if ref is None:
            return WorkflowCode(version, sources_of(workflow), None, workflow.auto_fix_apply)
        return WorkflowCode(version, texts_of(ref), str(ref.path.parent), workflow.auto_fix_apply)

    # -- asking -------------------------------------------------------------------------------------------------------

    async def _ask(self, workflow: Workflow, step: Ask) -> None:
        fix_id, request = step
        log.info("%s.%s: asking for a correction, try %s", request.workflow, request.handler, request.attempt)
        assert workflow.auto_fix is not None  # noqa: S101 - looked at before
        try:
            home = workflow.ref.home or workflow.ref.path.parent if workflow.ref is not None else None
            hook, env = workflow.auto_fix, workflow.auto_fix_env
            answer = await ask(hook, request, env, home=home, inline=self._is_virtual())
            made = await self._checked(workflow, answer, request.files)
        except NoAnswer as error:
            why = str(error)
            log.warning("%s.%s: no correction: %s", request.workflow, request.handler, why)
            await self._scheduler.transact(lambda tx, context: deciding.failed(tx, context, fix_id, why))
            return
        if made is not None and made.workflow is not None:
            self._offered[fix_id] = made.workflow
        await self._scheduler.transact(
            lambda tx, context: deciding.answered(
                tx, context, fix_id,
                files=made.files if made is not None else None,
                made=made.version if made is not None else None,
                note=answer.note,
                applies=workflow.auto_fix_apply,
            )
        )  # fmt: skip
        self.wake()

    async def _checked(self, workflow: Workflow, answer: HookAnswer, before: Mapping[str, str]) -> _Made | None:
        """The answer as code of the same workflow, as far as that can be seen without running it; else NoAnswer."""
        if answer.workflow is not None:
            return _checked_workflow(workflow, answer.workflow)
        if answer.files is None:
            return None
        if workflow.ref is None:
            raise NoAnswer("this workflow is not from a file: answer with a Workflow")
        files = {**before, **answer.files}
        if files == dict(before):
            return None
        wrong = await self._aside(lambda: _wrong_source(workflow, files))
        if wrong is not None:
            raise NoAnswer(f"the correction cannot be loaded: {wrong}")
        return _Made(None, answer.files)

    async def _aside(self, work: Callable[[], T]) -> T:
        """There are no threads in virtual time."""
        return work() if self._is_virtual() else await room("corrections of workflows").call(work)

    def _is_virtual(self) -> bool:
        return isinstance(self._scheduler.clock, clock.ManualClock)

    # -- deploying ----------------------------------------------------------------------------------------------------

    async def _apply(self, workflow: Workflow, fix: FixRow) -> None:
        try:
            corrected = await self._corrected(workflow, fix)
        except (NoAnswer, OSError) as error:
            why = str(error)
            await self._scheduler.transact(lambda tx, context: deciding.failed(tx, context, fix.id, why))
            return
        try:
            await self._deploy(self._scheduler, corrected)
        except StoreError:
            raise  # tried again with the next look: the files are written, and are written again
        except SchedulerError as error:
            why = str(error)
            await self._scheduler.transact(lambda tx, context: deciding.failed(tx, context, fix.id, why))

    async def _corrected(self, workflow: Workflow, fix: FixRow) -> Workflow:
        """The approved version: loaded in another process first, then written and loaded here."""
        ref = workflow.ref
        if ref is None:
            offered = self._offered.pop(fix.id, None)
            if offered is None:
                raise NoAnswer("the correction was lost when the process that had it ended")
            return offered
        before, files = json.loads(fix.before), json.loads(fix.files or "{}")
        _refuse_changed(ref, before, files)
        env = EnvironmentList.read(workflow.auto_fix_env)
        found = await self._aside(lambda: try_out(ref, {**before, **files}, env))
        if found.name != workflow.name:
            raise NoAnswer(f"the correction is of a workflow called {found.name}")
        await self._scheduler.transact(lambda tx, _: deciding.loaded(tx, fix.id, found.version))
        return await self._aside(lambda: _written(workflow, ref, before, files))


def _wrong_source(workflow: Workflow, files: Mapping[str, str]) -> str | None:
    assert workflow.ref is not None  # noqa: S101 - asked for before
    main = files.get(workflow.ref.path.name)
    if main is None:
        return f"{workflow.ref.path.name} is missing"
    return refuse_syntax(files) or refuse_other_workflow(main, workflow.ref.attribute, workflow.name)


def _refuse_changed(ref: FileRef, before: Mapping[str, str], files: Mapping[str, str]) -> None:
    """NoAnswer where a file is neither as it was when the correction was made nor as the correction has it."""
    folder = ref.path.parent
    for name in {**before, **files}:
        path = folder / name
        if not path.resolve().is_relative_to(folder):
            raise NoAnswer(f"{name} leads out of the workflow's folder")
        now = path.read_text(encoding="utf-8") if path.is_file() else None
        if now not in (before.get(name), files.get(name)):
            raise NoAnswer(f"{name} was changed meanwhile")


def _written(workflow: Workflow, ref: FileRef, before: Mapping[str, str], files: Mapping[str, str]) -> Workflow:
    _refuse_changed(ref, before, files)  # while it was tried out
    for name, text in files.items():
        write_whole(ref.path.parent / name, text)
    found = load_file(ref)
    if isinstance(found, CannotLoad):
        raise NoAnswer(f"the correction cannot be loaded: {found.message}")
    found.auto_fix, found.auto_fix_apply = workflow.auto_fix, workflow.auto_fix_apply
    found.auto_fix_env = workflow.auto_fix_env
    return found


def _checked_workflow(workflow: Workflow, answered: Workflow) -> _Made:
    if workflow.ref is not None:
        raise NoAnswer("this workflow is from a file: answer with its files")
    if answered.name != workflow.name:
        raise NoAnswer(f"the correction is of a workflow called {answered.name}")
    if answered.code_version() == workflow.code_version():
        raise NoAnswer("the correction is the code that failed")
    if answered.auto_fix is None:
        answered.auto_fix, answered.auto_fix_apply = workflow.auto_fix, workflow.auto_fix_apply
    return _Made(answered.code_version(), sources_of(answered), answered)


def texts_of(ref: FileRef) -> dict[str, str]:
    """The file of a workflow and those it imports from its folder; nothing where it cannot be read."""
    try:
        return {name: data.decode("utf-8", "replace") for name, data in source_files(ref.path).items()}
    except OSError:
        return {}


def sources_of(workflow: Workflow) -> dict[str, str]:
    """The functions of a workflow that is made in code."""
    found: dict[str, str] = {}
    for handler in workflow.handlers.values():
        for phase, (function, _) in handler.functions().items():
            found[handler.name if phase == "producer" else f"{handler.name}.{phase}"] = source_text(function) or ""
    return found


def write_whole(path: Path, text: str) -> None:
    """Replace a file atomically: a reader finds the old text or the new one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    number, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(number, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        mode = path.stat().st_mode if path.exists() else 0o644
        Path(name).chmod(mode & 0o777)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
