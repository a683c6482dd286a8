"""Alarms: which jobs are due, and when to look again.

Where nodes share the store, a claim waits for every question that it asks. So what is due, its definitions and what
comes after it are one question.

Questions about what is due are answered by priority: the highest first, and within one what has waited longest.
There are few priorities, and the table `priorities` holds each that a job ever had, as a level. A question is put to
one level after the other, from the highest on, all in one statement that ends with its answer; the indexes begin with
the priority, so each level's part is read in its order. This costs an index entry per level, however many jobs there
are of any.

Levels are not derived from the alarms that are set: while a session holds a snapshot open, PostgreSQL keeps the entries
of alarms that were cleared, and looking for the next level would walk over those of the one before. From a table that
hardly changes, each level is asked from its own watermark (see `alarm_watermark.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from wakeful.store.alarm_watermark import LOWEST
from wakeful.store.listing import BOTH, J_COLUMNS, S_COLUMNS, pair_of
from wakeful.store.nodes import standing_of, standing_sql
from wakeful.store.records import JOB_COLUMNS, STATE_COLUMNS, JobDef, JobState, NodeState
from wakeful.store.rows import Verbs

if TYPE_CHECKING:
    from wakeful.store.alarm_watermark import Watermark
    from wakeful.store.session import Session


#: What is due but in another node's hands is looked at again after this long.
LOOK_AGAIN_MS = 5
#: Nodes look by themselves more often than this, also without notifications.
NEAR_MS = 3_000


_NODE_STATE = len(NodeState._fields)
#: A priority, how many of its jobs are due, and the first alarm after these.
_Level = tuple[int, int, int | None]


class Alarms(Verbs):
    """Questions about alarms; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._emptied_at: int | None = None  # when `due` gave all that was there to have
        self._ahead: dict[int, int | None] | None = None  # and what comes after that, by priority

    def due(self, now: int, limit: int) -> list[tuple[JobDef, JobState]]:
        """The jobs whose alarm has passed, at most `limit`; none that another node looks at.

        By priority, the highest first, and within one by the oldest alarm.
        """
        if not self._session.exclusive:
            return self._due_shared(now, limit)[1]
        sql, params = due_alone(now, limit)
        found = [pair_of(row) for row in self._session.bulk(BOTH, f"({sql}) s JOIN jobs j ON j.id = s.job_id", params)]
        found.sort(key=_by_priority)
        return found

    def due_for(
        self, node_id: int, now: int, limit: int, *, parked: bool
    ) -> tuple[NodeState, list[tuple[JobDef, JobState]]]:
        """A node's standing, and what is `due` if it may claim; `parked`: the standing also says whether any job is."""
        sql = standing_sql(self._session.lock_clause, parked=parked)
        watermark = self._session.watermark
        if not self._session.exclusive and (watermark is None or not watermark.crowded):
            return self._due_shared(now, limit, (sql, (node_id,)))
        found = self._session.rows(sql, (node_id,))
        standing = standing_of(found[0] if found else None)
        return standing, self.due(now, limit) if standing.draining is False else []

    def _due_shared(
        self, now: int, limit: int, node: Question | None = None
    ) -> tuple[NodeState, list[tuple[JobDef, JobState]]]:
        watermark, ahead, standing = self._session.watermark, None, NodeState()
        if watermark is not None and watermark.crowded:
            taken = self._locked(*due_crowd(watermark, now, limit, self._session.skip_clause))
        else:
            standing, taken, ahead = self._due_and_ahead(now, limit, node)
        self._emptied_at = now if len(taken) < limit else None
        self._ahead = None
        if watermark is not None:
            watermark.asked(crowded=len(taken) > FEW)
            if ahead is not None:
                self._ahead = self._after(ahead, Counter(state.priority for _, state in taken), watermark)
        taken.sort(key=_by_priority)
        return standing, taken

    def _due_and_ahead(
        self, now: int, limit: int, node: Question | None
    ) -> tuple[NodeState, list[tuple[JobDef, JobState]], list[_Level] | None]:
        """The standing of the node, if one is named; what is due, and what comes then, if that is all."""
        watermark, standing = self._session.watermark, NodeState()
        rows = self._session.rows(*due_shared(watermark, now, limit, self._session.skip_clause, node))
        if node is not None:
            standing = standing_of(rows[0] if rows else None)
            rows = [row[_NODE_STATE:] for row in rows]
        if not rows:
            return standing, [], None
        first = len(STATE_COLUMNS) + 1
        found = [row for row in rows if row[1] is not None]
        states = [tuple.__new__(JobState, row[1:first]) for row in found]  # as in `pair_of`
        # A state that was changed after the question was put is found as it is now, and its definition as it was then.
        known = [row[-1] == state.revision for row, state in zip(found, states, strict=True)]
        read = self.definitions([state.job_id for state, is_known in zip(states, known, strict=True) if not is_known])
        taken = [
            (tuple.__new__(JobDef, row[first:-1]) if is_known else read[state.job_id], state)
            for row, state, is_known in zip(found, states, known, strict=True)
        ]
        return standing, taken, json.loads(rows[0][0]) if rows[0][0] is not None else None

    @staticmethod
    def _after(ahead: Sequence[_Level], taken: Counter[int], watermark: Watermark) -> dict[int, int | None]:
        """Of each priority the first alarm after what was taken, at the latest."""
        # What is due and was not taken is in the hands of others, anywhere above the watermark.
        return {
            level: watermark.since.get(level, LOWEST) if due > taken[level] else later for level, due, later in ahead
        }

    def next_alarm(self, *, claimed: bool = False) -> int | None:
        """When the engine must look again; None when nothing is armed.

        `claimed`: what `due` gave has been written since. Then its answer and what was armed after it are enough, and a
        claim, which waits for every question, need not ask one more.
        """
        due_at = self._first_alarm(self._ahead if claimed else None)
        if due_at is None:
            return None
        # What is overdue after everything was taken belongs to another node: asking again at once would only spin.
        if self._emptied_at is None or due_at > self._emptied_at:
            return due_at
        return self._emptied_at + LOOK_AGAIN_MS

    def look_below(self) -> None:
        """Other processes wrote: from here on, see also what they armed for times long past."""
        watermark = self._session.watermark
        if watermark is not None and watermark.wants_look():
            found = self._session.first_alarm_below()
            if found is not None:
                watermark.armed(found)

    def _first_alarm(self, found: dict[int, int | None] | None) -> int | None:
        watermark, armed = self._session.watermark, None
        if found is not None and watermark is not None:
            armed = watermark.armed_since
        else:
            rows = self._session.rows(*first_alarms(watermark))
            found = {int(level): due_at for level, due_at in rows}
        self._ahead = None
        if watermark is not None:
            watermark.first(found, self._session.now)
        if watermark is not None and armed is not None:
            watermark.armed(armed)
        return min((due_at for due_at in (*found.values(), armed) if due_at is not None), default=None)

    def ahead_of(self, now: int, cursor: int, limit: int) -> list[tuple[JobDef, JobState]]:
        """Jobs with an alarm, a slot or a place in a line from after `now`, by id from `cursor`: for when the clock
        went back.
        """
        where = "job_id > ? AND (due_at > ? OR next_at > ? OR ready_at > ?) ORDER BY job_id LIMIT ?"
        params = (cursor, now, now, now, limit)
        if not self._session.exclusive:
            sql = f"SELECT {', '.join(STATE_COLUMNS)} FROM job_state WHERE {where}{self._session.lock_clause}"
            return self._locked(sql, params)
        source = f"(SELECT * FROM job_state WHERE {where}) s JOIN jobs j ON j.id = s.job_id"
        found = [pair_of(row) for row in self._session.bulk(BOTH, source, params)]
        found.sort(key=_by_id)
        return found

    def _locked(self, sql: str, params: tuple[object, ...]) -> list[tuple[JobDef, JobState]]:
        """Lock states first and read their definitions after: so both are of one moment.

        One joined statement would wait for a lock and then pair the state it finds with a definition from before.
        """
        states = [JobState._make(row) for row in self._session.rows(sql, params)]
        definitions = self.definitions([state.job_id for state in states]) if states else {}
        return [(definitions[state.job_id], state) for state in states]

    def definitions(self, job_ids: Sequence[int]) -> dict[int, JobDef]:
        rows = self._session.select_in(JOB_COLUMNS, "jobs", "id", job_ids) if job_ids else []
        return {row[0]: tuple.__new__(JobDef, row) for row in rows}  # as in `pair_of`


