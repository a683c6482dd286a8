"""Proposals in the store: jobs that their owner asked for over MCP, and which of them wait for a person's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from wakeful.store.rows import Verbs


class Proposal(NamedTuple):
    """A job that its owner asked for."""

    job_id: int
    asked_by: str
    asked_in: int | None
    asked_at: int
    hops: int = 0
    outside: int = 0
    written: str = ""  # a digest of the definition as its owner left it
    run_id: int | None = None  # the run that waits for approval
    expires_at: int | None = None  # until when it waits


_COLUMNS = ", ".join(Proposal._fields)
_CHANGED = ", ".join(f"{name} = excluded.{name}" for name in Proposal._fields[1:])


class Proposals(Verbs):
    """Verbs on proposals; each call is part of the transaction it was made in."""

    def put(self, proposal: Proposal) -> None:
        """Store it, in place of an earlier one of the same job."""
        self._session.insert_many(
            "proposals", Proposal._fields, [proposal], f"ON CONFLICT (job_id) DO UPDATE SET {_CHANGED}"
        )

    def of(self, job_ids: Sequence[int]) -> dict[int, Proposal]:
        """Those of these jobs, by job."""
        rows = self._session.select_in(Proposal._fields, "proposals", "job_id", list(job_ids)) if job_ids else []
        return {int(row[0]): Proposal._make(row) for row in rows}

    def late(self, now: int, limit: int) -> list[Proposal]:
        """Those that have waited for an answer for too long."""
        sql = f"SELECT {_COLUMNS} FROM proposals WHERE run_id IS NOT NULL AND expires_at <= ? ORDER BY job_id LIMIT ?"
        return [Proposal._make(row) for row in self._session.rows(sql, (now, limit))]
