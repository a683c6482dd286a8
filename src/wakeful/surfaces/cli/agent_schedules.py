"""Schedules of agents on the command line: `add NAME --agent AGENT`, and what `edit` changes about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.console.failures import WrongUse
from wakeful.domains.agents.naming import AGENT, RULE, check_name
from wakeful.domains.agents.schedule_options import edited
from wakeful.errors import InvalidJob
from wakeful.surfaces.cli.definition import OF_KINDS, Definition, given
from wakeful.surfaces.cli.typed import NONE

if TYPE_CHECKING:
    from wakeful import Job


def refuse_beside_agent(definition: Definition, argv: list[str] | None) -> None:
    """The payload of a schedule that calls an agent; the file defines how."""
    if argv is not None:
        raise WrongUse("--agent and a command after -- are two things to do: give one of them.")
    for kind in OF_KINDS:
        if (flag := given(kind, definition)) is not None:
            raise WrongUse(f"{flag} does not go with --agent: it takes --prompt and --deliver.")


def agent_job_name(agent: str, name: str) -> str:
    """What the job of a schedule is called: AGENT.NAME."""
    own = name.removeprefix(f"{agent}.")
    try:
        check_name(own)
    except InvalidJob as error:
        why = f"A schedule's name {RULE}" if "small letter" in str(error) else f"A schedule {error}"
        raise WrongUse(f"{why}, not {name!r:.80}.") from None
    return f"{agent}.{own}"


def changed_schedule(job: Job, definition: Definition, options: dict[str, Any]) -> dict[str, Any]:
    """What changes about an agent's schedule: its prompt, where its reply goes, how long a call may take.

    `options`: those of its job that are to be changed; what is in them about these is the schedule's.
    """
    if "prompt" in definition and job.kind != AGENT:
        raise InvalidJob(f"{job.name} is of kind {job.kind!r}: only schedules of agents have a prompt to change.")
    if "agent" in definition:
        raise WrongUse("A schedule stays with its agent: remove it, and add another one with --agent.")
    payload, changes = dict(job.payload), dict(options)
    if "prompt" in definition:
        payload["prompt"] = None if definition["prompt"] == NONE else definition["prompt"]
    to = definition.get("deliver")
    if to is not None and "deliver_on" not in definition:
        changes["deliver"] = None if to == NONE else to
    changed = edited(payload, job.options, changes)
    return changed if changed.get("payload", payload) == job.payload else {"payload": payload, **changed}
