"""The workflows of a scheduler. The rules are in their domain."""

from __future__ import annotations

from collections.abc import Awaitable
from functools import cached_property
from typing import Any, Literal, Protocol, cast

from wakeful.domains import load_part
from wakeful.scheduler.core import Core

View = dict[str, Any]
Views = list[View]
Ids = list[str]
Verdict = Literal["happened", "did_not_happen", "skip"]
EventStatus = Literal["pending", "reserved", "consumed", "skipped", "parked"]
InputStatus = Literal["pending", "done", "skipped"]


class Workflows(Protocol):
    """What a program sees of workflows and does to them: the same as `wakeful workflow` and `/api/workflows`.

    Every action is recorded with this scheduler's node as the one who acted. NotFound where there is no such workflow,
    run, event or input; ScheduleTriggerError where the action is refused as things are.
    """

    async def get(self, workflow: str) -> View:
        """A workflow: status, issue, schedule and handlers, as `/api/workflows/NAME` shows them."""

    async def list(self) -> Views:
        """All workflows, by name."""

    async def runs(self, workflow: str, *, limit: int = 50) -> Views:
        """The runs of all its handlers, newest first."""

    async def events(
        self, workflow: str, topic: str | None = None, *, status: EventStatus | None = None, limit: int = 50
    ) -> Views:
        """Its events, newest first."""

    async def inputs(self, workflow: str, *, status: InputStatus | None = None, limit: int = 50) -> Views:
        """Its inputs with what each caused, newest first."""

    async def publish(self, workflow: str, topic: str, payload: Any = None, *, message_id: str | int) -> View:
        """Publish an event; the event.

        A message id that is known makes no second one: while the event is pending, it gets the new payload.
        """

    async def run(self, workflow: str) -> Ids:
        """Run all producers now; their runs."""

    async def pause(self, workflow: str, note: str | None = None) -> View:
        """Pause a workflow: the run in progress ends, and what is due meanwhile waits."""

    async def resume(self, workflow: str) -> View:
        """Resume a workflow; what failed in its code is tried again."""

    async def drain(self, workflow: str, note: str | None = None) -> View:
        """Finish what has been published, start no more producers, then pause the workflow."""

    async def remove(self, workflow: str, note: str | None = None) -> View:
        """Take a workflow out of service; its state and events stay. Whoever starts with its code deploys it again."""

    async def settle(
        self, workflow: str, run: str, verdict: Verdict, *, result: Any = None, note: str | None = None
    ) -> None:
        """Say whether an uncertain mutation happened; `result` is what the mutation returned, if it happened."""

    async def approve(self, workflow: str, run: str, note: str | None = None) -> str | None:
        """Approve a run that asks, or the correction of one that failed; the run that continues, if it is known."""

    async def reject(self, workflow: str, run: str, note: str | None = None) -> None:
        """Reject a run that asks, which pauses its workflow; or reject a correction."""

    async def skip(self, workflow: str, ref: str, reason: str) -> int:
        """Skip an input or a pending event, by its id; how many events were skipped."""

    async def rerun(self, workflow: str, ref: str, reason: str) -> Ids:
        """Work on an input once more, as new events; these."""

    async def replay(self, workflow: str, ref: str, reason: str = "", *, start_over: bool = False) -> str:
        """Publish a consumed or skipped event once more, as a new one; its id.

        A parked event continues with the steps that are stored, or without them (`start_over`), and keeps its id.
        """

    async def replay_parked(self, workflow: str, reason: str = "", *, start_over: bool = False) -> Ids:
        """Continue all parked events; these."""


class WorkflowsApi(Core):
    """Workflows, if the program has any."""

    @cached_property
    def workflows(self) -> Workflows:
        """Workflows: get, list, runs, events, inputs, publish, run, pause, resume, drain, settle, approve, reject,
        skip, rerun, replay, replay_parked.

        >>> await scheduler.workflows.list()
        []
        """
        return cast("Workflows", load_part("workflows")(self))

    def add_workflow(self, workflow: Any) -> Awaitable[None]:
        """Let this scheduler run a `Workflow`. It is stored when the scheduler starts; where it runs already, await it.

        >>> scheduler.add_workflow(workflow)
        """
        added: Awaitable[None] = load_part("add_workflow")(self)(workflow)
        return added
