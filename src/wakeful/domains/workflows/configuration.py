"""`workflows` of `wakeful.yaml`: which files hold workflows."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, RootModel, ValidationInfo, model_validator

from wakeful.child_processes import listed_variable
from wakeful.config.models import Section
from wakeful.domains.workflows.files import WorkflowFiles, WorkflowList
from wakeful.domains.workflows.listed import ListedWorkflows
from wakeful.domains.workflows.loading import FileRef, read_ref
from wakeful.domains.workflows.registry import registry_of
from wakeful.errors import SchedulerError

if TYPE_CHECKING:
    from wakeful.kernel.domain import ServerAddress
    from wakeful.scheduler import Scheduler


def _named(text: str) -> str:
    try:
        read_ref(text, Path())
    except SchedulerError as error:
        raise ValueError("must be a file and a name in it, such as invoices.py:workflow") from error
    return text


File = Annotated[str, AfterValidator(_named)]


class WorkflowFile(Section):
    """A file with a workflow, what its handlers get as `ctx.config`, and who corrects its code."""

    file: File
    config: Any = None
    auto_fix: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)] | None = None
    auto_fix_apply: bool = False
    auto_fix_env: list[Annotated[str, AfterValidator(listed_variable)]] = Field(default_factory=list)


class WorkflowSection(RootModel[list[File | WorkflowFile]]):
    """Files that hold workflows, relative to this one."""

    root: list[File | WorkflowFile] = Field(default_factory=list)

    _file: Path | None = None
    _folder: Path | None = None

    @model_validator(mode="after")
    def _placed(self, info: ValidationInfo) -> WorkflowSection:
        context = info.context or {}
        self._file, self._folder = context.get("file"), context.get("folder")
        sources = [ref.source.removeprefix("file:") for ref in self.listed().refs]
        twice = next((one for one in sources if sources.count(one) > 1), None)
        if twice is not None:
            message = f"lists {Path(twice).name} twice"
            raise ValueError(message)
        return self

    def listed(self) -> WorkflowList:
        """The workflows, and the file that lists them."""
        folder = self._folder if self._folder is not None else Path.cwd()
        owner = f"{socket.gethostname()}:{self._file}" if self._file is not None else None
        return WorkflowList([_ref(one, folder)._replace(named_by=self._file) for one in self.root], owner)


def _ref(entry: str | WorkflowFile, folder: Path) -> FileRef:
    if isinstance(entry, str):
        return read_ref(entry, folder)
    hook = tuple(entry.auto_fix) if entry.auto_fix is not None else None
    ref = read_ref(entry.file, folder, entry.config)
    env = tuple(entry.auto_fix_env)
    return ref._replace(auto_fix=hook, auto_fix_apply=entry.auto_fix_apply, auto_fix_env=env, home=folder)


def install_configured(scheduler: Scheduler, settings: WorkflowSection, _: ServerAddress) -> None:
    """Deploy the files when the scheduler starts, and again when one changes."""
    files = WorkflowFiles(scheduler, settings.listed())
    files.load_all()
    registry_of(scheduler.host.kinds).files = files
    scheduler.host.add_service(files)


async def reload_configured(scheduler: Scheduler, settings: WorkflowSection) -> None:
    """Take over what changed in the list: new entries are deployed, others go, the rest continues undisturbed."""
    files = registry_of(scheduler.host.kinds).files
    if files is not None:
        await files.relist(settings.listed())


def ready_to_apply(scheduler: Scheduler, settings: WorkflowSection) -> ListedWorkflows:
    """What `wakeful apply` deploys."""
    return ListedWorkflows(scheduler, settings.listed())
