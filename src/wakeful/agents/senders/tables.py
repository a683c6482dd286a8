"""The table of senders: a row for each run that was given text from outside, or that has left an event."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.store.session import Session

_ROW = ("run_id", "outside", "events")


class Senders:
    """Verbs on runs as senders; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def feed(self, run_id: int) -> None:
        """The run was given text from outside."""
        self._session.insert_many(
            "agent_senders", _ROW, [(run_id, 1, 0)], "ON CONFLICT (run_id) DO UPDATE SET outside = 1"
        )

    def is_fed(self, run_id: int) -> bool:
        """Whether it is on record that the run was given text from outside."""
        return bool(self._session.rows("SELECT 1 FROM agent_senders WHERE run_id = ? AND outside = 1", (run_id,)))

    def count_event(self, run_id: int) -> int:
        """The run leaves one more event; how many that makes."""
        more = "ON CONFLICT (run_id) DO UPDATE SET events = agent_senders.events + 1"
        self._session.insert_many("agent_senders", _ROW, [(run_id, 0, 1)], more)
        return int(self._session.rows("SELECT events FROM agent_senders WHERE run_id = ?", (run_id,))[0][0])

    def prune(self, before_id: int, limit: int) -> int:
        """Forget runs that are gone; `before_id`: only older ones are looked at."""
        sql = (
            "DELETE FROM agent_senders WHERE run_id IN (SELECT s.run_id FROM agent_senders s WHERE s.run_id < ? "
            "AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = s.run_id) ORDER BY s.run_id LIMIT ?)"
        )
        return self._session.execute(sql, (before_id, limit))