def _by_priority(pair: tuple[JobDef, JobState]) -> tuple[int, int, int]:
    state = pair[1]
    return (-state.priority, state.due_at or 0, state.job_id)


def _by_id(pair: tuple[JobDef, JobState]) -> int:
    return pair[1].job_id


Question = tuple[str, tuple[object, ...]]
"""A statement, or a part of one, and its parameters."""

#: So many jobs are claimed with one question. To look up their states twice costs more than another for many.
FEW = 16
OVERDUE = (
    "SELECT sum((SELECT count(*) FROM job_state WHERE priority = p.level AND due_at IS NOT NULL AND due_at <= ?)) "
    "FROM priorities p"
)


def levels(watermark: Watermark | None) -> Question:
    """All levels, and since when each can have alarms."""
    if watermark is None:
        return "SELECT level, CAST(? AS bigint) AS since FROM priorities", (LOWEST,)
    since = "coalesce(CAST(CAST(? AS jsonb) ->> CAST(level AS text) AS bigint), ?)"
    return f"SELECT level, {since} AS since FROM priorities", (json.dumps(watermark.since), LOWEST)


def first_alarms(watermark: Watermark | None) -> Question:
    """Each level, and its first alarm."""
    source, params = levels(watermark)
    first = (
        "SELECT due_at FROM job_state WHERE due_at IS NOT NULL AND priority = p.level AND due_at >= p.since "
        "ORDER BY due_at, job_id LIMIT 1"
    )
    return f"SELECT p.level, ({first}) FROM ({source}) p", params


