"""What waits for agents that are not there: named, and moved to another agent.

What must stay true: nothing that waits for an agent is lost with its jobs. It waits under the agent's name until
an agent of that name is there again, or until it is moved.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains.agents.belongings.tables import Belongings
from wakeful.domains.agents.naming import AGENT, WAKE, agent_of, source_key, wake_job
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.wakes import find_agent, request_wake, trim_events, wake_unless_disabled
from wakeful.domains.agents.work import get_item, item_text, refuse_worked_on, require_item
from wakeful.errors import ScheduleTriggerError

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef


class Moved(NamedTuple):
    """What was moved from one agent to another, and how many items were left."""

    agent: str
    to: str
    items: int
    events: int
    left: int


def orphaned(tx: Transaction) -> list[str]:
    """What waits for agents that are not there, as sentences."""
    return waiting_notes(tx, (), ())


def waiting_notes(tx: Transaction, coming: Collection[str], going: Collection[str]) -> list[str]:
    """What waits for agents that come with these jobs, or that are not there once those are gone, as sentences."""
    left = tx.of(Belongings).waiting()
    if not left:
        return []
    wakes = [wake_job(name) for name in left]
    found = tx.jobs.definitions(list(tx.jobs.names(wakes).values()))
    there = {job.name for job in found.values() if job.kind == AGENT} - set(going)
    new = sorted({agent_of(name) for name in coming if name.endswith(f".{WAKE}")})
    to = new[0] if len(new) == 1 else "NAME"
    notes = []
    for agent, waits in left.items():
        if agent in new:
            notes.append(f"{waits.in_words()} for {agent}, from before it was removed.")
        elif wake_job(agent) not in there:
            move = f"wakeful agent move {agent} {to}"
            notes.append(f"{waits.in_words()} for {agent}, which is not there: until it is back, or until {move}.")
    return notes


def wake_returned(tx: Transaction, context: Context, jobs: Sequence[JobDef]) -> None:
    """Agents that are there again are woken for the events that waited meanwhile, as when they are resumed."""
    names = [agent_of(job.name) for job in jobs if job.name.endswith(f".{WAKE}")]
    waiting = tx.of(AgentTables).waiting_counts(names) if names else {}
    for agent in sorted(waiting):
        request_wake(tx, context, agent, "cron")


def move_item(tx: Transaction, ref: str, agent: str) -> dict[str, Any]:
    """Give an item to another agent; refused while a run works on it, and where that agent cannot take it."""
    item = require_item(tx, ref)
    job, _ = find_agent(tx, agent)
    refuse_worked_on(tx, item, "move")
    if item.source is not None and item.source not in _sources(tx, agent):
        message = f"{ref} comes from {item.source}, and {agent} has no schedule that takes work from there."
        raise ScheduleTriggerError(message, {"source": item.source})
    known = tx.of(AgentTables).item_called(agent, item.external_id) if item.external_id is not None else None
    if known is not None and known.id != item.id:
        message = f"{agent} already has an item with the id {item.external_id!r:.80}: {item_text(known.id)}."
        raise ScheduleTriggerError(message, {"item": item_text(known.id)})
    tx.of(Belongings).move_item(item.id, agent, job.id)
    return get_item(tx, ref)


def move_all(tx: Transaction, context: Context, old: str, new: str) -> Moved:
    """Give what waits for one agent, which need not exist any more, to another one, and wake that for the events.

    Items stay that the other agent knows already, or that come from a source it does not have.
    """
    job, _ = find_agent(tx, new)
    belongings = tx.of(Belongings)
    if old == new or old not in belongings.waiting([old]):
        find_agent(tx, old)
        return Moved(old, new, 0, 0, 0)
    items = belongings.move_items(old, new, job.id, _sources(tx, new))
    events = belongings.move_events(old, new, job.id)
    if events:
        trim_events(tx.of(AgentTables), new)
        wake_unless_disabled(tx, context, new, "cron")
    left = belongings.waiting([old]).get(old)
    return Moved(old, new, items, events, 0 if left is None else left.items)


def _sources(tx: Transaction, agent: str) -> list[str]:
    """Where an agent's schedules take work from, besides its queue."""
    jobs = tx.jobs.definitions(tx.of(AgentTables).jobs_of(agent)).values()
    keys = {source_key(json.loads(job.payload).get("work")) for job in jobs}
    return sorted(key for key in keys if key is not None)
