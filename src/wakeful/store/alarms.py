"""Alarms: which jobs are due, and when to look again.

Where nodes share the store, a claim waits for every question that it asks. So what is due, its definitions and what
comes after it are one question.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.store import priorities
from wakeful.store.alarm_watermark import LOWEST
from wakeful.store.listing import BOTH, pair_of
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
        sql, params = priorities.due_alone(now, limit)
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
        self, now: int, limit: int, node: priorities.Question | None = None
    ) -> tuple[NodeState, list[tuple[JobDef, JobState]]]:
        watermark, ahead, standing = self._session.watermark, None, NodeState()
        if watermark is not None and watermark.crowded:
            taken = self._locked(*priorities.due_crowd(watermark, now, limit, self._session.skip_clause))
        else:
            standing, taken, ahead = self._due_and_ahead(now, limit, node)
        self._emptied_at = now if len(taken) < limit else None
        self._ahead = None
        if watermark is not None:
            watermark.asked(crowded=len(taken) > priorities.FEW)
            if ahead is not None:
                self._ahead = self._after(ahead, Counter(state.priority for _, state in taken), watermark)
        taken.sort(key=_by_priority)
        return standing, taken

    def _due_and_ahead(
        self, now: int, limit: int, node: priorities.Question | None
    ) -> tuple[NodeState, list[tuple[JobDef, JobState]], list[_Level] | None]:
        """The standing of the node, if one is named; what is due, and what comes then, if that is all."""
        watermark, standing = self._session.watermark, NodeState()
        rows = self._session.rows(*priorities.due_shared(watermark, now, limit, self._session.skip_clause, node))
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
            rows = self._session.rows(*priorities.first_alarms(watermark))
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
