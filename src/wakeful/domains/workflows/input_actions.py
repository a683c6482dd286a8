"""What people do to events and inputs: publish by hand, skip one, run one again. On record, with who and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.workflows.actions import record
from wakeful.domains.workflows.arming import LockedJobs
from wakeful.domains.workflows.checkpoints import as_json
from wakeful.domains.workflows.drained import finish_drain
from wakeful.domains.workflows.failures import LogicError
from wakeful.domains.workflows.lookup import find_event, find_input, find_workflow, is_found, known_topics
from wakeful.domains.workflows.publishing import NewEvent, Published, is_key, publish, publish_numbered
from wakeful.domains.workflows.steps.people import replay_all, replay_parked, skip_task
from wakeful.domains.workflows.steps.tables import PARKED, Tasks
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.tables import EventRow, InputRow, Topics
from wakeful.errors import InvalidJob, NotFound, ScheduleTriggerError
from wakeful.kernel.rules.outcome import clean

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

MAX_TEXT = 1_000


class ByHand(NamedTuple):
    """A message that a person publishes."""

    topic: str
    message_id: str
    payload: Any


def publish_by_hand(tx: Transaction, context: Context, name: str, given: ByHand, *, who: str) -> Published:
    """Publish an event; a message id that is known makes no second one, and replaces the payload of a pending one."""
    if not name.isprintable():
        find_workflow(tx, name)
    jobs = LockedJobs(tx, name)
    row = is_found(name, tx.of(WorkflowVerbs).take_numbers(name, 1))
    known = known_topics(jobs.handlers())
    if given.topic not in known:
        message = f"{name} has no topic {given.topic!r:.80}. It has: {', '.join(known) or 'none'}."
        raise NotFound(message)
    if not is_key(given.message_id, MAX_TEXT):
        message = f"A message id is a text of 1 to {MAX_TEXT} bytes, without NUL characters."
        raise InvalidJob(message)
    try:
        sent = NewEvent(given.topic, given.message_id, as_json(given.payload, "The payload"))
    except LogicError as error:
        raise InvalidJob(str(error)) from error
    found = publish_numbered(tx, context, jobs, [sent], last=row.event_seq)[0]
    if found.new or found.replaced:
        action = "published" if found.new else "replaced"
        record(tx, context, name, who=who, action=action, detail=f"{given.topic} {given.message_id}")
    else:
        _refuse_reserved(tx, name, found.event_id, sent)
    return found


def _refuse_reserved(tx: Transaction, name: str, event_id: int, sent: NewEvent) -> None:
    """Another payload for an event that a run has reserved would be lost without a sign."""
    event = tx.of(Topics).get(event_id)
    if event is not None and event.status == "reserved" and event.payload != sent.payload:
        raise _is_worked_on(name, ids.encode("evt", event_id))


def skip_input(tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str) -> int:
    """Let nothing more happen to an input: its pending events are skipped; how many."""
    row, why = _input(tx, name, ref), _reason(reason)
    statuses = tx.of(Topics).statuses_of(row.id)
    if "reserved" in statuses:
        raise _is_worked_on(name, ref)
    if statuses and "pending" not in statuses:
        status = "skipped" if row.skipped_at is not None else "done"
        message = f"{ref} is {status} already: nothing more happens to it."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": status})
    skipped = tx.of(Topics).skip_caused(row.id, tx.now, why)
    tx.of(Topics).mark_input(row.id, tx.now, why)
    record(tx, context, name, who=who, action="skipped", detail=f"{ref}: {why}")
    return skipped


def skip_event(tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str) -> int:
    """Skip a pending event; how many were skipped. An input whose last event this was is skipped too."""
    event, why = _event(tx, name, ref), _reason(reason)
    task = tx.of(Tasks).get(event.id)
    if event.status == "reserved" and task is None:
        raise _is_worked_on(name, ref)
    if event.status not in ("pending", "reserved"):
        message = f"{ref} is {event.status} already: nothing more happens to it."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": event.status})
    topics = tx.of(Topics)
    begun = task is not None and skip_task(tx, context, task, event, why)
    skipped = begun or topics.skip([event.id], tx.now, why)
    for cause in topics.inputs_of([event.id]).get(event.id, ()):
        if topics.statuses_of(cause) == {"skipped"}:
            topics.mark_input(cause, tx.now, why)
    record(tx, context, name, who=who, action="skipped", detail=f"{ref}: {why}")
    return skipped


def skip(tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str) -> int:
    """Skip an input or an event, whichever the id is of."""
    chosen = skip_event if ref.startswith("evt_") else skip_input
    skipped = chosen(tx, context, name, ref, reason=reason, who=who)
    finish_drain(tx, name)
    return skipped


def _is_worked_on(name: str, ref: str) -> ScheduleTriggerError:
    message = f"{ref} is being worked on: wait until that run has ended, or answer what it asks."
    return ScheduleTriggerError(message, {"workflow": name, "reason": "reserved"})


def rerun_input(tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str) -> list[str]:
    """Publish again, as new events, what producers or people published for an input; the new events."""
    row, why = _input(tx, name, ref), _reason(reason)
    events = tx.of(Topics).events_of(row.id)
    if any(event.is_open for event in events):
        message = f"{ref} is still pending: it is worked on anyway."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "pending"})
    roots = _roots(tx, events)
    if not roots:
        message = f"The events of {ref} are pruned: publish what is needed by hand."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "pruned"})
    again = context.new_id()
    messages = [NewEvent(event.topic, _again(event.message_id, again), event.payload, (row.id,)) for event in roots]
    found = publish(tx, context, name, messages)
    tx.of(Topics).mark_input(row.id, None, why)
    record(tx, context, name, who=who, action="rerun", detail=f"{ref}: {why}")
    return [ids.encode("evt", one.event_id) for one in found]


def replay_event(
    tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str, start_over: bool = False
) -> str:
    """Publish a consumed or skipped event once more, as a new one with the same payload and causes; its id.

    A parked event continues, with the steps that are stored or (`start_over`) without them; it is no new one.
    """
    event = _event(tx, name, ref)
    task = tx.of(Tasks).get(event.id)
    if task is not None and task.status == PARKED:
        replay_parked(tx, context, task, start_over=start_over)
        record(tx, context, name, who=who, action="replayed", detail=f"{ref}: {reason}" if reason else ref)
        return ref
    if event.status in ("pending", "reserved"):
        message = f"{ref} is {event.status}: it is worked on anyway."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": event.status})
    if start_over:
        message = f"{ref} is {event.status}, and only a parked event can start over."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": event.status})
    if not reason.strip():
        message = f"{ref} is {event.status}. Say why to publish it once more: the reason is kept on record."
        raise InvalidJob(message)
    why = _reason(reason)
    if event.topic not in known_topics(tx.of(WorkflowVerbs).handlers(name)):
        message = f"{name} has no topic {event.topic!r} any more: nothing would consume the event."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "no_topic"})
    causes = tuple(tx.of(Topics).inputs_of([event.id]).get(event.id, ()))
    again = NewEvent(event.topic, _again(event.message_id, context.new_id()), event.payload, causes)
    found = publish(tx, context, name, [again])[0]
    record(tx, context, name, who=who, action="replayed", detail=f"{ref}: {why}")
    return ids.encode("evt", found.event_id)


def replay_all_parked(
    tx: Transaction, context: Context, name: str, *, reason: str = "", who: str, start_over: bool = False
) -> list[str]:
    """Continue all parked events; these."""
    row = find_workflow(tx, name)
    tx.of(WorkflowVerbs).lock_jobs(name)
    found = replay_all(tx, context, row, start_over=start_over)
    if found:
        said = f"{len(found)} parked"
        record(tx, context, name, who=who, action="replayed", detail=f"{said}: {reason}" if reason else said)
    return [ids.encode("evt", task.event_id) for task in found]


def _again(message_id: str, number: int) -> str:
    """A message id that was never published, and shows what it repeats."""
    kept = message_id.encode()[: MAX_TEXT - 40].decode(errors="ignore")
    return f"{kept}~{ids.encode('run', number)[4:]}"


def _repeats(event: EventRow) -> str:
    """The message id that an event repeats which was published once more; else its own."""
    found = event.message_id
    while event.made_by is None:
        before, mark, number = found.rpartition("~")
        if not mark or ids.decode(f"run_{number}") is None:
            break
        found = before
    return found


def _roots(tx: Transaction, events: list[EventRow]) -> list[EventRow]:
    """The events that no consumer made from others; of each message the first, not what was published again."""
    makers = tx.of(WorkflowVerbs).runs_of([event.made_by for event in events if event.made_by is not None])
    found: dict[tuple[str, str], EventRow] = {}
    derived: set[tuple[str, str]] = set()
    for event in events:
        maker = makers.get(event.made_by) if event.made_by is not None else None
        key = event.topic, _repeats(event)
        if maker is not None and maker.type != "producer":
            derived.add(key)
        elif key not in derived:
            found.setdefault(key, event)
    return list(found.values())


def _input(tx: Transaction, name: str, ref: str) -> InputRow:
    find_workflow(tx, name)
    tx.of(WorkflowVerbs).lock_jobs(name)
    return find_input(tx, name, ref)


def _event(tx: Transaction, name: str, ref: str) -> EventRow:
    find_workflow(tx, name)
    tx.of(WorkflowVerbs).lock_jobs(name)
    return find_event(tx, name, ref)


def _reason(reason: str) -> str:
    if not reason.strip():
        raise InvalidJob("Say why: the reason is kept on record.")
    return clean(reason)[:MAX_TEXT]
