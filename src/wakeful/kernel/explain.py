"""Why a job ran, did not run, or will run when it will: from recorded facts, never from guesses."""

from __future__ import annotations

from typing import Any, NamedTuple

from wakeful import ids
from wakeful.kernel.approval import APPROVAL, approvals
from wakeful.kernel.claim import GLOBAL_LANE, HANDLER, PLACE, SUSPECT_LANE
from wakeful.kernel.limits import BELOW
from wakeful.kernel.models import Job
from wakeful.kernel.policy import trigger_of
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, RunRow, Skip
from wakeful.triggers import format_interval, from_ms, iso

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
}
STARTED_BY = {
    "schedule": "its time had come",
    "catch_up": "its time had passed while nothing ran it, and it was caught up once",
    "manual": "a person or program asked for it",
    "retry": "an earlier attempt did not succeed",
    "recovery": "an earlier attempt was cut off",
    "after": "the job it follows had ended",
    "approval": "a person approved it",
}


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
    last = tx.runs.get(state.last_run_id) if state.last_run_id is not None else None
    skips = tx.journal.skips(job.id)
    sentences = [f"{job.name} runs {trigger_of(job.trigger).describe()}."]
    sentences += _future(tx, job, state)
    sentences += _past(state, last)
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
    sentences = [f"{name} of {job.name} was started because {STARTED_BY.get(run.reason, run.reason)}."]
    if run.slot is not None:
        sentences.append(f"It stands for {_when(run.slot)}" + (f", attempt {run.attempt}." if run.attempt > 1 else "."))
    if run.retry_of is not None:
        sentences.append(f"It continues {ids.run_text(run.retry_of)}.")
    if run.caused_by is not None:
        sentences.append(f"The end of {ids.run_text(run.caused_by)} caused it.")
    if run.started_at is not None:
        late = run.started_at - run.due_at
        sentences.append(f"It was due {_when(run.due_at)} and started {late} ms later.")
    details = tx.runs.details(run.id)
    sentences += [_asked(entry) for entry in approvals(details.approval if details is not None else None)]
    if run.outcome is not None:
        took = f" after {_took(run)}" if run.started_at is not None else ""
        why = f": {details.error}" if details is not None and details.error else ""
        sentences.append(f"It ended as {run.outcome}{took}{why}.")
    else:
        sentences.append(f"It is {run.status}.")
    successor = tx.runs.successor(run.id)
    if successor is not None:
        sentences.append(f"It was tried again as {ids.run_text(successor)}.")
    return Explanation(name, sentences, {"run": name, "job": job.name, "reason": run.reason, "outcome": run.outcome})


def _asked(entry: dict[str, Any]) -> str:
    asked = f"At {_when(entry['asked_at'])} it asked: {entry['question']!r}"
    if entry["verdict"] is None:
        return f"{asked}, and nobody has answered yet."
    note = f" ({entry['note']})" if entry["note"] else ""
    return f"{asked}; {entry['by']} {entry['verdict']} it at {_when(entry['decided_at'])}{note}."


def _future(tx: Transaction, job: JobDef, state: JobState) -> list[str]:
    if state.run_id is not None:
        doing = _doing(tx.runs.get(state.run_id))
        return [f"It {doing} ({ids.run_text(state.run_id)}, since {_when(state.last_run_at or 0)})."]
    if state.paused:
        return ["It will not run by time: it is paused. Resume it to go on."]
    if not state.enabled and trigger_of(job.trigger).type == "once" and state.last_outcome in ("success", "noop"):
        return ["It is done: its one time has come and gone."]
    if not state.enabled:
        return ["It will not run: it is disabled. Resume it to go on."]
    if state.parked is not None:
        return [f"It is due since {_when(state.ready_at or tx.now)} and waits: {_waits_for(state.parked)}."]
    queued = [run for run in tx.runs.open(job.id) if run.status == "queued"] if state.queued else []
    sentences = [
        f"{ids.run_text(run.id)} waits to start at {_when(run.due_at)}: {STARTED_BY.get(run.reason, run.reason)}."
        for run in queued
    ]
    if state.next_at is not None and state.slot is not None:
        text = f"It will run next at {_when(state.next_at)}"
        if state.backoff_until is not None:
            text += f", held back by {_times(state.errors, 'error')} in a row (its own time was {_when(state.slot)})"
        elif state.next_at > state.slot:
            text += f" (for {_when(state.slot)}; jitter, stagger or active hours moved it)"
        sentences.append(text + ".")
    elif not queued:
        sentences.append("It has no time of its own: it runs when something else asks for it.")
    return sentences


def _doing(run: RunRow | None) -> str:
    if run is None or run.status != "waiting":
        return "is running now"
    return "waits for approval" if run.phase == APPROVAL else "waits to be completed"


def _past(state: JobState, last: RunRow | None) -> list[str]:
    if state.last_run_at is None:
        return ["It has never run."]
    if last is None:
        return [f"It last ran at {_when(state.last_run_at)} and ended as {state.last_outcome}; that run was pruned."]
    because = STARTED_BY.get(last.reason, last.reason)
    if last.outcome is None:
        return [f"That run was started because {because}."]
    text = f"It last ran at {_when(state.last_run_at)} because {because}, and ended as {last.outcome}"
    return [text + (f": {state.last_error}." if state.last_error else ".")]


def _refused(skip: Skip) -> str:
    why = REASONS.get(skip.reason, skip.reason)
    detail = f" ({skip.detail})" if skip.detail else ""
    return f"{_times(skip.times, 'start')} refused as {skip.reason}: {why}{detail}, last at {_when(skip.last_at)}."


def _waits_for(parked: str) -> str:
    if parked.startswith(HANDLER):
        return f"no running server has a handler for jobs of kind {parked.removeprefix(HANDLER)}"
    if parked.startswith(PLACE):
        return f"no running node is labelled {parked.removeprefix(PLACE)}"
    if parked == GLOBAL_LANE:
        return "as many jobs as max_running allows are running"
    if parked == SUSPECT_LANE:
        return "it was running when the process crashed twice, and such jobs run one at a time"
    return f"the lane {parked} is full"


def _took(run: RunRow) -> str:
    took = (run.finished_at or 0) - (run.started_at or 0)
    return f"{took} ms" if took < 10_000 else format_interval(took // 1000 * 1000)


def _when(ms: int) -> str:
    return from_ms(ms).strftime("%Y-%m-%d %H:%M:%S UTC")


def _times(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _its(count: int) -> str:
    return "its" if count == 1 else "their"
