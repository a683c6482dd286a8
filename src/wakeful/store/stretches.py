"""Stretches in the store: what became of slots that have no run on record, and the triggers a job had before.

A stretch says that slots of one trigger from `first_slot` to `last_slot` met one fate: all of them, or those of its
pattern. It outlives the runs it was made from, so what became of a slot stays known however little history is kept.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from wakeful.store.rows import Rows, Verbs

RAN = "ran"
#: Since when slots are on record, where older ones are not, or were deleted; a fact of the store.
KEPT_FROM = "slots_kept_from"
TOGETHER = 500  # keys in one question


class Stretch(NamedTuple):
    """Slots of one job with one fate."""

    job_id: int
    fate: str
    first_slot: int
    last_slot: int
    slots: int
    since: int  # when the trigger they belong to came into force; 0 for a job's first
    pattern: str | None = None  # which they are, where others lie between them

    def listed(self) -> list[int] | None:
        """The slots, where the stretch itself says which: one, two, or those of its pattern."""
        if self.pattern is not None:
            steps = zlib.decompress(base64.b85decode(self.pattern)).decode().split(",")
            return list(accumulate(map(int, steps), initial=self.first_slot))
        return [self.first_slot] if self.slots == 1 else None

    def of_slots(self, slots: Sequence[int]) -> Stretch:
        """The same fate for exactly these slots, in order."""
        if len(slots) == 1:
            return self._replace(first_slot=slots[0], last_slot=slots[0], slots=1, pattern=None)
        steps = ",".join(str(after - before) for before, after in pairwise(slots))
        pattern = base64.b85encode(zlib.compress(steps.encode(), 9)).decode()
        return self._replace(first_slot=slots[0], last_slot=slots[-1], slots=len(slots), pattern=pattern)


class PastTrigger(NamedTuple):
    """A trigger that was in force from `since` until another one replaced it."""

    job_id: int
    since: int
    until: int
    trigger: str


class Around(NamedTuple):
    """Where to look for the stretches of a job, fate and trigger: from one slot to another."""

    job_id: int
    fate: str
    since: int
    first_slot: int
    last_slot: int


class SlotSpan(NamedTuple):
    """The slots after one moment up to another."""

    after: int
    until: int


class Block(NamedTuple):
    """The jobs after one id up to another."""

    after: int
    last: int

    @classmethod
    def restrict(cls, block: Block | None) -> tuple[str, tuple[int, ...]]:
        """A further condition for these jobs, and its values; none for all jobs."""
        return ("", ()) if block is None else (" AND job_id > ? AND job_id <= ?", block)


_KEY = "job_id = ? AND fate = ? AND first_slot = ? AND since = ?"


class Stretches(Verbs):
    """Verbs on stretches; each call is part of the transaction it was made in."""

    _stretches = Rows("stretches", Stretch)
    _past = Rows("past_triggers", PastTrigger)

    def covering(self, job_id: int, slot: int, fate: str | None = None) -> list[Stretch]:
        """The stretches, of one fate or of all, whose first and last slot enclose this one."""
        within = (job_id, slot, slot)
        if fate is None:
            return self._select("job_id = ? AND first_slot <= ? AND last_slot >= ?", within)
        return self._select("job_id = ? AND first_slot <= ? AND last_slot >= ? AND fate = ?", (*within, fate))

    def near(self, keys: Sequence[Around]) -> list[Stretch]:
        """For each key: the stretches that begin within it, the last one before, and the first one after."""
        found: list[Stretch] = []
        same = "p.job_id = w.job_id AND p.fate = w.fate AND p.since = w.since"
        for start in range(0, len(keys), TOGETHER):
            part = keys[start : start + TOGETHER]
            wanted = ", ".join(["(?, ?, ?, ?, ?)"] * len(part))
            found += self._stretches.answered(
                "WITH w (job_id, fate, since, begin_at, end_at) AS "
                f"(VALUES {wanted}) SELECT {self._stretches.of('s')} FROM w "
                "JOIN stretches s ON s.job_id = w.job_id AND s.fate = w.fate AND s.since = w.since AND s.first_slot >= "
                f"coalesce((SELECT max(p.first_slot) FROM stretches p WHERE {same} AND p.first_slot < w.begin_at), "
                "w.begin_at) AND s.first_slot <= "
                f"coalesce((SELECT min(p.first_slot) FROM stretches p WHERE {same} AND p.first_slot > w.end_at), "
                "w.end_at)",
                *(value for key in part for value in key),
            )
        return found

    def of_job(self, job_id: int) -> list[Stretch]:
        return self._select("job_id = ?", (job_id,))

    def within(self, job_id: int, span: SlotSpan) -> list[Stretch]:
        """The job's stretches that have a part in the span, by their first slot."""
        return self._select("job_id = ? AND first_slot <= ? AND last_slot > ?", (job_id, span.until, span.after))

    def of_each(self, job_ids: Sequence[int], span: SlotSpan) -> dict[int, list[Stretch]]:
        """As `within`, of several jobs; those without any are left out."""
        which = f"job_id IN ({', '.join('?' * len(job_ids))}) AND first_slot <= ? AND last_slot > ?"
        found: dict[int, list[Stretch]] = {}
        for stretch in self._select(which, (*job_ids, span.until, span.after)) if job_ids else ():
            found.setdefault(stretch.job_id, []).append(stretch)
        return found

    def sums(self, span: SlotSpan, block: Block | None = None) -> list[tuple[int, str, int]]:
        """(job, fate, slots) of the stretches that lie in the span as a whole."""
        which, params = Block.restrict(block)
        rows = self._session.rows(
            "SELECT job_id, fate, sum(slots) FROM stretches WHERE last_slot > ? AND last_slot <= ? AND first_slot > ?"
            f"{which} GROUP BY job_id, fate",
            (span.after, span.until, span.after, *params),
        )
        return [(int(job_id), str(fate), int(slots)) for job_id, fate, slots in rows]

    def crossing(self, span: SlotSpan, block: Block | None = None) -> list[Stretch]:
        """The stretches of all jobs, or of these, that an end of the span cuts, or that hold the whole of it."""
        which, params = Block.restrict(block)
        return self._select(
            f"last_slot > ? AND first_slot <= ? AND (first_slot <= ? OR last_slot > ?){which}",
            (span.after, span.until, span.after, span.until, *params),
        )

    def replace(self, old: Sequence[Stretch], new: Sequence[Stretch]) -> None:
        """Store `new` in the place of `old`."""
        stays = {(stretch.job_id, stretch.fate, stretch.first_slot, stretch.since) for stretch in new}
        for stretch in old:
            key = (stretch.job_id, stretch.fate, stretch.first_slot, stretch.since)
            if key not in stays:  # else it only grows
                self._session.execute(f"DELETE FROM stretches WHERE {_KEY}", key)
        if new:
            grown = "last_slot = excluded.last_slot, slots = excluded.slots, pattern = excluded.pattern"
            clause = f"ON CONFLICT (job_id, fate, first_slot, since) DO UPDATE SET {grown}"
            self._stretches.add(*new, on_conflict=clause)

    def prune(self, before_slot: int, limit: int) -> int:
        """Delete stretches that ended before that slot, at most `limit`; how many there were."""
        return self._session.execute(
            "DELETE FROM stretches WHERE (job_id, fate, first_slot, since) IN (SELECT job_id, fate, first_slot, since "
            "FROM stretches WHERE last_slot < ? ORDER BY last_slot LIMIT ?)",
            (before_slot, limit),
        )

    def past_triggers_of(self, job_ids: Sequence[int]) -> dict[int, list[PastTrigger]]:
        """As below, of several jobs; those that never had another trigger are left out."""
        return _by_job(self._past.among("job_id", job_ids))

    def all_past_triggers(self, after: int, block: Block | None = None) -> dict[int, list[PastTrigger]]:
        """As below, of all jobs, or of these; those that were replaced before that moment are left out."""
        which, params = Block.restrict(block)
        return _by_job(self._past.all(f"WHERE until > ?{which}", after, *params))

    def past_triggers(self, job_id: int) -> list[PastTrigger]:
        """The triggers this job had before its current one, oldest first."""
        return self._past.all("WHERE job_id = ? ORDER BY until", job_id)

    def retire_trigger(self, job_id: int, trigger: str, now: int) -> None:
        """Another trigger replaces this one now."""
        self._session.execute(
            "INSERT INTO past_triggers (job_id, since, until, trigger) "
            "SELECT ?, coalesce(max(CASE WHEN until > since THEN until ELSE since + 1 END), 0), ?, ? "
            "FROM past_triggers WHERE job_id = ? "
            "ON CONFLICT (job_id, until) DO NOTHING",  # the one before it was in force until then, this one never
            (job_id, now, trigger, job_id),
        )

    def _select(self, where: str, params: tuple[object, ...]) -> list[Stretch]:
        return self._stretches.all(f"WHERE {where} ORDER BY first_slot, since", *params)


def _by_job(rows: Sequence[PastTrigger]) -> dict[int, list[PastTrigger]]:
    found: dict[int, list[PastTrigger]] = {}
    for past in sorted(rows, key=lambda item: item.until):
        found.setdefault(past.job_id, []).append(past)
    return found
