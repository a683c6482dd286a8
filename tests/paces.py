"""How fast this machine is: what is to take little work takes few paces, on a slow machine as on a quick one."""

from __future__ import annotations

import time

STEPS = 100_000


def pace_s() -> float:
    """Processor time of a piece of work that is always the same, in seconds; some hundredths on a machine of 2025."""
    return min(_walk() for _ in range(5))


def _walk() -> float:
    began, found = time.process_time(), {}
    for step in range(STEPS):
        found[f"{step}"] = step
    assert len(found) == STEPS
    return time.process_time() - began
