"""Whose a job is. A token and an agent of one name are two owners, told apart by the kind of the job.

Who paused or disabled a job that has an owner, for as long as it is stopped; and the jobs that their owner asked for
over MCP, and which of them wait for a person's answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.store.rows import Verbs

if TYPE_CHECKING:
    from wakeful.store.records import JobDef


class Owned(NamedTuple):
    """The jobs of one owner."""

    owner: str
    kind: str | None = None  # they are of this kind …
    apart: tuple[str, ...] = ()  # … or of none of these, whose jobs have owners of their own
    source: str | None = None  # and were made there

    def has(self, job: JobDef) -> bool:
        """Whether the job is one of them."""
        if job.owner != self.owner or self.source not in (None, job.source):
            return False
        return job.kind not in self.apart if self.kind is None else job.kind == self.kind

    def condition(self, table: str) -> tuple[str, list[Any]]:
        """The same as a condition on rows of `jobs`, and its values."""
        where, values = f"{table}.owner = ? AND {table}.owner IS NOT NULL", list[Any]([self.owner])
        if self.source is not None:
            where, values = f"{where} AND {table}.source = ?", [*values, self.source]
        if self.kind is not None:
            return f"{where} AND {table}.kind = ?", [*values, self.kind]
        if self.apart:
            where += f" AND {table}.kind NOT IN ({', '.join('?' * len(self.apart))})"
        return where, [*values, *self.apart]


class Stops(Verbs):
    """Verbs on stops; each call is part of the transaction it was made in."""

    def put(self, job_ids: Sequence[int], *, by_owner: bool) -> None:
        """These jobs were stopped, by their owner or by somebody else."""
        if job_ids:
            changed = "ON CONFLICT (job_id) DO UPDATE SET by_owner = excluded.by_owner"
            rows = [(job_id, int(by_owner)) for job_id in sorted(job_ids)]
            self._session.insert_many("job_stops", ("job_id", "by_owner"), rows, changed)

    def drop(self, job_ids: Sequence[int]) -> None:
        """These jobs continue."""
        if job_ids:
            self._session.delete_in("job_stops", "job_id", list(job_ids))

    def of(self, job_ids: Sequence[int]) -> dict[int, bool]:
        """Whether its owner stopped it, of each of these jobs that is stopped and of which it is known."""
        rows = self._session.select_in(("job_id", "by_owner"), "job_stops", "job_id", list(job_ids))
        return {int(job_id): bool(by_owner) for job_id, by_owner in rows}


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
