"""Names of agents and of their jobs: `reporter.standup`, `reporter.heartbeat`, `reporter.wake`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wakeful.errors import InvalidJob

AGENT = "agent"  # the kind of job
WAKE, HEARTBEAT = "wake", "heartbeat"
OWN_JOBS = {"wake": WAKE, "beat": HEARTBEAT}  # by what they do
LANE = "session:"  # of runs in one session
AGENTS_OWN = ("agent:", LANE, "account:")
"""What lanes begin with that follow from the agent or the session; no schedule says them itself."""
VARIABLE = "WAKEFUL_AGENT"  # the variable that every program of an agent has
RULE = "begins with a small letter or a digit and has up to 64 small letters, digits, _ and -"
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")


def check_name(name: str) -> str:
    """The name of an agent, a schedule or a shared session, or InvalidJob with the rule."""
    if name in (WAKE, HEARTBEAT):
        raise InvalidJob(f"must have another name: {name} is one of the agent's own jobs")
    if not _NAME.fullmatch(name):
        raise InvalidJob(f"must have a name that {RULE}")
    return name


def wake_job(agent: str) -> str:
    """The job that runs a woken agent; every agent has it."""
    return f"{agent}.{WAKE}"


def agent_of(job: str) -> str:
    """Whose job it is."""
    return job.partition(".")[0]


def check_job_name(name: str, payload: Mapping[str, Any]) -> None:
    """InvalidJob where a job of an agent cannot have this name: each job has one name, and each session one job."""
    agent, does = payload["agent"], payload["does"]
    owner, dot, own = name.rpartition(".")
    if does in OWN_JOBS:
        if name != f"{agent}.{OWN_JOBS[does]}":
            verb = "wakes the agent" if does == "beat" else "runs the woken agent"
            raise InvalidJob(f"{name!r:.120} cannot be its name: a job that {verb} is called {agent}.{OWN_JOBS[does]}.")
    elif own in OWN_JOBS.values():
        raise InvalidJob(f"{name!r:.120} must have another name: {own} is one of the agent's own jobs.")
    elif dot and owner != agent:
        raise InvalidJob(
            f"{name!r:.120} is no name for a schedule of {agent}: use {agent}.NAME, or a name without a dot."
        )


def shared_session(wake: Mapping[str, Any]) -> str | None:
    """The session that an agent shares with others; `wake` is the payload of its wake job."""
    name = wake.get("schedule_session")
    return name if name not in ("persistent", "ephemeral") else None


def session_name(job: str, payload: Mapping[str, Any], chat: Mapping[str, Any] | None = None) -> str:
    """Under which name the session of a job's runs is kept; `chat`: the message that a run works on."""
    policy, agent = payload.get("session", "persistent"), payload["agent"]
    if policy not in ("persistent", HEARTBEAT):
        return str(policy)
    if payload["does"] == WAKE:
        return f"{agent}/{HEARTBEAT}"
    if chat is not None:
        return f"{agent}/chat:{chat['connector']}:{chat['sender']}"
    own = job.removeprefix(f"{agent}.")
    return f"{agent}/{own}" if own != job else f"{agent}/job:{job}"


def source_key(spec: Any) -> str | None:
    """What the items of a source are stored with; None for the queue alone."""
    if not isinstance(spec, Mapping):
        return None
    return f"{spec['source']}:{spec['path' if spec['source'] == 'directory' else 'repo']}"
