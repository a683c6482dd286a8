"""The message about an incident, stored in the transaction that opens, repeats or closes it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.alerts.buttons import buttons_about
from wakeful.domains.alerts.messages import ABOUT_RUNS, Known, alert_data, dedupe_key, message_about
from wakeful.domains.delivery import (
    DELIVERY,
    PUBLIC_URL,
    FailureSubject,
    Post,
    connector_for,
    described,
    enqueue,
    next_start_of,
    node_of,
    output_text,
    subject_of,
    work_of,
)
from wakeful.kernel.rules.alerting import CLOSED
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers.moments import spoken
from wakeful.triggers.zones import place_named

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.alerting import Notice
    from wakeful.store.interface import Transaction
    from wakeful.store.records import Alert, JobDef

#: Incidents about a connector: it is what their key names.
ABOUT_CONNECTORS = ("delivery_failed", "no_connector")
UP_AGAIN = "it counts as up again when it reports a success."
NOTE_MOST = 500
LATE = "each starts late, as soon as it can, unless its catch_up skips that time."


def notify(tx: Transaction, context: Context, notice: Notice) -> None:
    """Store the message, unless it would have to go through what it is about."""
    alert, to = notice.alert, notice.rules.to
    job = tx.jobs.definitions([alert.job_id]).get(alert.job_id) if alert.job_id is not None else None
    if to is None or _feeds_on_itself(tx, alert, job, to):
        return
    known = _known(tx, notice, job)
    title, text = message_about(notice, known)
    urgent = alert.kind in notice.rules.urgent and notice.what != CLOSED
    post = Post(text, to, "alert", title, alert.job_id, known.job, _run_of(alert), urgent=urgent)
    extra: dict[str, Any] = {"alert": alert_data(notice, known)}
    buttons = buttons_about(tx, context, notice, job, known.run)
    if buttons:
        extra["buttons"] = buttons
    enqueue(tx, context, post._replace(dedupe=dedupe_key(notice), extra=extra))


def _feeds_on_itself(tx: Transaction, alert: Alert, job: JobDef | None, to: str) -> bool:
    """Whether the incident is about the connector that its message would go through."""
    if alert.kind in ABOUT_CONNECTORS:
        about = alert.key.partition(":")[2]
    elif job is not None and job.kind == DELIVERY:
        about = str(json.loads(job.payload).get("connector"))
    else:
        return False
    return about in (to, connector_for(tx, to))


def _data(alert: Alert) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(alert.data) if alert.data else {}
    return found


def _run_of(alert: Alert) -> int | None:
    run: int | None = _data(alert).get("run")
    return run


def _known(tx: Transaction, notice: Notice, job: JobDef | None) -> Known:
    alert = notice.alert
    base = tx.facts.get(PUBLIC_URL)
    run = _run_of(alert)
    if job is None:
        return Known(jobs=_data(alert).get("count"), next=LATE if alert.kind == "missed" else None)
    about = None
    if alert.kind in ABOUT_RUNS and notice.what != CLOSED:
        about, last = _about(tx, job)
        run = last if run is None else run
    run_text = ids.run_text(run) if run is not None else None
    link = f"{base.rstrip('/')}/runs/{run_text}" if base and run_text is not None else None
    zone = trigger_of(job.trigger).own_zone
    if alert.kind == "down":
        return Known(job.name, None, None, run_text, link, next=UP_AGAIN, zone=zone, facts=_monitored(tx, job))
    coming = _next(tx, job) if alert.kind == "missed" else None
    return Known(job.name, subject_of(job), about, run_text, link, next=coming, zone=zone)


def _monitored(tx: Transaction, job: JobDef) -> tuple[str, ...]:
    """What is expected of a job that runs elsewhere, when it last reported in, and what its people wrote about it."""
    trigger, state = trigger_of(job.trigger), tx.jobs.state_of(job.id)
    facts = [f"It is {trigger.brief()}."]
    if state is not None and state.last_run_at is not None:
        facts.append(f"It last reported in at {spoken(state.last_run_at, place_named(trigger.own_zone))}.")
    notes = json.loads(state.notes) if state is not None and state.notes else []
    return (*facts, *(f"Note: {note:.{NOTE_MOST}}" for note in notes))


def _next(tx: Transaction, job: JobDef) -> str | None:
    """What becomes of a job that did not start in time."""
    state = tx.jobs.state_of(job.id)
    if state is None:
        return None
    if state.next_at is not None and state.next_at > tx.now:
        zone = place_named(trigger_of(job.trigger).own_zone)
        return f"that time is skipped; it starts again at {spoken(state.next_at, zone)}."
    if state.next_at is None and not state.queued:
        return "it does not start again by itself."
    return "it starts late, as soon as it can."


def _about(tx: Transaction, job: JobDef) -> tuple[FailureSubject | None, int | None]:
    """The job, its last run and what is next, as they are in this transaction."""
    state = tx.jobs.state_of(job.id)
    if state is None:
        return None, None
    details = tx.runs.details(state.last_run_id) if state.last_run_id is not None else None
    output = json.loads(details.output) if details is not None and details.output else None
    about = FailureSubject(
        job.name,
        work_of(job.kind, json.loads(job.payload)) or job.kind,
        state.last_outcome or "",
        state.last_error,
        output_text(job.kind, output),
        state.errors,
        state.failing_since,
        next_start_of(state),
        disabled=not state.enabled and state.ended_at is None,
        node=node_of(tx, tx.runs.get(state.last_run_id) if state.last_run_id is not None else None),
        running=state.run_id is not None,
    )
    return described(about, job, state), state.last_run_id
