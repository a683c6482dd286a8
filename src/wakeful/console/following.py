"""Following a run: whether it has started, what it waits for, and its end."""

from __future__ import annotations

from collections.abc import Iterator

from wakeful import ids
from wakeful.clock import sleep
from wakeful.console.output import say
from wakeful.console.tables import print_json
from wakeful.errors import RunNotFound, ScheduleTriggerError
from wakeful.kernel.model.run import Run
from wakeful.kernel.views.readiness import Waits, why_queued
from wakeful.scheduler import Scheduler
from wakeful.triggers.moments import iso, spoken

WELL = ("success", "noop", "skipped")
BEGINS_S = 0.5  # within which a server usually starts what it may
POLL_S = 0.2
FIRST_POLL_S = 0.005


async def say_begun(scheduler: Scheduler, run_id: str, job: str, *, as_json: bool) -> None:
    """Whether the run has started, or what it waits for: the server is given a moment to take it."""
    left, ahead = BEGINS_S, pauses()
    while True:
        run, waits = await scheduler.get_run(run_id), await held_up(scheduler, run_id)
        if run is None or run.status != "queued" or waits is not None or left <= 0:
            break
        pause = next(ahead)
        await sleep(pause)
        left -= pause
    queued = run is not None and run.status == "queued"
    if as_json:
        until = iso(waits.until) if waits is not None and waits.until is not None else None
        about = {"waits_for": None if waits is None else waits.reason, "waits_until": until}
        print_json({"run": run_id, "status": None if run is None else run.status, **about})
    elif queued:
        say(f"{run_id} {queued_words(waits, job)}")
    else:
        say(f"{run_id} started; follow it with wakeful logs -f {run_id}")


async def until_done(scheduler: Scheduler, run_id: str) -> Run:
    """The run, once it has ended. Asking a few times a second costs next to nothing, and needs no server to answer."""
    ahead = pauses()
    while True:
        run = await scheduler.get_run(run_id)
        if run is None:
            raise RunNotFound(f"{run_id} is gone: it was pruned.")
        if run.status == "done" or (run.status == "waiting" and run.phase == "approval"):
            return run
        if scheduler.engine_holder() is None:
            raise ScheduleTriggerError(
                f"The server ended while {run_id} was {run.status}: the next one records how it ended."
            )
        waits = await held_up(scheduler, run_id) if run.status == "queued" else None
        if waits_long(waits):
            raise ScheduleTriggerError(f"{run_id} {queued_words(waits, run.job)}.")
        await sleep(next(ahead))


async def held_up(scheduler: Scheduler, run_id: str) -> Waits | None:
    """Why a queued run does not start now, and until when; None where it is about to start, or has."""
    number, seen = ids.number_of("run", run_id), scheduler.host.seen
    return None if number is None else await scheduler.read(lambda tx: why_queued(tx, number, seen))


async def again_at(scheduler: Scheduler, run: Run) -> str | None:
    """When a run that was deferred starts again, if it does."""
    number = ids.number_of("run", run.id)
    again = await scheduler.read(lambda tx: tx.runs.successor(number)) if number is not None else None
    found = await scheduler.get_run(ids.run_text(again)) if again is not None else None
    return None if found is None else str(found.to_dict()["due_at"])


async def refuse_later(scheduler: Scheduler, run: Run) -> None:
    """ScheduleTriggerError says until when for a run that has not started, or that is tried again at a later time."""
    if run.status == "queued":
        waits = await held_up(scheduler, run.id)
        raise ScheduleTriggerError(f"{run.id} {queued_words(waits, run.job)}.")
    until = await again_at(scheduler, run) if run.outcome == "deferred" else None
    if until is not None:
        why = f" ({run.error})" if run.error else ""
        raise ScheduleTriggerError(f"{run.job} is tried again at {until}{why}: wakeful explain {run.job} says why.")


def waits_long(waits: Waits | None) -> bool:
    """Whether it makes no sense to wait for it: a person or a later time lets it start."""
    return waits is not None and (waits.until is not None or waits.reason == "held")


def queued_words(waits: Waits | None, job: str) -> str:
    """What to say of a run that has not started, behind its name."""
    if waits is None:
        return f"is queued; wakeful explain {job} says what it waits for"
    until = f" until {spoken(waits.until)}" if waits.until is not None else ""
    return f"is queued{until} ({waits.reason}): wakeful explain {job} says why"


def pauses() -> Iterator[float]:
    """Seconds between two looks at something that may end at once or run for hours: short at first."""
    pause = FIRST_POLL_S
    while True:
        yield pause
        pause = min(POLL_S, 2 * pause)
