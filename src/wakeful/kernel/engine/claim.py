"""Claims: the only way a run starts, for every reason.

`Claim` is the half of a turn that looks at due jobs inside a transaction and decides for each: start it, let a slot
go, or leave it to wait, as `Admission` says.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from wakeful.kernel.context import Context
from wakeful.kernel.engine.admission import HELD, Admission, in_order
from wakeful.kernel.engine.alerts import open_alert
from wakeful.kernel.engine.ending import count_dropped, drop_runs
from wakeful.kernel.engine.lines import Claimed, by_turn
from wakeful.kernel.engine.replacing import look_at_active
from wakeful.kernel.engine.stretches import Found, Late, keep_passed, note_missed, was_started
from wakeful.kernel.hooks import Refused
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.parking import HOLD, is_lane
from wakeful.kernel.rules.passing import BACKING_OFF, BELOW_FLOOR, MERGED, Passed, skip_slots
from wakeful.kernel.rules.passing import MISSED as LOST
from wakeful.kernel.rules.pending import (
    FROM_OUTSIDE,
    RETRY,
    after_backing_off,
    at_rest,
    covers_slots,
    instead_of_catching_up,
    overtaken,
    too_close,
)
from wakeful.kernel.rules.policy import (
    BELOW,
    FLOOR_MS,
    Due,
    alarm,
    armed_to_replace,
    due_slot,
    end,
    limit_words,
    next_start,
    switch_off,
    too_often,
    trigger_of,
)
from wakeful.store.interface import Transaction
from wakeful.store.records import Given, JobDef, JobState, RunRow, SkipRow
from wakeful.triggers import TimedTrigger

log = logging.getLogger("wakeful.engine")

MISSED = "its time was missed, and catch_up says to let it go"


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
        self._tx, self._context = tx, context
        self._hooks = context.declared.hooks
        self._rand = context.rng.random
        self._admission = Admission(tx, context, held)
        self._states: list[JobState] = []
        self._new: list[RunRow] = []
        self._woken: list[RunRow] = []
        self._skips: list[SkipRow] = []
        self._passes: list[Passed] = []
        self._dropped: list[tuple[JobDef, RunRow, str]] = []
        self._missed: list[Late] = []
        self._failed: set[int] = set()  # jobs for which a failure was counted: more of their state changes
        self._in_hook = False
        self.claimed: list[Claimed] = []
        self.expired: list[tuple[JobDef, JobState, RunRow]] = []
        self.to_cancel: list[int] = []

    def run(self, due: Iterable[tuple[JobDef, JobState]]) -> None:
        """Claim runs of these due jobs, and write everything that follows."""
        due = sorted(due, key=by_turn)
        self._tx.runs.read_ahead([state.job_id for _, state in due if state.queued and state.run_id is None])
        for job, state in due:
            try:
                self._look(job, state)
                if state.ready_at is not None and state.run_id is None:
                    self._pass_on(job, state)
            except Exception as error:
                if self._in_hook or self._admission.in_hook:  # what the hook wrote must be undone, and this transaction
                    raise
                self._poisoned(job, state, error)  # one poisoned job must not stop the others
        self._write()

    def _pass_on(self, job: JobDef, state: JobState) -> None:
        """If a job that had waited for a lane neither starts nor waits for one now, others get its place."""
        started = bool(self.claimed) and self.claimed[-1].job.id == job.id
        waits = bool(self._admission.waiting) and self._admission.waiting[-1].job_id == job.id
        if not started and not (waits and is_lane(self._admission.waiting[-1].parked or HOLD)):
            self._admission.pass_on(job, state)

    # -- one job ------------------------------------------------------------------------------------------------------

    def _look(self, job: JobDef, state: JobState) -> None:
        now = self._tx.now
        if state.run_id is not None:
            self._look_at_running(job, state)
        elif job.removed_at is not None:
            self._states.append(state._replace(due_at=None, next_at=None, slot=None, enabled=0))
        elif state.queued:
            self._look_at_queued(job, state)
        elif self._is_slot_due(state):
            if trigger_of(job.trigger).reports:
                silence = self._context.declared.hooks.overdue[job.kind](self._tx, self._context, job, state)
                self._states.append(silence.state)
                self._skips.append(silence.skip)
                self._passes += silence.passed
            else:
                self._start_slot(job, state)
        else:
            state = state._replace(due_at=alarm(state) if (state.next_at or 0) > now else None, ready_at=None)
            self._states.append(at_rest(job.trigger, state, now, self._rand))

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
            state, is_replaced = look_at_active(self._tx, self._context, job, state, held=self._admission.is_held(job))
            if is_replaced:
                self._tx.runs.ask_cancel(found[0].id)  # it may run on another node
                self.to_cancel.append(found[0].id)
            self._states.append(state)
            return
        self._states.append(state._replace(due_at=None))

    def _look_at_queued(self, job: JobDef, state: JobState) -> None:
        now = self._tx.now
        runs, first = self._tx.runs.open_and_first(state.job_id)
        waiting = [run for run in runs if run.status == "queued"]
        state, waiting = self._without_overtaken(job, state._replace(queued=len(waiting)), waiting)
        slot_due = self._is_slot_due(state)
        held = state.paused or not state.enabled
        startable = [run for run in waiting if not (held and run.reason in FROM_OUTSIDE)]
        line, only = in_order(self._tx, job, startable, slot_due=slot_due)
        ready = [run for run in line if run.due_at <= now]
        if ready:
            chosen = self._admission.first_with_room(job, state, ready)
            self._start_queued(job, state, chosen, first.get(chosen.id))
        elif slot_due and not only:
            self._start_slot(job, state)
        else:
            first_at = min((run.due_at for run in line), default=None)
            state = state._replace(due_at=first_at if only else alarm(state, first_at), ready_at=None)
            self._states.append(at_rest(job.trigger, state, now, self._rand))

    def _is_slot_due(self, state: JobState) -> bool:
        armed = bool(state.enabled) and not state.paused and state.slot is not None
        return armed and (state.next_at or 0) <= self._tx.now

    def _instead_of_catching_up(self, job: JobDef, state: JobState) -> JobState:
        following, passes = instead_of_catching_up(job.trigger, from_text(job.options), state, self._tx.now)
        if any(one.fate == LOST for one in passes):
            self._missed.append(Late(job.id, job.name, state.next_at or self._tx.now))
        self._passes += passes
        return following

    def _before(self, run: RunRow) -> RunRow | None:
        """The run that a further attempt continues, or that was cut off."""
        tries_again = run.reason == RETRY and run.retry_of is not None
        return self._tx.runs.get(run.retry_of or 0) if tries_again else self._tx.runs.recovered(run)

    def _without_overtaken(self, job: JobDef, state: JobState, waiting: list[RunRow]) -> tuple[JobState, list[RunRow]]:
        """The runs that are still wanted; the others are dropped."""
        options, now, limit = from_text(job.options), self._tx.now, self._context.min_interval
        slot_due, kept = self._is_slot_due(state), []
        for run in waiting:
            before = self._before(run) if slot_due else None
            why = overtaken(options, state, run, now, slot_due=slot_due, before=before)
            if why is None and (why := too_close(options, state, run, now, limit)) is not None:
                self._skips.append(SkipRow(job.id, BELOW, 1, now, why))
            if why is None:
                kept.append(run)
            else:
                state = self._drop(job, state, run, why)
        return state, kept

    def _drop(self, job: JobDef, state: JobState, run: RunRow, why: str) -> JobState:
        """End a run that waits, and let count what it was to repair."""
        self._dropped.append((job, run, why))
        if run.slot is not None and run.attempt == 1:
            state = state._replace(missed=state.missed + 1)
        counted = count_dropped(self._tx, self._context, job, state, run)
        if counted != state:
            self._failed.add(job.id)
        return counted._replace(queued=state.queued - 1)

    def _start_queued(self, job: JobDef, state: JobState, run: RunRow, given: Given | None) -> None:
        """`given`: what the run was given, where that was read already."""
        lanes = self._admission.admit(job, from_text(job.options), state, run)
        if isinstance(lanes, Refused):
            if self._admission.refuse(state, lanes):
                state = self._drop(job, state, run, lanes.detail or lanes.reason)._replace(ready_at=None)
                # Looked at again at once: another run may wait, or nothing is left and the job is over.
                state = state._replace(due_at=self._tx.now if state.queued else alarm(state))
                self._states.append(at_rest(job.trigger, state, self._tx.now, self._rand))
            return
        if lanes is None:
            return
        covers = covers_slots(run, self._before(run))
        if self._is_slot_due(state) and covers:  # not before it starts: it may never
            state = self._instead_of_catching_up(job, state)
        elif not self._is_slot_due(state) and (covers or run.reason != "recovery"):
            state, passes = after_backing_off(job.trigger, state, self._tx.now)
            self._passes += passes
            self._skips += [SkipRow(job.id, BACKING_OFF, one.slots, self._tx.now, None) for one in passes]
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
        # A slot that waits for the end of this run may be late already: nothing ran when it came.
        waits_since = self._tx.now if state.ready_at is None else state.ready_at
        state = state._replace(
            due_at=None,
            run_id=run.id,
            queued=state.queued - 1,
            parked=None,
            ready_at=waits_since if self._is_slot_due(state) else None,
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
        if due.slot is not None and was_started(self._tx, job, state, due.slot):
            self._skip(job, state, 0, MERGED)
            return
        if due.slot is None:
            self._lose(job, state, due.passed)
            return
        if options.bounded and too_often(trigger, self._context.min_interval):
            self._skips.append(SkipRow(job.id, BELOW, 1, now, limit_words(self._context.min_interval or 0)))
            self._skip(job, state, due.passed, BELOW)
            return
        lanes = self._admission.admit(job, options, state)
        if isinstance(lanes, Refused):
            if self._admission.refuse(state, lanes):
                self._skip(job, state, due.passed, lanes.reason, lanes.detail or lanes.reason)
            return
        if lanes is None:
            return
        if due.passed and due.why == "backing_off":
            self._skips.append(SkipRow(job.id, "backing_off", due.passed, now, None))
        if isinstance(trigger, TimedTrigger) and trigger.active_hours is not None and state.last_slot is not None:
            closed = trigger.closed_slots(state.last_slot, due.slot)
            if closed:
                self._skips.append(SkipRow(job.id, "outside_active_hours", closed, now, None))
        run = RunRow(  # by position: every run pays for it, and names would double what it costs
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
        options = from_text(job.options)
        if options.overlap == "cancel_other":
            state = armed_to_replace(trigger_of(job.trigger), options, state, self._tx.now, self._rand())
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

    def _lose(self, job: JobDef, state: JobState, passed: int) -> None:
        """Let slots go that `catch_up` does not want. Nobody expected those to start that came during a hold."""
        since = state.next_at or self._tx.now
        held = any(skip.reason == HELD and skip.last_at >= since for skip in self._tx.skips.of(job.id))
        if not held:
            self._missed.append(Late(job.id, job.name, since))
        self._skip(job, state, passed, HELD if held else LOST)

    def _counted(self, job: JobDef, state: JobState, due: Due, slot: int) -> JobState:
        """With what passed before the slot that is run; most starts have nothing before them, and only compare."""
        if due.passed:
            return self._skip_slots(job, state, slot - 1, BACKING_OFF if due.why == BACKING_OFF else MERGED)
        last = state.last_slot
        close = last is not None and last < slot and last != state.counted_to < last + FLOOR_MS
        if close:  # its trigger was changed just after a start, or so that it has a slot just after one that was run
            return self._skip_slots(job, state._replace(slot=None), slot - 1, BELOW_FLOOR)._replace(slot=state.slot)
        return state

    def _skip_slots(self, job: JobDef, state: JobState, until: int, fate: str) -> JobState:
        state, passed = skip_slots(job.trigger, state, until, fate)
        self._passes += passed
        return state

    def _skip(self, job: JobDef, state: JobState, passed: int, fate: str, why: str = MISSED) -> None:
        now, trigger = self._tx.now, trigger_of(job.trigger)
        if passed or fate != MERGED:  # else its slot was run
            state = self._skip_slots(job, state, now, fate)
        state = state._replace(missed=state.missed + passed, ready_at=None, parked=None, backoff_until=None)
        if trigger.type == "once":
            self._states.append(end(state, why, now))
            return
        # As if it had run now: else an interval that never ran, or is overdue, would be due again at once.
        base = state._replace(last_slot=max(state.slot or 0, state.last_slot or 0), last_run_at=now)
        coming = next_start(trigger, base, now, self._rand(), completed=now)
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
        started = [claimed.state for claimed in self.claimed]
        failed = [state for state in started if state.job_id in self._failed]
        tx.jobs.save([*self._states, *self._admission.waiting, *failed])
        tx.jobs.save_started([state for state in started if state.job_id not in self._failed] if failed else started)
        tx.runs.add(self._new)
        tx.runs.activate(self._woken)
        tx.skips.count([*self._skips, *self._admission.skips])
        keep_passed(tx, self._passes)
        if self._missed:
            note_missed(tx, self._context, Found(self._missed, len(self._missed)), MISSED)
        self._admission.write_lanes()
        if self.claimed:
            tx.events.count(*self.claimed)
            tx.events.emit("run", *[claimed.event() for claimed in self.claimed])
        for job, run, why in self._dropped:
            drop_runs(tx, self._context, job, [run], why)


def _text(lanes: tuple[str, ...]) -> str | None:
    return json.dumps(lanes) if lanes else None
