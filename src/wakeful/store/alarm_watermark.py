"""The time from which alarms are read, so that the query does not scan those that are long past.

While a session holds a snapshot open, PostgreSQL keeps the index entry of every alarm that has been cleared since, all
of them at the low end of their priority's part of the index, where "what is due first?" begins. The watermark of a
priority is a time below which no alarm of its jobs is set, as far as this process knows, and the queries begin there.

Why nothing is missed:
- It rises only with a transaction that asked for the first alarm from the old watermark on, and only once that is
  committed: to what was found, and never beyond a second before now. What other nodes arm is nearly always later.
- What this process writes below it lowers it at once, in the same transaction, and those of all other priorities
  with it. Every write of an alarm passes through the session, which is where it is noted.
- A priority that is new to this process has no watermark yet.
- What another process writes below it (a job released with the time it was first due, one that is given another
  priority, a clock set back) is found by a look below the watermark. A node looks once a second, and when it hears of a
  change: a notification says which alarm is the earliest that was set, and one above the watermark needs no look. A
  process that does not listen looks whenever others may have written.
- A commit whose fate is not known forgets it. Then, as at the start, the question begins at the lowest time there is.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

LOWEST = -(2**63)
#: It stays so far below now: nodes arm what is due at once by clocks that differ by less.
RECENT_MS = 1_000
#: After a slow look, the next one waits for this many times its duration, within the limit below.
COSTLY_MS, REST_TIMES, LONGEST_REST_MS = 200, 10, 10_000
#: After this long it looks, whatever it has heard: not all that is set below a watermark is announced.
LOOK_MS = 900


class Watermark:
    """The watermarks of one process, by priority; used by one transaction at a time."""

    def __init__(self) -> None:
        self._kept: dict[int, int] = {}  # as of the last commit; empty: not known
        self._since: dict[int, int] = {}  # in the transaction under way
        self._lowest: int | None = None  # that it wrote
        self._armed_since: int | None = None  # the same, since it asked what is due
        self.crowded = False
        self._begun = self._rest_until = self._looked_at = 0
        self._looked = False
        # Another thread receives announcements.
        self._lock = threading.Lock()
        self._listening = False
        self.listens_in_vain = False
        self._announced: int | None = None  # the earliest alarm of those heard of and not looked for yet
        self._times = 0  # that something was heard, ever
        self._known_times: int | None = None  # how many of those the current transaction has seen

    @property
    def since(self) -> Mapping[int, int]:
        """Of each priority: no alarm is set before this."""
        return self._since

    @property
    def lowest(self) -> int | None:
        """The earliest alarm that the transaction under way has set."""
        return self._lowest

    @property
    def armed_since(self) -> int | None:
        """The earliest that it has set since it asked what is due."""
        return self._armed_since

    # -- what others announce -----------------------------------------------------------------------------------------

    def listen(self, *, listening: bool, in_vain: bool = False) -> None:
        """Whether this process receives announcements of others from now on; earlier changes are unknown.

        `in_vain`: it tries to, and fails.
        """
        with self._lock:
            self._listening = listening
            self.listens_in_vain = in_vain
        self.heard(None)

    def heard(self, due_at: int | None) -> None:
        """Another process has set alarms, none earlier than this; None: any."""
        due_at = LOWEST if due_at is None else due_at
        with self._lock:
            self._announced = due_at if self._announced is None else min(due_at, self._announced)
            self._times += 1

    # -- a transaction ------------------------------------------------------------------------------------------------

    def begin(self, boot: int) -> None:
        self._since, self._lowest, self._armed_since = self._kept, None, None
        self._begun, self._looked, self._known_times = boot, False, None

    def undone(self) -> None:
        """A part of the transaction was rolled back: what it cleared is set again."""
        self._since = _lower(self._kept, self._lowest)

    def committed(self, boot: int) -> None:
        self._kept = self._since
        with self._lock:
            if self._times == self._known_times:
                self._announced = None
        if self._looked:
            self._looked_at = self._begun
        cost = boot - self._begun
        if self._looked and cost >= COSTLY_MS:
            self._rest_until = boot + min(REST_TIMES * cost, LONGEST_REST_MS)

    def forget(self) -> None:
        """It is not known what was stored."""
        self._kept = self._since = {}

    # -- what it finds and writes -------------------------------------------------------------------------------------

    def asked(self, *, crowded: bool) -> None:
        """The transaction has asked what is due, and whether that was much: then the next will find much, too."""
        self._armed_since, self.crowded = None, crowded

    def armed(self, due_at: int) -> None:
        """An alarm is set for that time."""
        self._lowest = min(due_at, self._lowest) if self._lowest is not None else due_at
        self._armed_since = min(due_at, self._armed_since) if self._armed_since is not None else due_at
        self._since = _lower(self._since, due_at)

    def first(self, alarms: Mapping[int, int | None], now: int) -> None:
        """From the watermark on, these are the first alarms of all priorities; None: there is none."""
        recent = now - RECENT_MS
        self._since = {level: recent if due_at is None else min(due_at, recent) for level, due_at in alarms.items()}

    def wants_look(self) -> bool:
        """Whether there is a watermark to look below, a reason, and the time to do it."""
        if self._begun < self._rest_until:
            return False
        with self._lock:
            self._known_times = self._times
            announced = self._announced if self._listening else LOWEST
        if not self._since:
            return False
        below = announced is not None and announced < max(self._since.values())
        self._looked = below or self._begun - self._looked_at >= LOOK_MS
        return self._looked


def _lower(watermarks: dict[int, int], due_at: int | None) -> dict[int, int]:
    """The watermarks, lowered to an alarm."""
    return watermarks if due_at is None else {level: min(since, due_at) for level, since in watermarks.items()}