def due_alone(now: int, limit: int) -> Question:
    """The states that are due, where no other process can write."""
    # CROSS JOIN keeps the levels outside: so the rows come in order, and no more are read than are wanted.
    sql = (
        "SELECT s.* FROM priorities p CROSS JOIN job_state s WHERE s.priority = p.level AND s.due_at IS NOT NULL "
        "AND s.due_at <= ? ORDER BY p.level DESC, s.due_at, s.job_id LIMIT ?"
    )
    return sql, (now, limit)


def due_shared(
    watermark: Watermark | None, now: int, limit: int, skip_clause: str, node: Question | None = None
) -> Question:
    """The jobs that are due and not locked, to be locked one by one until there are enough; and what comes after them.

    Each row has, as JSON, of every level how many of its jobs are due and its first alarm after that, if these are all
    that are left; the state of a job; if there are few, its definition, and the revision of the state that this
    definition goes with. If nothing is due, there is one row, without a job.

    `node` asks for the standing of the node that claims. It comes first in each row, a node that is draining takes no
    jobs, and there is no row if there is no such node.
    """
    source, params = levels(watermark)
    sql = _due_sql(source, skip_clause, node[0] if node is not None else None)
    return sql, (*(node[1] if node is not None else ()), *params, now, limit, limit, now, limit, now, *params, limit)


def due_crowd(watermark: Watermark | None, now: int, limit: int, skip_clause: str) -> Question:
    """The same states and nothing else, which is cheaper where many are due."""
    source, params = levels(watermark)
    return _taken_sql(source, skip_clause), (*params, now, limit, limit)


