"""Work items of agents: a queue in the store. An item is claimed in the transaction that claims its run.

What must stay true: an item is worked on by one run at a time; a run that does not succeed releases it, also when its
process or its node dies; one that fails too often is set aside. A death of the process is no failure of the item,
unless its run is blamed for several in a row.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.counting import counted
from wakeful.domains.agents.belongings.tables import Belongings
from wakeful.domains.agents.naming import source_key, wake_job
from wakeful.domains.agents.senders.trusting import OWN
from wakeful.domains.agents.tables import AgentTables, WorkItem
from wakeful.domains.agents.wakes import find_agent
from wakeful.errors import InvalidJob, ScheduleTriggerError, WorkNotFound
from wakeful.kernel.engine.admission import SUSPECT_AFTER
from wakeful.kernel.engine.alerts import close_alert, open_alert
from wakeful.kernel.rules.outcome import FAILURES, clean
from wakeful.store.records import RunDetails
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, RunRow

MOST_ATTEMPTS = 5
NOT_TRIED = ("InvalidJob", "AgentNotStarted", "StoreFull", "StoreLocked", "StoreUnreachable", "StoreGone")
"""Errors that say nothing about an item: its agent could not be called at all, or the store was in trouble."""
STATUSES = ("ready", "claimed", "done", "failed")
LONGEST_TITLE, LONGEST_BODY = 1_000, 100_000
ALERT, SHOWN_TITLE = "work_failed", 80


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
    tx.of(Belongings).name_all(agent)
    return tx.of(AgentTables).next_item(agent, source, passed)


def known_item(item: WorkItem) -> dict[str, Any]:
    """An item as a handler is given it."""
    known = {"id": item_text(item.id), "title": item.title, "body": item.body, "external_id": item.external_id}
    if item.source is None:
        return known
    is_own = item.mark is not None and json.loads(item.mark).get(OWN)
    return {**known, "source": item.source, **({OWN: True} if is_own else {})}


def end_item(tx: Transaction, context: Context, job: JobDef, run: RunRow, result: Result) -> None:
    """What the end of a run means for its item."""
    tables = tx.of(AgentTables)
    item = tables.item_of(run.id)
    if item is not None:
        is_blamed = result.blamed and tx.jobs.states([job.id])[job.id].crashes >= SUSPECT_AFTER
        is_tried = result.error_type not in NOT_TRIED
        item = after(item, result.outcome, result.error, is_blamed=is_blamed, is_tried=is_tried)
        tables.save_item(item)
        if item.status == "failed":
            _alert(tx, context, job, item)


def _alert(tx: Transaction, context: Context, job: JobDef, item: WorkItem) -> None:
    """One incident for each agent, however many of its items are set aside."""
    ref = item_text(item.id)
    title = item.title if len(item.title) <= SHOWN_TITLE else f"{item.title[: SHOWN_TITLE - 1]}…"
    tries = counted(item.attempts, "attempt")
    message = (
        f"{item.agent} set {ref} ({title}) aside after {tries}: {(item.last_error or 'failed').rstrip('.')}. "
        f"To try it again: wakeful work retry {ref}"
    )
    open_alert(tx, context, ALERT, item.agent, message, job_id=job.id)


def _close_alert(tx: Transaction, context: Context, agent: str) -> None:
    """The incident is over once none of the agent's items is set aside."""
    if not tx.of(AgentTables).items(agent, "failed", None, 1):
        close_alert(tx, context, ALERT, agent, "no item is set aside any more")


