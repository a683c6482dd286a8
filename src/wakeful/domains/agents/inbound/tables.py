"""Requests in the store: what came in from outside, once each."""

from __future__ import annotations

import json
from typing import NamedTuple

from wakeful.domains.agents.tables import naming
from wakeful.store.rows import Rows, Verbs, where


class RequestRow(NamedTuple):
    """A request that came in; `body` is None once retention has taken it."""

    id: int
    job_id: int
    type: str
    delivery_id: str | None
    replay_of: int | None
    run_id: int
    at: int
    about: str
    body: str | None
    digest: str | None = None


_ROW = ", ".join(RequestRow._fields)
_CHAT = 'trigger = \'{"type":"chat"}\' AND removed_at IS NULL'


class InboundRequests(Verbs):
    """Verbs on requests; each call is part of the transaction it was made in."""

    _requests = Rows("agent_requests", RequestRow)

    def add(self, row: RequestRow) -> None:
        self._requests.add(row)

    def get(self, number: int) -> RequestRow | None:
        return self._requests.one("WHERE id = ?", number)

    def called(self, job_id: int, delivery_id: str | None, digest: str | None = None) -> RequestRow | None:
        """The request of that schedule which its sender calls so, or of which the same was signed."""
        for column, value in (("delivery_id", delivery_id), ("digest", digest)):
            rest = f"WHERE job_id = ? AND {column} = ?"
            if value is not None and (found := self._requests.one(rest, job_id, value)) is not None:
                return found
        return None

    def newest(self, job_id: int | None, before: int | None, limit: int) -> list[RequestRow]:
        """Requests of one schedule or of all, the newest first."""
        clause, params = where([("job_id = ?", job_id), ("id < ?", before)])
        return self._requests.all(f"{clause} ORDER BY id DESC LIMIT ?", *params, limit)

    def chat_jobs(self, agent: str | None) -> list[int]:
        """The schedules that hear chat messages, by name: of one agent, or of all."""
        condition, values = (" AND payload LIKE ?", (naming(agent),)) if agent is not None else ("", ())
        sql = f"SELECT id, payload FROM jobs WHERE {_CHAT}{condition} ORDER BY name LIMIT 1000"
        rows = self._session.rows(sql, values)
        return [int(number) for number, payload in rows if agent is None or json.loads(payload).get("agent") == agent]

    def prune(self, before: int, ids_before: int, limit: int) -> int:
        """Take the bodies of requests older than `before`, and forget those older than `ids_before`; how many.

        What a run still waits for stays.
        """
        done = "NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = q.run_id AND r.finished_at IS NULL)"
        sql = f"SELECT q.id FROM agent_requests q WHERE q.at < ? AND {done} ORDER BY q.at, q.id LIMIT ?"
        gone = self._column(sql, ids_before, limit)
        if gone:
            self._session.delete_in("agent_requests", "id", gone)
        sql = (
            f"SELECT q.id FROM agent_requests q WHERE q.at < ? AND q.body IS NOT NULL AND {done} "
            "ORDER BY q.at, q.id LIMIT ?"
        )
        emptied = [int(row[0]) for row in self._session.rows(sql, (before, max(0, limit - len(gone))))]
        self._session.update_many("agent_requests", ("id", "body"), [(number, None) for number in emptied])
        return len(gone) + len(emptied)
