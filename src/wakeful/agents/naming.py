"""Names of agents and of their jobs: `reporter.standup`, `reporter.heartbeat`, `reporter.wake`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from wakeful.errors import InvalidJob

AGENT = "agent"  # the kind of job
WAKE, HEARTBEAT = "wake", "heartbeat"
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


def session_name(payload: Mapping[str, Any]) -> str:
    """Under which name the session of a job's runs is kept."""
    policy = payload.get("session", "persistent")
    if policy not in ("persistent", "heartbeat"):
        return str(policy)
    return f"{payload['agent']}/{'heartbeat' if payload['does'] == 'wake' else _conversation(payload)}"


def _conversation(payload: Mapping[str, Any]) -> str:
    """What a schedule's session is kept for: the schedule, or in a chat the person who writes."""
    request = payload.get("request")
    if request is None or request["type"] != "chat":
        return str(payload["schedule"])
    return f"chat:{request['about']['connector']}:{request['about']['sender']}"
