"""Why a job ran, did not run, or will run when it will: from recorded facts, never from guesses."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.kernel.engine.claim import BY_HAND
from wakeful.kernel.engine.silence import NO_PING, UNHEARD
from wakeful.kernel.parking import GLOBAL_LANE, HANDLER, PLACE, SUSPECT_LANE, labels_of
from wakeful.kernel.rules.approval import APPROVAL, approvals
from wakeful.kernel.rules.limits import BELOW
from wakeful.kernel.rules.outcome import GOES_ON
from wakeful.kernel.rules.policy import next_start, trigger_of
from wakeful.kernel.views.models import Job
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, RunDetails, RunRow, SkipRow
from wakeful.triggers import Ping, TimedTrigger, Trigger, format_interval, from_ms, iso

REASONS = {
    "already_running": "its own previous run was still going",
    "at_capacity": "a lane it needs was full, so it waited",
    "backing_off": "it was backing off after errors",
    "outside_active_hours": "its active hours were closed",
    BELOW: "its trigger asks for more starts than the server gives",
    "no_handler": "nobody could run its kind",
    "no_node": "no node had the labels it asks for",
    "paused": "it was paused",
    "disabled": "it was disabled",
    NO_PING: "no ping came in time",
    UNHEARD: "no ping could be received when it was expected",
}
STARTED_BY = {
    "schedule": "its time had come",
    "catch_up": "its time had passed while nothing ran it, and it was caught up once",
    "manual": "a person or program asked for it",
    "retry": "an earlier attempt did not succeed",
    "recovery": "an earlier attempt was cut off",
    "after": "the job it follows had ended",
    "approval": "a person approved it",
    "ping": "it reported in",
}
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


def explain_job(tx: Transaction, job: JobDef, state: JobState) -> Explanation:
    """Where the job stands, why, and what comes next."""
    last = _last_run(tx, state)
    skips = tx.journal.skips(job.id)
    trigger = trigger_of(job.trigger)
    verb = "is" if isinstance(trigger, Ping) else "runs"
    sentences = [f"{job.name} {verb} {trigger.describe()}."]
    sentences += _future(tx, job, state)
    sentences += _past(tx, state, last)
    sentences += [_refused(skip) for skip in skips]
    if state.missed:
        sentences.append(f"{_times(state.missed, 'slot')} went by without a run of {_its(state.missed)} own.")
    open_alerts = [alert for alert in tx.journal.alerts(job.id) if alert.closed_at is None]
    sentences += [f"Alert since {_when(alert.opened_at)}: {alert.message}." for alert in open_alerts]
    view = Job(job, state, tx.now)
    sentences += [f"Note: {note}." for note in view.notes]
    facts = {
        "job": view.to_dict(),
        "last_run": ids.run_text(last.id) if last is not None else None,
        "skips": [
            {"reason": skip.reason, "count": skip.times, "last_at": iso(skip.last_at), "detail": skip.detail}
            for skip in skips
        ],
        "backoff_until": iso(state.backoff_until) if state.backoff_until is not None else None,
        "waiting_for": state.parked,
    }
    return Explanation(job.name, sentences, facts)


def explain_run(tx: Transaction, job: JobDef, run: RunRow) -> Explanation:
    """Why this run was started, and what became of it."""
    name = ids.run_text(run.id)
    begun = "was started" if run.started_at is not None else "waits to start" if run.outcome is None else "was to start"
    sentences = [f"{name} of {job.name} {begun} because {_because(tx, run)}."]
    if run.slot is not None:
        sentences.append(f"It stands for {_when(run.slot)}" + (f", attempt {run.attempt}." if run.attempt > 1 else "."))
    if run.retry_of is not None:
        sentences.append(f"It continues {ids.run_text(run.retry_of)}.")
    if run.caused_by is not None:
        sentences.append(f"The end of {ids.run_text(run.caused_by)} caused it.")
    if run.started_at is not None:
        late = max(0, run.started_at - run.due_at)  # a clock that went back is not shown as a start before its time
        sentences.append(f"It was due {_when(run.due_at)} and started {late} ms later.")
    details = tx.runs.details(run.id)
    sentences += [_asked(entry) for entry in approvals(details.approval if details is not None else None)]
    if run.outcome is not None:
        took = f" after {_took(run)}" if run.started_at is not None else ""
        sentences.append(f"It ended as {run.outcome}{took}{_why(run, details)}.")
    elif run.status == "queued":
        sentences.append(f"It is queued for {_when(run.due_at)}.")
    else:
        sentences.append(f"It {_doing(run)}.")
    sentences += _continued(tx, run)
    facts = {"run": name, "job": job.name, "reason": run.reason, "status": run.status, "outcome": run.outcome}
    return Explanation(name, sentences, {**facts, "phase": run.phase, "why": _said(run, details)})


def _last_run(tx: Transaction, state: JobState) -> RunRow | None:
    """The last run that was begun; a start that was released before it began is none."""
    last = tx.runs.get(state.last_run_id) if state.last_run_id is not None else None
    if last is None or last.started_at is not None:
        return last
    return next((run for run in tx.runs.log(state.job_id, RECENT) if run.started_at is not None), last)


def _because(tx: Transaction, run: RunRow) -> str:
    before = tx.runs.get(run.retry_of) if run.retry_of is not None else None
    if run.reason == "retry" and before is not None and before.outcome == "deferred":
        return "an earlier attempt asked to be run again then"
    return STARTED_BY.get(run.reason, run.reason)


def _continued(tx: Transaction, run: RunRow) -> list[str]:
    """What became of the same thing after this run."""
    successor = tx.runs.successor(run.id)
    again = tx.runs.get(successor) if successor is not None else None
    if again is None:
        return []
    name = ids.run_text(again.id)
    if again.started_at is not None:
        return [f"It went on as {name}." if again.reason == APPROVAL else f"It was tried again as {name}."]
    if again.outcome is None:
        return [f"It will be tried again as {name}, at {_when(again.due_at)}."]
    return [
        f"It was to be tried again as {name}, which ended as {again.outcome}{_why(again, tx.runs.details(again.id))}."
    ]


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


def _asked(entry: dict[str, Any]) -> str:
    asked = f"At {_when(entry['asked_at'])} it asked: {entry['question']!r}"
    if entry["verdict"] is None:
        return f"{asked}, and nobody has answered yet."
    note = f" ({entry['note']})" if entry["note"] else ""
    return f"{asked}; {entry['by']} {entry['verdict']} it at {_when(entry['decided_at'])}{note}."


def _future(tx: Transaction, job: JobDef, state: JobState) -> list[str]:
    if state.run_id is not None:
        run = tx.runs.get(state.run_id)
        since = run.started_at if run is not None and run.started_at is not None else state.last_run_at
        sentences = [f"It {_doing(run)} ({ids.run_text(state.run_id)}, since {_when(since or 0)})."]
        return sentences + (_stopped(tx, job, state) if state.paused or not state.enabled else [])
    queued = [run for run in tx.runs.open(job.id) if run.status == "queued"] if state.queued else []
    if state.paused or not state.enabled:
        by_hand = [run for run in queued if run.reason in BY_HAND]
        return _stopped(tx, job, state) + [_waits_to_start(tx, run) for run in by_hand]
    if state.parked is not None:
        return [f"It is due since {_when(state.ready_at or tx.now)} and waits: {_waits_for(state.parked)}."]
    sentences = [_waits_to_start(tx, run) for run in queued]
    if state.next_at is not None and state.slot is not None:
        sentences.append(_next(trigger_of(job.trigger), state, state.slot, state.next_at))
    elif not queued:
        sentences.append("It has no time of its own: it runs when something else asks for it.")
    return sentences


def _stopped(tx: Transaction, job: JobDef, state: JobState) -> list[str]:
    """Why nothing starts it by time, and what would change that."""
    trigger = trigger_of(job.trigger)
    if state.paused:
        return ["It will not run by time: it is paused. Resume it to go on."]
    if job.removed_at is not None:
        return ["It will not run again: it was removed."]
    if trigger.type == "once" and state.last_outcome in ("success", "noop"):
        return ["It is done: its one time has come and gone."]
    ended = next_start(trigger, state, tx.now, 0.0).ended
    if ended:
        return [f"It will not run again: {ended}. Give it a new trigger to go on."]
    return ["It will not run: it is disabled. Resume it to go on."]


def _waits_to_start(tx: Transaction, run: RunRow) -> str:
    return f"{ids.run_text(run.id)} waits to start at {_when(run.due_at)}: {_because(tx, run)}."


def _next(trigger: Trigger, state: JobState, slot: int, next_at: int) -> str:
    if isinstance(trigger, Ping):
        return f"A ping is expected at {_when(slot)}; without one it is down at {_when(next_at)}."
    text = f"It will run next at {_when(next_at)}"
    if state.backoff_until is not None:
        return f"{text}, held back by {_times(state.errors, 'error')} in a row (its own time was {_when(slot)})."
    if next_at <= slot:
        return f"{text}."
    moves = isinstance(trigger, TimedTrigger) and (trigger.jitter or trigger.modifiers.stagger_ms)
    return f"{text} (for {_when(slot)}{'; jitter or stagger moved it' if moves else ''})."


def _doing(run: RunRow | None) -> str:
    if run is not None and run.status == "active" and run.phase in GOES_ON:
        return f"{GOES_ON[run.phase]} and cannot be stopped; its job is busy until it ends"
    if run is None or run.status != "waiting":
        return "is running now"
    if run.reason == "ping":
        return "has started elsewhere and has not reported its end"
    return "waits for approval" if run.phase == APPROVAL else "waits to be completed"


def _past(tx: Transaction, state: JobState, last: RunRow | None) -> list[str]:
    if state.last_run_at is None:
        return ["It has never run."]
    if last is None:
        return [f"It last ran at {_when(state.last_run_at)} and ended as {state.last_outcome}; that run was pruned."]
    if last.started_at is None:
        return ["It has not run yet." if last.outcome is None else "It has never run."]
    because = _because(tx, last)
    if last.outcome is None:
        return [f"That run was started because {because}."]
    text = f"It last ran at {_when(last.started_at)} because {because}, and ended as {last.outcome}"
    return [f"{text}{_why(last, tx.runs.details(last.id))}."]


def _refused(skip: SkipRow) -> str:
    why = REASONS.get(skip.reason, skip.reason)
    detail = f" ({skip.detail})" if skip.detail else ""
    return f"{_times(skip.times, 'start')} refused as {skip.reason}: {why}{detail}, last at {_when(skip.last_at)}."


def _waits_for(parked: str) -> str:
    if parked.startswith(HANDLER):
        return f"no running server has a handler for jobs of kind {parked.removeprefix(HANDLER)}"
    if parked.startswith(PLACE):
        return f"no running node is labelled {', '.join(labels_of(parked))}"
    if parked == GLOBAL_LANE:
        return "as many jobs as max_running allows are running"
    if parked == SUSPECT_LANE:
        return "it was running when the process crashed twice, and such jobs run one at a time"
    return f"the lane {parked} is full"


def _took(run: RunRow) -> str:
    took = max(0, (run.finished_at or 0) - (run.started_at or 0))
    return f"{took} ms" if took < 10_000 else format_interval(took // 1000 * 1000)


def _when(ms: int) -> str:
    return from_ms(ms).strftime("%Y-%m-%d %H:%M:%S UTC")


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _its(count: int) -> str:
    return "its" if count == 1 else "their"
