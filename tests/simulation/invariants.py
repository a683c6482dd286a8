"""What must hold in the store after every commit, whatever happened, and what must come true once faults stop."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter, defaultdict


class Broken(AssertionError):
    """A promise was broken; the message says which and where."""


def check(connection: sqlite3.Connection, capacities: dict[str, int]) -> None:
    """Safety: holds at every moment."""
    connection.row_factory = sqlite3.Row
    open_runs = connection.execute("SELECT * FROM runs WHERE finished_at IS NULL ORDER BY id").fetchall()
    by_job = defaultdict(list)
    for run in open_runs:
        by_job[run["job_id"]].append(run)
    states = connection.execute(
        "SELECT s.*, j.name, j.trigger, j.removed_at FROM job_state s JOIN jobs j ON j.id = s.job_id ORDER BY s.job_id"
    ).fetchall()
    for state in states:
        _check_job(state, by_job[state["job_id"]])
    _check_lanes(connection, open_runs, capacities)
    _check_slots(connection)


def _check_job(state: sqlite3.Row, runs: list[sqlite3.Row]) -> None:
    name = state["name"]
    busy = [run for run in runs if run["status"] in ("active", "waiting")]
    queued = [run for run in runs if run["status"] == "queued"]
    if len(busy) > 1:
        raise Broken(f"H9: {name} runs {len(busy)} times at once")
    if (state["run_id"] is not None) != bool(busy) or (busy and busy[0]["id"] != state["run_id"]):
        raise Broken(f"H9: {name} and its runs disagree about what is running")
    if len(queued) != state["queued"] and not state["removed_at"]:
        raise Broken(f"{name} counts {state['queued']} queued runs, there are {len(queued)}")
    if state["parked"] is not None and state["due_at"] is not None:
        raise Broken(f"{name} is parked and due at once")
    live = state["enabled"] and not state["paused"] and state["removed_at"] is None and state["run_id"] is None
    timed = json.loads(state["trigger"])["type"] in ("every", "interval", "cron", "once")
    armed = state["due_at"] is not None or state["parked"] is not None
    if live and timed and not armed:
        raise Broken(f"H2: {name} is enabled and idle, but nothing will ever start it")
    if queued and state["run_id"] is None and state["removed_at"] is None and not armed:
        startable = live or any(run["reason"] == "manual" for run in queued)
        if startable:
            raise Broken(f"{name} has queued runs that nothing will ever start")
    if state["last_slot"] is not None and state["slot"] is not None and state["slot"] == state["last_slot"]:
        raise Broken(f"H2: {name} is armed for a slot it has run")


def _check_lanes(connection: sqlite3.Connection, runs: list[sqlite3.Row], capacities: dict[str, int]) -> None:
    held = Counter(
        lane for run in runs if run["status"] == "active" and run["lanes"] for lane in json.loads(run["lanes"])
    )
    used = {row["key"]: row["used"] for row in connection.execute("SELECT key, used FROM lanes")}
    for lane in sorted({*held, *used}):
        if held.get(lane, 0) != used.get(lane, 0):
            raise Broken(f"lane {lane} counts {used.get(lane, 0)}, but {held.get(lane, 0)} runs hold it")
        if held.get(lane, 0) > capacities.get(lane, 10**9):
            raise Broken(f"D6: lane {lane} holds {held[lane]}, more than {capacities[lane]}")


def _check_slots(connection: sqlite3.Connection) -> None:
    """Every further attempt at a slot continues the one before, and none continues a success unless asked by hand."""
    rows = connection.execute(
        "SELECT r.id, r.job_id, r.slot, r.attempt, r.retry_of, r.reason, p.outcome AS before, p.slot AS before_slot "
        "FROM runs r LEFT JOIN runs p ON p.id = r.retry_of WHERE r.attempt > 1 "
        "AND (p.id IS NOT NULL OR r.retry_of IS NULL)"
    ).fetchall()
    for row in rows:
        if row["retry_of"] is None:
            raise Broken(f"attempt {row['attempt']} of run {row['id']} continues nothing")
        if row["before_slot"] != row["slot"]:
            raise Broken(f"run {row['id']} continues a run of another slot")
        if row["before"] in ("success", "noop", "skipped") and row["reason"] != "manual":
            raise Broken(f"H2: slot {row['slot']} was done, and run again as {row['reason']}")


DUE_PATIENCE_MS = 60_000
RUN_PATIENCE_MS = 65 * 60_000  # the longest timeout in the world, and a little


def check_live(connection: sqlite3.Connection, now: int) -> None:
    """Liveness: with the faults over, nothing that is due may be left lying."""
    connection.row_factory = sqlite3.Row
    for row in connection.execute(
        "SELECT j.name, s.due_at FROM job_state s JOIN jobs j ON j.id = s.job_id WHERE s.due_at < ? ORDER BY s.job_id",
        (now - DUE_PATIENCE_MS,),
    ):
        raise Broken(f"{row['name']} has been due for {now - row['due_at']} ms and nothing happens")
    for row in connection.execute(
        "SELECT j.name, r.started_at FROM runs r JOIN jobs j ON j.id = r.job_id "
        "WHERE r.status = 'active' AND r.started_at < ? ORDER BY r.id",
        (now - RUN_PATIENCE_MS,),
    ):
        raise Broken(f"H10: {row['name']} has been running for {now - row['started_at']} ms")
