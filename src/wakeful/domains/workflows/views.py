"""Workflows as people and programs see them: JSON values made in one reading transaction."""

from __future__ import annotations

import difflib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from wakeful import ids
from wakeful.domains.workflows.drained import has_unseen
from wakeful.domains.workflows.fixes.tables import Fixes, FixRow
from wakeful.domains.workflows.issues import halted_job
from wakeful.domains.workflows.lookup import find_listed, in_progress
from wakeful.domains.workflows.phases import likely_verdict
from wakeful.domains.workflows.steps.places import STEPS, base_of, is_place
from wakeful.domains.workflows.steps.shown import SET_ASIDE, steps_of_runs, with_question
from wakeful.domains.workflows.steps.tables import PARKED, RETRYING, Tasks
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import EventRow, InputRow, Topics
from wakeful.domains.workflows.turns.rounds import WORKERS
from wakeful.domains.workflows.versions.on_nodes import is_on_no_node, version_words
from wakeful.domains.workflows.words import (
    ACTIONS,
    ONCE_ENDED,
    SWITCHED_OFF,
    UNSETTLED,
    activity_words,
    asks_itself,
    issue_words,
    schedule_words,
    status_word,
)
from wakeful.domains.workflows.working import still_works
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.views.cut_off import cut_off_runs
from wakeful.triggers.durations import format_interval
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.domains.workflows.input_actions import ByHand
    from wakeful.kernel.cluster.nodes import Seen
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState

RECENT = 10
ASKS = ("approval", "reconciliation")  # issues that are questions to a person
MOST_CAUSED = 100
MINUTE_MS = 60_000


def workflow_view(
    tx: Transaction,
    name: str,
    seen: Seen | None = None,
    find: Callable[[Transaction, str], WorkflowRow] = find_listed,
) -> dict[str, Any]:
    """One workflow with its handlers; with `seen`, a run whose server has ended is not running."""
    row = _as_seen(tx, find(tx, name), seen)
    handlers = tx.of(WorkflowVerbs).handlers(name)
    jobs = {found[0].id: found for one in handlers if one.job_id and (found := tx.jobs.by_id(one.job_id))}
    row = with_question(tx, _as_switched_off(tx, row, handlers, jobs))
    waits = bool(row.paused) or row.issue not in (None, "transient", SWITCHED_OFF, SET_ASIDE, UNSETTLED)  # for a person
    asked = row.issue_handler if asks_itself(row) else None
    shown = [
        _handler_view(tx, handler, jobs, waits=waits and handler.name != asked)
        for handler in handlers
        if not is_place(handler.name)
    ]
    counts = tx.of(Tasks).counts(name)
    attempts = in_progress(tx, name)
    open_runs = {ids.run_text(attempt.id) for attempt in attempts}
    cut_off = open_runs & set(map(ids.run_text, cut_off_runs(tx, seen))) if open_runs else set[str]()
    works = still_works(tx, row)
    active = bool(open_runs - cut_off) or works
    is_tried = active and any(attempt.handler == row.issue_handler for attempt in attempts)
    triggers = [trigger_of(jobs[one.job_id][0].trigger) for one in handlers if one.type == "producer" and one.job_id]
    starts = [jobs[one.job_id][1].next_at for one in handlers if one.type == "producer" and one.job_id]
    coming = min((at for at in starts if at is not None and at > tx.now), default=None)
    halted = halted_job(tx, row)
    next_in = f"in {_rounded(coming - tx.now)}" if coming is not None else None
    return {
        "name": row.name,
        "status": status_word(
            paused=bool(row.paused), issue=row.issue, active=active, failures=row.failures, halted=halted is not None
        ),
        "cut_off": bool(cut_off),
        "issue": _issue_view(tx, row, halted, again=ONCE_ENDED if works else "now" if is_tried else "soon"),
        "schedule": schedule_words(triggers, None if waits else next_in, loaded=bool(row.version))
        if row.removed_at is None
        else "Removed: nothing of it runs.",
        "paused": bool(row.paused),
        "removed": row.removed_at is not None,
        "draining": bool(row.draining),
        "working": _working_view(tx, row) if works else None,
        "version": row.version,
        "versions": [
            {"number": number, "version": version, "deployed_at": iso(at)}
            for number, version, at in tx.of(WorkflowVerbs).versions(name, RECENT)
        ],
        "recent": _recent(tx, handlers),
        "actions": [
            {"at": iso(one.at), "who": one.who, "action": one.action, "detail": one.detail}
            for one in tx.of(WorkflowVerbs).actions(name, RECENT)
        ],
        "parked": counts.get(PARKED, 0),
        "retrying": counts.get(RETRYING, 0),
        "pending_inputs": tx.of(Topics).count_pending_inputs(name),
        "handlers": shown,
    }


def workflow_views(tx: Transaction, seen: Seen | None = None) -> list[dict[str, Any]]:
    """All workflows, by name."""
    return [workflow_view(tx, row.name, seen) for row in tx.of(WorkflowVerbs).listed()]


