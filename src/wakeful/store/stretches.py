"""Stretches in the store: what became of slots whose runs are pruned, and the triggers a job had before.

A stretch says that the slots of one trigger from `first_slot` to `last_slot` met one fate. It outlives the runs it was
made from, so what was run stays known however little history is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from wakeful.store.session import Session

RAN = "ran"


class Stretch(NamedTuple):
    """Consecutive slots of one job with one fate."""

    job_id: int
    fate: str
    first_slot: int
    last_slot: int
    slots: int
    since: int  # when the trigger they belong to came into force; 0 for a job's first


class PastTrigger(NamedTuple):
    """A trigger that was in force from `since` until another one replaced it."""

    job_id: int
    since: int
    until: int
    trigger: str


_COLUMNS = ", ".join(Stretch._fields)
_PAST = ", ".join(PastTrigger._fields)


class Stretches:
    """Verbs on stretches; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def covering(self, job_id: int, fate: str, slot: int) -> list[Stretch]:
        """The stretches whose first and last slot enclose this one."""
        return self._select(
            "job_id = ? AND fate = ? AND first_slot <= ? AND last_slot >= ?", (job_id, fate, slot, slot)
        )

    def from_slot(self, job_id: int, fate: str, slot: int) -> list[Stretch]:
        """The stretches that end at or after this slot, and the last one before it, in order."""
        before = self._session.rows(
            f"SELECT {_COLUMNS} FROM stretches WHERE job_id = ? AND fate = ? AND first_slot < ? AND last_slot < ? "
            "ORDER BY first_slot DESC LIMIT 1",
            (job_id, fate, slot, slot),
        )
        after = self._select("job_id = ? AND fate = ? AND last_slot >= ?", (job_id, fate, slot))
        return [*(Stretch._make(row) for row in before), *after]

    def of_job(self, job_id: int) -> list[Stretch]:
        return self._select("job_id = ?", (job_id,))

    def replace(self, old: Sequence[Stretch], new: Sequence[Stretch]) -> None:
        """Store `new` in the place of `old`."""
        stays = {(stretch.job_id, stretch.fate, stretch.first_slot, stretch.since) for stretch in new}
        for stretch in old:
            if (stretch.job_id, stretch.fate, stretch.first_slot, stretch.since) in stays:
                continue  # it only grows
            self._session.execute(
                "DELETE FROM stretches WHERE job_id = ? AND fate = ? AND first_slot = ? AND since = ?",
                (stretch.job_id, stretch.fate, stretch.first_slot, stretch.since),
            )
        if new:
            grown = "last_slot = excluded.last_slot, slots = excluded.slots"
            clause = f"ON CONFLICT (job_id, fate, first_slot, since) DO UPDATE SET {grown}"
            self._session.insert_many("stretches", Stretch._fields, new, clause)

    def prune(self, before_slot: int, limit: int) -> int:
        """Delete stretches that ended before that slot, at most `limit`; how many there were."""
        return self._session.execute(
            "DELETE FROM stretches WHERE (job_id, fate, first_slot, since) IN (SELECT job_id, fate, first_slot, since "
            "FROM stretches WHERE last_slot < ? ORDER BY last_slot LIMIT ?)",
            (before_slot, limit),
        )

    def past_triggers_of(self, job_ids: Sequence[int]) -> dict[int, list[PastTrigger]]:
        """As below, of several jobs; those that never had another trigger are left out."""
        found: dict[int, list[PastTrigger]] = {}
        rows = self._session.select_in(PastTrigger._fields, "past_triggers", "job_id", job_ids)
        for past in sorted(map(PastTrigger._make, rows), key=lambda item: item.until):
            found.setdefault(past.job_id, []).append(past)
        return found

    def past_triggers(self, job_id: int) -> list[PastTrigger]:
        """The triggers this job had before its current one, oldest first."""
        sql = f"SELECT {_PAST} FROM past_triggers WHERE job_id = ? ORDER BY until"
        return [PastTrigger._make(row) for row in self._session.rows(sql, (job_id,))]

    def retire_trigger(self, job_id: int, trigger: str, now: int) -> None:
        """Another trigger replaces this one now."""
        self._session.execute(
            "INSERT INTO past_triggers (job_id, since, until, trigger) "
            "SELECT ?, coalesce(max(until), 0), ?, ? FROM past_triggers WHERE job_id = ? "
            "ON CONFLICT (job_id, until) DO UPDATE SET trigger = excluded.trigger",
            (job_id, now, trigger, job_id),
        )

    def _select(self, where: str, params: tuple[object, ...]) -> list[Stretch]:
        sql = f"SELECT {_COLUMNS} FROM stretches WHERE {where} ORDER BY first_slot, since"
        return [Stretch._make(row) for row in self._session.rows(sql, params)]
