"""What is done with a SQLite file, counted in the database's own machine steps: the same on every machine."""

from __future__ import annotations

from wakeful.store import sqlite

EVERY = 10  # machine steps from one count to the next


class Steps:
    """Counts the steps of all connections that are opened from here on, whichever thread uses them."""

    def __init__(self, monkeypatch):
        self.taken = 0
        connect = sqlite.connect

        def counting(*given, **named):
            connection = connect(*given, **named)
            connection.set_progress_handler(self._count, EVERY)
            return connection

        monkeypatch.setattr(sqlite, "connect", counting)

    def _count(self):
        self.taken += EVERY

    def since_last(self):
        """The steps since this was last asked."""
        taken, self.taken = self.taken, 0
        return taken
