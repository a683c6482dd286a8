"""Claims: the only way a run starts, for every reason.

`Claim` is the half of a turn that looks at due jobs inside a transaction and decides for each: start it, let a slot
go, or leave it to wait, as `Admission` says.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable
from typing import NamedTuple

from wakeful.kernel.context import Context
from wakeful.kernel.engine.admission import Admission
from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.engine.ending import drop_runs
from wakeful.kernel.engine.missed import Found, Late, note_missed
from wakeful.kernel.engine.silence import note_silence
from wakeful.kernel.engine.stretches import keep_passed, was_run
from wakeful.kernel.kinds import Refused
from wakeful.kernel.rules.limits import BELOW, limit_words, too_often
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.passing import BACKING_OFF, BELOW_FLOOR, MERGED, Passed, let_pass
from wakeful.kernel.rules.passing import MISSED as LOST
from wakeful.kernel.rules.policy import (
    FLOOR_MS,
    LATE_MS,
    Due,
    alarm,
    count_passed,
    due_slot,
    end,
    next_start,
    rest,
    switch_off,
    too_late,
    trigger_of,
)
from wakeful.store.interface import Transaction
from wakeful.store.records import Given, JobDef, JobState, RunRow, SkipRow
from wakeful.triggers import Ping, TimedTrigger

log = logging.getLogger("wakeful.engine")

BY_HAND = ("manual", "approval")  # why a run was asked for by a person
FROM_OUTSIDE = ("webhook", "chat")  # why it was asked for by others; it waits while its job is stopped
MISSED = "its time was missed, and catch_up says to let it go"
BY_TIME = ("schedule", "catch_up")  # why a run was claimed for its slot; it waits as a row only if it was released


class Claimed(NamedTuple):
    """A run that is on record as active and must now be started."""

    job: JobDef
    state: JobState
    run: RunRow
    payload: str
    approval: str | None = None  # what was asked and approved before this attempt


def due_jobs(tx: Transaction, context: Context, limit: int) -> list[tuple[JobDef, JobState]]:
    """The first jobs that are due, or the one job that is to be claimed alone."""
    if context.only is None:
        return tx.jobs.due(tx.now, limit)
    found = tx.jobs.by_id(context.only)
    return [found] if found is not None and (found[1].due_at or tx.now + 1) <= tx.now else []


class Claim:
    """One pass over the due jobs of one transaction."""

    def __init__(self, tx: Transaction, context: Context, held: int | None = None) -> None:
        """`held`: how far everything is held, where that was read already."""
        self._tx = tx
        self._context = context
        self._hooks = context.declared.hooks
        self._admission = Admission(tx, context, held)
        self._states: list[JobState] = []
        self._new: list[RunRow] = []
        self._woken: list[RunRow] = []
        self._skips: list[SkipRow] = []
        self._passes: list[Passed] = []
        self._dropped: list[tuple[JobDef, RunRow, str]] = []
        self._missed: list[Late] = []
        self._in_hook = False
        self.claimed: list[Claimed] = []
        self.expired: list[tuple[JobDef, JobState, RunRow]] = []
        self.to_cancel: list[int] = []

    def run(self, due: Iterable[tuple[JobDef, JobState]]) -> None:
        """Claim runs of these due jobs, and write everything that follows."""
        for job, state in due:
            try:
                self._look(job, state)
            except Exception as error:
                if (
                    self._in_hook or self._admission.in_hook
                ):  # what the hook wrote must be undone, and with it this transaction
                    raise
                self._poisoned(job, state, error)  # one poisoned job must not stop the others
        self._write()

    # -- one job ------------------------------------------------------------------------------------------------------

    def _look(self, job: JobDef, state: JobState) -> None:
        now = self._tx.now
        if state.run_id is not None:
            self._look_at_running(job, state)
        elif job.removed_at is not None:
            self._states.append(state._replace(due_at=None, next_at=None, slot=None, enabled=0))
        elif state.queued:
            self._look_at_queued(job, state)
        elif state.enabled and not state.paused and state.slot is not None and (state.next_at or 0) <= now:
            trigger = trigger_of(job.trigger)
            if isinstance(trigger, Ping):
                silence = note_silence(self._tx, self._context, job, state, trigger)
                self._states.append(silence.state)
                self._skips.append(silence.skip)
                self._passes += silence.passed
            else:
                self._start_slot(job, state)
        else:
            state = state._replace(due_at=alarm(state) if (state.next_at or 0) > now else None, ready_at=None)
            self._states.append(rest(trigger_of(job.trigger), state, now))

    def _look_at_running(self, job: JobDef, state: JobState) -> None:
        """The alarm of a job in progress: a waiting run's deadline, or a slot that replaces the active run."""
        found = [run for run in self._tx.runs.open(state.job_id) if run.id == state.run_id]
        if found and found[0].status == "waiting":
            if self._context.clock_moved():
                # It is due by the new time alone: the engine moves deadlines before it looks again.
                self._states.append(state)
                return
            self.expired.append((job, state, found[0]))
            return
        if found:
            self.to_cancel.append(found[0].id)
        self._states.append(state._replace(due_at=None))

    def _look_at_queued(self, job: JobDef, state: JobState) -> None:
        now = self._tx.now
        runs, first = self._tx.runs.open_and_first(state.job_id)
        waiting = [run for run in runs if run.status == "queued"]
        if len(waiting) != state.queued:
            state = state._replace(queued=len(waiting))
        slot_due = bool(state.enabled and not state.paused and state.slot is not None and (state.next_at or 0) <= now)
        for run in waiting[:]:
            why = self._overtaken(job, state, run, slot_due=slot_due)
            if why is not None:
                self._dropped.append((job, run, why))
                waiting.remove(run)
                if run.slot is not None and run.attempt == 1:
                    state = state._replace(missed=state.missed + 1)
        state = state._replace(queued=len(waiting))
        held = state.paused or not state.enabled
        startable = [run for run in waiting if not (held and run.reason in FROM_OUTSIDE)]
        ready = [run for run in startable if run.due_at <= now]
        if ready:
            chosen = min(ready, key=lambda run: (run.due_at, run.id))
            if slot_due and chosen.reason in ("recovery", *BY_TIME):
                state = self._instead_of_catching_up(job, state)
            self._start_queued(job, state, chosen, first.get(chosen.id))
        elif slot_due:
            self._start_slot(job, state)
        else:
            earliest = min((run.due_at for run in startable), default=None)
            state = state._replace(due_at=alarm(state, earliest), ready_at=None)
            self._states.append(rest(trigger_of(job.trigger), state, now))

    def _overtaken(self, job: JobDef, state: JobState, run: RunRow, *, slot_due: bool) -> str | None:
        """Why a run that waits is not wanted any more, or None."""
        if run.reason in BY_HAND:
            return None  # a person may always start it by hand
        if not state.enabled or state.paused:
            if run.reason in FROM_OUTSIDE:
                return None  # what was accepted is not lost
            return "the job was paused" if state.paused else "the job was disabled"
        options, now = from_text(job.options), self._tx.now
        if run.reason == "retry" and run.slot is not None and slot_due:
            return "a new slot came first"
        if run.reason in ("retry", *BY_TIME) and too_late(options, state, run, now):
            return "its time passed while nothing ran, and catch_up says to let it go"
        nearest = (state.last_run_at or 0) + (self._context.min_interval or 0)
        if run.reason == "after" and options.bounded and state.last_run_at is not None and nearest > now:
            self._skips.append(SkipRow(job.id, BELOW, 1, now, limit_words(self._context.min_interval or 0)))
            return limit_words(self._context.min_interval or 0)
        return None

    def _instead_of_catching_up(self, job: JobDef, state: JobState) -> JobState:
        """A slot that is run late, once more or because it was released, stands for those that passed since."""
        trigger = trigger_of(job.trigger)
        if trigger.type == "once" or self._tx.now - (state.next_at or 0) <= LATE_MS:
            return state
        before = (state.slot or 0) - 1
        passed = count_passed(trigger, before, self._tx.now)
        latest = trigger.latest_slot(before, self._tx.now) or state.last_slot
        state = self._let_pass(job, state, self._tx.now, MERGED)
        return state._replace(slot=None, next_at=None, last_slot=latest, missed=state.missed + passed)

    def _start_queued(self, job: JobDef, state: JobState, run: RunRow, given: Given | None) -> None:
        """`given`: what the run was given, where that was read already."""
        options = from_text(job.options)
        lanes = self._admission.admit(job, options, state)
        if isinstance(lanes, Refused):
            if self._admission.refuse(state, lanes):
                self._dropped.append((job, run, lanes.detail or lanes.reason))
                state = state._replace(queued=state.queued - 1, ready_at=None)
                # Looked at again at once: another run may wait, or nothing is left and the job is over.
                state = state._replace(due_at=self._tx.now if state.queued else alarm(state))
                self._states.append(rest(trigger_of(job.trigger), state, self._tx.now))
            return
        if lanes is None:
            return
        run = run._replace(
            kind=job.kind,
            status="active",
            started_at=self._tx.now,
            node=self._context.id,
            lanes=_text(lanes),
        )
        given = given if given is not None else self._tx.runs.given(run.id)
        payload = given.payload if given.payload is not None else job.payload
        last_slot = state.last_slot
        if run.slot is not None and (last_slot is None or run.slot > last_slot):
            last_slot = run.slot
        state = state._replace(
            due_at=None,
            run_id=run.id,
            queued=state.queued - 1,
            parked=None,
            ready_at=None,
            last_slot=last_slot,
            last_run_id=run.id,
            last_run_at=run.started_at,
        )
        self._start(job, state, run, payload, given.approval)
        self._woken.append(run)

    def _start_slot(self, job: JobDef, state: JobState) -> None:
        now = self._tx.now
        trigger, options = trigger_of(job.trigger), from_text(job.options)
        due = due_slot(trigger, options, state, now)
        if due.slot is not None and self._was_run(job, state, due.slot):
            due = due._replace(slot=None, passed=0)
        if due.slot is None:
            self._missed += [Late(job.id, job.name, state.next_at or now)][: due.passed]
            self._let_go(job, state, due.passed, LOST if due.passed else MERGED)
            return
        if options.bounded and too_often(trigger, self._context.min_interval):
            self._skips.append(SkipRow(job.id, BELOW, 1, now, limit_words(self._context.min_interval or 0)))
            self._let_go(job, state, due.passed, BELOW)
            return
        lanes = self._admission.admit(job, options, state)
        if isinstance(lanes, Refused):
            if self._admission.refuse(state, lanes):
                self._let_go(job, state, due.passed, lanes.reason, lanes.detail or lanes.reason)
            return
        if lanes is None:
            return
        if due.passed and due.why == "backing_off":
            self._skips.append(SkipRow(job.id, "backing_off", due.passed, now, None))
        if isinstance(trigger, TimedTrigger) and trigger.active_hours is not None and state.last_slot is not None:
            closed = trigger.closed_slots(state.last_slot, due.slot)
            if closed:
                self._skips.append(SkipRow(job.id, "outside_active_hours", closed, now, None))
        run = RunRow(
            self._context.new_id(), job.id, job.kind, due.reason, due.slot, 1, None, None, None, "active", None,
            state.next_at or now, now, None, self._context.id, _text(lanes),
        )  # fmt: skip
        state = self._counted(job, state, due, due.slot)
        last_slot = due.slot if state.last_slot is None or due.slot > state.last_slot else state.last_slot
        self._start(
            job,
            state._replace(
                due_at=None,
                next_at=None,
                slot=None,
                run_id=run.id,
                parked=None,
                ready_at=None,
                last_slot=last_slot,
                last_run_id=run.id,
                last_run_at=now,
                missed=state.missed + due.passed,
                slot_runs=state.slot_runs + 1,
                backoff_until=None,
                counted_to=max(state.counted_to, due.slot),
            ),
            run,
            job.payload,
        )
        self._new.append(run)

    def _start(self, job: JobDef, state: JobState, run: RunRow, payload: str, approval: str | None = None) -> None:
        """Take the run as claimed; `state` is the job's with the run in it."""
        if from_text(job.options).overlap == "cancel_other" and trigger_of(job.trigger).type in ("every", "cron"):
            at = next_start(trigger_of(job.trigger), state, self._tx.now, self._context.rng.random()).at
            state = state._replace(due_at=at)
        hook = self._hooks.claimed.get(job.kind) if self._hooks.claimed else None
        added = None
        if hook is not None:
            self._in_hook = True
            added = hook(self._tx, self._context, job, run)
            self._in_hook = False
        if added:
            given = json.loads(payload)
            payload = json.dumps({**(given if isinstance(given, dict) else {}), **added})
        self._admission.take(run)
        self.claimed.append(Claimed(job, state, run, payload, approval))

    def _was_run(self, job: JobDef, state: JobState, slot: int) -> bool:
        """Whether the slot is on record; can only be once the clock went back or the trigger was changed."""
        if slot > max(state.last_run_at or 0, state.last_slot or 0):
            return False
        return was_run(self._tx, job.id, job.trigger, slot)

    def _counted(self, job: JobDef, state: JobState, due: Due, slot: int) -> JobState:
        """With what passed before the slot that is run; most starts have nothing before them, and only compare."""
        if due.passed:
            return self._let_pass(job, state, slot - 1, BACKING_OFF if due.why == BACKING_OFF else MERGED)
        last = state.last_slot
        if last is not None and last < state.counted_to < last + FLOOR_MS:  # its trigger was changed just after a start
            return self._let_pass(job, state._replace(slot=None), slot - 1, BELOW_FLOOR)._replace(slot=state.slot)
        return state

    def _let_pass(self, job: JobDef, state: JobState, until: int, fate: str) -> JobState:
        state, passed = let_pass(job.trigger, state, until, fate)
        self._passes += passed
        return state

    def _let_go(self, job: JobDef, state: JobState, passed: int, fate: str, why: str = MISSED) -> None:
        now, trigger = self._tx.now, trigger_of(job.trigger)
        if passed or fate != MERGED:  # else its slot was run
            state = self._let_pass(job, state, now, fate)
        state = state._replace(missed=state.missed + passed, ready_at=None, parked=None, backoff_until=None)
        if trigger.type == "once":
            self._states.append(end(state, why, now))
            return
        # As if it had run now: else an interval that never ran, or is overdue, would be due again at once.
        base = state._replace(last_slot=max(state.slot or 0, state.last_slot or 0), last_run_at=now)
        coming = next_start(trigger, base, now, self._context.rng.random(), completed=now)
        if coming.slot is None:
            self._states.append(end(state, coming.ended or "", now))
        else:
            self._states.append(state._replace(slot=coming.slot, next_at=coming.at, due_at=coming.at))

    def _poisoned(self, job: JobDef, state: JobState, error: Exception) -> None:
        log.error("job %s cannot be scheduled and was disabled", job.name, exc_info=error)
        message = f"{job.name} cannot be scheduled and was disabled: {type(error).__name__}: {error}"
        # Runs that wait to start would wait forever.
        waiting = [run for run in self._tx.runs.open(job.id) if run.status == "queued"] if state.queued else []
        self._dropped = [item for item in self._dropped if item[0].id != job.id]
        self._dropped += [(job, run, message) for run in waiting]
        self._states.append(switch_off(state, message, self._tx.now)._replace(last_error=message, queued=0))
        open_alert(self._tx, self._context, "disabled", job.id, message, job_id=job.id)

    def _write(self) -> None:
        tx = self._tx
        tx.jobs.save([*self._states, *self._admission.waiting])
        tx.jobs.save_started([claimed.state for claimed in self.claimed])
        tx.runs.add(self._new)
        tx.runs.activate(self._woken)
        tx.journal.skip([*self._skips, *self._admission.skips])
        keep_passed(tx, self._passes)
        if self._missed:
            note_missed(tx, self._context, Found(self._missed, len(self._missed)), MISSED)
        self._admission.write_lanes()
        if self.claimed:
            tx.journal.emit("run", *[_started(claimed) for claimed in self.claimed])
        for job, run, why in self._dropped:
            drop_runs(tx, self._context, job, [run], why)


def _started(claimed: Claimed) -> dict[str, object]:
    job, run = claimed.job, claimed.run
    return {"type": "started", "run": run.id, "job_id": job.id, "job": job.name, "reason": run.reason}


def _text(lanes: tuple[str, ...]) -> str | None:
    return json.dumps(lanes) if lanes else None
