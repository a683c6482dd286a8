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
    return shown_wake(*await scheduler.transact(lambda tx, context: woken(tx, context, run_id, agent)))


def woken(tx: Transaction, context: Context, run_id: int, agent: str) -> tuple[Requested, RequestingAgent]:
    """What became of a run's request, and who asked."""
    sender = sender_of(tx, run_id)
    return request_wake(tx, context, agent, sender=sender), sender


def shown_wake(asked: Requested, sender: RequestingAgent | None) -> dict[str, Any]:
    """A request as people see it; TooManyHops where a run asked that is too far from where this began."""
    if asked.refused and sender is not None:
        raise too_far(asked.agent, sender)
    return shown_request(asked)


async def leave_event(scheduler: Scheduler, run_id: int, agent: str, given: EventIn) -> dict[str, Any]:
    """Leave an agent an event for a run of another, or of itself, and perhaps wake it."""
    check_labels(given.source, given.context_key)
    return shown_event(agent, await scheduler.transact(lambda tx, context: left(tx, context, run_id, agent, given)))


def left(
    tx: Transaction, context: Context, run_id: int | None, agent: str, given: EventIn
) -> tuple[int, int] | RequestingAgent:
    """The event that a run leaves, or somebody who is no run, and how many wait; a sender that is too far away."""
    sender = None if run_id is None else sender_of(tx, run_id)
    source, key = given.source, given.context_key
    if sender is not None:
        if sender.hops > MOST_HOPS:
            request_wake(tx, context, agent, sender=sender)  # is refused, and counted
            return sender
        if tx.of(Senders).count_event(sender.run_id) > MOST_LEFT:
            said = ids.run_text(sender.run_id)
            raise QueueFull(f"{said} has left {MOST_LEFT} events already, and one run leaves no more.")
        source = sender.source(source)
    found = add_event(tx, context, agent, given.text, source=source, context_key=key, sender=sender)
    if given.wake:
        wake_unless_disabled(tx, context, agent, "hook", sender=sender)
    return found


def shown_event(agent: str, found: tuple[int, int] | RequestingAgent) -> dict[str, Any]:
    """An event that was left as people see it; TooManyHops for a sender that is too far away."""
    if isinstance(found, RequestingAgent):
        raise too_far(agent, found)
    return {"id": ids.encode("evt", found[0]), "waiting": found[1]}
