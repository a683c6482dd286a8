"""Publishing: events with their causes, idempotent by message id, and their consumers due in the same transaction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.workflows.arming import wake_subscribers
from wakeful.workflows.tables import Workflows
from wakeful.workflows.topics.tables import EventRow, InputRow, Topics

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


class Message(NamedTuple):
    """Something to be published."""

    topic: str
    message_id: str
    payload: str  # JSON
    inputs: tuple[int, ...] = ()


class Published(NamedTuple):
    """The event of a message, and whether it is new."""

    event_id: int
    new: bool


def publish(
    tx: Transaction,
    context: Context,
    workflow: str,
    messages: Sequence[Message],
    *,
    run_id: int | None = None,
    inputs: Sequence[InputRow] = (),
) -> list[Published]:
    """Publish messages, and register the inputs that caused them; one event per message id, in the order given.

    A known message id makes no second event: while the first one is pending, it gets the new payload.
    """
    lock_jobs(tx, workflow)
    topics = tx.of(Topics)
    for row in inputs:
        topics.add_input(row)
    if not messages:
        return []
    seq = tx.of(Workflows).next_seq(workflow, len(messages))
    found: list[Published] = []
    fresh: set[str] = set()
    for number, message in enumerate(messages, seq):
        event = EventRow(
            context.new_id(), workflow, message.topic, message.message_id, number, message.payload, "pending", tx.now,
            made_by=run_id,
        )  # fmt: skip
        if topics.add(event):
            topics.caused(event.id, message.inputs)
            fresh.add(message.topic)
            found.append(Published(event.id, new=True))
        else:
            known = topics.known(workflow, message.topic, message.message_id) or 0
            topics.replace_payload(known, message.payload)
            found.append(Published(known, new=False))
    if fresh:
        wake_subscribers(tx, context, workflow, sorted(fresh), seq + len(messages) - 1)
    return found


def lock_jobs(tx: Transaction, workflow: str) -> None:
    """Lock the states of a workflow's jobs: the first step of whatever changes more than one row of it."""
    jobs = [handler.job_id for handler in tx.of(Workflows).handlers(workflow) if handler.job_id is not None]
    tx.jobs.states(sorted(jobs))
