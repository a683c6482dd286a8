"""Publishing: events with their causes, idempotent by message id, and their consumers due in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.arming import LockedJobs, wake_subscribers
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.tables import EventRow, InputRow, Topics
from wakeful.domains.workflows.turns.order import line_up
from wakeful.kernel.rules.outcome import clean

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


class NewEvent(NamedTuple):
    """Something to be published."""

    topic: str
    message_id: str
    payload: str  # JSON
    inputs: tuple[int, ...] = ()
    hops: int = 0  # from workflow to workflow


class Published(NamedTuple):
    """The event of a message, and whether it is new."""

    event_id: int
    new: bool
    replaced: bool = False  # it was known and pending, with another payload


def is_key(text: str, most: int) -> bool:
    """Whether every database takes the text as a key: not empty, nothing that is no character, and not too long."""
    return bool(text) and clean(text) == text and len(text.encode()) <= most


def publish(
    tx: Transaction,
    context: Context,
    workflow: str,
    messages: Sequence[NewEvent],
    *,
    run_id: int | None = None,
    inputs: Sequence[InputRow] = (),
) -> list[Published]:
    """Publish messages, and register the inputs that caused them; one event per message id, in the order given.

    A known message id makes no second event: while the first one is pending, it gets the new payload, and consumers
    that had left it look at it again.
    """
    jobs = LockedJobs(tx, workflow)
    row = tx.of(WorkflowVerbs).take_numbers(workflow, len(messages)) if messages else None
    tx.of(Topics).add_inputs(inputs)
    return [] if row is None else publish_numbered(tx, context, jobs, messages, last=row.event_seq, run_id=run_id)


def publish_numbered(
    tx: Transaction,
    context: Context,
    jobs: LockedJobs,
    messages: Sequence[NewEvent],
    *,
    last: int,
    run_id: int | None = None,
) -> list[Published]:
    """Publish messages whose numbers, up to `last`, were taken in this transaction."""
    topics = tx.of(Topics)
    # Asked for before anything is written: a question waits for all that was.
    awaited = {topic for handler in jobs.handlers() for topic in handler.topics()}
    known = _known(topics, jobs.workflow, messages)
    fresh: dict[int, EventRow] = {}
    causes: set[tuple[int, int]] = set()
    found: list[Published] = []
    for number, message in enumerate(messages, last - len(messages) + 1):
        key = message.topic, message.message_id
        event_id = known.get(key)
        if event_id is None:
            event_id = known[key] = context.new_id()
            fresh[event_id] = EventRow(
                event_id, jobs.workflow, *key, number, message.payload, "pending", tx.now, made_by=run_id,
                settled_at=None if message.topic in awaited else tx.now, hops=message.hops,
            )  # fmt: skip
            causes |= {(event_id, cause) for cause in message.inputs}
            found.append(Published(event_id, new=True))
            continue
        if event_id in fresh:
            fresh[event_id] = fresh[event_id]._replace(payload=message.payload)
            found.append(Published(event_id, new=False))
        else:
            replaced = topics.replace_payload(event_id, message.payload, number)
            found.append(Published(event_id, new=False, replaced=replaced))
    if fresh:
        topics.add(list(fresh.values()), sorted(causes))
    changed = {message.topic for message, one in zip(messages, found, strict=True) if one.new or one.replaced}
    if changed:
        wake_subscribers(tx, context, jobs, changed, last)
    if changed and run_id is None:  # a run that commits is in line with the others, once it is known when it continues
        line_up(tx, jobs)
    return found


def _known(topics: Topics, workflow: str, messages: Sequence[NewEvent]) -> dict[tuple[str, str], int]:
    by_topic: dict[str, list[str]] = {}
    for message in messages:
        by_topic.setdefault(message.topic, []).append(message.message_id)
    return {
        (topic, message_id): event_id
        for topic, message_ids in by_topic.items()
        for message_id, event_id in topics.known(workflow, topic, message_ids).items()
    }
