"""The clock of the demo: the machine's, and as far ahead of it as the demo has slept.

Wall time and boot time move together, as they do when a machine sleeps: nobody has set the clock.
"""

from __future__ import annotations

from wakeful.clock import SystemClock


class MovedClock(SystemClock):
    """The machine's clock, moved forward."""

    def __init__(self, ahead_ms: int = 0) -> None:
        self.ahead_ms = ahead_ms

    def now(self) -> int:
        return super().now() + self.ahead_ms

    def boot(self) -> int:
        return super().boot() + self.ahead_ms

    def boot_us(self) -> int:
        return super().boot_us() + self.ahead_ms * 1000

    def until(self, wall_ms: int) -> float:
        return super().until(wall_ms) - self.ahead_ms / 1000
