"""Whose a job is. A token and an agent of one name are two owners, told apart by the kind of the job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

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
