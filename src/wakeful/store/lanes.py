"""Lanes in the store: how much of each bounded lane is taken, on all nodes together.

Whoever reads a lane to decide, or changes one, is alone with the lanes until its transaction ends. With less, two nodes
could fill one place; or a job could be parked on a lane that another node has just freed, and nobody would wake it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.store.session import Session


class Lanes:
    """Verbs on lanes; each call is part of the transaction it was made in."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def used(self, keys: Sequence[str]) -> dict[str, int]:
        """How much of each lane is taken; a lane nobody used yet is 0."""
        self._session.serialize("lanes")
        found = dict.fromkeys(keys, 0)
        for key, used in self._session.select_in(("key", "used"), "lanes", "key", sorted(keys)):
            found[str(key)] = int(used)
        return found

    def add(self, changes: Mapping[str, int]) -> None:
        """Take (positive) or free (negative) places, in the order of the keys."""
        rows = [(key, change) for key, change in sorted(changes.items()) if change]
        if rows:
            self._session.serialize("lanes")
            conflict = "ON CONFLICT (key) DO UPDATE SET used = lanes.used + excluded.used"
            self._session.insert_many("lanes", ("key", "used"), rows, conflict)

    def all(self) -> dict[str, int]:
        return {str(key): int(used) for key, used in self._session.rows("SELECT key, used FROM lanes ORDER BY key")}

    def reset(self, used: Mapping[str, int]) -> None:
        """Make the counts those given; only while no other node runs."""
        self._session.serialize("lanes")
        self._session.execute("DELETE FROM lanes")
        self.add(used)
