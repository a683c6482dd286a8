"""What must hold in the store after every commit, whatever happened, and what must come true once faults stop."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from wakeful.testing import VirtualClock

Row = Mapping[str, Any]


class Connection(Protocol):
    """Something that reads the store: rows by the names of their columns."""

    def execute(self, sql: str, params: tuple[object, ...] = ..., /) -> Any:
        """A cursor over the rows."""


class Broken(AssertionError):
    """A promise was broken; the message says which and where."""


def check(connection: Connection, capacities: dict[str, int]) -> None:
    """Safety: holds at every moment."""
    # A question about a job is a run, too, and nothing that runs.
    sql = "SELECT * FROM runs WHERE finished_at IS NULL AND reason <> 'proposed' ORDER BY id"
    open_runs = connection.execute(sql).fetchall()
    by_job = defaultdict(list)
    for run in open_runs:
        by_job[run["job_id"]].append(run)
    states = connection.execute(
        "SELECT s.*, j.name, j.trigger, j.options, j.removed_at FROM job_state s JOIN jobs j ON j.id = s.job_id "
        "ORDER BY s.job_id"
    ).fetchall()
    for state in states:
        _check_job(state, by_job[state["job_id"]])
        _check_limits(state, by_job[state["job_id"]])
    check_lanes(connection, capacities)
    check_priorities(connection, states)
    _check_slots(connection)
    _check_answers(connection)


def _check_job(state: Row, runs: list[Row]) -> None:
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
    _check_not_over(state)
    armed = state["due_at"] is not None or state["parked"] is not None
    if live and timed and not armed:
        raise Broken(f"H2: {name} is enabled and idle, but nothing will ever start it")
    if queued and state["run_id"] is None and state["removed_at"] is None and not armed:
        startable = live or any(run["reason"] == "manual" for run in queued)
        if startable:
            raise Broken(f"{name} has queued runs that nothing will ever start")
    if state["last_slot"] is not None and state["slot"] is not None and state["slot"] == state["last_slot"]:
        raise Broken(f"H2: {name} is armed for a slot it has run")


def _check_not_over(state: Row) -> None:
    """What has times for ever is never over by itself."""
    trigger = json.loads(state["trigger"])
    for_ever = trigger["type"] in ("every", "interval", "cron") and trigger.keys().isdisjoint(("max_runs", "until"))
    if for_ever and state["ended_at"] is not None and state["removed_at"] is None:
        raise Broken(f"H2: {state['name']} is over, though its trigger has further times")


def _check_limits(state: Row, runs: list[Row]) -> None:
    """Nothing waits for a paused job to be resumed but what others asked for, and none runs more often than it may."""
    stays = ("manual", "approval", "webhook", "chat")
    left = [run for run in runs if run["status"] == "queued" and run["reason"] not in stays]
    if state["paused"] and left and state["due_at"] is None:  # else the engine ends it when it looks
        raise Broken(f"H8: {state['name']} is paused, and a start from before waits for it to be resumed")
    most = json.loads(state["trigger"]).get("max_runs")
    if most is not None and state["slot_runs"] > most:
        raise Broken(f"X9: {state['name']} has run {state['slot_runs']} times, and max_runs is {most}")


def check_lanes(connection: Connection, capacities: dict[str, int]) -> None:
    """Each lane counts what holds it, and holds no more than it may."""
    runs = connection.execute("SELECT lanes FROM runs WHERE status IN ('active', 'waiting') AND finished_at IS NULL")
    held = Counter(lane for run in runs if run["lanes"] for lane in json.loads(run["lanes"]))
    used = {row["key"]: row["used"] for row in connection.execute("SELECT key, used FROM lanes")}
    for lane in sorted({*held, *used}):
        if held.get(lane, 0) != used.get(lane, 0):
            raise Broken(f"lane {lane} counts {used.get(lane, 0)}, but {held.get(lane, 0)} runs hold it")
        most = capacities.get(lane, 1 if lane.startswith("session:") else 10**9)
        if held.get(lane, 0) > most:
            raise Broken(f"D6: lane {lane} holds {held[lane]}, more than {most}")


def check_priorities(connection: Connection, states: Sequence[Row]) -> None:
    """Each job stands where its options put it, and nowhere that is not looked at."""
    levels = {row["level"] for row in connection.execute("SELECT level FROM priorities")}
    for state in states:
        if state["priority"] != json.loads(state["options"]).get("priority", 0):
            raise Broken(f"X22: {state['name']} stands at priority {state['priority']}, which is not its own")
        if state["priority"] not in levels:
            raise Broken(f"X22: {state['name']} stands at priority {state['priority']}, where no node looks")


def check_places(connection: Connection, carried: Sequence[str]) -> None:
    """No job waits for labels that the only node has."""
    for row in connection.execute(
        "SELECT j.name, j.options FROM job_state s JOIN jobs j ON j.id = s.job_id WHERE s.parked LIKE 'labels:%' "
        "ORDER BY j.id"
    ):
        if set(carried).issuperset(json.loads(row["options"]).get("labels", ())):
            raise Broken(f"X13: {row['name']} waits for labels that the node has")


def _check_slots(connection: Connection) -> None:
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


def _check_answers(connection: Connection) -> None:
    """What a person approved starts before its job asks the next question, which may stay open for days."""
    for row in connection.execute(
        "SELECT j.name, r.id, q.id AS question FROM runs r JOIN jobs j ON j.id = r.job_id "
        "JOIN runs q ON q.job_id = r.job_id WHERE r.status = 'queued' AND r.reason = 'approval' "
        "AND r.finished_at IS NULL AND q.status = 'waiting' AND q.phase = 'approval' AND q.finished_at IS NULL"
    ):
        raise Broken(
            f"X8: {row['name']} was told to start {row['id']}, and holds it until {row['question']} is answered"
        )


DUE_PATIENCE_MS = 60_000
RUN_PATIENCE_MS = 65 * 60_000  # the longest timeout in the world, and a little


def check_live(connection: Connection, now: int, longest_run_ms: int = RUN_PATIENCE_MS) -> None:
    """Liveness: with the faults over, nothing that is due may be left lying."""
    for row in connection.execute(
        "SELECT j.name, s.due_at FROM job_state s JOIN jobs j ON j.id = s.job_id WHERE s.due_at < ? ORDER BY s.job_id",
        (now - DUE_PATIENCE_MS,),
    ):
        raise Broken(f"{row['name']} has been due for {now - row['due_at']} ms and nothing happens")
    for row in connection.execute(
        "SELECT j.name, r.started_at FROM runs r JOIN jobs j ON j.id = r.job_id "
        "WHERE r.status = 'active' AND r.started_at < ? ORDER BY r.id",
        (now - longest_run_ms,),
    ):
        raise Broken(f"H10: {row['name']} has been running for {now - row['started_at']} ms")


async def see_live(connection: Connection, clock: VirtualClock) -> None:
    """The same; for a moment a sweep puts one back that waits for its lane, so what is found must be there still."""
    try:
        check_live(connection, clock.now())
    except Broken:
        await clock.sleep("5s")
        check_live(connection, clock.now())


class Ledger:
    """What nodes did, as it was first seen: looked at after every commit of every node."""

    def __init__(self) -> None:
        self._ends: dict[int, tuple[str, int]] = {}
        self._drained: dict[int, set[int]] = {}  # what each node held when it began to drain

    def check(self, connection: Connection) -> None:
        self._check_ends(connection)
        self._check_holders(connection)
        self._check_drained(connection)

    def _check_ends(self, connection: Connection) -> None:
        """What was settled is not settled again; a slot is done once, unless a person asked for more."""
        for row in connection.execute("SELECT id, outcome, finished_at FROM runs WHERE finished_at IS NOT NULL"):
            end = (row["outcome"], row["finished_at"])
            if self._ends.setdefault(row["id"], end) != end:
                raise Broken(f"X2: run {row['id']} ended as {self._ends[row['id']][0]}, and then again as {end[0]}")
        for row in connection.execute(
            "SELECT job_id, slot FROM runs WHERE slot IS NOT NULL GROUP BY job_id, slot "
            "HAVING sum(CASE WHEN outcome IN ('success', 'noop') THEN 1 ELSE 0 END) > 1 "
            "AND sum(CASE WHEN reason = 'manual' THEN 1 ELSE 0 END) = 0 ORDER BY job_id, slot"
        ):
            raise Broken(f"H2: slot {row['slot']} of job {row['job_id']} was settled twice")

    @staticmethod
    def _check_holders(connection: Connection) -> None:
        """A node that was taken over holds nothing. A node that left may have left something behind, for a while."""
        for row in connection.execute(
            "SELECT r.id, n.name FROM runs r JOIN nodes n ON n.id = r.node "
            "WHERE r.finished_at IS NULL AND r.status = 'active' AND n.taken_by IS NOT NULL ORDER BY r.id"
        ):
            raise Broken(f"X2: run {row['id']} is held by {row['name']}, which was taken over from")

    def _check_drained(self, connection: Connection) -> None:
        """A draining node starts nothing more."""
        held: dict[int, set[int]] = {}
        for row in connection.execute(
            "SELECT n.id, r.id AS run_id FROM nodes n LEFT JOIN runs r ON r.node = n.id AND r.status = 'active' "
            "AND r.finished_at IS NULL WHERE n.draining = 1 AND n.stopped_at IS NULL ORDER BY n.id, r.id"
        ):
            held.setdefault(row["id"], set()).update(() if row["run_id"] is None else (row["run_id"],))
        for node, runs in held.items():
            if more := runs - self._drained.get(node, runs):
                raise Broken(f"X2: run {min(more)} was started on node {node}, which is being drained")
        self._drained = {node: self._drained.get(node, runs) for node, runs in held.items()}
