"""What must hold in the store for every workflow, after everything that happens.

Some of it may be untrue for a moment, until the next look of the engine: that is returned as a doubt, by its words, and
becomes a broken promise when it stays.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tests.simulation.invariants import Broken, Connection
from wakeful.domains.workflows.views import workflow_view

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

Row = Mapping[str, Any]
PATIENCE_S = 200.0  # handlers without an alarm are looked for every minute, and the disk may be full

HANDLERS = (
    "SELECT h.*, s.enabled, s.paused AS job_paused, s.queued, s.run_id, s.due_at, s.parked FROM workflow_handlers h "
    "LEFT JOIN job_state s ON s.job_id = h.job_id WHERE h.workflow = ? ORDER BY h.name"
)


class Doubts:
    """What seems wrong, and since when: it is broken when it lasts longer than the engine needs to look."""

    def __init__(self) -> None:
        self._since: dict[str, float] = {}

    def hold(self, doubts: Iterator[str], now: float) -> None:
        """Compare with what was doubtful before."""
        found = list(doubts)
        self._since = {doubt: self._since.get(doubt, now) for doubt in found}
        for doubt, since in self._since.items():
            if now - since > PATIENCE_S:
                raise Broken(doubt)

    def forget(self) -> None:
        """A new process begins to look."""
        self._since.clear()


def check_flow(connection: Connection, name: str) -> Iterator[str]:
    """Safety of one workflow; what is doubtful."""
    row = connection.execute("SELECT * FROM workflows WHERE name = ? AND removed_at IS NULL", (name,)).fetchone()
    if row is None:
        return
    active = connection.execute(
        "SELECT count(*) AS n FROM runs r JOIN workflow_runs w ON w.id = r.id WHERE w.workflow = ? "
        "AND r.status = 'active'",
        (name,),
    ).fetchone()
    if active["n"] > 1:
        raise Broken(f"K7: {active['n']} runs of {name} at once")
    for run in connection.execute(
        "SELECT r.id, j.name FROM runs r JOIN jobs j ON j.id = r.job_id WHERE j.removed_at IS NOT NULL "
        "AND r.status = 'queued' AND r.kind = 'workflow' ORDER BY r.id"
    ):
        raise Broken(f"K14: run {run['id']} waits for {run['name']}, which was removed")
    handlers = connection.execute(HANDLERS, (name,)).fetchall()
    yield from _reserved(connection, row, handlers)
    yield from _pending(connection, row, handlers)


def _reserved(connection: Connection, row: Row, handlers: list[Row]) -> Iterator[str]:
    """Whatever is reserved is so by an open run, and something or somebody will go on with that."""
    open_runs = {handler["open_run"]: handler for handler in handlers if handler["open_run"] is not None}
    for event in connection.execute(
        "SELECT e.*, r.status AS run_status FROM workflow_events e LEFT JOIN runs r ON r.id = e.run_id "
        "WHERE e.workflow = ? AND e.status = 'reserved' ORDER BY e.id",
        (row["name"],),
    ):
        what = f"K9: {event['message_id']} of {row['name']}.{event['topic']} is reserved"
        handler = open_runs.get(event["run_id"])
        if handler is None:
            raise Broken(f"{what} by a run that no handler goes on with")
        if event["run_status"] == "active":
            continue  # also one whose handler was removed meanwhile: it ends first
        asks = row["issue"] is not None and row["issue_handler"] == handler["name"]
        if handler["job_id"] is None and not asks:
            raise Broken(f"{what} by a handler that was removed, and nobody is asked about it")
        if handler["job_id"] is not None and not (_is_armed(handler) or (asks and row["issue"] != "transient")):
            yield f"{what}, and nothing will go on with it"


def _pending(connection: Connection, row: Row, handlers: list[Row]) -> Iterator[str]:
    """Whatever came since a consumer has looked is about to be looked at."""
    for handler in handlers:
        if handler["job_id"] is None or handler["type"] != "consumer" or handler["dirty"] <= handler["seen"]:
            continue
        if not _is_armed(handler) and _has_pending(connection, row["name"], handler):
            yield f"K4: events wait for {row['name']}.{handler['name']}, and no start of it is armed"


def _is_armed(handler: Row) -> bool:
    """Whether its job runs or is about to, or a person has said that it should not."""
    looks = bool(handler["queued"]) and (handler["due_at"] is not None or handler["parked"] is not None)
    return looks or handler["run_id"] is not None or not handler["enabled"] or bool(handler["job_paused"])


def _has_pending(connection: Connection, workflow: str, handler: Row) -> bool:
    topics = json.loads(handler["subscribes"])
    places = ", ".join("?" * len(topics))
    sql = (
        f"SELECT 1 FROM workflow_events WHERE workflow = ? AND topic IN ({places}) "  # noqa: S608 - only marks
        "AND status = 'pending' AND settled_at IS NULL LIMIT 1"
    )
    return connection.execute(sql, (workflow, *topics)).fetchone() is not None


def unlooked(connection: Connection, name: str, looked_at: Mapping[str, float], since: float) -> Iterator[str]:
    """Consumers with pending events that have not looked since a process or a version began, though they may."""
    row = connection.execute("SELECT * FROM workflows WHERE name = ? AND removed_at IS NULL", (name,)).fetchone()
    if row is None or row["paused"] or row["draining"] or row["issue"] is not None:
        return
    for handler in connection.execute(HANDLERS, (name,)).fetchall():
        if handler["job_id"] is None or handler["type"] != "consumer" or _is_armed(handler):
            continue
        if looked_at.get(handler["name"], -1.0) < since and _has_pending(connection, name, handler):
            yield f"K14: {name}.{handler['name']} has not looked at its pending events since the start or deploy"


def check_words(tx: Transaction, connection: Connection, name: str, *, may_be_paused: bool) -> Iterator[str]:
    """What people are shown is what there is."""
    row = connection.execute("SELECT * FROM workflows WHERE name = ? AND removed_at IS NULL", (name,)).fetchone()
    if row is None:
        return
    shown = workflow_view(tx, name)
    issue, status = shown["issue"], shown["status"]
    asking = connection.execute(
        "SELECT r.id FROM runs r JOIN workflow_runs w ON w.id = r.id WHERE w.workflow = ? AND r.status = 'waiting'",
        (name,),
    ).fetchone()
    if asking is not None and issue is None:
        raise Broken(f"K16: a run of {name} waits for a person, and it is shown as {status}, with no issue")
    at_work = connection.execute(
        "SELECT r.id FROM runs r JOIN workflow_runs w ON w.id = r.id WHERE w.workflow = ? AND r.status = 'active' "
        "AND w.status = 'active'",
        (name,),
    ).fetchone()
    if status == "idle" and at_work is not None:
        raise Broken(f"K16: a run of {name} is at work, and it is shown as idle")
    reserved = connection.execute(
        "SELECT 1 FROM workflow_events WHERE workflow = ? AND status = 'reserved' LIMIT 1", (name,)
    ).fetchone()
    if status == "idle" and issue is None and reserved is not None:
        yield f"K16: {name} is shown as idle, and has reserved events"
    if row["paused"] and not may_be_paused:
        raise Broken(f"K16: {name} is paused ({row['pause_note']}), and nobody has paused it")
    if status == "needs_attention" and not _is_alerted(connection, name) and not _is_tried_again(connection, row):
        yield f"K16: {name} needs attention ({row['issue']}), and no alert says so"


def _is_alerted(connection: Connection, name: str) -> bool:
    """Whether an open alert is about the workflow, or about a run of it that asks."""
    sql = (
        "SELECT 1 FROM alerts WHERE closed_at IS NULL AND (key = ? OR job_id IN "
        "(SELECT job_id FROM workflow_handlers WHERE workflow = ?)) LIMIT 1"
    )
    return connection.execute(sql, (f"workflow:{name}", name)).fetchone() is not None


def _is_tried_again(connection: Connection, row: Row) -> bool:
    found = [one for one in connection.execute(HANDLERS, (row["name"],)) if one["name"] == row["issue_handler"]]
    return any(one["job_id"] is not None and _is_armed(one) for one in found) and row["issue"] != "approval"
