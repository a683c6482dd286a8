"""Giving a scheduler the code of a workflow: it runs it, and stores it when it starts."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Generator
from typing import TYPE_CHECKING, Any

from wakeful import clock
from wakeful.errors import SchedulerError
from wakeful.workflows import KIND
from wakeful.workflows.arming import arm_forgotten
from wakeful.workflows.deploying import Deployment, deploy, plan_deployment
from wakeful.workflows.fixes.fixer import Fixer
from wakeful.workflows.registry import Registry, registry_of
from wakeful.workflows.running import Attempt
from wakeful.workflows.tables import WorkflowRun

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.views.models import Run
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.workflows.authoring import Workflow

log = logging.getLogger("wakeful.workflows")
SWEEP_S = 60.0


def add_workflow(
    scheduler: Scheduler, workflow: Workflow, *, source: str = "code", forced: bool = False, owner: str | None = None
) -> Awaitable[None]:
    """Let the scheduler run a workflow. It is deployed when the scheduler starts, or at once where it runs."""
    wanted = plan_deployment(scheduler, workflow, source, forced=forced)._replace(owner=owner)
    registry = install(scheduler)
    registry.add(workflow)
    scheduler.write_at_start(wanted.name, lambda tx, context: _deploy(tx, context, wanted))
    if not scheduler.is_running():
        return _Done()
    return asyncio.ensure_future(_deploy_now(scheduler, wanted))


class _Done:
    """Something to await that has happened already."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


def _deploy(tx: Transaction, context: Context, wanted: Deployment) -> None:
    deploy(tx, context, wanted)


async def _deploy_now(scheduler: Scheduler, wanted: Deployment) -> None:
    await scheduler.transact(lambda tx, context: _deploy(tx, context, wanted))


def install(scheduler: Scheduler) -> Registry:
    """Let the scheduler run jobs of workflows; its registry."""
    registry = registry_of(scheduler.kinds)
    if KIND not in scheduler.handled_kinds:
        scheduler.on_job_due(KIND, _Runner(scheduler, registry))
        scheduler.accompany(_Sweep(scheduler))
        scheduler.accompany(Fixer(scheduler, registry, _correct))
    return registry


async def _correct(scheduler: Scheduler, workflow: Workflow) -> None:
    await add_workflow(scheduler, workflow, forced=True)


class _Runner:
    """The handler of all jobs of workflows."""

    def __init__(self, scheduler: Scheduler, registry: Registry) -> None:
        self._scheduler = scheduler
        self._registry = registry

    async def __call__(self, run: Run) -> Any:
        row = WorkflowRun(**run.payload["attempt"])
        known = self._registry.get(row.workflow)
        if known is None or known[0].handlers.get(row.handler) is None:
            message = f"This node has no code for {row.workflow}.{row.handler}."
            raise SchedulerError(message)
        import json

        return await Attempt(self._scheduler, known[0], run, row, json.loads(run.payload["state"])).drive()


class _Sweep:
    """Finds handlers with something to do that a pause or a cancelled start left without an alarm."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        self._task = asyncio.ensure_future(self._go_on())

    async def end(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _go_on(self) -> None:
        while True:
            try:
                await self._scheduler.transact(arm_forgotten)
            except SchedulerError as error:
                log.warning("looking for handlers without an alarm failed; trying again later: %s", error)
            await clock.sleep(SWEEP_S)
