"""Questions about slots, for ledgers: how many had runs, which, and where the jobs stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.store.listing import shown
from wakeful.store.records import STATE_COLUMNS, JobState, RunRow
from wakeful.store.rows import Rows, Verbs

if TYPE_CHECKING:
    from wakeful.store.owners import Owned
    from wakeful.store.stretches import Span

_PLACED = ("j.id", "j.name", "j.trigger", "j.created_at", *(f"s.{name}" for name in STATE_COLUMNS))
#: As the index of them has it.
_UNSTARTED = "started_at IS NULL AND finished_at IS NOT NULL AND attempt = 1 AND slot IS NOT NULL"


class Placed(NamedTuple):
    """A job as far as its slots go."""

    id: int
    name: str
    trigger: str
    created_at: int
    state: JobState


class Slots(Verbs):
    """Verbs on the slots of runs; each call is part of the transaction it was made in."""

    _runs = Rows("runs", RunRow)

    def jobs(self, hidden: Sequence[str] = (), owned: Owned | None = None) -> list[Placed]:
        """All jobs, or an owner's, except removed ones and hidden kinds."""
        source = f"jobs j JOIN job_state s ON s.job_id = j.id WHERE j.removed_at IS NULL{shown('j.kind', hidden)}"
        params = list[object](hidden)
        if owned is not None:
            condition, values = owned.condition("j")
            source += f" AND {condition}"
            params += values
        rows = self._session.bulk(_PLACED, source, params)
        return [Placed(row[0], row[1], row[2], row[3], JobState._make(row[4:])) for row in rows]

    def firsts(self, span: Span, job_id: int | None = None) -> dict[int, int]:
        """How many slots of the span have a run, by job."""
        which, params = _of(job_id)
        rows = self._session.rows(
            f"SELECT job_id, count(*) FROM runs WHERE slot > ? AND slot <= ? AND attempt = 1{which} GROUP BY job_id",
            (span.after, span.until, *params),
        )
        return {int(found): int(count) for found, count in rows}

    def unstarted(self, span: Span, job_id: int | None = None) -> dict[int, int]:
        """How many of these were never started, and not tried again."""
        which, params = _of(job_id)
        rows = self._session.rows(
            f"SELECT job_id, count(*) FROM runs r WHERE {_UNSTARTED} AND slot > ? AND slot <= ?{which} "
            "AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.retry_of = r.id) GROUP BY job_id",
            (span.after, span.until, *params),
        )
        return {int(found): int(count) for found, count in rows}

    def opened(self, span: Span) -> list[RunRow]:
        """The runs for a slot of the span that are not done."""
        return self._runs.all("WHERE finished_at IS NULL AND slot > ? AND slot <= ?", span.after, span.until)

    def runs(self, job_id: int, span: Span) -> list[RunRow]:
        """All attempts at the job's slots of the span, in order."""
        return self._runs.all(
            "WHERE job_id = ? AND slot > ? AND slot <= ? ORDER BY slot, attempt", job_id, span.after, span.until
        )

    def last_run(self, job_id: int, slot: int) -> RunRow | None:
        """The last attempt at the last slot before this one that has a run on record."""
        return self._runs.one("WHERE job_id = ? AND slot < ? ORDER BY slot DESC, attempt DESC LIMIT 1", job_id, slot)

    def next_run(self, job_id: int, slot: int) -> int | None:
        """The first slot after this one that has a run on record."""
        sql = "SELECT min(slot) FROM runs WHERE job_id = ? AND slot > ?"
        found = self._session.rows(sql, (job_id, slot))[0][0]
        return None if found is None else int(found)


def _of(job_id: int | None) -> tuple[str, tuple[int, ...]]:
    return ("", ()) if job_id is None else (" AND job_id = ?", (job_id,))
