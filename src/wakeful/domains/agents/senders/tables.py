"""The table of senders: a row for each run that was given text from outside, has left an event, or asks a person."""

from __future__ import annotations

from wakeful.store.rows import Verbs

_ROW = ("run_id", "outside", "events")


class Senders(Verbs):
    """Verbs on runs as senders; each call is part of the transaction it was made in."""

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
        return self._count("SELECT events FROM agent_senders WHERE run_id = ?", run_id)

    def ask(self, run_id: int, question: str, until: int | None) -> None:
        """The run asks a person this when its call has ended; a later question replaces an earlier one."""
        changed = (
            "ON CONFLICT (run_id) DO UPDATE SET question = excluded.question, answer_until = excluded.answer_until"
        )
        row = (run_id, 0, 0, question, until)
        self._session.insert_many("agent_senders", (*_ROW, "question", "answer_until"), [row], changed)

    def question_of(self, run_id: int) -> tuple[str, int | None] | None:
        """What the run asks, and until when an answer counts; None where it asks nothing."""
        sql = "SELECT question, answer_until FROM agent_senders WHERE run_id = ? AND question IS NOT NULL"
        rows = self._session.rows(sql, (run_id,))
        return (str(rows[0][0]), rows[0][1]) if rows else None

    def prune(self, before_id: int, limit: int) -> int:
        """Forget runs that are gone; `before_id`: only older ones are looked at."""
        sql = (
            "DELETE FROM agent_senders WHERE run_id IN (SELECT s.run_id FROM agent_senders s WHERE s.run_id < ? "
            "AND NOT EXISTS (SELECT 1 FROM runs r WHERE r.id = s.run_id) ORDER BY s.run_id LIMIT ?)"
        )
        return self._session.execute(sql, (before_id, limit))