def after(
    item: WorkItem, outcome: str, error: str | None, *, is_blamed: bool = False, is_tried: bool = True
) -> WorkItem:
    """The item once its run has ended so. A run that was put off or that its server cut off is no attempt.

    `is_blamed`: it is this run that keeps ending its process; the first death in a row with the item proves nothing
    about it. What was decided before its source heard of it counts, also where the run was cut off after that.
    """
    decided = json.loads(item.mark).get("verdict") if item.mark is not None else None
    if outcome == "success" or decided == "done":
        return item._replace(status="done", last_error=None)
    if decided == "failed":
        return item._replace(status="failed", last_error=error or outcome)
    is_blamed = is_blamed and item.last_error == (error or outcome)
    if (outcome in FAILURES and is_tried) or is_blamed:
        status = "failed" if item.attempts >= MOST_ATTEMPTS else "ready"
        return item._replace(status=status, last_error=error or outcome)
    why = error or outcome if outcome in ("crashed", *FAILURES) else item.last_error
    return item._replace(status="ready", attempts=max(0, item.attempts - 1), last_error=why)


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
    known = tables.item_called(agent, external) if external is not None else None
    if known is not None:
        return shown(known), False
    body = None if new.body is None else clean(new.body)
    item = WorkItem(
        id=context.new_id(), agent=agent, title=clean(new.title), body=body, external_id=external,
        priority=new.priority, status="ready", run_id=None, attempts=0, created_at=tx.now, last_error=None,
    )  # fmt: skip
    tables.add_item(item, job.id)
    known = tables.item_called(agent, external) if external is not None else None
    return (shown(item), True) if known is None or known.id == item.id else (shown(known), False)


def list_items(
    tx: Transaction,
    agent: str | None,
    status: str | None,
    before: int | None,
    limit: int,
    *,
    orphaned: bool = False,
) -> list[dict[str, Any]]:
    """Items, the newest first, also of an agent that is gone; `orphaned`: only of such agents."""
    tables = tx.of(AgentTables)
    if agent is not None and not tables.items(agent, None, None, 1):
        find_agent(tx, agent)
    found = tables.items(agent, status, before, limit, orphaned=orphaned)
    jobs = tx.jobs.names([wake_job(name) for name in {item.agent for item in found}]) if found else {}
    return [shown(item, orphaned=wake_job(item.agent) not in jobs) for item in found]


def get_item(tx: Transaction, ref: str) -> dict[str, Any]:
    item = require_item(tx, ref)
    return shown(item, orphaned=not tx.jobs.names([wake_job(item.agent)]))


def release_item(tx: Transaction, ref: str) -> dict[str, Any]:
    """Release an abandoned item; refused while its run is in progress."""
    item = require_item(tx, ref)
    refuse_worked_on(tx, item, "release")
    if item.status != "claimed":
        raise ScheduleTriggerError(f"{ref} is {item.status}: only a claimed item can be released.", {})
    tx.of(AgentTables).save_item(item._replace(status="ready"))
    return get_item(tx, ref)


def retry_item(tx: Transaction, context: Context, ref: str) -> dict[str, Any]:
    """Let an item that is done or failed be worked on again, from the first attempt."""
    item = require_item(tx, ref)
    if item.status not in ("done", "failed"):
        raise ScheduleTriggerError(f"{ref} is {item.status}: only a done or failed item can be tried again.", {})
    mark = None
    if item.source is not None:  # it need not wait there again, and is not forgotten because it does not
        known = json.loads(item.mark) if item.mark is not None else {}
        known.pop("verdict", None)
        mark = json.dumps({**known, "again": True})
    tx.of(AgentTables).save_item(item._replace(status="ready", attempts=0, mark=mark))
    _close_alert(tx, context, item.agent)
    return get_item(tx, ref)


def item_text(number: int) -> str:
    return ids.encode("wrk", number)


def shown(item: WorkItem, *, orphaned: bool = False) -> dict[str, Any]:
    """An item as people see it."""
    return {
        "id": item_text(item.id),
        "agent": item.agent,
        "orphaned": orphaned,
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


def refuse_worked_on(tx: Transaction, item: WorkItem, verb: str) -> None:
    """ScheduleTriggerError while a run works on the item."""
    run = tx.runs.get(item.run_id) if item.run_id is not None else None
    if item.status == "claimed" and run is not None and run.status != "done":
        message = f"{item_text(item.id)} is being worked on by {ids.run_text(run.id)}: cancel that run to {verb} it."
        raise ScheduleTriggerError(message, {"reason": "already_running", "run": ids.run_text(run.id)})


def require_item(tx: Transaction, ref: str) -> WorkItem:
    number = ids.number_of("wrk", ref)
    found = tx.of(AgentTables).item(number) if number is not None else None
    if found is None:
        raise WorkNotFound(f"There is no work item {ref!r:.80}.")
    return found
