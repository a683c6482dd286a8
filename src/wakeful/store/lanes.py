"""Lanes in the store: how much of each bounded lane is taken, on all nodes together, and how much there is.

A lane is as wide as the smallest size any of its jobs gives, so no job widens a lane that another bounded. That size
lies with the lane, and follows when a job is added, changed or removed: a claim reads it with the count.

A transaction that reads a lane to decide, or changes one, locks the lanes until it ends. With less, two nodes
could fill one place; or a job could be parked on a lane that another node has just freed, and nothing would wake it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.store.session import Session


class Lanes:
    """Verbs on lanes; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def used(self, keys: Sequence[str]) -> dict[str, int]:
        """How much of each lane is taken; a lane that was never used is 0."""
        return {key: used for key, (used, _) in self.sizes(keys).items()}

    def sizes(self, keys: Sequence[str]) -> dict[str, tuple[int, int | None]]:
        """(how much is taken, how much there is) of each lane; the second is None where no job bounds it."""
        found: dict[str, tuple[int, int | None]] = dict.fromkeys(keys, (0, None))
        columns, asked = ("key", "used", "size"), sorted(found)
        for key, used, size in self._session.select_serialized("lanes", columns, "lanes", "key", asked):
            found[str(key)] = (int(used), size)
        return found

    def enter(self, jobs: Mapping[int, Mapping[str, int]]) -> None:
        """New jobs are in these lanes, each with the size it gives; a lane becomes no wider by it."""
        rows = [(job_id, lane, size) for job_id, lanes in jobs.items() for lane, size in lanes.items()]
        if not rows:
            return
        self._session.serialize("lanes")
        self._session.insert_many("lane_sizes", ("job_id", "lane", "size"), rows)
        smallest: dict[str, int] = {}
        for _, lane, size in rows:
            smallest[lane] = min(size, smallest.get(lane, size))
        conflict = (
            "ON CONFLICT (key) DO UPDATE SET size = "
            "CASE WHEN lanes.size < excluded.size THEN lanes.size ELSE excluded.size END"
        )
        counted = [(lane, 0, smallest[lane]) for lane in sorted(smallest)]
        self._session.insert_many("lanes", ("key", "used", "size"), counted, conflict)

    def leave(self, job_ids: Sequence[int]) -> dict[str, int]:
        """Take jobs out of their lanes; the lanes that become wider, with how many may start in each."""
        left = self._session.select_in(("job_id", "lane"), "lane_sizes", "job_id", job_ids)
        if not left:
            return {}
        self._session.serialize("lanes")
        for job_id in sorted({row[0] for row in left}):
            self._session.execute("DELETE FROM lane_sizes WHERE job_id = ?", (job_id,))
        before = self.sizes(sorted({str(lane) for _, lane in left}))
        wider = {}
        for lane, (used, old) in before.items():
            found = self._session.rows("SELECT size FROM lane_sizes WHERE lane = ? ORDER BY size LIMIT 1", (lane,))
            size = int(found[0][0]) if found else None
            if size == old:
                continue
            self._session.execute("UPDATE lanes SET size = ? WHERE key = ?", (size, lane))
            if size is None:
                self._session.execute("DELETE FROM lanes WHERE key = ? AND used = 0", (lane,))
            elif size > used:
                wider[lane] = size - used
        return wider

    def add(self, changes: Mapping[str, int]) -> None:
        """Take (positive) or free (negative) places, in the order of the keys."""
        rows = [(key, change) for key, change in sorted(changes.items()) if change]
        if rows:
            self._session.serialize("lanes")
            conflict = "ON CONFLICT (key) DO UPDATE SET used = lanes.used + excluded.used"
            self._session.insert_soon("lanes", ("key", "used"), rows, conflict)

    def all(self) -> dict[str, int]:
        return {str(key): int(used) for key, used in self._session.rows("SELECT key, used FROM lanes ORDER BY key")}

    def reset(self, used: Mapping[str, int]) -> None:
        """Make the counts those given; only while no other node runs."""
        self._session.serialize("lanes")
        self._session.execute("UPDATE lanes SET used = 0")
        self._session.execute("DELETE FROM lanes WHERE size IS NULL")
        self.add(used)
