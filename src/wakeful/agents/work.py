"""Work items of agents: a queue in the store. An item is claimed in the transaction that claims its run.

What must stay true: an item is worked on by one run at a time; a run that does not succeed releases it, also when its
process or its node dies; one that fails too often is set aside.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.agents.naming import agent_of, wake_job
from wakeful.agents.tables import AgentTables, WorkItem
from wakeful.agents.wakes import find_agent
from wakeful.errors import InvalidJob, ScheduleTriggerError, WorkNotFound
from wakeful.kernel.rules.outcome import FAILURES, clean
from wakeful.store.records import RunDetails
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

MOST_ATTEMPTS = 5
STATUSES = ("ready", "claimed", "done", "failed")
LONGEST_TITLE, LONGEST_BODY = 1_000, 100_000


class NewItem(NamedTuple):
    """A work item as a caller adds it."""

    title: str
    body: str | None = None
    external_id: str | None = None
    priority: int = 0


def take_item(tx: Transaction, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    """Claim an item for a run that is being claimed; the same one where the run is claimed again."""
    payload = json.loads(job.payload)
    if not payload.get("work") or payload["does"] == "event":  # which leaves it to the run it causes
        return None
    return {"item": claim_item(tx, payload, run)}


def claim_item(tx: Transaction, payload: Mapping[str, Any], run: RunRow) -> dict[str, Any] | None:
    """Claim the next item for a run; what the handler is given of it."""
    tables = tx.of(AgentTables)
    item = tables.item_of(run.id)
    if item is None:
        item = next_for(tx, payload["agent"], source_key(payload["work"]))
        if item is None:
            return None
        tables.save_item(item._replace(status="claimed", run_id=run.id, attempts=item.attempts + 1))
        if item.source is None:
            name_item(tx, run.id, item)
    return known_item(item)


def name_item(tx: Transaction, run_id: int, item: WorkItem) -> None:
    """Let the run name its item from now on, however it ends. One of a source is the run's once the source agrees."""
    tx.runs.detail([RunDetails(run_id, output=json.dumps({"item": item_text(item.id)}))])


def next_for(tx: Transaction, agent: str, source: str | None, passed: Sequence[int] = ()) -> WorkItem | None:
    """The next item of an agent, from its queue or its source."""
    owner = tx.jobs.names([wake_job(agent)]).get(wake_job(agent))
    return tx.of(AgentTables).next_item(owner, source, passed) if owner is not None else None


def known_item(item: WorkItem) -> dict[str, Any]:
    """An item as a handler is given it."""
    known = {"id": item_text(item.id), "title": item.title, "body": item.body, "external_id": item.external_id}
    return known if item.source is None else {**known, "source": item.source}


def source_key(spec: Any) -> str | None:
    """What the items of a source are stored with; None for the queue alone."""
    if not isinstance(spec, Mapping):
        return None
    return f"{spec['source']}:{spec['path' if spec['source'] == 'directory' else 'repo']}"


def end_item(tx: Transaction, run: RunRow, result: Result) -> None:
    """What the end of a run means for its item."""
    tables = tx.of(AgentTables)
    item = tables.item_of(run.id)
    if item is not None:
        tables.save_item(after(item, result.outcome, result.error))


def after(item: WorkItem, outcome: str, error: str | None) -> WorkItem:
    """The item once its run has ended so. A run that was put off is no attempt.

    What was decided before its source heard of it counts, also where the run was cut off after that.
    """
    decided = json.loads(item.mark).get("verdict") if item.mark is not None else None
    if outcome == "success" or decided == "done":
        return item._replace(status="done", last_error=None)
    if outcome in FAILURES or outcome == "crashed":
        status = "failed" if item.attempts >= MOST_ATTEMPTS else "ready"
        return item._replace(status=status, last_error=error or outcome)
    return item._replace(status="ready", attempts=max(0, item.attempts - 1))


