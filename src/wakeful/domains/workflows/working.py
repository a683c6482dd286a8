"""A run that is over while a thread of it still works: on record with its workflow, which waits until it has ended.

Other nodes, and people, know it only from there. The record is gone when the thread has ended, or its node.
"""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.domains.workflows.arming import look_again
from wakeful.domains.workflows.authoring import DEFAULT_TIMEOUT_MS
from wakeful.domains.workflows.issues import alert_about
from wakeful.domains.workflows.tables import WorkflowRow, WorkflowVerbs
from wakeful.domains.workflows.threads import is_left
from wakeful.errors import SchedulerError
from wakeful.store.nodes import LEASE_MS
from wakeful.store.process_identity import is_dead, is_seen_from_here

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction

log = logging.getLogger("wakeful.workflows")
STUCK_MS = 60_000
_TASKS: set[asyncio.Task[None]] = set()


def note_working(tx: Transaction, context: Context, workflow: str, run_id: int) -> None:
    """A run of this process has ended: if a thread of it still works, that is on record with its end."""
    row = tx.of(WorkflowVerbs).get(workflow) if is_left(run_id) else None
    if row is not None:
        since = row.working_since if row.working_run == run_id else tx.now
        values = {"working_run": run_id, "working_node": context.id, "working_since": since}
        tx.of(WorkflowVerbs).change(workflow, tx.now, **values)


def still_works(tx: Transaction, row: WorkflowRow) -> bool:
    """Whether a thread of the workflow's last run works on, as far as the record says."""
    if row.working_run is None:
        return False
    node = tx.nodes.get(row.working_node or 0)
    return is_left(row.working_run) or (node is not None and node.stopped_at is None)


def may_work(tx: Transaction, row: WorkflowRow) -> bool:
    """The same, also of a node that has stopped in good order: its process may live on, and the thread with it, until
    lease and timeout have passed.
    """
    if still_works(tx, row):
        return True
    node = tx.nodes.get(row.working_node or 0) if row.working_run is not None else None
    if node is None or node.stopped_at is None or node.taken_by is not None:
        return False
    who = json.loads(node.details)
    if is_dead(node.id, who) or (tx.exclusive and not is_seen_from_here(who)):
        return False
    attempt = tx.of(WorkflowVerbs).run(row.working_run or 0)
    handler = tx.of(WorkflowVerbs).handler(row.name, attempt.handler) if attempt is not None else None
    timeout = handler.timeout if handler is not None else DEFAULT_TIMEOUT_MS
    return tx.now < max(row.working_since or 0, node.stopped_at) + LEASE_MS + timeout


def look_for_end(tx: Transaction, context: Context, row: WorkflowRow) -> WorkflowRow:
    """The workflow as a node that starts its handlers sees it: it knows its own threads, and that of a node that is
    gone nothing works any more.
    """
    if row.working_run is None or is_left(row.working_run):
        return row
    is_others = row.working_node != context.id and (not tx.exclusive or not still_works(tx, row))
    if is_others and may_work(tx, row):
        return row
    _forget(tx, row.name)
    return row._replace(working_run=None, working_node=None, working_since=None)


def forget_stopped(tx: Transaction, row: WorkflowRow) -> None:
    """A person has said what became of it: what a node that has stopped may still be at is not waited for."""
    if row.working_run is not None and not still_works(tx, row):
        _forget(tx, row.name)


def _forget(tx: Transaction, name: str) -> None:
    tx.of(WorkflowVerbs).change(name, tx.now, working_run=None, working_node=None, working_since=None)


def ended(tx: Transaction, name: str, run_id: int) -> None:
    """The threads of a run have ended: what waited for that starts."""
    table = tx.of(WorkflowVerbs)
    table.lock_jobs(name)
    row = table.lock(name)
    if row is None or row.working_run != run_id or is_left(run_id):
        return
    _forget(tx, name)
    look_again(tx, name)


def report_stuck(tx: Transaction, context: Context) -> int:
    """Alert people to threads of this node that do not come back; how many there are."""
    rows = [row for row in tx.of(WorkflowVerbs).listed() if row.working_node == context.id and is_left(row.working_run)]
    stuck = [row for row in rows if tx.now - (row.working_since or tx.now) >= STUCK_MS]
    for row in stuck:
        run = ids.run_text(row.working_run or 0)
        message = f"{run} was cut off, and a thread or program of it does not end: nothing starts until it has ended"
        alert_about(tx, context, row.name, message, kind="working", run=row.working_run)
    return len(stuck)


def when_ended(scheduler: Scheduler, name: str, run_id: int) -> Callable[[], None]:
    """What to call, from any thread, when the last thread of a call that is over has ended."""
    loop, here = asyncio.get_running_loop(), threading.get_ident()

    async def store() -> None:
        try:
            await scheduler.transact(lambda tx, _: ended(tx, name, run_id))
        except SchedulerError as error:  # the next look at its workflow finds it
            log.warning("that a thread of %s has ended could not be stored: %s", name, error)

    def begin() -> None:
        task = loop.create_task(store())
        _TASKS.add(task)
        task.add_done_callback(_TASKS.discard)

    def notify() -> None:
        if loop.is_closed():
            return
        call = loop.call_soon if threading.get_ident() == here else loop.call_soon_threadsafe
        call(begin)

    return notify
