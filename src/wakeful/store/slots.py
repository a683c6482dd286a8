"""Questions about slots, for ledgers: how many had runs, which, and where the jobs stand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from wakeful.store.listing import shown
from wakeful.store.records import STATE_COLUMNS, JobState, RunRow
from wakeful.store.rows import Rows, Verbs
from wakeful.store.stretches import Block

if TYPE_CHECKING:
    from wakeful.store.owners import Owned
    from wakeful.store.stretches import SlotSpan

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
        return self._placed(source, params)

    def next_jobs(
        self, after: int, limit: int, hidden: Sequence[str] = (), owned: Owned | None = None
    ) -> tuple[list[Placed], int | None]:
        """Of the next `limit` jobs by id: those that `jobs` would give; and after which id to continue, if at all."""
        found = self._column("SELECT id FROM jobs WHERE id > ? ORDER BY id LIMIT ?", after, limit)
        if not found:
            return [], None
        source = (
            "jobs j JOIN job_state s ON s.job_id = j.id "
            f"WHERE j.id > ? AND j.id <= ? AND j.removed_at IS NULL{shown('j.kind', hidden)}"
        )
        last = int(found[-1])
        params: list[object] = [after, last, *hidden]
        if owned is not None:
            condition, values = owned.condition("j")
            source += f" AND {condition}"
            params += values
        return self._placed(source, params), last if len(found) == limit else None

    def _placed(self, source: str, params: Sequence[object]) -> list[Placed]:
        rows = self._session.bulk(_PLACED, source, params)
        return [Placed(row[0], row[1], row[2], row[3], JobState._make(row[4:])) for row in rows]

    def firsts(self, span: SlotSpan, block: Block | None = None) -> dict[int, int]:
        """How many slots of the span have a run, by job."""
        which, params = Block.restrict(block)
        rows = self._session.rows(
            f"SELECT job_id, count(*) FROM runs WHERE slot > ? AND slot <= ? AND attempt = 1{which} GROUP BY job_id",
            (span.after, span.until, *params),
        )
        return {int(found): int(count) for found, count in rows}

    def unstarted(self, span: SlotSpan, block: Block | None = None) -> dict[int, int]:
        """How many of these were never started, and not tried again."""
        which, params = Block.restrict(block)
        rows = self._session.rows(
            f"SELECT job_id, count(*) FROM runs r WHERE {_UNSTARTED} AND slot > ? AND slot <= ?{which} "
            "AND NOT EXISTS (SELECT 1 FROM runs n WHERE n.retry_of = r.id) GROUP BY job_id",
            (span.after, span.until, *params),
        )
        return {int(found): int(count) for found, count in rows}

    def opened(self, span: SlotSpan, block: Block | None = None) -> list[RunRow]:
        """The runs for a slot of the span that are not done."""
        which, params = Block.restrict(block)
        return self._runs.all(
            f"WHERE finished_at IS NULL AND slot > ? AND slot <= ?{which}", span.after, span.until, *params
        )

    def runs(self, job_id: int, span: SlotSpan) -> list[RunRow]:
        """All attempts at the job's slots of the span, in order."""
        return self._runs.all(
            "WHERE job_id = ? AND slot > ? AND slot <= ? ORDER BY slot, attempt", job_id, span.after, span.until
        )

    def runs_of_each(self, job_ids: Sequence[int], span: SlotSpan) -> dict[int, list[RunRow]]:
        """The same of several jobs; those without any are left out."""
        which = f"job_id IN ({', '.join('?' * len(job_ids))}) AND slot > ? AND slot <= ?"
        found: dict[int, list[RunRow]] = {}
        for run in self._runs.all(f"WHERE {which}", *job_ids, span.after, span.until) if job_ids else ():
            found.setdefault(run.job_id, []).append(run)
        return found

    def last_run(self, job_id: int, slot: int) -> RunRow | None:
        """The last attempt at the last slot before this one that has a run on record."""
        return self._runs.one("WHERE job_id = ? AND slot < ? ORDER BY slot DESC, attempt DESC LIMIT 1", job_id, slot)

    def next_run(self, job_id: int, slot: int) -> int | None:
        """The first slot after this one that has a run on record."""
        sql = "SELECT min(slot) FROM runs WHERE job_id = ? AND slot > ?"
        found = self._session.rows(sql, (job_id, slot))[0][0]
        return None if found is None else int(found)
