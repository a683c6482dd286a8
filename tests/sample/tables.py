"""The tables of letters: verbs on them, each part of the transaction it is called in."""

from __future__ import annotations

from wakeful.store.rows import Verbs


class Letters(Verbs):
    """Verbs on letters and stamps."""

    def stamps(self) -> int:
        return self._count("SELECT left_over FROM stamps WHERE sheet = 1")

    def buy(self, number: int) -> int:
        """How many there are then."""
        self._session.execute(
            "INSERT INTO stamps (sheet, left_over) VALUES (1, ?) "
            "ON CONFLICT (sheet) DO UPDATE SET left_over = stamps.left_over + excluded.left_over",
            (number,),
        )
        return self.stamps()

    def take_stamp(self, letter_id: int, job_id: int, run_id: int, now: int) -> int:
        """Begin a letter; the number of stamps that are left. A run that was given back has its stamp already."""
        if self._session.rows("SELECT 1 FROM letters WHERE run_id = ? AND arrived IS NULL", (run_id,)):
            return self.stamps()
        self.buy(-1)
        row = (letter_id, job_id, run_id, now, None)
        self._session.insert_many("letters", ("id", "job_id", "run_id", "at", "arrived"), [row])
        return self.stamps()

    def end(self, run_id: int, *, arrived: bool) -> int | None:
        """End a run's letter; its number, or None where the run never had one."""
        found = self._session.rows("SELECT id FROM letters WHERE run_id = ? AND arrived IS NULL", (run_id,))
        if not found:
            return None
        self._session.execute("UPDATE letters SET arrived = ? WHERE run_id = ?", (int(arrived), run_id))
        if not arrived:
            self.buy(1)
        return int(found[0][0])

    def all(self) -> list[tuple[int, int | None]]:
        """(run, whether it arrived) of all letters, oldest first."""
        return [
            (int(run), arrived)
            for run, arrived in self._session.rows("SELECT run_id, arrived FROM letters ORDER BY id")
        ]

    def prune(self, before: int, limit: int) -> int:
        return self._session.execute(
            "DELETE FROM letters WHERE id IN (SELECT id FROM letters WHERE at < ? AND arrived IS NOT NULL LIMIT ?)",
            (before, limit),
        )
