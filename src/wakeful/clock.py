"""The only place that asks what time it is.

Wall time says what a person's calendar says and may be stepped by anyone; boot time only ever goes forward, and goes
on while the machine is suspended. Slots are wall time; limits on running work and leases are boot time. Everything
else in the package is given a `Clock`, or simply a `now`.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta
from typing import Protocol

from wakeful.errors import SchedulerError

#: A clock showing a time before this has never been set; slots computed from it would be wrong for decades.
EARLIEST_MS = 946_684_800_000  # 2000-01-01T00:00:00Z

_BOOT = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)


class Clock(Protocol):
    """What the engine knows about time, in integer milliseconds."""

    def now(self) -> int:
        """Wall time, milliseconds since 1970-01-01T00:00:00Z."""

    def boot(self) -> int:
        """Milliseconds since some fixed moment, never going back, suspend included."""

    def boot_us(self) -> int:
        """The same, in microseconds."""

    def until(self, wall_ms: int) -> float:
        """Seconds from this moment until the wall clock shows `wall_ms`; negative when that is past."""


class SystemClock:
    """The machine's own clocks."""

    def now(self) -> int:
        return time.time_ns() // 1_000_000

    def boot(self) -> int:
        return time.clock_gettime_ns(_BOOT) // 1_000_000

    def boot_us(self) -> int:
        return time.clock_gettime_ns(_BOOT) // 1000

    def until(self, wall_ms: int) -> float:
        return wall_ms / 1000 - time.time()


class ManualClock:
    """A clock that moves only when it is moved; `step` changes the wall clock alone, as a person would."""

    def __init__(self, start: datetime | None = None) -> None:
        moment = start if start is not None else datetime(2026, 1, 1, tzinfo=UTC)
        if moment.tzinfo is None:
            message = f"VirtualClock needs an aware datetime, not {moment!r}: give it a time zone."
            raise SchedulerError(message)
        self._boot_us = 1_000_000_000
        self._offset_us = int(moment.timestamp() * 1_000_000) - self._boot_us

    def now(self) -> int:
        return (self._boot_us + self._offset_us) // 1000

    def boot(self) -> int:
        return self._boot_us // 1000

    def boot_us(self) -> int:
        return self._boot_us

    def until(self, wall_ms: int) -> float:
        return (wall_ms * 1000 - self._boot_us - self._offset_us) / 1_000_000

    def elapse(self, seconds: float) -> None:
        """Let time pass: wall and boot time go forward together."""
        self._boot_us += round(seconds * 1_000_000)

    def step(self, delta: timedelta) -> None:
        """Set the wall clock forward or back; boot time does not notice."""
        self._offset_us += round(delta.total_seconds() * 1_000_000)

    def monotonic(self) -> float:
        """Seconds, for an event loop whose time is virtual."""
        return self._boot_us / 1_000_000


class SharedClock:
    """The wall time of a database that several nodes share; their own clocks do not matter.

    Boot time continues by itself; now and then the database says what time it is, and ties the two together. The clock
    is never ahead of the database's, and behind it by no more than the quickest answer took to come.
    """

    def __init__(self, own: Clock) -> None:
        self._own = own
        self._offset_us: int | None = None  # from boot time to the database's

    def hear(self, asked_us: int, said_us: int, answered_us: int) -> None:
        """The database said `said_us` at some moment of boot time between `asked_us` and `answered_us`."""
        lowest, highest = said_us - answered_us, said_us - asked_us
        if self._offset_us is None or not lowest <= self._offset_us <= highest:
            self._offset_us = lowest

    def now(self) -> int:
        return self._own.now() if self._offset_us is None else (self._own.boot_us() + self._offset_us) // 1000

    def boot(self) -> int:
        return self._own.boot()

    def boot_us(self) -> int:
        return self._own.boot_us()

    def until(self, wall_ms: int) -> float:
        if self._offset_us is None:
            return self._own.until(wall_ms)
        return (wall_ms * 1000 - self._own.boot_us() - self._offset_us) / 1_000_000


async def sleep(seconds: float) -> None:
    """Let other tasks run for that long; virtual on a virtual event loop."""
    await asyncio.sleep(seconds)


def block(seconds: float) -> None:
    """Hold this thread (never the event loop's) for that long."""
    time.sleep(seconds)
