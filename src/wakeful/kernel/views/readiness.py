"""Whether a job would start by itself now, and why not: computed on request, from the store as it is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from wakeful.kernel.cluster.nodes import Seen, is_served
from wakeful.kernel.engine.admission import DRAINING, all_drain
from wakeful.kernel.rules.parking import parked_reason
from wakeful.kernel.rules.passing import ALREADY_RUNNING, BACKING_OFF, DISABLED, PAUSED
from wakeful.kernel.rules.policy import trigger_of

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

NOT_DUE, UNSUPPORTED_TYPE = "not_due", "unsupported_type"


def why_not_now(tx: Transaction, job: JobDef, state: JobState, seen: Seen) -> str | None:
    """The reason in one word; None for a job that is due and that a node starts at its next turn.

    `unsupported_type`: nothing of it starts by time (a webhook, a chat, a job started by hand or by another), and
    nothing that asked for it waits.
    """
    is_due = state.due_at is not None and state.due_at <= tx.now
    if not trigger_of(job.trigger).timed and not state.queued and state.run_id is None:
        return UNSUPPORTED_TYPE
    if state.run_id is not None:
        return ALREADY_RUNNING
    if not is_due and (not state.enabled or state.paused):
        return PAUSED if state.enabled else DISABLED
    if tx.nodes.held() is not None:
        return "held"
    if state.parked is not None:
        return parked_reason(state.parked)
    if is_due:
        return _why_not_started(tx, seen)
    return waits_as(tx, [state]).get(state.job_id) or (BACKING_OFF if _backs_off(state, tx.now) else NOT_DUE)


class Waits(NamedTuple):
    """Why a run has not started, and until when it waits where that is known."""

    reason: str
    until: int | None = None


def why_queued(tx: Transaction, run_id: int, seen: Seen) -> Waits | None:
    """What keeps a queued run from starting; None where it is about to start, or has."""
    run = tx.runs.get(run_id)
    if run is None or run.status != "queued":
        return None
    job, state = tx.jobs.definitions([run.job_id])[run.job_id], tx.jobs.states([run.job_id])[run.job_id]
    reason = why_not_now(tx, job, state, seen)
    if reason in (None, NOT_DUE):  # its time is a moment away, such as that of a wake
        return None
    until = state.due_at if _was_refused(state) else None
    return Waits(str(reason), until if until is not None and until > tx.now else None)


def waits_as(tx: Transaction, states: Iterable[JobState]) -> Mapping[int, str]:
    """Why those wait that were due and refused for a time, by job."""
    refused = [state.job_id for state in states if _was_refused(state)]
    return tx.skips.latest(refused) if refused else {}


def _was_refused(state: JobState) -> bool:
    """Whether its kind let its start wait: it has been ready since then, and is in no line."""
    return state.ready_at is not None and state.parked is None and state.run_id is None


def _why_not_started(tx: Transaction, seen: Seen) -> str | None:
    if not is_served(tx, seen):
        return "no_node"
    return DRAINING if all_drain(tx) else None


def _backs_off(state: JobState, now: int) -> bool:
    return state.backoff_until is not None and state.backoff_until > now
