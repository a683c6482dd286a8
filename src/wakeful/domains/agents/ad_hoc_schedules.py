"""Schedules of agents that people add outside the file: on the command line and over the network.

Such a job has its own times and prompt. The agent's runner is looked up when it starts, so that it follows what the
file says about the agent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.naming import AGENT
from wakeful.domains.agents.schedule_options import asking_options, is_hook, limit_ms, reply_to
from wakeful.domains.agents.wakes import find_agent
from wakeful.errors import InvalidJob
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.rules.options import as_written, from_text

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wakeful.store.interface import Transaction
    from wakeful.triggers import Trigger

ANY_NUMBER = 1000
"""The size such a job gives its agent's lane: the smallest counts, which is the agent's own."""
FOLLOWED = ("timeout", "labels", "on_crash", "error_span", "deliver")


def added_schedule(
    tx: Transaction, agent: str, name: str, trigger: Trigger, *, prompt: str | None, options: Mapping[str, Any]
) -> NewJob:
    """The job that asks an agent at times of its own; AgentNotFound where there is no such agent."""
    wake, _ = find_agent(tx, agent)
    if prompt is not None and not prompt.strip():
        raise InvalidJob("A prompt cannot be empty: leave it out to use the default one.")
    known = as_written(from_text(wake.options))
    lanes = {lane: ANY_NUMBER if lane == f"agent:{agent}" else size for lane, size in known.get("lanes", {}).items()}
    schedule = name.removeprefix(f"{agent}.")
    payload: dict[str, Any] = {"agent": agent, "schedule": schedule, "does": "ask", "prompt": prompt}
    own = {option: value for option, value in options.items() if value is not None}
    hooks, deliver = own.pop("hooks", None), own.pop("deliver", None)
    reply = reply_to(deliver)
    if is_hook(deliver):
        hooks, reply = deliver if hooks is None else hooks, None
    if hooks is not None:
        own["deliver"] = hooks
    payload |= {"timeout": limit_ms(own), "deliver": reply}
    followed = {option: known[option] for option in FOLLOWED if option in known}
    chosen = asking_options({**followed, "lanes": lanes}, own)
    payload = {key: value for key, value in payload.items() if value is not None}
    return NewJob(name, trigger, kind=AGENT, payload=payload, owner=agent, **chosen)
