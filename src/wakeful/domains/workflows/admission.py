"""Whether a handler may start now, as a pure function of what its workflow says."""

from __future__ import annotations

from typing import NamedTuple

LATER_MS = 86_400_000  # nothing depends on it: who lifts the reason lets the engine look again at once

WORKING_MS = 5_000  # who ends the work lets the engine look again at once; a node that is gone does not

SKIP_REASONS = {
    "blocked": "its workflow could not continue",
    "other_code": "this node has other code of its workflow, or none",
    "no_workflow": "its workflow does not have it any more",
}
PAUSED = "its workflow is paused"
DRAINING = "its workflow is draining: producers wait until it is resumed"
STOPPED = "its workflow is stopped until a person resolves what is wrong"
UNRESOLVED = "another handler of its workflow has to be resolved first"
WORKING = "its last run was cut off, and a thread or program of it is still at work"
RESTS = "its workflow waits before it tries again"


class WorkflowState(NamedTuple):
    """The state of a workflow when one of its handlers is due."""

    paused: bool
    issue: str | None
    issue_handler: str | None
    backoff_until: int | None
    draining: bool = False
    working: bool = False  # a thread of its last run has not ended


class AdmissionWait(NamedTuple):
    """Why a handler does not start, and until when it waits at least."""

    reason: str
    until: int
    detail: str


def may_start(standing: WorkflowState, handler: str, now: int, *, brings_new: bool = False) -> AdmissionWait | None:
    """None when the handler may start; `brings_new`: it is a producer that has nothing to finish."""
    if standing.paused:
        return AdmissionWait("paused", now + LATER_MS, PAUSED)
    if standing.draining and brings_new:
        return AdmissionWait("draining", now + LATER_MS, DRAINING)
    if standing.working:
        return AdmissionWait("blocked", now + WORKING_MS, WORKING)
    if standing.issue is None:
        return None
    if standing.issue in ("logic", "internal", "load"):
        return AdmissionWait("blocked", now + LATER_MS, STOPPED)
    until = standing.backoff_until
    waits = until is not None and until > now
    if standing.issue_handler != handler:
        return AdmissionWait("blocked", until if waits and until is not None else now + LATER_MS, UNRESOLVED)
    return AdmissionWait("backing_off", until, RESTS) if waits and until is not None else None
