"""Events in the store: collected during a transaction, written at its end as one row per stream.

Refused starts are counted by reason, besides them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wakeful.store.records import CountedGroup, EventGroup, SkipRow
from wakeful.store.rows import Rows, Verbs, where

if TYPE_CHECKING:
    from wakeful.store.session import Session


#: Made once, and without a look for circles, which no event has: every run pays for it.
_WRITE = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class EventVerbs(Verbs):
    """Verbs on events; each call is part of the transaction it was made in."""

    _groups = Rows("events", EventGroup)

    def __init__(self, session: Session) -> None:
        super().__init__(session)
        self._pending: dict[str, list[Any]] = {}
        self._counted: list[Any] = []

    @property
    def any(self) -> bool:
        """Whether this transaction has emitted anything so far."""
        return bool(self._pending)

    def emit(self, stream: str, *events: Any) -> None:
        """Add events to a stream; they become visible with the commit."""
        self._pending.setdefault(stream, []).extend(events)

    def count(self, *what: Any) -> None:
        """Hand this to the listeners of this process, with the events of this transaction; it is not stored."""
        self._counted.extend(what)

    def flush(self, at: int) -> list[EventGroup]:
        """Write what was emitted; what subscribers get after the commit."""
        groups = [(stream, len(events), _WRITE(events)) for stream, events in self._pending.items()]
        self._pending.clear()
        added = self._session.append_events(at, groups) if groups else []
        written: list[EventGroup] = [
            EventGroup(event_id, stream, seq, at, body)
            for (stream, _, body), (event_id, seq) in zip(groups, added, strict=True)
        ]
        if written and self._counted:
            written[0] = first = CountedGroup(*written[0])
            first.counted = tuple(self._counted)
        return written

    def after(self, after: int, streams: Sequence[str] | None = None, limit: int = 100) -> list[EventGroup]:
        """Groups of these streams (None: of all) with an id above `after`, in order."""
        named = f"stream IN ({', '.join('?' * len(streams or ()))})"
        clause, params = where([("id > ?", after), (named, None if streams is None else tuple(streams))])
        return self._groups.all(f"{clause} ORDER BY id LIMIT ?", *params, limit)

    def ids(self) -> tuple[int, int]:
        """The oldest and the newest group on record; zeros when there is none."""
        oldest, newest = self._session.rows("SELECT min(id), max(id) FROM events")[0]
        return (int(oldest), int(newest)) if oldest is not None else (0, 0)

    def prune(self, before: int, limit: int, most: int = 2**62) -> int:
        """Delete what is older or more than `most`, among the oldest `limit`; how many there were."""
        # Stamped further ahead than history is kept: by a clock that was wrong. It would bar the way to what follows.
        ahead = 2 * self._session.now - before
        return self._session.execute(
            # The newest stays: from it the next one's id is counted, and readers continue from the last id they saw.
            "DELETE FROM events WHERE id IN (SELECT id FROM (SELECT id, at FROM events ORDER BY id LIMIT ?) oldest "
            "WHERE (at < ? OR at > ? OR id <= (SELECT max(id) FROM events) - ?) AND id < (SELECT max(id) FROM events))",
            (limit, before, ahead, most),
        )


_COUNT_ON = (
    "ON CONFLICT (job_id, reason) DO UPDATE SET times = skips.times + excluded.times, "
    "last_at = excluded.last_at, detail = excluded.detail"
)


class Skips(Verbs):
    """Verbs on refused starts; each call is part of the transaction it was made in."""

    _skips = Rows("skips", SkipRow)

    def count(self, skips: Sequence[SkipRow]) -> None:
        """Count refused starts; one row per job and reason, with the last time."""
        merged: dict[tuple[int, str], SkipRow] = {}
        for skip in skips:  # one statement must not meet a row twice
            seen = merged.get((skip.job_id, skip.reason))
            merged[skip.job_id, skip.reason] = skip._replace(times=skip.times + seen.times) if seen else skip
        if merged:
            self._skips.add(*merged.values(), on_conflict=_COUNT_ON)

    def of(self, job_id: int) -> list[SkipRow]:
        """Why starts of this job were refused, the latest reason first."""
        return self._skips.all("WHERE job_id = ? AND times > 0 ORDER BY last_at DESC, reason", job_id)

    def latest(self, job_ids: Sequence[int]) -> dict[int, str]:
        """The reason for which a start of each of these jobs was last refused."""
        rows = self._skips.among("job_id", job_ids)
        return {row.job_id: row.reason for row in sorted(rows, key=lambda row: (row.job_id, row.last_at, row.reason))}