#: Compared as rows, which the order is read from: of plain conditions the server expects so few rows that it would
#: rather read and sort them all.
_IS_DUE = (
    "due_at IS NOT NULL AND (priority, due_at, job_id) > (p.level, p.since, -1) "
    "AND (priority, due_at) <= (p.level, ?) ORDER BY priority, due_at, job_id LIMIT ?"
)


def _taken_sql(source: str, skip_clause: str) -> str:
    one = f"SELECT {', '.join(STATE_COLUMNS)} FROM job_state WHERE {_IS_DUE}{skip_clause}"
    return f"SELECT s.* FROM ({source} ORDER BY level DESC) p CROSS JOIN LATERAL ({one}) s LIMIT ?"


@lru_cache(maxsize=8)
def _due_sql(source: str, skip_clause: str, node: str | None) -> str:
    due = f"SELECT count(*) FROM (SELECT 1 FROM job_state WHERE {_IS_DUE}) d"
    later = (
        "SELECT due_at FROM job_state WHERE due_at IS NOT NULL AND priority = p.level AND due_at > ? "
        "ORDER BY due_at, job_id LIMIT 1"
    )
    ahead = (
        f"SELECT json_agg(json_build_array(p.level, ({due}), ({later})))::text AS ahead FROM ({source}) p "
        "WHERE (SELECT count(*) FROM taken) < ?"
    )
    few = f"(SELECT count(*) FROM taken) <= {FEW}"
    # The node's row is locked before any job's: the levels, which are sorted first, are read only where it admits.
    me = f"me AS MATERIALIZED ({node}), " if node is not None else ""
    admitting = f"{source} WHERE EXISTS (SELECT 1 FROM me WHERE draining = 0)" if node is not None else source
    return (
        f"WITH {me}taken AS MATERIALIZED ({_taken_sql(admitting, skip_clause)}) "
        f"SELECT {'me.*, ' if me else ''}a.ahead, {', '.join(S_COLUMNS)}, {', '.join(J_COLUMNS)}, seen.revision "
        f"FROM {'me CROSS JOIN ' if me else ''}({ahead}) a LEFT JOIN taken s ON true "
        f"LEFT JOIN jobs j ON j.id = s.job_id AND {few} LEFT JOIN job_state seen ON seen.job_id = s.job_id AND {few}"
    )


def parked_alone(columns: Sequence[str], key: str, since: int, limit: int) -> Question:
    """Jobs `j` with their states `s` that have waited for `key` since that time or longer, in the order they go."""
    sql = (
        f"SELECT {', '.join(columns)} FROM priorities p CROSS JOIN job_state s CROSS JOIN jobs j WHERE j.id = s.job_id "
        "AND s.parked = ? AND s.priority = p.level AND s.ready_at <= ? "
        "ORDER BY p.level DESC, s.ready_at, s.job_id LIMIT ?"
    )
    return sql, (key, since, limit)


def parked_shared(columns: Sequence[str], key: str, since: int, limit: int) -> Question:
    """The same on a server, which would sort all that wait if it were not asked level by level."""
    one = (
        f"SELECT {', '.join(columns)} FROM job_state s JOIN jobs j ON j.id = s.job_id WHERE s.parked = ? "
        "AND s.priority = p.level AND s.ready_at <= ? ORDER BY s.ready_at, s.job_id LIMIT ?"
    )
    sql = f"SELECT x.* FROM (SELECT level FROM priorities ORDER BY level DESC) p CROSS JOIN LATERAL ({one}) x LIMIT ?"
    return sql, (key, since, limit, limit)


def first_below(watermark: Watermark) -> Question:
    """The first alarm below the watermarks, read in the cheapest order."""
    source, params = levels(watermark)
    # The sum keeps the server from asking for the first in the order of the index.
    one = "SELECT min(due_at + 0) FROM job_state WHERE due_at IS NOT NULL AND priority = p.level AND due_at < p.since"
    return f"SELECT min(({one})) FROM ({source}) p", params
