"""`scheduler.workflows`: what a program sees of workflows and does to them, through the actions that people use."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from wakeful.domains.workflows import actions, input_actions, views
from wakeful.domains.workflows.draining import drain
from wakeful.domains.workflows.lookup import find_known, find_listed
from wakeful.domains.workflows.registry import registry_of
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.errors import InvalidJob, NotFound

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

T = TypeVar("T")
View = dict[str, Any]
Views = list[View]
Ids = list[str]
EVENT_STATUSES = ("pending", "reserved", "consumed", "skipped", "parked")
INPUT_STATUSES = ("pending", "done", "skipped")


class Operating:
    """The workflows of one scheduler."""

    def __init__(self, scheduler: Scheduler) -> None:
        self._scheduler = scheduler

    # -- what there is ------------------------------------------------------------------------------------------------

    async def get(self, workflow: str) -> View:
        """A workflow with its handlers."""
        seen = self._scheduler.host.seen
        return await self._look(workflow, lambda tx: views.workflow_view(tx, workflow, seen))

    async def list(self) -> Views:
        """All workflows, by name."""
        seen = self._scheduler.host.seen
        return await self._scheduler.read(lambda tx: views.workflow_views(tx, seen))

    async def runs(self, workflow: str, *, limit: int = 50) -> Views:
        """The runs of all its handlers, newest first."""
        most = _limit(limit)
        return await self._look(
            workflow, lambda tx: [views.run_view(tx, one) for one in tx.of(WorkflowVerbs).runs(workflow, most)]
        )

    async def events(
        self, workflow: str, topic: str | None = None, *, status: str | None = None, limit: int = 50
    ) -> Views:
        """Its events, newest first."""
        wanted, most = _status(status, EVENT_STATUSES), _limit(limit)
        return await self._look(
            workflow,
            lambda tx: views.event_views(tx, tx.of(Topics).matching(workflow, topic, wanted, None, most)),
        )

    async def inputs(self, workflow: str, *, status: str | None = None, limit: int = 50) -> Views:
        """Its inputs with what each caused, newest first."""
        wanted, most = _status(status, INPUT_STATUSES), _limit(limit)
        return await self._look(
            workflow,
            lambda tx: [views.input_view(tx, row) for row in tx.of(Topics).inputs(workflow, wanted, None, most)],
        )

    # -- what is done -------------------------------------------------------------------------------------------------

    async def publish(self, workflow: str, topic: str, payload: Any = None, *, message_id: str | int) -> View:
        """Publish an event by hand; the event."""
        who, given = self._who(), input_actions.ByHand(topic, _message_id(message_id), payload)

        def work(tx: Transaction, context: Context) -> View:
            found = input_actions.publish_by_hand(tx, context, workflow, given, who=who)
            event = tx.of(Topics).get(found.event_id)
            return views.event_views(tx, [event])[0] if event is not None else views.pruned_view(found.event_id, given)

        return await self._act(workflow, work)

    async def run(self, workflow: str) -> Ids:
        """Run all producers now; their runs."""
        who = self._who()
        return await self._act(workflow, lambda tx, context: actions.run_now(tx, context, workflow, who=who))

    async def pause(self, workflow: str, note: str | None = None) -> View:
        """Pause a workflow."""
        origin = self._scheduler.host.origin()
        return await self._change(
            workflow,
            lambda tx, context: actions.pause(tx, context, workflow, who=origin.actor, origin=origin, note=note),
        )

    async def resume(self, workflow: str) -> View:
        """Resume a workflow."""
        origin = self._scheduler.host.origin()
        return await self._change(
            workflow, lambda tx, context: actions.resume(tx, context, workflow, who=origin.actor, origin=origin)
        )

    async def drain(self, workflow: str, note: str | None = None) -> View:
        """Drain a workflow."""
        origin = self._scheduler.host.origin()
        return await self._change(
            workflow, lambda tx, context: drain(tx, context, workflow, who=origin.actor, origin=origin, note=note)
        )

    async def remove(self, workflow: str, note: str | None = None) -> View:
        """Take a workflow out of service."""
        who = self._who()
        return await self._change(
            workflow, lambda tx, context: actions.remove(tx, context, workflow, who=who, note=note)
        )

    async def settle(
        self, workflow: str, run: str, verdict: str, *, result: Any = None, note: str | None = None
    ) -> None:
        """Say whether an uncertain mutation happened."""
        who = self._who()
        await self._act(
            workflow,
            lambda tx, context: actions.settle(tx, context, workflow, run, verdict, who=who, result=result, note=note),
        )

    async def approve(self, workflow: str, run: str, note: str | None = None) -> str | None:
        """Approve a run that asks, or a correction."""
        who = self._who()
        return await self._act(
            workflow, lambda tx, context: actions.approve(tx, context, workflow, run, who=who, note=note)
        )

    async def reject(self, workflow: str, run: str, note: str | None = None) -> None:
        """Reject a run that asks, or a correction."""
        who = self._who()
        await self._act(workflow, lambda tx, context: actions.reject(tx, context, workflow, run, who=who, note=note))

    async def skip(self, workflow: str, ref: str, reason: str) -> int:
        """Skip an input or an event."""
        who = self._who()
        return await self._act(
            workflow, lambda tx, context: input_actions.skip(tx, context, workflow, ref, reason=reason, who=who)
        )

    async def rerun(self, workflow: str, ref: str, reason: str) -> Ids:
        """Work on an input once more."""
        who = self._who()
        return await self._act(
            workflow, lambda tx, context: input_actions.rerun_input(tx, context, workflow, ref, reason=reason, who=who)
        )

    async def replay(self, workflow: str, ref: str, reason: str = "", *, start_over: bool = False) -> str:
        """Publish an event once more, or let a parked one continue."""
        who = self._who()
        return await self._act(
            workflow,
            lambda tx, context: input_actions.replay_event(
                tx, context, workflow, ref, reason=reason, who=who, start_over=start_over
            ),
        )

    async def replay_parked(self, workflow: str, reason: str = "", *, start_over: bool = False) -> Ids:
        """Let all parked events continue."""
        who = self._who()
        return await self._act(
            workflow,
            lambda tx, context: input_actions.replay_all_parked(
                tx, context, workflow, reason=reason, who=who, start_over=start_over
            ),
        )

    # -- how it is done -----------------------------------------------------------------------------------------------

    def _who(self) -> str:
        return self._scheduler.host.origin().actor

    async def _look(self, workflow: str, work: Callable[[Transaction], T]) -> T:
        def look(tx: Transaction) -> T:
            find_listed(tx, workflow)
            return work(tx)

        self._refuse_no_name(workflow)
        try:
            return await self._scheduler.read(look)
        except NotFound:
            await self._say_not_started(workflow)
            raise

    async def _act(self, workflow: str, work: Callable[[Transaction, Context], T]) -> T:
        self._refuse_no_name(workflow)
        try:
            return await self._scheduler.transact(work)
        except NotFound:
            await self._say_not_started(workflow)
            raise

    @staticmethod
    def _refuse_no_name(workflow: object) -> None:
        if not isinstance(workflow, str):
            message = f"A workflow is named by a text, such as 'invoices', not {workflow!r:.80}."
            raise InvalidJob(message)

    async def _say_not_started(self, workflow: str) -> None:
        """NotFound with what to do, where the scheduler has the workflow's code and has not stored it yet."""
        known = registry_of(self._scheduler.host.kinds).get(workflow)
        if known is None or self._scheduler.is_running():
            return
        if await self._scheduler.read(lambda tx: tx.of(WorkflowVerbs).get(workflow)) is None:
            message = f"{workflow} is stored when the scheduler starts: await scheduler.start() first."
            raise NotFound(message)

    async def _change(self, workflow: str, work: Callable[[Transaction, Context], object]) -> View:
        """Act, and see what has become of the workflow, in one transaction."""
        seen = self._scheduler.host.seen

        def act(tx: Transaction, context: Context) -> View:
            work(tx, context)
            return views.workflow_view(tx, workflow, seen, find_known)

        return await self._act(workflow, act)


def _message_id(given: object) -> str:
    """A number is as good as its text, as in `ctx.publish`; what is neither is refused when it is stored."""
    return str(given) if isinstance(given, str | int) and not isinstance(given, bool) else ""


def _limit(given: object) -> int:
    if type(given) is not int or given < 1:
        message = f"limit is a whole number of at least 1, not {given!r:.80}."
        raise InvalidJob(message)
    return given


def _status(given: str | None, known: tuple[str, ...]) -> str | None:
    if given is not None and given not in known:
        message = f"status is one of {', '.join(known)}, not {given!r:.80}."
        raise InvalidJob(message)
    return given
