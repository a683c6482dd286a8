"""A regular check that every slot has a record: the verdict reports what it finds.

It goes through the jobs a few at a time, so that it costs the same however many there are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wakeful.store.jobs import JobFilter

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wakeful.store.interface import Store, Transaction

UNACCOUNTED = "unaccounted"  # under which name the store's facts keep what was found, as JSON: slots by job
SPAN_MS = 2 * 3_600_000
LOOK_AT = 100  # jobs at a time
KEPT = 100  # jobs whose slots are kept


class Audit:
    """Looks at the next jobs each time it is called, and begins again after the last."""

    def __init__(self, store: Store, hidden: tuple[str, ...]) -> None:
        self._store = store
        self._hidden = hidden
        self._after: str | None = None

    async def look(self) -> None:
        """Compare what was due with what is on record, and keep what has none."""
        wanted = JobFilter(after=self._after, limit=LOOK_AT, hidden=self._hidden)
        seen, before = await self._store.read(lambda tx: (_unaccounted(tx, wanted), found_slots(tx)))
        self._after = max(seen) if len(seen) == LOOK_AT else None
        first, last = wanted.after or "", self._after
        others = {name: slots for name, slots in before.items() if name <= first or (last is not None and name > last)}
        found = {**others, **{name: slots for name, slots in seen.items() if slots}}
        if found != before:
            text = json.dumps(dict(sorted(found.items())[:KEPT]))
            await self._store.write(lambda tx: tx.facts.put({UNACCOUNTED: text}))


def found_slots(tx: Transaction) -> Mapping[str, int]:
    """How many slots have no record, as far as it was looked, by job."""
    found: Mapping[str, int] = json.loads(tx.facts.get(UNACCOUNTED) or "{}")
    return found


def _unaccounted(tx: Transaction, wanted: JobFilter) -> dict[str, int]:
    from wakeful.kernel.views.ledger import is_timed, ledger_of_job  # not for programs that only run jobs

    since = tx.now - SPAN_MS
    return {
        job.name: ledger_of_job(tx, job, state, since).total.unaccounted if is_timed(job.trigger) else 0
        for job, state in tx.jobs.matching(wanted)
    }
