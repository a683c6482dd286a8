"""What a handler with steps publishes into topics of other workflows: in the same transaction as its own end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.domains.workflows.arming import LockedJobs
from wakeful.domains.workflows.failures import LogicError
from wakeful.domains.workflows.lookup import known_topics
from wakeful.domains.workflows.publishing import NewEvent, publish_numbered
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.turns.order import line_up

if TYPE_CHECKING:
    from wakeful.domains.workflows.tables import WorkflowRun
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


class Elsewhere(NamedTuple):
    """Messages for one other workflow."""

    workflow: str
    messages: Sequence[NewEvent]


def split(attempt: WorkflowRun, messages: Sequence[NewEvent]) -> tuple[list[NewEvent], list[Elsewhere]]:
    """The messages for the run's own workflow, and those for others, by name; with the hops that led to them."""
    own: list[NewEvent] = []
    others: dict[str, list[NewEvent]] = {}
    for message in messages:
        name, dot, topic = message.topic.partition(".")
        if not dot or name == attempt.workflow:
            own.append(message._replace(topic=topic if dot else message.topic, hops=attempt.hops))
        else:
            others.setdefault(name, []).append(message._replace(topic=topic, hops=attempt.hops + 1, inputs=()))
    return own, [Elsewhere(name, others[name]) for name in sorted(others)]


def why_not_elsewhere(tx: Transaction, workflow: str, topic: str) -> str | None:
    """Why nothing can be published into a topic of another workflow; None where it can."""
    row = tx.of(WorkflowVerbs).get(workflow)
    if row is None or row.removed_at is not None:
        return f"There is no workflow {workflow!r}, into which {workflow}.{topic} would be published: deploy it."
    known = known_topics(tx.of(WorkflowVerbs).handlers(workflow))
    if topic not in known:
        return f"{workflow} has no topic {topic!r}. It has: {', '.join(known) or 'none'}."
    return None


def publish_elsewhere(tx: Transaction, context: Context, attempt: WorkflowRun, others: Sequence[Elsewhere]) -> None:
    """Publish what goes to other workflows, whose jobs are locked; LogicError where one cannot take it."""
    for other in others:
        for topic in sorted({message.topic for message in other.messages}):
            why = why_not_elsewhere(tx, other.workflow, topic)
            if why is not None:
                raise LogicError(why)
        jobs = LockedJobs(tx, other.workflow)
        row = tx.of(WorkflowVerbs).take_numbers(other.workflow, len(other.messages))
        if row is not None:
            publish_numbered(tx, context, jobs, other.messages, last=row.event_seq, run_id=attempt.id)
            line_up(tx, jobs)
