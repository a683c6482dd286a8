"""What `explain` says about handlers of workflows and their runs, besides what it says about every job."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.workflows.admission import WORKING
from wakeful.domains.workflows.hooks import standing_of
from wakeful.domains.workflows.issues import halted_job
from wakeful.domains.workflows.phases import ACTIVE, likely_verdict
from wakeful.domains.workflows.tables import HandlerRow, WorkflowRow, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.domains.workflows.views import prepared_view
from wakeful.domains.workflows.words import answer_commands, asks_itself, change_words, issue_words

if TYPE_CHECKING:
    from wakeful.kernel.model.explanations import Subject

MOST_COUNTED = 1_000
FINDING_OUT = "Its workflow is finding out whether the last change happened."
TRYING = "Its workflow is just trying again what failed."


def story(subject: Subject) -> list[str]:
    """The sentences about a handler, or about one of its runs."""
    if subject.of_run:
        return _of_run(subject)
    found = subject.tx.of(WorkflowVerbs).of_job(subject.job.id)
    if found is None:
        return []
    handler, workflow = found
    own = workflow.issue is not None and workflow.issue_handler == handler.name
    stuck = own and workflow.issue != "transient" and not _is_at_it(subject, workflow)
    issue = [_cannot_go_on(subject, workflow, "It")] if stuck else []
    return (_consumer(subject, handler) if handler.type == "consumer" else []) + issue


def _consumer(subject: Subject, handler: HandlerRow) -> list[str]:
    topics = " or ".join(handler.topics())
    sentence = f"It is a consumer of the workflow {handler.workflow}: it runs when an event comes into {topics}"
    wakes = handler.wake_at is not None and handler.wake_at > subject.tx.now
    asked = f", and at {subject.when(handler.wake_at)}" if wakes and handler.wake_at is not None else ""
    return [f"{sentence}{asked}.", *_waiting(subject, handler)]


def _waiting(subject: Subject, handler: HandlerRow) -> list[str]:
    count = subject.tx.of(Topics).count_pending(handler.workflow, handler.topics(), MOST_COUNTED + 1)
    if not count:
        return []
    if count == 1:
        return ["1 event is pending."]
    many = f"{count:,}" if count <= MOST_COUNTED else f"More than {MOST_COUNTED:,}"
    return [f"{many} events are pending."]


def _of_run(subject: Subject) -> list[str]:
    table = subject.tx.of(WorkflowVerbs)
    attempt = table.run(subject.run.id) if subject.run is not None else None
    if attempt is None:
        return []
    handler = table.handler(attempt.workflow, attempt.handler)
    found = [f"Its phase is {attempt.phase}, its status in the workflow {attempt.status}."]
    if attempt.reserved:
        found.append(f"It reserved {'1 event' if attempt.reserved == 1 else f'{attempt.reserved:,} events'}.")
    result = json.loads(attempt.result) if attempt.result is not None else None
    found += [f"{line[0].upper()}{line[1:]}." for line in change_words(prepared_view(attempt), result)]
    if attempt.mutation == "in_flight" and handler is not None and handler.open_run == attempt.id:
        [command] = answer_commands(attempt.workflow, ["settle"], ids.run_text(attempt.id), likely_verdict(attempt))
        found.append(f"Whether its change happened is not known. To settle it: {command}.")
    return found + [f"Note: {note}." for note in json.loads(attempt.notes or "[]")]


def standing(subject: Subject) -> str | None:
    """Why nothing of a workflow starts now, whatever its time is."""
    found = subject.tx.of(WorkflowVerbs).of_job(subject.job.id)
    wait = standing_of(subject.tx, found) if found is not None else None
    if found is None or wait is None:
        return None
    _, workflow = found
    if wait.reason in ("paused", "draining"):
        what = "it is resumed" if wait.reason == "paused" else "it is drained and resumed"
        return f"Its workflow is {wait.reason}: this waits until {what} (wakeful workflow resume {workflow.name})."
    if wait.detail == WORKING:
        return f"A thread of {_run(workflow)} is still at work, which was cut off: this waits until that has ended."
    if _is_at_it(subject, workflow):
        return FINDING_OUT if workflow.issue == "reconciliation" else TRYING
    halted = halted_job(subject.tx, workflow)
    if halted is None and workflow.backoff_until is not None and workflow.backoff_until > subject.tx.now:
        return f"Its workflow tries again at {subject.when(workflow.backoff_until)}: {_first_line(workflow)}."
    return _cannot_go_on(subject, workflow, "Its workflow")


def _is_at_it(subject: Subject, workflow: WorkflowRow) -> bool:
    """Whether a run is just about what was wrong with its workflow."""
    handler = subject.tx.of(WorkflowVerbs).handler(workflow.name, workflow.issue_handler or "")
    attempt = subject.tx.of(WorkflowVerbs).run(handler.open_run) if handler is not None and handler.open_run else None
    return attempt is not None and attempt.status == ACTIVE


def _cannot_go_on(subject: Subject, workflow: WorkflowRow, who: str) -> str:
    words = issue_words(
        workflow.issue or "internal", workflow.issue_handler, workflow.issue_message,
        halted=halted_job(subject.tx, workflow), asks=asks_itself(workflow),
    )  # fmt: skip
    said = f"{words.rstrip('.')} (wakeful workflow show {workflow.name})."
    return said if asks_itself(workflow) else f"{who} cannot continue: {said}"


def _run(workflow: WorkflowRow) -> str:
    return ids.run_text(workflow.working_run) if workflow.working_run is not None else "its last run"


def _first_line(workflow: WorkflowRow) -> str:
    return (workflow.issue_message or "").partition("\n")[0].rstrip(".")
