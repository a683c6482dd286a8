"""Why a job ran, did not run, or will run when it will: from recorded facts, never from guesses."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.kernel.cluster.nodes import NOTHING_SEEN, Seen, is_gone, is_served
from wakeful.kernel.engine.admission import all_drain
from wakeful.kernel.model.explanations import SETTLED_BY, STANDINGS, STARTED_WHEN, STORIES, Subject
from wakeful.kernel.model.job import Job, job_view
from wakeful.kernel.rules.approval import APPROVAL, approvals
from wakeful.kernel.rules.holding import hold_of, hold_words
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.outcome import GOES_ON
from wakeful.kernel.rules.parking import HOLD
from wakeful.kernel.rules.pending import BY_HAND, FROM_OUTSIDE, overtaken_retry
from wakeful.kernel.rules.policy import next_start, trigger_of
from wakeful.kernel.views.readiness import why_not_now
from wakeful.kernel.views.reasons import REASONS, STARTED_BY, waits_for
from wakeful.store.interface import Transaction
from wakeful.store.listing import status_at_rest
from wakeful.store.records import JobDef, JobState, RunDetails, RunRow, SkipRow
from wakeful.triggers import After, Once, TimedTrigger, format_interval, iso
from wakeful.triggers.moments import spoken
from wakeful.triggers.zones import place_named

LISTED = 10  # runs that wait to start, before the rest is only counted
RECENT = 20  # runs among which the last one that began is looked for


class Explanation(NamedTuple):
    """Sentences for people, and the facts they were made from."""

    subject: str
    sentences: list[str]
    facts: dict[str, Any]

    def __str__(self) -> str:
        return "\n".join(self.sentences)

    def to_dict(self) -> dict[str, Any]:
        return {"subject": self.subject, "sentences": self.sentences, "facts": self.facts}


class Viewpoint(NamedTuple):
    """From where a store is looked at: the zone of jobs that name none, and which servers are seen to be alive."""

    zone: str = "UTC"
    seen: Seen = NOTHING_SEEN


def explain_job(tx: Transaction, job: JobDef, state: JobState, view: Viewpoint) -> Explanation:
    """Where the job stands, why, and what comes next."""
    return _Story(tx, job, view).of_job(state)


def explain_run(tx: Transaction, job: JobDef, run: RunRow, view: Viewpoint) -> Explanation:
    """Why this run was started, and what became of it."""
    return _Story(tx, job, view).of_run(run)


class _Story:
    """The sentences about one job; its times are in its own zone, with UTC besides them."""

    def __init__(self, tx: Transaction, job: JobDef, view: Viewpoint) -> None:
        self.tx = tx
        self.job = job
        self.seen = view.seen
        self.trigger = trigger_of(job.trigger)
        self.zone = place_named(self.trigger.own_zone or view.zone)

    def of_job(self, state: JobState) -> Explanation:
        tx, job = self.tx, self.job
        last = _last_run(tx, state)
        skips = tx.skips.of(job.id)
        view = job_view(tx, (job, state))
        sentences = [f"{job.name} {'is' if self.trigger.reports else 'runs'} {view.schedule}."]
        sentences += self._future(state, view)
        sentences += self._past(state, last) + self._more(last, of_run=False)
        sentences += [self._refused(skip) for skip in skips]
        if state.missed:
            whose = "its" if state.missed == 1 else "their"
            sentences.append(f"{counted(state.missed, 'scheduled time')} passed without a run of {whose} own.")
        open_alerts = [alert for alert in tx.alerts.latest(job_id=job.id) if alert.closed_at is None]
        sentences += [_stop(f"Alert since {self.when(alert.opened_at)}: {alert.message}") for alert in open_alerts]
        sentences += [_stop(f"Note: {note}") for note in view.notes]
        facts = {
            "job": view.to_dict(),
            "last_run": ids.run_text(last.id) if last is not None else None,
            "skips": [
                {"reason": skip.reason, "count": skip.times, "last_at": iso(skip.last_at), "detail": skip.detail}
                for skip in skips
            ],
            "backoff_until": iso(state.backoff_until) if state.backoff_until is not None else None,
            "waiting_for": state.parked,
            "why_not_now": why_not_now(tx, job, state, self.seen),
        }
        return Explanation(job.name, sentences, facts)

    def of_run(self, run: RunRow) -> Explanation:
        tx, job, name = self.tx, self.job, ids.run_text(run.id)
        waits = "waits to start" if run.outcome is None else "was to start"
        begun = "was started" if run.started_at is not None else waits
        sentences = [f"{name} of {job.name} {begun} because {self._because(run)}."]
        if run.slot is not None:
            attempt = f", attempt {run.attempt}" if run.attempt > 1 else ""
            sentences.append(f"Its scheduled time is {self.when(run.slot)}{attempt}.")
        if run.retry_of is not None:
            sentences.append(f"It continues {ids.run_text(run.retry_of)}.")
        if run.caused_by is not None:
            sentences.append(f"The end of {ids.run_text(run.caused_by)} caused it.")
        if run.started_at is not None:
            late = max(0, run.started_at - run.due_at)  # a clock that went back is not shown as a start before its time
            sentences.append(f"It was due {self.when(run.due_at)} and started {_span(late)} later.")
        details = tx.runs.details(run.id)
        sentences += [self._asked(entry) for entry in approvals(details.approval if details is not None else None)]
        sentences += self._stands(run, details) + self._more(run, of_run=True)
        sentences += self._continued(run)
        facts = {"run": name, "job": job.name, "reason": run.reason, "status": run.status, "outcome": run.outcome}
        return Explanation(name, sentences, {**facts, "phase": run.phase, "why": _said(run, details)})

    def _stands(self, run: RunRow, details: RunDetails | None) -> list[str]:
        """How it ended, or what it is doing."""
        if run.outcome is not None:
            took = f" after {_took(run)}" if run.started_at is not None else ""
            return [_stop(f"It ended as {run.outcome}{took}{_why(run, details)}")]
        if run.status == "queued":
            return [f"It is queued for {self.when(run.due_at)}.", *self._unserved()]
        return self._doing(run, "")

    def _more(self, run: RunRow | None, *, of_run: bool) -> list[str]:
        """What the job's kind knows besides it."""
        story = STORIES.get(self.job.kind)
        return story(Subject(self.tx, self.job, run, of_run, self.when)) if story is not None else []

    def when(self, ms: int) -> str:
        return spoken(ms, self.zone, exact=True)

    def _because(self, run: RunRow) -> str:
        before = self.tx.runs.get(run.retry_of) if run.retry_of is not None else None
        if run.reason == "retry" and before is not None and before.outcome == "deferred":
            return "an earlier attempt asked to be run again then"
        if run.reason == "schedule" and self._was_past(run.slot):
            return "its time had already passed when the job was added"
        return STARTED_BY.get(run.reason, run.reason)

    def _was_past(self, slot: int | None) -> bool:
        """Whether the one time of the job lay in the past already when it was added: it is then due at once."""
        return isinstance(self.trigger, Once) and slot is not None and slot < self.job.created_at

    def _continued(self, run: RunRow) -> list[str]:
        """What became of the same thing after this run."""
        successor = self.tx.runs.successor(run.id)
        again = self.tx.runs.get(successor) if successor is not None else None
        if again is None:
            return self._overtaken(run)
        name = ids.run_text(again.id)
        if again.started_at is not None:
            return [f"It went on as {name}." if again.reason == APPROVAL else f"It was tried again as {name}."]
        if again.outcome is None:
            return [f"It will be tried again as {name}, at {self.when(again.due_at)}."]
        why = _why(again, self.tx.runs.details(again.id))
        return [_stop(f"It was to be tried again as {name}, which ended as {again.outcome}{why}")]

    def _overtaken(self, run: RunRow) -> list[str]:
        """Why a failed run has no retry, where its job wants one."""
        lost = overtaken_retry(self.trigger, from_text(self.job.options), run)
        if lost is None:
            return []
        at, slot = map(self.when, lost)
        return [f"It was not tried again: its next scheduled time, {slot}, is no later than the retry would be, {at}."]

    def _asked(self, entry: dict[str, Any]) -> str:
        asked = f"At {self.when(entry['asked_at'])} it asked: {entry['question']!r}"
        if entry["verdict"] is None:
            return f"{asked}, and there is no answer yet."
        note = f" ({entry['note']})" if entry["note"] else ""
        return f"{asked}; {entry['by']} {entry['verdict']} it at {self.when(entry['decided_at'])}{note}."

    def _future(self, state: JobState, view: Job) -> list[str]:
        tx = self.tx
        queued = [run for run in tx.runs.open(self.job.id) if run.status == "queued"] if state.queued else []
        if state.run_id is not None:
            run = tx.runs.get(state.run_id)
            since = run.started_at if run is not None and run.started_at is not None else state.last_run_at
            sentences = self._doing(run, f" ({ids.run_text(state.run_id)}), since {self.when(since or 0)}")
            stopped = self._stopped(state) if state.paused or not state.enabled else self._held()
            return sentences + self._queued(queued) + stopped
        if state.paused or not state.enabled:
            by_hand = [self._waits_to_start(run) for run in queued if run.reason in BY_HAND]
            kept = sum(run.reason in FROM_OUTSIDE for run in queued)
            verb = "waits" if kept == 1 else "wait"
            by_hand += [f"{counted(kept, 'request')} from outside {verb} until it is resumed."] if kept else []
            return self._stopped(state) + by_hand + (self._unserved() if by_hand else [])
        if state.parked is not None:
            text = f"It has been due since {self.when(state.ready_at or tx.now)} and waits"
            if state.parked == HOLD and self._held():
                return [f"{text}: {_lower(self._held()[0])}", *self._unserved()]
            return [f"{text}: {waits_for(state.parked)}.", *self._held(), *self._unserved()]
        sentences = self._queued(queued)
        if state.next_at is not None and state.slot is not None:
            sentences.append(self._after_passed(view) or self._next(state, state.slot, state.next_at))
        elif not queued:
            return self._untimed() + self._held()
        return self._but_held(sentences) + self._unserved()

    def _untimed(self) -> list[str]:
        """A job that only others start, and whether there is one to start it."""
        ahead = self.tx.jobs.upstream(self.job.id) if isinstance(self.trigger, After) else None
        if ahead is not None and not self.tx.jobs.names([ahead]):
            return [f"It will not run: there is no job {ahead!r} for it to start after."]
        if self.job.kind in STARTED_WHEN:
            return []  # said already
        return ["It has no time of its own: it runs when something else asks for it."]

    def _unserved(self) -> list[str]:
        """Nothing starts, whatever its time is, while there is no server."""
        return [] if is_served(self.tx, self.seen) else ["No server is running: nothing starts until one does."]

    def _held(self) -> list[str]:
        """That everything is held, or what its kind belongs to, for a job that would start by itself."""
        hold = hold_of(self.tx.nodes.held())
        if hold:
            return [f"Everything is paused {hold_words(hold)}: nothing starts until wakeful resume --all."]
        standing = STANDINGS.get(self.job.kind)
        said = (
            standing(Subject(self.tx, self.job, None, of_run=False, when=self.when)) if standing is not None else None
        )
        return [said] if said is not None else []

    def _but_held(self, coming: list[str]) -> list[str]:
        """What is to come, as far as everything being held leaves it to."""
        held = self._held()
        if not held or self.trigger.reports:
            return coming
        last = coming[-1].replace("It will run next at", "Its next time is").rstrip(".")
        return [*coming[:-1], f"{last}, but {_lower(held[0])}"]

    def _stopped(self, state: JobState) -> list[str]:
        """Why nothing starts it by time, and what would change that."""
        if state.paused:
            return ["It will not run by time: it is paused. Resume it to continue."]
        if self.job.removed_at is not None:
            return ["It will not run again: it was removed."]
        if self.trigger.type == "once" and status_at_rest(state) == "done":
            return ["It is done: its one time has passed."]
        if self.trigger.type == "once" and state.ended_at is not None:
            return ["It did not succeed at its one time, and will not run again by itself. Resume it to try it now."]
        ended = next_start(self.trigger, state, self.tx.now, 0.0).ended
        if ended:
            return [f"It will not run again: {ended}. Give it a new time to continue."]
        return ["It will not run: it is disabled. Resume it to continue."]

    def _queued(self, runs: list[RunRow]) -> list[str]:
        more = [f"{len(runs) - LISTED} more wait to start after them."] if len(runs) > LISTED else []
        return [self._waits_to_start(run) for run in runs[:LISTED]] + more

    def _waits_to_start(self, run: RunRow) -> str:
        how = "waits to start at" if run.due_at > self.tx.now else "has waited to start since"
        return f"{ids.run_text(run.id)} {how} {self.when(run.due_at)}: {self._because(run)}."

    def _after_passed(self, view: Job) -> str | None:
        """The first time that is neither passed over nor waits for hours, where some are."""
        at = next(view.starts(), None) if view.is_put_off else None
        return f"It will run next at {self.when(at)}." if at is not None else None

    def _next(self, state: JobState, slot: int, next_at: int) -> str:
        if (expected := self.trigger.expects(self.when(slot), self.when(next_at), down=bool(state.errors))) is not None:
            return expected
        due = next_at <= self.tx.now
        text = f"It has been due since {self.when(next_at)}" if due else f"It will run next at {self.when(next_at)}"
        if due and (why := self._held_back(state)) is not None:
            return f"{text} and waits: {why}."
        if state.backoff_until is not None:
            errors = counted(state.errors, "error")
            return f"{text}, held back by {errors} in a row; its own time was {self.when(slot)}."
        if next_at <= slot:
            return f"{text}."
        moved = self._moved(slot, next_at)
        return f"{text}, for {self.when(slot)}{f': {moved}' if moved else ''}."

    def _held_back(self, state: JobState) -> str | None:
        """Why a time that has come does not start."""
        if all_drain(self.tx):
            return "every node is draining, and starts nothing more"
        first = state.queued and from_text(self.job.options).approval  # as `in_order` has it
        return "what was approved before goes first" if first else None

    def _moved(self, slot: int, next_at: int) -> str | None:
        """Why a start is later than its slot, as far as that can be worked out again."""
        trigger = self.trigger
        if not isinstance(trigger, TimedTrigger):
            return None
        settled = trigger.due_ms(slot, job_id=self.job.id, rand=0.0)  # what stagger and active hours make of it
        if isinstance(trigger, Once) and next_at > settled:
            passed = "when the job was added" if self._was_past(slot) else "when the job was last changed or resumed"
            return f"its time had already passed {passed}"
        by = ["stagger"] if trigger.stagger_ms and settled > slot else []
        by += ["jitter"] if trigger.jitter and next_at > settled else []
        if isinstance(trigger, Once) and trigger.modifiers.gated and settled > slot + trigger.stagger_ms:
            by += ["its active hours or except dates"]
        return f"moved by {' and '.join(by)}" if by else None

    def _doing(self, run: RunRow | None, which: str) -> list[str]:
        if (
            run is not None
            and run.status == "active"
            and run.node is not None
            and is_gone(self.tx, run.node, self.seen)
        ):
            return [f"It was running{which}{',' if which else ''} when its server ended. {self._taken_up(run)}"]
        if run is not None and run.status == "active" and run.phase in GOES_ON:
            return [f"It {GOES_ON[run.phase]} and cannot be stopped{which}; its job is busy until it ends."]
        if run is None or run.status != "waiting":
            return [f"It is running now{which}."]
        if self.trigger.reports:
            return [f"It has started elsewhere{which} and has not reported its end."]
        if run.phase == APPROVAL:
            return [f"It waits for approval{which}. Approve or reject it to continue."]
        awaited = SETTLED_BY.get(run.kind)
        return [f"It waits to be completed{which}." if awaited is None else f"It waits{which}: {awaited}."]

    def _taken_up(self, run: RunRow) -> str:
        """What the next server makes of a run that ended with its server."""
        who = "The next server" if not is_served(self.tx, self.seen) else "Another server"
        if run.cancel:
            return f"{who} records it as cancelled, as requested."
        if run.phase == "timeout":
            return f"{who} records it as timed out."
        state = self.tx.jobs.states([self.job.id])[self.job.id]
        stopped = state.paused or not state.enabled or self.job.removed_at is not None
        again = from_text(self.job.options).recovers and not stopped
        return f"{who} records it as crashed and {'runs it again' if again else 'does not run it again'}."

    def _past(self, state: JobState, last: RunRow | None) -> list[str]:
        if state.last_run_at is None:
            return ["It has never run."]
        if last is None:
            ended = f"and ended as {state.last_outcome}; that run was pruned"
            return [f"It last ran at {self.when(state.last_run_at)} {ended}."]
        if last.started_at is None:
            return ["It has not run yet." if last.outcome is None else "It has never run."]
        because = self._because(last)
        if last.outcome is None:
            return [f"That run was started because {because}."]
        text = f"It last ran at {self.when(last.started_at)} because {because}, and ended as {last.outcome}"
        return [_stop(f"{text}{_why(last, self.tx.runs.details(last.id))}")]

    def _refused(self, skip: SkipRow) -> str:
        why = REASONS.get(skip.reason, skip.reason)
        detail = f" ({skip.detail})" if skip.detail and skip.detail != why else ""
        times = counted(skip.times, "start")
        return f"{times} refused as {skip.reason}: {why}{detail}, last at {self.when(skip.last_at)}."


