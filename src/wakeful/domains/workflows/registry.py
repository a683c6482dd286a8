"""The workflows that one scheduler has the code of."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from wakeful.domains.workflows.authoring import Workflow
    from wakeful.domains.workflows.deploying import Deployment
    from wakeful.domains.workflows.files import WorkflowFiles
    from wakeful.kernel.kinds import Kinds


FORGET_MS = 30_000


class WorkflowRegistry:
    """Workflows by name, each with the version of its code."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[Workflow, str]] = {}
        self.deployments: dict[str, Deployment] = {}  # of the same, as they can be stored
        self.files: WorkflowFiles | None = None  # those of its server
        self.on_code_failed: Callable[[], None] = lambda: None
        self._refused: dict[int, tuple[int, int]] = {}  # by job: since when, and when last

    def add(self, workflow: Workflow) -> str:
        """Take its code for this scheduler; its version."""
        version = workflow.code_version()
        self._known[workflow.name] = (workflow, version)
        return version

    def drop(self, name: str) -> None:
        self._known.pop(name, None)
        self.deployments.pop(name, None)

    def refused_since(self, job_id: int, now: int, last_run_at: int | None) -> int:
        """Since when this node has refused a job, for which it has other code, without it being run elsewhere."""
        if job_id not in self._refused:  # what is too old to count is kept for no other job
            self._refused = {known: times for known, times in self._refused.items() if now - times[1] <= FORGET_MS}
        first, last = self._refused.get(job_id, (now, now))
        if now - last > FORGET_MS or (last_run_at or 0) >= first:
            first = now
        self._refused[job_id] = (first, now)
        return first

    def get(self, name: str) -> tuple[Workflow, str] | None:
        return self._known.get(name)

    def all(self) -> list[tuple[Workflow, str]]:
        return list(self._known.values())


_REGISTRIES: WeakKeyDictionary[Kinds, WorkflowRegistry] = WeakKeyDictionary()


def registry_of(kinds: Kinds) -> WorkflowRegistry:
    """The registry of the scheduler with these kinds: hooks know their scheduler by nothing else."""
    found = _REGISTRIES.get(kinds)
    if found is None:
        found = _REGISTRIES[kinds] = WorkflowRegistry()
    return found
