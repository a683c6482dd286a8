"""Giving a scheduler the code of a workflow: it runs it, and stores it when it starts."""

from __future__ import annotations

import asyncio
import functools
import json
import logging
from collections.abc import Awaitable, Callable, Generator
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains.workflows import KIND
from wakeful.domains.workflows.arming import arm_forgotten, look_at_pending
from wakeful.domains.workflows.deploying import Deployment, deploy, deploy_again, is_other, plan_deployment
from wakeful.domains.workflows.fixes.fixer import Fixer
from wakeful.domains.workflows.issues import alert_halted
from wakeful.domains.workflows.registry import WorkflowRegistry, registry_of
from wakeful.domains.workflows.steps.places import base_of
from wakeful.domains.workflows.steps.running import attempt_of
from wakeful.domains.workflows.tables import WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.working import report_stuck
from wakeful.errors import SchedulerError
from wakeful.services import Service

if TYPE_CHECKING:
    from wakeful.domains.workflows.authoring import Workflow
    from wakeful.kernel.context import Context
    from wakeful.kernel.model.run import Run
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.workflows")
SWEEP_S = 60.0


def add_workflow(
    scheduler: Scheduler, workflow: Workflow, *, source: str = "code", owner: str | None = None
) -> Awaitable[None]:
    """Let the scheduler run a workflow. It is deployed when the scheduler starts, or at once where it runs."""
    wanted = plan_deployment(scheduler, workflow, source, forced=False)._replace(owner=owner)
    registry = install(scheduler)
    _warn_of_second(scheduler, registry, workflow)
    before = _Before(registry.get(workflow.name), registry.deployments.get(workflow.name))
    registry.add(workflow)
    registry.deployments[wanted.name] = wanted
    scheduler.host.write_at_start(wanted.name, lambda tx, context: _start(tx, context, wanted))
    if not scheduler.is_running():
        return _Done()
    return asyncio.ensure_future(_deploy_now(scheduler, registry, wanted, before))


def adding_to(scheduler: Scheduler) -> Callable[[Workflow], Awaitable[None]]:
    """The same as a part of a scheduler."""
    return functools.partial(add_workflow, scheduler)


def _warn_of_second(scheduler: Scheduler, registry: WorkflowRegistry, workflow: Workflow) -> None:
    """Before the first start, another workflow of the same name is probably a mistake: only the last one is run."""
    known = registry.get(workflow.name)
    if known is None or known[0] is workflow or workflow.origin is not None:
        return
    if scheduler.get_state().started_at is None:
        log.warning("two workflows are called %s, and only the last one is run: rename one", workflow.name)


class _Done:
    """Something to await that has happened already."""

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()


def _start(tx: Transaction, context: Context, wanted: Deployment) -> None:
    """A restart is no deploy; yet what a consumer left pending may be different to a process that starts."""
    if not deploy(tx, context, wanted):
        look_at_pending(tx, context, wanted.name)


class _Before(NamedTuple):
    """The code that a scheduler had of a workflow."""

    known: tuple[Workflow, str] | None
    deployment: Deployment | None


async def _deploy_now(scheduler: Scheduler, registry: WorkflowRegistry, wanted: Deployment, before: _Before) -> None:
    """Deploy it, or leave all as it was: what is deployed goes on with the code that it had."""
    forced = wanted._replace(forced=True)
    try:
        await scheduler.transact(lambda tx, context: deploy(tx, context, forced))
    except Exception:
        if registry.deployments.get(wanted.name) is wanted and not await _is_stored(scheduler, wanted):
            _put_back(scheduler, registry, wanted.name, before)
        raise


async def _is_stored(scheduler: Scheduler, wanted: Deployment) -> bool:
    """Whether it was deployed though the answer was lost; what cannot be read was not."""
    try:
        row = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).get(wanted.name))
    except SchedulerError:
        return False
    return row is not None and row.removed_at is None and row.version == wanted.version


def _put_back(scheduler: Scheduler, registry: WorkflowRegistry, name: str, before: _Before) -> None:
    registry.drop(name)
    scheduler.host.at_start.pop(name, None)
    if before.known is not None and before.deployment is not None:
        earlier = before.deployment
        registry.add(before.known[0])
        registry.deployments[name] = earlier
        scheduler.host.write_at_start(name, lambda tx, context: _start(tx, context, earlier))


def install(scheduler: Scheduler) -> WorkflowRegistry:
    """Let the scheduler run jobs of workflows; its registry."""
    registry = registry_of(scheduler.host.kinds)
    if KIND not in scheduler.host.handled_kinds:
        scheduler.on_job_due(KIND, _Runner(scheduler, registry))
        scheduler.host.add_service(_Sweep(scheduler, registry))
        scheduler.host.add_service(Fixer(scheduler, registry, _correct))
    return registry


async def _correct(scheduler: Scheduler, workflow: Workflow) -> None:
    await add_workflow(scheduler, workflow)


class _Runner:
    """The handler of all jobs of workflows."""

    def __init__(self, scheduler: Scheduler, registry: WorkflowRegistry) -> None:
        self._scheduler = scheduler
        self._registry = registry

    async def __call__(self, run: Run) -> Any:
        given = run.payload
        row = WorkflowRun(**given["attempt"])
        known = self._registry.get(row.workflow)
        if known is None or known[0].handlers.get(base_of(row.handler)) is None:
            message = f"This node has no code for {row.workflow}.{row.handler}."
            raise SchedulerError(message)
        attempt = attempt_of(known[0], base_of(row.handler))
        return await attempt(self._scheduler, known[0], run, row, json.loads(given["state"])).drive()


class _Sweep(Service):
    """Finds handlers that a pause or a cancelled start left without an alarm, and threads that do not come back.

    And workflows that cannot go on, because a person switched off the job that would; and versions that this node was
    given while others had the deployed one, once those are gone.
    """

    def __init__(self, scheduler: Scheduler, registry: WorkflowRegistry) -> None:
        super().__init__("the sweep of workflows", SWEEP_S)
        self._scheduler = scheduler
        self._registry = registry

    async def run_once(self) -> None:
        known = list(self._registry.deployments.values())
        others = await self._scheduler.read(lambda tx: [wanted for wanted in known if is_other(tx, wanted)])
        for wanted in others:
            await self._scheduler.transact(functools.partial(deploy_again, wanted=wanted))
        await self._scheduler.transact(arm_forgotten)
        await self._scheduler.transact(report_stuck)
        await self._scheduler.transact(alert_halted)
