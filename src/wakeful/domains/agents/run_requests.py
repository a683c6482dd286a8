"""What a run of an agent may ask for with its token: to see its agent, to wake agents and to leave them events."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.agents.hops import MOST_HOPS, RequestingAgent, sender_of, too_far
from wakeful.domains.agents.registry import check_labels, shown_request
from wakeful.domains.agents.senders.tables import Senders
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.views import agent_view
from wakeful.domains.agents.wakes import Requested, add_event, request_wake, wake_unless_disabled
from wakeful.errors import AgentNotFound, QueueFull

if TYPE_CHECKING:
    from wakeful.domains.agents.route_models import EventIn
    from wakeful.kernel.context import Context
    from wakeful.kernel.hooks import Showing
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction


MOST_LEFT = 100  # events that one run may leave


async def see_agent(scheduler: Scheduler, run_id: int, agent: str | None = None) -> dict[str, Any]:
    """The agent of a run; AgentNotFound for every other, whether there is one or not."""

    def work(tx: Transaction, showing: Showing) -> dict[str, Any]:
        own = sender_of(tx, run_id).agent
        if agent not in (None, own):
            raise AgentNotFound(f"There is no agent {agent!r:.80} that a run of {own} may see.")
        tables = tx.of(AgentTables)
        showing.jobs.update(tables.jobs_of(own))
        showing.outside = any(event.outside for event in tables.waiting(own))
        return agent_view(tx, own)

    return await scheduler.server_side.show(run_id, work)


async def wake(scheduler: Scheduler, run_id: int, agent: str) -> dict[str, Any]:
    """Wake an agent for a run of another, or of itself."""

    def work(tx: Transaction, context: Context) -> tuple[Requested, RequestingAgent]:
        sender = sender_of(tx, run_id)
        return request_wake(tx, context, agent, sender=sender), sender

    asked, sender = await scheduler.transact(work)
    if asked.refused:
        raise too_far(agent, sender)
    return shown_request(asked)


async def leave_event(scheduler: Scheduler, run_id: int, agent: str, given: EventIn) -> dict[str, Any]:
    """Leave an agent an event for a run of another, or of itself, and perhaps wake it."""
    check_labels(given.source, given.context_key)

    def work(tx: Transaction, context: Context) -> tuple[int, int] | RequestingAgent:
        sender = sender_of(tx, run_id)
        if sender.hops > MOST_HOPS:
            request_wake(tx, context, agent, sender=sender)  # is refused, and counted
            return sender
        if tx.of(Senders).count_event(run_id) > MOST_LEFT:
            raise QueueFull(f"{ids.run_text(run_id)} has left {MOST_LEFT} events already, and one run leaves no more.")
        source, key = sender.source(given.source), given.context_key
        found = add_event(tx, context, agent, given.text, source=source, context_key=key, sender=sender)
        if given.wake:
            wake_unless_disabled(tx, context, agent, "hook", sender=sender)
        return found

    found = await scheduler.transact(work)
    if isinstance(found, RequestingAgent):
        raise too_far(agent, found)
    return {"id": ids.encode("evt", found[0]), "waiting": found[1]}
