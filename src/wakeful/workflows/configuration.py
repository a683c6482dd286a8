"""`workflows` of `wakeful.yaml`: which files hold workflows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, Field, RootModel

from wakeful.config.models import Section
from wakeful.errors import SchedulerError
from wakeful.workflows.files import WorkflowFiles
from wakeful.workflows.loading import FileRef, read_ref

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
    """A file with a workflow, and what its handlers get as `ctx.config`."""

    file: File
    config: Any = None


class WorkflowSection(RootModel[list[File | WorkflowFile]]):
    """Files that hold workflows, relative to this one."""

    root: list[File | WorkflowFile] = Field(default_factory=list)

    def refs(self, folder: Path) -> list[FileRef]:
        """The files, relative to that folder."""
        return [
            read_ref(one, folder) if isinstance(one, str) else read_ref(one.file, folder, one.config)
            for one in self.root
        ]


def install_configured(scheduler: Scheduler, settings: WorkflowSection, server: ServerAddress) -> None:
    """Deploy the files when the scheduler starts, and again when one changes."""
    refs = settings.refs(server.folder if server.folder is not None else Path.cwd())
    if not refs:
        return
    files = WorkflowFiles(scheduler, refs)
    files.load_all()
    scheduler.accompany(files)
