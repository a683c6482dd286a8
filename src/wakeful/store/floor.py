"""From where on alarms are asked for, so that the question does not walk over those that are long past.

While somebody holds a snapshot open, PostgreSQL keeps the index entry of every alarm that has been cleared since, all
of them at the low end of their priority's part of the index, where "what is due first?" begins. The floor of a priority
is a time below which no alarm of its jobs is set, as far as this process knows, and the questions begin there.

Why nothing is missed:
- It rises only with a transaction that asked for the first alarm from the old floor on, and only once that is
  committed: to what was found, and never beyond a second before now. What other nodes arm is nearly always later.
- What this process writes below it lowers it at once, in the same transaction, and those of all other priorities
  with it. Every write of an alarm passes through the session, which is where it is noted.
- A priority that is new to this process has no floor yet.
- What another process writes below it (a job released with the time it was first due, one that is given another
  priority, a clock set back) is found by a look below the floor. A node looks when it hears of a change and once a
  second, which is how it learns of what others do in any case.
- A commit whose fate is not known forgets it. Then, as at the start, the question begins at the lowest time there is.
"""

from __future__ import annotations

from collections.abc import Mapping

LOWEST = -(2**63)
#: It stays so far below now: nodes arm what is due at once by clocks that differ by less.
RECENT_MS = 1_000
#: After a look that took long, none is taken for so many times as long, at most this long.
COSTLY_MS, REST_TIMES, LONGEST_REST_MS = 200, 10, 10_000


class Floor:
    """The floors of one process, by priority; used by one transaction at a time."""

    def __init__(self) -> None:
        self._kept: dict[int, int] = {}  # as of the last commit; empty: not known
        self._since: dict[int, int] = {}  # in the transaction under way
        self._lowest: int | None = None  # that it wrote
        self._begun = self._rest_until = 0
        self._looked = False

    @property
    def since(self) -> Mapping[int, int]:
        """Of each priority: no alarm is set before this."""
        return self._since

    # -- a transaction ------------------------------------------------------------------------------------------------

    def begin(self, boot: int) -> None:
        self._since, self._lowest = self._kept, None
        self._begun, self._looked = boot, False

    def undone(self) -> None:
        """A part of the transaction was rolled back: what it cleared is set again."""
        self._since = _lower(self._kept, self._lowest)

    def committed(self, boot: int) -> None:
        self._kept = self._since
        cost = boot - self._begun
        if self._looked and cost >= COSTLY_MS:
            self._rest_until = boot + min(REST_TIMES * cost, LONGEST_REST_MS)

    def forget(self) -> None:
        """It is not known what was stored."""
        self._kept = self._since = {}

    # -- what it finds and writes -------------------------------------------------------------------------------------

    def armed(self, due_at: int) -> None:
        """An alarm is set for that time."""
        self._lowest = min(due_at, self._lowest) if self._lowest is not None else due_at
        self._since = _lower(self._since, due_at)

    def first(self, alarms: Mapping[int, int | None], now: int) -> None:
        """From the floor on, these are the first alarms of all priorities; None: there is none."""
        recent = now - RECENT_MS
        self._since = {level: recent if due_at is None else min(due_at, recent) for level, due_at in alarms.items()}

    def wants_look(self) -> bool:
        """Whether there is a floor to look below, and the time to do it."""
        if not self._since or self._begun < self._rest_until:
            return False
        self._looked = True
        return True


def _lower(floors: dict[int, int], due_at: int | None) -> dict[int, int]:
    """The floors, lowered to an alarm."""
    return floors if due_at is None else {level: min(since, due_at) for level, since in floors.items()}
