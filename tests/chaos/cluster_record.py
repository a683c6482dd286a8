"""What a PostgreSQL store has on record, read once and plainly: its jobs, runs, nodes, and the order of its events.

Events become visible in the order of their numbers, so they show which of two changes came first without any clock.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import NamedTuple

import psycopg

from wakeful import ids


class RecordedRun(NamedTuple):
    """A row of runs, times in seconds."""

    id: str
    job: str
    slot: float | None
    attempt: int
    retry_of: str | None
    status: str
    outcome: str | None
    due_at: float
    started_at: float | None
    finished_at: float | None
    node: int | None


class RecordedNode(NamedTuple):
    """An incarnation of a node; `ended` by itself, or by `taken_by` when that is not None."""

    id: int
    name: str
    pid: int
    labels: frozenset[str]
    began: float
    seen: float
    ended: float | None
    taken_by: int | None


class RecordedJob(NamedTuple):
    """What a job asked for, and where it stands."""

    name: str
    labels: frozenset[str]
    lanes: dict[str, int]
    enabled: bool
    notes: str


@dataclass
class Record:
    """The whole of it."""

    jobs: dict[str, RecordedJob] = field(default_factory=dict)
    runs: dict[str, RecordedRun] = field(default_factory=dict)
    nodes: dict[int, RecordedNode] = field(default_factory=dict)
    events: list[tuple[str, str]] = field(default_factory=list)  # ("started" or "finished", run), in order
    lanes_left: dict[str, int] = field(default_factory=dict)  # places still taken

    def taken_over(self, run: RecordedRun) -> RecordedNode | None:
        """The node whose death others declared, if this run ended by that."""
        node = self.nodes.get(run.node) if run.node is not None else None
        return node if run.outcome == "crashed" and node is not None and node.taken_by is not None else None


def read_record(url: str) -> Record:
    with psycopg.connect(url) as connection:
        names = dict(connection.execute("SELECT id, name FROM jobs").fetchall())
        record = Record()
        for name, options, enabled, notes in connection.execute(
            "SELECT name, options, enabled, notes FROM jobs JOIN job_state ON job_id = id"
        ):
            asked = json.loads(options)
            record.jobs[name] = RecordedJob(
                name, frozenset(asked.get("labels", ())), dict(asked.get("lanes", ())), bool(enabled), notes or ""
            )
        rows = connection.execute(
            "SELECT id, job_id, slot, attempt, retry_of, status, outcome, due_at, started_at, finished_at, node "
            "FROM runs ORDER BY id"
        )
        for number, job, slot, attempt, retry_of, status, outcome, due, started, finished, node in rows:
            run = RecordedRun(
                ids.run_text(number), names[job], _seconds(slot), attempt, ids.run_text(retry_of) if retry_of else None,
                status, outcome, due / 1000, _seconds(started), _seconds(finished), node,
            )  # fmt: skip
            record.runs[run.id] = run
        for number, name, began, seen, ended, taken_by, details in connection.execute(
            "SELECT id, name, started_at, seen_at, stopped_at, taken_by, details FROM nodes ORDER BY id"
        ):
            about = json.loads(details)
            labels = frozenset(about.get("labels", ()))
            record.nodes[number] = RecordedNode(
                number, name, about["pid"], labels, began / 1000, seen / 1000, _seconds(ended), taken_by
            )
        for (body,) in connection.execute("SELECT body FROM events WHERE stream = 'run' ORDER BY seq"):
            record.events += [
                (event["type"], ids.run_text(event["run"]))
                for event in json.loads(body)
                if event["type"] in ("started", "finished")
            ]
        record.lanes_left = dict(connection.execute("SELECT key, used FROM lanes WHERE used <> 0").fetchall())
    return record


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000
