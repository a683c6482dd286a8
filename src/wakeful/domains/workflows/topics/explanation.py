"""What `explain` says about events and inputs."""

from __future__ import annotations

from collections.abc import Callable
from datetime import tzinfo
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.counting import counted
from wakeful.domains.workflows import views
from wakeful.domains.workflows.explanation import standing
from wakeful.domains.workflows.steps.people import unsettled
from wakeful.domains.workflows.steps.tables import PARKED, QUEUED, RETRYING, RUNNING, UNCERTAIN, TaskRow, Tasks
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.tables import EventRow, Topics
from wakeful.errors import NotFound
from wakeful.kernel.model.explanations import Subject
from wakeful.kernel.views.explain import Explanation
from wakeful.triggers.moments import spoken

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

When = Callable[[int], str]


def explain_event(tx: Transaction, ref: str, when: When) -> Explanation:
    """Where an event comes from, and what became of it."""
    number = ids.number_of("evt", ref)
    event = tx.of(Topics).get(number) if number is not None else None
    if event is None:
        message = f"There is no event {ref!r:.80}: it was never published, or is pruned."
        raise NotFound(message)
    by = f"by {ids.run_text(event.made_by)}" if event.made_by is not None else "by a person"
    about = f"message {event.message_id!r} in the topic {event.topic} of the workflow {event.workflow}"
    shown = views.event_views(tx, [event])[0]
    sentences = [f"{ref} is {about}.", f"It was published {by} at {when(event.at)}."]
    sentences += [f"Its input is {shown['input']}."] if shown["input"] else []
    return Explanation(ref, sentences + _stands(tx, event, when), shown)


def _stands(tx: Transaction, event: EventRow, when: When) -> list[str]:
    run = ids.run_text(event.run_id) if event.run_id is not None else "a run"
    at = f" at {when(event.settled_at)}" if event.settled_at is not None else ""
    task = tx.of(Tasks).get(event.id) if event.is_open else None
    if task is not None:
        return [_task_stands(tx, task, when)]
    if event.status == "reserved":
        return [f"{run} works on it."]
    if event.status == "consumed":
        return [f"{run} consumed it{at}."]
    if event.status == "skipped":
        return [f"It was skipped{at}: {(event.reason or 'no reason was given').rstrip('.')}."]
    consumers = [
        (handler, job)
        for handler, job in tx.of(WorkflowVerbs).with_jobs(event.workflow)
        if event.topic in handler.topics()
    ]
    if not consumers:
        return [f"It is pending, but no handler subscribes to {event.topic}: it waits for nothing."]
    names = " or ".join(job.name for _, job in consumers)
    why = standing(Subject(tx, consumers[0][1], None, of_run=False, when=when))
    return [f"It is pending: {names} works on it when prepare reserves it.", *([why] if why is not None else [])]


def _task_stands(tx: Transaction, task: TaskRow, when: When) -> str:
    """What becomes of an event that a handler with steps has taken."""
    ref, name = ids.encode("evt", task.event_id), task.workflow
    run = ids.run_text(task.run_id) if task.run_id is not None else "a run"
    why = f" ({task.error.rstrip('.')})" if task.error else ""
    if task.status == PARKED and unsettled(tx, [task]):
        return (
            f"It is parked: {(task.error or '').rstrip('.')}, or skip the event: wakeful workflow skip {name} {ref} "
            "--reason TEXT."
        )
    if task.status == PARKED:
        return (
            f"It is parked: {task.handler} failed {counted(task.tries, 'time')}, last in {run}{why}. It waits for a "
            f"person: wakeful workflow replay {name} {ref}, or wakeful workflow skip {name} {ref} --reason TEXT."
        )
    if task.status == RETRYING:
        at = f" at {when(task.retry_at)}" if task.retry_at is not None else ""
        return f"{run} failed{why}, and it is tried again{at}."
    if task.status == UNCERTAIN:
        return f"It is not known whether a step of {run} happened{why}: wakeful workflow show {name}."
    if task.status == QUEUED:
        return f"It waits for an earlier event with the key {task.key!r:.80}."
    return f"{run} works on it." if task.status == RUNNING else f"{task.handler} works on it next."


def explain_input(tx: Transaction, ref: str, when: When) -> Explanation:
    """What an input is, and what it caused."""
    number = ids.number_of("inp", ref)
    row = tx.of(Topics).input(number) if number is not None else None
    if row is None:
        message = f"There is no input {ref!r:.80}: it was never registered, or is pruned."
        raise NotFound(message)
    shown = views.input_view(tx, row)
    title = f" ({row.title})" if row.title else ""
    about = f"{row.type} {row.external_id} from {row.source}{title}"
    sentences = [f"{ref} is an input of the workflow {row.workflow}: {about}.", f"It was found at {when(row.at)}."]
    why = f": {row.reason.rstrip('.')}" if shown["status"] == "skipped" and row.reason else ""
    sentences.append(f"It is {shown['status']}{why}.")
    sentences += [f"It caused {one['id']} in {one['topic']}, which is {one['status']}." for one in shown["caused"]]
    return Explanation(ref, sentences, shown)


def explain_event_by_id(tx: Transaction, ref: str, zone: tzinfo) -> Explanation:
    """An event, with times of that zone."""
    return explain_event(tx, ref, lambda ms: spoken(ms, zone, exact=True))


def explain_input_by_id(tx: Transaction, ref: str, zone: tzinfo) -> Explanation:
    """An input, with times of that zone."""
    return explain_input(tx, ref, lambda ms: spoken(ms, zone, exact=True))
