"""Whether a handler may start now, as a pure function of what its workflow says."""

from __future__ import annotations

from typing import NamedTuple

from wakeful.workflows.timing import MAX_BACKOFF_MS

LATER_MS = 86_400_000  # nothing depends on it: who lifts the reason lets the engine look again at once

SKIP_REASONS = {
    "workflow_paused": "its workflow is paused",
    "workflow_draining": "its workflow is draining: producers wait until it is resumed",
    "workflow_stopped": "its workflow is stopped",
    "workflow_blocked": "another handler of its workflow has to be resolved first",
    "workflow_backoff": "its workflow waits before it tries again",
    "other_code": "this node has other code of its workflow, or none",
    "no_workflow": "its workflow does not have it any more",
}


class Standing(NamedTuple):
    """What is known about a workflow when one of its handlers is due."""

    paused: bool
    issue: str | None
    issue_handler: str | None
    backoff_until: int | None
    draining: bool = False


class Wait(NamedTuple):
    """Why a handler does not start, and until when it waits at least."""

    reason: str
    until: int


def may_start(standing: Standing, handler: str, now: int, *, brings_new: bool = False) -> Wait | None:
    """None when the handler may start; `brings_new`: it is a producer that has nothing to finish."""
    if standing.paused:
        return Wait("workflow_paused", now + LATER_MS)
    if standing.draining and brings_new:
        return Wait("workflow_draining", now + LATER_MS)
    if standing.issue is None:
        return None
    if standing.issue in ("logic", "internal", "load"):
        return Wait("workflow_stopped", now + LATER_MS)
    until = standing.backoff_until
    if until is not None and standing.issue == "transient":
        until = min(until, now + MAX_BACKOFF_MS)  # no backoff is longer: the clock was set back
    waits = until is not None and until > now
    if standing.issue_handler != handler:
        return Wait("workflow_blocked", until if waits and until is not None else now + LATER_MS)
    return Wait("workflow_backoff", until) if waits and until is not None else None