def _last_run(tx: Transaction, state: JobState) -> RunRow | None:
    """The last run that was begun; a start that was released before it began is none."""
    last = tx.runs.get(state.last_run_id) if state.last_run_id is not None else None
    if last is None or last.started_at is not None:
        return last
    return next((run for run in tx.runs.log(state.job_id, RECENT) if run.started_at is not None), last)


def _why(run: RunRow, details: RunDetails | None) -> str:
    said = _said(run, details)
    return f": {said}" if said else ""


def _said(run: RunRow, details: RunDetails | None) -> str | None:
    """The reason a run gave for its end: its error, or what it said when it skipped, deferred or had nothing to do."""
    if details is None or details.error is not None:
        return details.error if details is not None else None
    if details.output is None or run.outcome not in ("skipped", "noop", "deferred"):
        return None
    said = json.loads(details.output)
    return said if isinstance(said, str) else None


def _took(run: RunRow) -> str:
    return _span(max(0, (run.finished_at or 0) - (run.started_at or 0)))


def _span(ms: int) -> str:
    if ms < 1_000:
        return f"{ms} ms"
    return f"{ms / 1000:.1f} s" if ms < 10_000 else format_interval(ms // 1000 * 1000)


def _stop(text: str) -> str:
    """The text as a sentence: with one full stop, whatever others wrote at its end."""
    text = text.rstrip()
    return text if text.endswith(("?", "!", "…")) else f"{text.rstrip('.')}."


def _lower(sentence: str) -> str:
    return sentence[:1].lower() + sentence[1:]
