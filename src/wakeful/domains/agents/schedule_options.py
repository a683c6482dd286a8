"""Options of an agent's schedule: what it says itself, besides what its agent has. Pure.

A schedule takes every key and option of a job. They are read where those of jobs are, so there is no list of them here:
what the agent does not read itself is the job's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from wakeful.domains.agents.naming import AGENTS_OWN
from wakeful.errors import SchedulerError
from wakeful.kernel.rules.options import read_options
from wakeful.triggers.durations import format_interval, interval_ms

READ_BY_AGENTS = frozenset(
    {
        "type",
        "expression",
        "prompt",
        "prompt_file",
        "model",
        "env",
        "target",
        "deliver",
        "work",
        "webhook",
        "chat",
        "hooks",
    }
)
"""Keys of a schedule that say what is asked, of whom, and where the reply goes."""
GRACE_MS = 60_000  # how much later than the runner's own limit a run counts as stuck
TRANSIENT = {"delays": ["30s", "2m"], "on": "transient"}


def keys_of_job(schedule: Mapping[str, Any]) -> dict[str, Any]:
    """What a schedule says about its job."""
    return {key: value for key, value in schedule.items() if key not in READ_BY_AGENTS and value is not None}


def asking_options(common: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """Options of a job that calls an agent: its own before the agent's, and lanes and labels of both.

    No schedule gets around a lane of its agent. `common` may hold what the agent's other jobs have.
    """
    found = {"retry": TRANSIENT, **common, **own}
    if isinstance(own.get("lanes"), Mapping):
        found["lanes"] = {**own["lanes"], **common.get("lanes", {})}
    if isinstance(own.get("labels"), (list, tuple)):
        ours = list(common.get("labels", ()))
        found["labels"] = [*ours, *(label for label in own["labels"] if label not in ours)]
    limit = limit_ms(own)
    return found if limit is None else {**found, "timeout": (limit + GRACE_MS) / 1000}


def limit_ms(own: Mapping[str, Any]) -> int | None:
    """How long a call of this schedule may take, where it says so; None also where that cannot be read."""
    try:
        return None if own.get("timeout") is None else interval_ms(own["timeout"])
    except (SchedulerError, TypeError):
        return None  # its reader says what is wrong


def with_own_limit(payload: dict[str, Any]) -> dict[str, Any]:
    """The payload of a run whose schedule says how long a call may take, with a runner that keeps to it."""
    if payload.get("timeout") is None or not isinstance(payload.get("runner"), Mapping):
        return payload
    return {**payload, "runner": {**payload["runner"], "timeout": payload["timeout"]}}


def edited(payload: Mapping[str, Any], known: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """What changes about the job of an agent's schedule; `payload` and `known`, its options, are as they are now.

    `deliver` is where the reply goes, with `on` it is a hook. None puts an option back.
    """
    found, kept = with_lanes(known, changes), dict(payload)
    reply_to(found.get("deliver"))  # also where hooks are given besides it, and count
    if "deliver" in found and not is_hook(found["deliver"]):
        kept["deliver"] = reply_to(found.pop("deliver"))
    if "hooks" in found:
        found["deliver"] = found.pop("hooks")
    if "timeout" in found:
        kept["timeout"] = limit = limit_ms(found)
        if limit is not None:  # else it is put back, or its reader says what is wrong
            found["timeout"] = (limit + GRACE_MS) / 1000
    kept = {key: value for key, value in kept.items() if value is not None}
    return found if kept == payload else {**found, "payload": kept}


def with_lanes(known: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The changes, with the lanes that the schedule cannot leave."""
    if "lanes" not in changes or not isinstance(changes["lanes"], Mapping | None):
        return dict(changes)
    own = {lane: size for lane, size in (known.get("lanes") or {}).items() if lane.startswith(AGENTS_OWN)}
    return {**changes, "lanes": {**(changes["lanes"] or {}), **own}}


def said_options(payload: Mapping[str, Any] | None, options: Mapping[str, Any]) -> dict[str, Any]:
    """Options as a schedule says them itself; `payload`: that of an agent's schedule."""
    found = {key: value for key, value in options.items() if key != "bounded"}
    lanes = {lane: size for lane, size in found.pop("lanes", {}).items() if not lane.startswith(AGENTS_OWN)}
    if lanes:
        found["lanes"] = lanes
    if payload is None:
        return found
    if "deliver" in found:
        found["hooks"] = found.pop("deliver")
    found.pop("timeout", None)
    said = {
        "timeout": payload.get("timeout") and format_interval(payload["timeout"]),
        "deliver": payload.get("deliver"),
    }
    return {**found, **{key: value for key, value in said.items() if value is not None}}


def reply_to(deliver: Any) -> str | None:
    """Where replies go, by the rule for jobs; InvalidJob says what is wrong."""
    read = read_options({"deliver": deliver}).deliver
    return None if read is None else read[0]


def is_hook(deliver: Any) -> bool:
    """Whether it says which results are sent, and is not about the reply."""
    return isinstance(deliver, Mapping) and "on" in deliver
