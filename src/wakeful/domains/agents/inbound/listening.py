"""Which schedules listen to a chat, and what people are told whose messages wait."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.inbound.receiving import CHAT, request_of
from wakeful.domains.agents.inbound.tables import InboundRequests
from wakeful.domains.delivery import Post, enqueue

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef

MOST_ANSWERED = 100  # at a time


def hearing(tx: Transaction, connector: str, agent: str | None) -> list[tuple[JobDef, dict[str, Any]]]:
    """The schedules for what people write there, of one agent or of all, each with its section."""
    numbers = tx.of(InboundRequests).chat_jobs(agent)
    jobs = tx.jobs.definitions(numbers) if numbers else {}
    found = [(jobs[number], _chat(jobs[number])) for number in numbers if number in jobs]
    return [(job, chat) for job, chat in found if chat.get("connector") in (None, connector)]


def listeners(tx: Transaction, connector: str) -> set[str]:
    """The agents that have schedules for what people write there."""
    return {json.loads(job.payload)["agent"] for job, _ in hearing(tx, connector, None)}


def answer_waiting(tx: Transaction, context: Context, job: JobDef, why: str) -> None:
    """Tell everybody whose message waits for this schedule why it does, each message once."""
    if CHAT not in json.loads(job.payload):
        return
    waiting = [run for run in tx.runs.open(job.id) if run.status == "queued" and run.due_at <= tx.now]
    for run in waiting[:MOST_ANSWERED]:
        request = request_of(tx, run)
        if request is not None:
            about = json.loads(request.about)
            text = f"Your message waits: {why}."
            post = Post(
                text, about["connector"], "reply", recipient=about["sender"], urgent=True, dedupe=f"waits:{run.id}"
            )
            enqueue(tx, context, post)


def _chat(job: JobDef) -> dict[str, Any]:
    chat = json.loads(job.payload).get(CHAT)
    return chat if isinstance(chat, dict) else {}
