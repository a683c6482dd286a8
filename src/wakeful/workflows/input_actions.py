"""What people do to events and inputs: publish by hand, skip an input, run one again. On record, with who and why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.errors import InvalidJob, NotFound, ScheduleTriggerError
from wakeful.kernel.rules.outcome import clean
from wakeful.workflows.actions import record
from wakeful.workflows.arming import LockedJobs
from wakeful.workflows.checkpoints import as_json
from wakeful.workflows.failures import LogicError
from wakeful.workflows.lookup import find_event, find_input, find_workflow, is_found, known_topics
from wakeful.workflows.publishing import Message, Published, is_key, publish, publish_numbered
from wakeful.workflows.tables import Workflows
from wakeful.workflows.topics.tables import EventRow, InputRow, Topics

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
    """Publish an event; a message id that is known makes no second one."""
    if not name.isprintable():
        find_workflow(tx, name)
    jobs = LockedJobs(tx, name)
    row = is_found(name, tx.of(Workflows).take_numbers(name, 1))
    known = known_topics(jobs.handlers())
    if given.topic not in known:
        message = f"{name} has no topic {given.topic!r:.80}. It has: {', '.join(known) or 'none'}."
        raise NotFound(message)
    if not is_key(given.message_id, MAX_TEXT):
        message = f"A message id is a text of 1 to {MAX_TEXT} bytes."
        raise InvalidJob(message)
    try:
        sent = Message(given.topic, given.message_id, as_json(given.payload, "The payload"))
    except LogicError as error:
        raise InvalidJob(str(error)) from error
    record(tx, context, name, who=who, action="published", detail=f"{given.topic} {given.message_id}")
    return publish_numbered(tx, context, jobs, [sent], last=row.event_seq)[0]


def skip_input(tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str) -> int:
    """Let nothing more happen to an input: its pending events are skipped; how many."""
    row, why = _input(tx, name, ref), _reason(reason)
    events = tx.of(Topics).events_of(row.id)
    if any(event.status == "reserved" for event in events):
        message = f"{ref} is being worked on: wait until that run has ended, or settle it."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "reserved"})
    skipped = tx.of(Topics).skip([event.id for event in events if event.status == "pending"], tx.now)
    tx.of(Topics).mark_input(row.id, tx.now, why)
    record(tx, context, name, who=who, action="skipped", detail=f"{ref}: {why}")
    return skipped


def rerun_input(tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str) -> list[str]:
    """Publish again, as new events, what producers or people published for an input; the new events."""
    row, why = _input(tx, name, ref), _reason(reason)
    events = tx.of(Topics).events_of(row.id)
    if any(event.status in ("pending", "reserved") for event in events):
        message = f"{ref} is still pending: it is worked on anyway."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "pending"})
    roots = _roots(tx, events)
    if not roots:
        message = f"The events of {ref} are pruned: publish what is needed by hand."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "pruned"})
    again = context.new_id()
    messages = [Message(event.topic, _again(event.message_id, again), event.payload, (row.id,)) for event in roots]
    found = publish(tx, context, name, messages)
    tx.of(Topics).mark_input(row.id, None, why)
    record(tx, context, name, who=who, action="rerun", detail=f"{ref}: {why}")
    return [ids.encode("evt", one.event_id) for one in found]


def replay_event(tx: Transaction, context: Context, name: str, ref: str, *, reason: str, who: str) -> str:
    """Publish a consumed or skipped event once more, as a new one with the same payload and causes; its id."""
    find_workflow(tx, name)
    tx.of(Workflows).lock_jobs(name)
    event, why = find_event(tx, name, ref), _reason(reason)
    if event.status in ("pending", "reserved"):
        message = f"{ref} is {event.status}: it is worked on anyway."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": event.status})
    if event.topic not in known_topics(tx.of(Workflows).handlers(name)):
        message = f"{name} has no topic {event.topic!r} any more: nothing would consume the event."
        raise ScheduleTriggerError(message, {"workflow": name, "reason": "no_topic"})
    causes = tuple(tx.of(Topics).inputs_of([event.id]).get(event.id, ()))
    again = Message(event.topic, _again(event.message_id, context.new_id()), event.payload, causes)
    found = publish(tx, context, name, [again])[0]
    record(tx, context, name, who=who, action="replayed", detail=f"{ref}: {why}")
    return ids.encode("evt", found.event_id)


def _again(message_id: str, number: int) -> str:
    """A message id that was never published, and shows what it repeats."""
    kept = message_id.encode()[: MAX_TEXT - 40].decode(errors="ignore")
    return f"{kept}~{ids.encode('run', number)[4:]}"


def _roots(tx: Transaction, events: list[EventRow]) -> list[EventRow]:
    """The events that no consumer made from others; of each message the first, not what was run again."""
    makers = tx.of(Workflows).runs_of([event.made_by for event in events if event.made_by is not None])
    found: dict[tuple[str, str], EventRow] = {}
    for event in events:
        maker = makers.get(event.made_by) if event.made_by is not None else None
        if maker is None or maker.type == "producer":
            found.setdefault((event.topic, event.message_id.partition("~")[0]), event)
    return list(found.values())


def _input(tx: Transaction, name: str, ref: str) -> InputRow:
    find_workflow(tx, name)
    tx.of(Workflows).lock_jobs(name)
    return find_input(tx, name, ref)


def _reason(reason: str) -> str:
    if not reason.strip():
        raise InvalidJob("Say why: a reason is kept with the input.")
    return clean(reason)[:MAX_TEXT]
