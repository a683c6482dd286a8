"""Lanes in the store: how much of each bounded lane is taken, on all nodes together, how much there is, who is next.

A lane is as wide as the smallest size any of its jobs gives, so no job widens a lane that another bounded. That size
lies with the lane, and follows when a job is added, changed or removed: a claim reads it with the count.

A transaction that reads a lane to decide, or changes one, locks the lanes until it ends. With less, two nodes
could fill one place; or a job could be parked on a lane that another node has just freed, and nothing would wake it.

A job that needs several lanes and is parked on one of them reserves a place in each that it found before that one. A
reservation counts while its job waits, unless higher priorities keep it from that lane. It takes nothing: it only says
who goes before whom.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.store.rows import Verbs

if TYPE_CHECKING:
    from wakeful.store.owners import Owned

#: Whether a job `s` still waits for the lanes that it needs besides those it reserves.
_WAITS = "s.run_id IS NULL AND s.ready_at IS NOT NULL AND (s.parked IS NOT NULL OR s.due_at <= ?)"
_CONTESTED = (
    "EXISTS (SELECT 1 FROM job_state WHERE parked = lanes.key) "
    "OR EXISTS (SELECT 1 FROM lane_reservations WHERE lane = lanes.key)"
)
_IN_LINE = "ORDER BY priority DESC, ready_at, job_id"


class Load(NamedTuple):
    """How full a lane is."""

    used: int
    size: int | None  # None where no job bounds it
    contested: bool  # whether a job waits for it, or reserves a place in it
    length: int | None = None  # how long its runs usually take; None while none has ended


class Waiter(NamedTuple):
    """A job that is to get a place in a lane; in their order, the first goes first."""

    precedence: int  # the priority, negated
    since: int
    job_id: int
    parked: bool = True  # on this very lane; else it reserves a place in it and waits for another


class Lanes(Verbs):
    """Verbs on lanes; each call is part of the transaction it was made in."""

    def used(self, keys: Sequence[str]) -> dict[str, int]:
        """How much of each lane is taken; a lane that was never used is 0."""
        return {key: load.used for key, load in self.loads(keys).items()}

    def loads(self, keys: Sequence[str]) -> dict[str, Load]:
        """How full each lane is."""
        found = dict.fromkeys(keys, Load(0, None, contested=False))
        columns, asked = ("key", "used", "size", _CONTESTED, "length"), sorted(found)
        for key, *load in self._session.select_serialized("lanes", columns, "lanes", "key", asked):
            used, size, contested, length = load
            found[str(key)] = Load(int(used), size, bool(contested), length)
        return found

    def busiest(self, limit: int) -> list[tuple[str, int, int | None]]:
        """Lanes of which something is taken, and bounded ones: each with what is used of it and its size."""
        sql = "SELECT key, used, size FROM lanes WHERE used > 0 OR size IS NOT NULL ORDER BY used DESC, key LIMIT ?"
        return [(str(key), int(used), size) for key, used, size in self._session.rows(sql, (limit,))]

    def holds_others(self, lane: str, owned: Owned) -> bool:
        """Whether a job is in the lane that is not one of these."""
        condition, values = owned.condition("j")
        sql = (
            f"SELECT 1 FROM lane_sizes l JOIN jobs j ON j.id = l.job_id WHERE l.lane = ? AND NOT ({condition}) LIMIT 1"
        )
        return bool(self._session.rows(sql, (lane, *values)))

    def waiters(self, lane: str, now: int, limit: int) -> list[Waiter]:
        """The first that are to get a place: those parked on the lane, and those that reserve one in it.

        A reservation counts while its job may hope for the lane it is parked on.
        """
        parked = f"SELECT priority, ready_at, job_id, 1 AS here FROM job_state WHERE parked = ? {_IN_LINE} LIMIT ?"
        hopeful, values = self._hopeful(lane)
        reserving = (
            "SELECT s.priority, s.ready_at, s.job_id, 0 AS here FROM lane_reservations r "
            f"JOIN job_state s ON s.job_id = r.job_id WHERE r.lane = ? AND {_WAITS} AND ({hopeful})"
        )
        sql = f"SELECT * FROM ({parked}) p UNION ALL SELECT * FROM ({reserving}) r {_IN_LINE} LIMIT ?"
        rows = self._session.rows(sql, (lane, limit, lane, now, *values, limit))
        return [Waiter(-priority, since or 0, job_id, bool(here)) for priority, since, job_id, here in rows]

    def _hopeful(self, lane: str) -> tuple[str, list[object]]:
        """The condition that a job `s`, which reserves a place in the lane, may hope for the one it is parked on.

        It may not while as many of higher priority wait there as that lane holds.
        """
        others = self._session.rows(
            "SELECT DISTINCT s.parked, l.size FROM lane_reservations r JOIN job_state s ON s.job_id = r.job_id "
            "LEFT JOIN lanes l ON l.key = s.parked WHERE r.lane = ? AND s.parked IS NOT NULL",
            (lane,),
        )
        conditions, values = ["s.parked IS NULL"], list[object]()
        for other, size in others:
            last = f"SELECT priority FROM job_state WHERE parked = ? {_IN_LINE} LIMIT 1 OFFSET ?"
            found = self._session.rows(last, (other, (size or 1) - 1))
            conditions.append("s.parked = ?" + (" AND s.priority >= ?" if found else ""))
            values += [other, *(found[0] if found else ())]
        return " OR ".join(conditions), values

    def reserve(self, jobs: Mapping[int, Sequence[str]]) -> None:
        """These jobs reserve a place in each of these lanes, and in no others."""
        if jobs:
            self._session.delete_in("lane_reservations", "job_id", sorted(jobs))
            rows = [(lane, job_id) for job_id, lanes in sorted(jobs.items()) for lane in lanes]
            if rows:
                self._session.insert_many("lane_reservations", ("lane", "job_id"), rows)

    def drop_reservations(self, now: int) -> set[str]:
        """Forget what jobs reserve that do not wait any more; the lanes in which places may be free by that."""
        if not self._session.rows("SELECT 1 FROM lane_reservations LIMIT 1"):
            return set()
        self._session.serialize("lanes")
        waits = f"EXISTS (SELECT 1 FROM job_state s WHERE s.job_id = lane_reservations.job_id AND {_WAITS})"
        sql = f"DELETE FROM lane_reservations WHERE NOT {waits} RETURNING lane"
        return set(self._column(sql, now))

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
        """Take jobs out of their lanes; the lanes in which others may start by that, with how many."""
        left = self._session.select_in(("job_id", "lane"), "lane_sizes", "job_id", job_ids)
        if not left:
            return {}
        self._session.serialize("lanes")
        reserved = self._session.select_in(("lane",), "lane_reservations", "job_id", job_ids)
        self.reserve(dict.fromkeys(job_ids, ()))
        for job_id in sorted({row[0] for row in left}):
            self._session.execute("DELETE FROM lane_sizes WHERE job_id = ?", (job_id,))
        before = self.loads(sorted({str(lane) for _, lane in left}))
        wider = {str(lane): 1 for (lane,) in reserved}  # where nobody is in the way now
        for lane, (used, old, _, _) in before.items():
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

    def free(self, lengths: Mapping[str, Sequence[int]]) -> None:
        """Free a place for every run that ended, and note how long they took."""
        rows = [(key, -len(took), sum(took) // len(took)) for key, took in sorted(lengths.items()) if took]
        if rows:
            self._session.serialize("lanes")
            conflict = (
                "ON CONFLICT (key) DO UPDATE SET used = lanes.used + excluded.used, length = "
                "CASE WHEN lanes.length IS NULL THEN excluded.length ELSE (3 * lanes.length + excluded.length) / 4 END"
            )
            self._session.insert_soon("lanes", ("key", "used", "length"), rows, conflict)

    def tidy(self) -> None:
        """Forget the lanes that no job has and no run holds, such as those of sessions that are over."""
        if self._session.rows("SELECT 1 FROM lanes WHERE size IS NULL AND used = 0 LIMIT 1"):
            self._session.serialize("lanes")
            self._session.execute(f"DELETE FROM lanes WHERE size IS NULL AND used = 0 AND NOT ({_CONTESTED})")

    def all(self) -> dict[str, int]:
        return {str(key): int(used) for key, used in self._session.rows("SELECT key, used FROM lanes ORDER BY key")}

    def reset(self, used: Mapping[str, int]) -> None:
        """Make the counts those given; only while no other node runs."""
        self._session.serialize("lanes")
        self._session.execute("UPDATE lanes SET used = 0")
        self._session.execute("DELETE FROM lanes WHERE size IS NULL")
        self.add(used)