def _working_view(tx: Transaction, row: WorkflowRow) -> dict[str, Any]:
    """The run that is over while a thread of it still works."""
    node = tx.nodes.get(row.working_node or 0)
    return {
        "run": ids.run_text(row.working_run or 0),
        "node": node.name if node is not None else None,
        "since": _time(row.working_since),
    }


def _as_seen(tx: Transaction, row: WorkflowRow, seen: Seen | None) -> WorkflowRow:
    """The workflow; one that could run and is on no running node has that for an issue."""
    may_run = row.removed_at is None and not row.paused and row.issue in (None, "transient")
    if not may_run or seen is None or not is_on_no_node(tx, seen.times, row):
        return row
    said = f"{row.version} ({version_words(tx, seen.times, row.name)})"
    return row._replace(issue="no_code", issue_handler=None, issue_run=None, issue_message=said)


def _as_switched_off(
    tx: Transaction, row: WorkflowRow, handlers: Sequence[HandlerRow], jobs: Mapping[int, tuple[JobDef, JobState]]
) -> WorkflowRow:
    """The workflow; one with events for a consumer whose job a person switched off has that for an issue."""
    if row.paused or row.issue is not None:
        return row
    for handler in handlers:
        job, state = jobs.get(handler.job_id or 0, (None, None))
        if job is None or state is None or (state.enabled and not state.paused) or not has_unseen(tx, handler):
            continue
        how = "paused" if state.enabled else "disabled"
        said = f"Events wait for {job.name}, which is {how}. Resume it (wakeful resume {job.name})"
        return row._replace(issue=SWITCHED_OFF, issue_handler=handler.name, issue_message=said)
    return row


def _issue_view(
    tx: Transaction, row: WorkflowRow, halted: tuple[str, str] | None, *, again: str
) -> dict[str, Any] | None:
    is_paused = bool(row.paused) and row.issue in (None, "transient")  # then resuming it is all there is to do
    kind = "paused" if is_paused else row.issue
    if kind is None:
        return None
    handler = row.issue_handler if row.issue is not None else None
    message = row.pause_note if is_paused else row.issue_message
    latest = tx.of(Fixes).latest(row.name) if kind == "logic" else None
    fix = latest if latest is not None and latest.run_id == row.issue_run else None
    attempt = tx.of(WorkflowVerbs).run(row.issue_run) if kind in ASKS and row.issue_run is not None else None
    return {
        "kind": {"load": "internal", "no_code": "internal", SWITCHED_OFF: "paused", UNSETTLED: SET_ASIDE}.get(
            kind, kind
        ),
        "handler": handler,
        "run": ids.run_text(row.issue_run) if row.issue is not None and row.issue_run is not None else None,
        "message": issue_words(kind, handler, message, fix, halted, asks=asks_itself(row), again=again),
        "actions": _actions(kind, fix, halted),
        "likely": likely_verdict(attempt) if attempt is not None else None,
        "change": _change_view(tx, attempt) if attempt is not None and attempt.prepared is not None else None,
        "trace": (message or "").partition("\n")[2] or None,
        "fix": {**fix_view(fix), "diff": None} if fix is not None else None,  # source is for operators
    }


def _change_view(tx: Transaction, attempt: WorkflowRun) -> dict[str, Any]:
    """The change that a question is about: what was prepared for it, and what it returned; of steps, with the event."""
    shown = {"title": attempt.title, **(prepared_view(attempt) or {}), "result": _json(attempt.result)}
    if attempt.type == STEPS and (events := tx.of(Topics).reserved_by(attempt.id)):
        shown["data"] = {**shown["data"], "payload": json.loads(events[0].payload)}
    return shown


def prepared_view(attempt: WorkflowRun) -> dict[str, Any] | None:
    """The events that were reserved, by topic, and the data for the phases after prepare."""
    kept = _json(attempt.prepared)
    return {"reserve": kept["reserve"], "data": kept["data"]} if kept is not None else None


def _actions(kind: str, fix: FixRow | None, halted: tuple[str, str] | None) -> list[str]:
    """What people can answer; to resume the workflow is no answer where its job is switched off."""
    if halted is not None:
        return []
    return ["approve", "reject"] if fix is not None and fix.status == "proposed" else ACTIONS[kind]


def fix_view(fix: FixRow) -> dict[str, Any]:
    """A correction, with the source before and after it."""
    return {
        "id": ids.encode("fix", fix.id),
        "handler": fix.handler,
        "run": ids.run_text(fix.run_id),
        "version": fix.version,
        "number": fix.number,
        "status": fix.status,
        "at": iso(fix.at),
        "ended_at": _time(fix.ended_at),
        "made": fix.made,
        "note": fix.note,
        "who": fix.who,
        "diff": _diff(json.loads(fix.before), json.loads(fix.files)) if fix.files is not None else None,
    }


