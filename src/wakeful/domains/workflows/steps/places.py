"""The places of a handler with steps: each is a job, so that so many of its runs are active at a time.

A job runs once at a time, and everything that the engine promises (claims, leases, recovery, fencing) it promises for
jobs. So a handler with `concurrency=3` has three of them: `shop.ship`, `shop.ship.2` and `shop.ship.3`. The first one
has the handler's topics and times; the others only hold the run they are at. Which event a run takes is decided when it
has started, in one transaction that has all jobs of the workflow locked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.workflows.steps.tables import Tasks

if TYPE_CHECKING:
    from collections.abc import Collection

    from wakeful.domains.workflows.arming import LockedJobs
    from wakeful.domains.workflows.tables import HandlerRow
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

STEPS = "steps"  # the type of such handlers


def base_of(name: str) -> str:
    """The handler that a place belongs to."""
    return name.partition(".")[0]


def is_place(name: str) -> bool:
    """Whether this is a further place of a handler, and not the handler itself."""
    return "." in name


def place_names(name: str, count: int) -> list[str]:
    """The names of a handler's places, its own first."""
    return [name, *(f"{name}.{number}" for number in range(2, count + 1))]


def arm_places(tx: Transaction, context: Context, jobs: LockedJobs, name: str, *, but: Collection[int] = ()) -> None:
    """Let as many places of a handler start as there is work for; and one when the next task is tried again.

    `but`: the runs that just end, whose places are free with them.
    """
    from wakeful.domains.workflows.arming import CONTINUED, EVENT, WAKE_TIME, arm_job
    from wakeful.domains.workflows.tables import WorkflowVerbs

    base = next((one for one in jobs.handlers() if one.name == name), None)
    if base is None:
        return
    free = _free(jobs, name, but)
    tasks = tx.of(Tasks)
    wanted = tasks.count_runnable(jobs.workflow, name, tx.now, len(free)) if free else 0
    if base.dirty > base.seen:
        wanted += 1
    soonest = tasks.next_retry(jobs.workflow, name)
    if base.job_id is not None and soonest != base.wake_at:
        tx.of(WorkflowVerbs).set_by_job(("wake_at",), [(base.job_id, soonest)])
    later = soonest if soonest is not None and soonest > tx.now and not _is_set(jobs, free, soonest) else None
    for job_id in free:
        if wanted > 0:
            arm_job(tx, context, jobs, job_id, at=tx.now, reason=EVENT if base.dirty > base.seen else CONTINUED)
            wanted -= 1
        elif later is not None:
            arm_job(tx, context, jobs, job_id, at=later, reason=WAKE_TIME)
            later = None
        else:
            break


def _is_set(jobs: LockedJobs, free: list[int], at: int) -> bool:
    """Whether one of these jobs starts by then anyway."""
    states = [state for job_id in free if (state := jobs.state(job_id)) is not None]
    return any(state.queued and state.due_at is not None and state.due_at <= at for state in states)


def _free(jobs: LockedJobs, name: str, but: Collection[int]) -> list[int]:
    """The jobs of places at which nothing is worked on, in their order."""
    found: list[tuple[bool, int, int]] = []
    for handler in jobs.handlers():
        state = jobs.state(handler.job_id) if handler.job_id is not None else None
        if handler.type != STEPS or base_of(handler.name) != name or state is None or handler.job_id is None:
            continue
        ends = state.run_id in but
        is_free = ends or (state.run_id is None and handler.open_run is None)
        if is_free and state.enabled and not state.paused:
            found.append((not ends, _number(handler), handler.job_id))
    return [job_id for _, _, job_id in sorted(found)]


def _number(handler: HandlerRow) -> int:
    return int(handler.name.partition(".")[2] or 1)