def add_item(tx: Transaction, context: Context, agent: str, new: NewItem) -> tuple[dict[str, Any], bool]:
    """Add an item to an agent's queue, and whether it is new: what another system calls the same is there once."""
    for name, text, most in (("title", new.title, LONGEST_TITLE), ("body", new.body or "", LONGEST_BODY)):
        if len(text) > most:
            raise InvalidJob(f"A work item's {name} has {most} characters at most, not {len(text)}.")
    if not new.title.strip():
        raise InvalidJob("A work item needs a title.")
    job, _ = find_agent(tx, agent)
    tables = tx.of(AgentTables)
    external = None if new.external_id is None else clean(new.external_id)
    known = tables.item_called(job.id, external) if external is not None else None
    if known is not None:
        return shown(known, agent), False
    body = None if new.body is None else clean(new.body)
    item = WorkItem(
        context.new_id(), job.id, clean(new.title), body, external, new.priority, "ready", None, 0, tx.now, None
    )
    tables.add_item(item)
    return shown(item, agent), True


def list_items(
    tx: Transaction, agent: str | None, status: str | None, before: int | None, limit: int
) -> list[dict[str, Any]]:
    """Items, the newest first."""
    owner = find_agent(tx, agent)[0].id if agent is not None else None
    found = tx.of(AgentTables).items(owner, status, before, limit)
    names = tx.jobs.definitions(sorted({item.job_id for item in found})) if found else {}
    return [shown(item, agent_of(names[item.job_id].name)) for item in found if item.job_id in names]


def get_item(tx: Transaction, ref: str) -> dict[str, Any]:
    item = _require(tx, ref)
    return shown(item, agent_of(tx.jobs.definitions([item.job_id])[item.job_id].name))


def release_item(tx: Transaction, ref: str) -> dict[str, Any]:
    """Release an abandoned item; refused while its run is in progress."""
    item = _require(tx, ref)
    run = tx.runs.get(item.run_id) if item.run_id is not None else None
    if item.status == "claimed" and run is not None and run.status != "done":
        message = f"{ref} is being worked on by {ids.run_text(run.id)}: cancel that run to release it."
        raise ScheduleTriggerError(message, {"reason": "already_running", "run": ids.run_text(run.id)})
    if item.status != "claimed":
        raise ScheduleTriggerError(f"{ref} is {item.status}: only a claimed item can be released.", {})
    tx.of(AgentTables).save_item(item._replace(status="ready"))
    return get_item(tx, ref)


def retry_item(tx: Transaction, ref: str) -> dict[str, Any]:
    """Let an item that is done or failed be worked on again, from the first attempt."""
    item = _require(tx, ref)
    if item.status not in ("done", "failed"):
        raise ScheduleTriggerError(f"{ref} is {item.status}: only a done or failed item can be tried again.", {})
    mark = None
    if item.source is not None:  # it need not wait there again, and is not forgotten because it does not
        known = json.loads(item.mark) if item.mark is not None else {}
        known.pop("verdict", None)
        mark = json.dumps({**known, "again": True})
    tx.of(AgentTables).save_item(item._replace(status="ready", attempts=0, mark=mark))
    return get_item(tx, ref)


def item_text(number: int) -> str:
    return ids.encode("wrk", number)


def shown(item: WorkItem, agent: str) -> dict[str, Any]:
    """An item as people see it."""
    return {
        "id": item_text(item.id),
        "agent": agent,
        "title": item.title,
        "body": item.body,
        "external_id": item.external_id,
        "source": item.source,
        "priority": item.priority,
        "status": item.status,
        "run": None if item.run_id is None else ids.run_text(item.run_id),
        "attempts": item.attempts,
        "created_at": iso(item.created_at),
        "last_error": item.last_error,
    }


def _require(tx: Transaction, ref: str) -> WorkItem:
    number = ids.number_of("wrk", ref)
    found = tx.of(AgentTables).item(number) if number is not None else None
    if found is None:
        raise WorkNotFound(f"There is no work item {ref!r:.80}.")
    return found