def _diff(before: Mapping[str, str], after: Mapping[str, str]) -> str:
    lines: list[str] = []
    for name, text in after.items():
        old = before.get(name, "").splitlines(keepends=True)
        lines += difflib.unified_diff(old, text.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _handler_view(tx: Transaction, handler: HandlerRow, jobs: dict[int, Any], *, waits: bool) -> dict[str, Any]:
    job, state = jobs[handler.job_id or 0]
    last = tx.of(WorkflowVerbs).latest(job.id)
    comes_at = state.next_at if handler.type == "producer" else state.due_at
    return {
        "name": handler.name,
        "type": handler.type,
        "job": job.name,
        "state": json.loads(handler.state),
        "topics": handler.topics() if handler.type in WORKERS else json.loads(handler.publishes or "[]"),
        "publishes": json.loads(handler.publishes) if handler.publishes is not None else None,
        "next_run_at": _time(None if waits else comes_at),
        "wake_at": _time(handler.wake_at),
        "pending_events": tx.of(Topics).count_pending(handler.workflow, handler.topics()),
        "last_run": run_view(tx, last) if last is not None else None,
    }


def _recent(tx: Transaction, handlers: Sequence[HandlerRow]) -> list[dict[str, Any]]:
    """What was done last: runs that had something to do."""
    consumers = [one.job_id for one in handlers if one.type in WORKERS and one.job_id is not None]
    found = [run for job_id in consumers for run in tx.of(WorkflowVerbs).worked(job_id, RECENT)]
    newest = sorted(found, key=lambda run: run.id, reverse=True)[:RECENT]
    return [{"at": iso(one.updated_at), "text": activity_words(one), "run": ids.run_text(one.id)} for one in newest]


def run_view(tx: Transaction, attempt: WorkflowRun) -> dict[str, Any]:
    """An attempt of a handler."""
    run = tx.runs.get(attempt.id)
    return {
        "id": ids.run_text(attempt.id),
        "job": f"{attempt.workflow}.{attempt.handler}",
        "handler": base_of(attempt.handler),
        "phase": attempt.phase,
        "workflow_status": attempt.status,
        "mutation": attempt.mutation,
        "retry_of": ids.run_text(attempt.retry_of) if attempt.retry_of is not None else None,
        "status": run.status if run is not None else "done",
        "outcome": run.outcome if run is not None else None,
        "title": attempt.title,
        "prepared": prepared_view(attempt),
        "result": _json(attempt.result),
        "error": attempt.error,
        "notes": json.loads(attempt.notes or "[]"),
        "steps": steps_of_runs(tx, [attempt.id]).get(attempt.id, []) if attempt.type == STEPS else [],
        "version": attempt.version,
        "started_at": iso(attempt.created_at),
        "updated_at": iso(attempt.updated_at),
    }


def event_views(tx: Transaction, events: Sequence[EventRow]) -> list[dict[str, Any]]:
    """Events with what caused them."""
    causes = tx.of(Topics).inputs_of([event.id for event in events])
    tasks = tx.of(Tasks).of_events([event.id for event in events if event.status == "reserved"])
    return [
        {
            "id": ids.encode("evt", event.id),
            "message_id": event.message_id,
            "topic": event.topic,
            "payload": json.loads(event.payload),
            "status": PARKED if event.id in tasks and tasks[event.id].status == PARKED else event.status,
            "at": iso(event.at),
            "input": ids.encode("inp", causes[event.id][0]) if event.id in causes else None,
            "run": ids.run_text(event.run_id) if event.run_id is not None else None,
            "reason": event.reason,
            "error": tasks[event.id].error if event.id in tasks else None,
            "tries": tasks[event.id].tries if event.id in tasks else 0,
        }
        for event in events
    ]


def pruned_view(event_id: int, given: ByHand) -> dict[str, Any]:
    """An event of which only the message id is left."""
    return {
        "id": ids.encode("evt", event_id),
        "message_id": given.message_id,
        "topic": given.topic,
        "payload": None,
        "status": None,
        "at": None,
        "input": None,
        "run": None,
        "reason": None,
        "error": None,
        "tries": 0,
    }


def input_view(tx: Transaction, row: InputRow) -> dict[str, Any]:
    """An input with what it caused."""
    events = tx.of(Topics).events_of(row.id, MOST_CAUSED)
    is_open = any(event.is_open for event in events)
    if not is_open and len(events) == MOST_CAUSED:  # there may be more than are shown
        is_open = not tx.of(Topics).statuses_of(row.id).isdisjoint(("pending", "reserved"))
    return {
        "id": ids.encode("inp", row.id),
        "source": row.source,
        "type": row.type,
        "external_id": row.external_id,
        "title": row.title,
        "status": "pending" if is_open else "skipped" if row.skipped_at is not None else "done",
        "reason": row.reason,
        "at": iso(row.at),
        "caused": [
            {
                "id": ids.encode("evt", event.id),
                "topic": event.topic,
                "status": event.status,
                "run": ids.run_text(event.run_id) if event.run_id is not None else None,
            }
            for event in events
        ],
    }


def _rounded(ms: int) -> str:
    """A span as people say it: whole seconds below a minute, else whole minutes."""
    unit = 1_000 if ms < MINUTE_MS else MINUTE_MS
    return format_interval(-(-ms // unit) * unit)


def _json(text: str | None) -> Any:
    return None if text is None else json.loads(text)


def _time(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)
