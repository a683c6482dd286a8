"""Undoing actions: for ten minutes, by anyone who may do the same, on any node.

An action is compared with what it left behind before anything is written. Later changes are kept, and
the answer lists them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.errors import ActionNotFound, CannotUndo, InvalidJob, NotAllowed
from wakeful.kernel.actions import holding
from wakeful.kernel.actions.authorization import (
    check_name_not_awaited,
    check_predecessor,
    check_quota,
    refuse_admin_kind,
    refuse_lanes,
    size_of,
)
from wakeful.kernel.actions.drafts import chain
from wakeful.kernel.actions.pausing import job_event
from wakeful.kernel.actions.recording import OF_JOB, SNOOZE, UNTIL
from wakeful.kernel.actions.stops import is_stopped, note_going_on, stopped_by_others
from wakeful.kernel.context import Context
from wakeful.kernel.domain import load
from wakeful.kernel.engine.alerts import reopen_alert
from wakeful.kernel.engine.ending import drop_runs, queue_runs
from wakeful.kernel.engine.lines import enter_lanes
from wakeful.kernel.engine.stretches import keep_passed, take_back
from wakeful.kernel.rules.passing import DISABLED, PAUSED, REMOVED, Passed, skip_slots, why_waiting
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.undoing import (
    FINAL,
    TAKEN_BACK_BY,
    UNDO_MS,
    Values,
    brought_back,
    changed_since,
    only_enabled,
    standing_of,
)
from wakeful.store.actions import ActionRow
from wakeful.store.interface import Transaction
from wakeful.store.owners import Stops
from wakeful.store.records import JobDef, JobState, RunRow

TOGETHER = 500  # subjects of an action that are brought back in one transaction
DONE = {
    "pause": "paused",
    "resume": "resumed",
    "disable": "disabled",
    "remove": "removed",
    "acknowledge": "acknowledged",
}
FINAL_WORDS = {
    "run": "a start is not taken back; cancel the run instead",
    "retry": "an attempt is not taken back; cancel the run instead",
    "cancel": "a run that was cancelled has ended; retry it instead",
    "approve": "an approval is not taken back; cancel the run instead",
    "reject": "a rejection is not taken back; run the job again instead",
    "add": "remove the job instead",
    "edit": "change the job back instead",
    "drain": "end the draining instead",
    "undrain": "drain the node again instead",
    "revoke_token": "create another token instead",
    "cancel_message": "queue the message again instead",
}
APPLY = "apply"  # an action that did several things


class UndoneBatch(NamedTuple):
    """What became of some of an action's subjects, and where to continue: None at the end."""

    what: str
    restored: list[str]
    kept: dict[str, str]
    cursor: int | None


def undoable(tx: Transaction, action_id: int) -> None:
    """ActionNotFound or CannotUndo unless the action can still be taken back."""
    name, head = ids.encode("act", action_id), tx.actions.head(action_id)
    if head is None:
        message = f"There is no action {name}: wakeful undo --list shows those on record."
        raise ActionNotFound(message)
    if head.undone == head.subjects:
        message = f"{name} was undone already, by {head.undone_by}."
        raise CannotUndo(message)
    if head.what in FINAL:
        message = f"{name} cannot be undone: {FINAL_WORDS[head.what]}."
        raise CannotUndo(message)
    if tx.now - head.at > UNDO_MS:
        message = (
            f"{name} was {counted((tx.now - head.at) // 60_000, 'minute')} ago, and an action can be undone for "
            f"{UNDO_MS // 60_000}: do the opposite instead."
        )
        raise CannotUndo(message)


def undo_some(tx: Transaction, context: Context, action_id: int, cursor: int) -> UndoneBatch:
    """Take back what an action did to the next of its subjects."""
    rows, following = tx.actions.rows(action_id, cursor, TOGETHER)
    if not rows:
        return UndoneBatch("", [], {}, None)
    undo = _Undo(tx, context, rows)
    for row in rows:
        undo.take_back(row)
    undo.finish()
    tx.actions.undone(undo.restored, tx.now, context.rights.caller)
    what = rows[0].what if len({row.what for row in rows}) == 1 else APPLY
    return UndoneBatch(what, [row.name for row in undo.restored], undo.kept, following)


