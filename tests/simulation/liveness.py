"""Liveness: an enabled job starts when its trigger says, whatever happened and however the clock was set.

A job is watched while nothing speaks against its start: it is enabled, idle, in no line, and not held back after an
error. Whatever changes about it, and whatever happens to the process or to the clock, begins the watch anew. From then
on its next slot that was not run must not pass.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import NamedTuple

from tests.simulation.invariants import Broken, Connection, Row
from wakeful.kernel.rules.policy import FLOOR_MS, trigger_of

RHYTHMS = ("every", "cron", "interval")
SLACK_MS = 130_000  # a loop sleeps a minute at most, and a sweep that finds what is left comes every minute
MOST_SLOTS = 20_000
#: What changes about a job when something becomes of a slot; a kind that refuses a start takes its slot, too.
CHANGING = ("revision", "last_run_id", "counted_to", "missed", "backoff_until", "refused")


class Watched(NamedTuple):
    """What is known of a job that may start, and since when."""

    known: tuple[object, ...]
    since: int


class Liveness:
    """The jobs of one world that may start; `begun` says whether a job's slot was run."""

    def __init__(self, begun: Callable[[int, int], bool]) -> None:
        self._begun = begun
        self._watched: dict[int, Watched] = {}
        self._life: object = None

    def check(self, connection: Connection, now: int, life: object) -> None:
        """At any moment; `life` is another thing once the process or the clock was disturbed."""
        if life != self._life:
            self._watched, self._life = {}, life
        rows = connection.execute(
            "SELECT s.*, j.name, j.trigger, j.removed_at, "
            "(SELECT sum(times) FROM skips k WHERE k.job_id = s.job_id) AS refused "
            "FROM job_state s JOIN jobs j ON j.id = s.job_id ORDER BY s.job_id"
        ).fetchall()
        watched: dict[int, Watched] = {}
        for row in rows:
            if not may_start(row, now):
                continue
            known = tuple(row[name] for name in CHANGING)
            before = self._watched.get(row["job_id"])
            watched[row["job_id"]] = before if before is not None and before.known == known else Watched(known, now)
            self._check_one(row, watched[row["job_id"]].since, now)
        self._watched = watched

    def _check_one(self, row: Row, since: int, now: int) -> None:
        latest = self._latest_start(row, since, now)
        if latest is not None and latest + SLACK_MS < now:
            raise Broken(
                f"X31: {row['name']} may start since {since}, should have by {latest}, and has not by {now}; "
                f"it is armed for {row['due_at']}"
            )

    def _latest_start(self, row: Row, since: int, now: int) -> int | None:
        """When it starts at the latest, if that is not after now."""
        trigger = trigger_of(row["trigger"])
        if trigger.relative:
            return since + (trigger.min_gap_ms() or 0)
        last = row["last_slot"]
        after = since if last is None or last > since else max(since, last + FLOOR_MS - 1)
        slot = trigger.next_slot(after)
        if last is not None and last > since and slot is not None and slot >= last:
            slot = trigger.next_slot(last + FLOOR_MS - 1)  # silent until the last one has passed again
        for _ in range(MOST_SLOTS):
            if slot is None or slot > now:
                return None
            if not self._begun(row["job_id"], slot):
                return slot + (trigger.period_at(slot) or 0) // 10  # jitter
            slot = trigger.next_slot(slot)
        return None


def may_start(row: Row, now: int) -> bool:
    """Whether nothing but its time stands against a start."""
    if json.loads(row["trigger"])["type"] not in RHYTHMS or row["removed_at"] is not None:
        return False
    stopped = not row["enabled"] or row["paused"] or row["run_id"] is not None
    waits = row["parked"] is not None or row["ready_at"] is not None or row["queued"]
    return not stopped and not waits and (row["backoff_until"] is None or row["backoff_until"] <= now)
