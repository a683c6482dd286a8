"""Questions that are answered by priority: the highest first, and within one what has waited longest.

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
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from wakeful.store.alarm_watermark import LOWEST
from wakeful.store.listing import J_COLUMNS, S_COLUMNS
from wakeful.store.records import STATE_COLUMNS

if TYPE_CHECKING:
    from wakeful.store.alarm_watermark import Watermark

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