class _Undo:
    """Some subjects of one action; data about all of them is read once."""

    def __init__(self, tx: Transaction, context: Context, rows: Sequence[ActionRow]) -> None:
        self.tx, self.context, self.rights = tx, context, context.rights
        subjects = [row.subject for row in rows]
        self.states = tx.jobs.states(subjects)  # locked from here on
        self.jobs = tx.jobs.definitions(subjects)
        self.newer = tx.actions.newer(subjects, rows[0].id, but={SNOOZE, *FINAL})  # a snooze changes no job
        self.restored: list[ActionRow] = []
        self.kept: dict[str, str] = {}
        self.changed: list[JobState] = []
        self.passed: list[Passed] = []
        self.events: list[dict[str, object]] = []
        self.stopped: list[JobDef] = []
        self.resumed: list[JobDef] = []
        self.reopened: list[int] = []
        self.stirred = False

    def finish(self) -> None:
        """Write what was put off; many jobs are brought back together."""
        self.tx.jobs.save(self.changed)
        self.tx.of(Stops).put([job.id for job in self.stopped if job.owner], by_owner=self.rights.owned is not None)
        note_going_on(self.tx, self.resumed)
        keep_passed(self.tx, self.passed)
        for job in self.resumed:
            hook = self.context.declared.declared(job.kind).resumed
            if hook is not None:
                hook(self.tx, self.context, job)
        for alert_id in self.reopened:  # whose messages say how the jobs are from here on
            reopen_alert(self.tx, self.context, alert_id)
        if self.events:
            self.tx.events.emit("job", *self.events)
        self.changed, self.passed, self.events = [], [], []
        self.resumed, self.stopped, self.reopened = [], [], []

    def _state_of(self, row: ActionRow) -> JobState | None:
        """How a job stands; read again where bringing it back, or one before it, may start or end others."""
        stirs = row.what == "remove" or bool(row.before.get("queued") or row.after.get("queued"))
        if stirs or self.stirred:
            self.finish()
            self.states = self.tx.jobs.states(list(self.states))
        self.stirred = stirs
        return self.states.get(row.subject)

    def take_back(self, row: ActionRow) -> None:
        """Restore one subject, or note why not.

        A caller limited to its own jobs takes back what it did itself, and learns nothing about others.
        """
        job, own = self.jobs.get(row.subject), (row.actor, row.via) == (self.rights.caller, self.rights.via)
        if self.rights.owned is not None and (job is None or not self.rights.sees(job) or not own):
            return
        before, left = row.before, {**row.before, **row.after}
        if row.what == "acknowledge":
            why = self._unsee(row, left)
        elif row.what == SNOOZE:
            why = self._wake(row, before, left)
        elif row.what in TAKEN_BACK_BY:
            why = load(TAKEN_BACK_BY[row.what])(self.tx, self.context, row, self.rights.caller)
        elif row.subject == holding.SUBJECT:
            why = holding.take_back(self.tx, self.context, row, before, left)
        else:
            why = self._bring_back(row, before, left)
        if why is None:
            self.restored.append(row)
        else:
            self.kept[row.name] = why

    def _unsee(self, row: ActionRow, left: Values) -> str | None:
        done = self.tx.alerts.unack(row.subject, left["acked_at"])
        return None if done else f"{row.name} is over, or was acknowledged again since: left as it is"

    def _wake(self, row: ActionRow, before: Values, left: Values) -> str | None:
        if OF_JOB in left:
            done = self.tx.alerts.unsnooze_job(row.subject, left[OF_JOB], before[OF_JOB])
        else:
            done = self.tx.alerts.unsnooze(row.subject, left[UNTIL], before[UNTIL])
        return None if done else f"{row.name} is over, or was snoozed or announced since: left as it is"

    def _bring_back(self, row: ActionRow, before: Values, left: Values) -> str | None:
        job, state = self.jobs.get(row.subject), self._state_of(row)
        if job is None or state is None:
            return f"there is no job {row.name} any more"
        over = row.what == "pause" and not state.paused and state.ended_at is not None and job.removed_at is None
        if over and row.subject not in self.newer:
            return None  # it has done all it was to do, which ended the pause
        why = self._against(row, job, state, left)
        if why is not None:
            return why
        if row.what == "remove":
            job = job._replace(removed_at=None, updated_at=self.tx.now)
            self.tx.jobs.define(job)
            state = state._replace(revision=state.revision + 1)
            left = {**left, "revision": left["revision"] + 1}
        state = self._with_starts(job, state, before, left)
        trigger, rand = trigger_of(job.trigger), self.context.rng.random()
        after = brought_back(trigger, state, (before, left), self.tx.now, rand)
        if after.slot is not None and after.slot <= self.tx.now:  # what passed meanwhile is due after all
            counted_to = take_back(self.tx, job, after.slot)
            after = after._replace(counted_to=min(after.counted_to, counted_to))
        else:
            fate = REMOVED if row.what == "remove" else why_waiting(state, PAUSED if after.paused else DISABLED)
            counted, passed = skip_slots(job.trigger, state, self.tx.now, fate)
            self.passed += passed
            after = after._replace(counted_to=counted.counted_to)
        self.changed.append(after)
        was_stopped = row.what == "remove" or is_stopped(state)
        if was_stopped and not is_stopped(after):
            self.resumed.append(job)
        elif row.what != "remove" and is_stopped(after) and not is_stopped(state):
            self.stopped.append(job)
        if row.what == "remove":
            self.finish()
            chain(self.tx, job)
            enter_lanes(self.tx, [job])
        self.reopened += sorted(set(before.get("alerts") or ()) - set(left.get("alerts") or ()))
        self.events.append(job_event(_event(row.what, after), job))
        return None

    def _against(self, row: ActionRow, job: JobDef, state: JobState, left: Values) -> str | None:
        """What stands against it: a change since, or a name that is taken."""
        later = self.newer.get(row.subject)
        if later is not None and not only_enabled(later.before, later.after):
            return f"{job.name} was {DONE.get(later.what, later.what)} since, by {later.actor}: left as it is"
        changed = changed_since(standing_of(state, job.removed_at), left, row.before)
        if changed is not None:
            return f"{job.name} {changed} since: left as it is"
        if row.what != "remove":
            return stopped_by_others(self.tx, self.rights, [(job, state)]).get(job.id)
        try:  # what holds for a new job holds for one that comes back
            check_name_not_awaited(self.tx, self.rights, job.name)
            check_predecessor(self.tx, self.rights, trigger_of(job.trigger))
            refuse_lanes(self.tx, self.rights, self.context.declared, job, None)
        except (NotAllowed, InvalidJob) as error:
            return f"{job.name}: {error}"
        refuse_admin_kind(self.rights, self.context.declared, job.kind)
        check_quota(self.tx, self.rights, size_of(job.trigger, job.payload, job.options), jobs=1)
        taken = self.tx.jobs.by_name(job.name)
        return f"another job is named {job.name} by now: rename that one first" if taken is not None else None

    def _with_starts(self, job: JobDef, state: JobState, before: Values, left: Values) -> JobState:
        """Queue again what the action ended before it could start, and end what it queued."""
        tx, had, has = self.tx, list(before.get("queued") or ()), set(left.get("queued") or ())
        if not had and not has:
            return state
        asked = [run for run in tx.runs.open(job.id) if run.status == "queued" and run.id in has - set(had)]
        drop_runs(tx, self.context, job, asked, "what asked for it was undone")
        again: list[RunRow] = []
        for run_id in had:
            ended = tx.runs.get(run_id)
            if ended is None or ended.outcome != "cancelled" or ended.started_at is not None:
                continue
            if tx.runs.successor(run_id) is None:
                due_at = max(tx.now, ended.due_at)
                again.append(RunRow.again(self.context.new_id(), ended, ended.reason, due_at))
        queue_runs(tx, again)
        return state._replace(queued=state.queued - len(asked) + len(again))


def _event(what: str, state: JobState) -> str:
    if what == "remove":
        return "restored"
    if not state.enabled:
        return "disabled"
    return "paused" if state.paused else "resumed"
