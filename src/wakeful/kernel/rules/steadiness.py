"""Whether a job fails more often than it used to, or than any job should, though it succeeds in between. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

RECENT = 10  # the last ends that are looked at
HABIT = 90  # and those before, which say what is usual
FEWEST = 2  # failures
TOO_OFTEN = 0.4  # whatever is usual
OFTEN = 0.2
ENOUGH = 4  # ends that say something about a rate


def fails_often(ends: Sequence[bool]) -> bool:
    """`ends`: whether each start failed in the end, the newest first.

    Failures in one row are an outage, which is over with the first success. What fails again after it has succeeded is
    judged by how often, against what is usual for the job.
    """
    recent, habit = ends[:RECENT], ends[RECENT : RECENT + HABIT]
    outages = sum(failed and not later for later, failed in pairwise((False, *recent)))
    if outages < FEWEST or len(recent) < ENOUGH:
        return False
    rate = sum(recent) / len(recent)
    usual = sum(habit) / len(habit) if len(habit) >= RECENT else 0.0
    return rate >= TOO_OFTEN or (sum(recent) > FEWEST and rate >= max(OFTEN, 2 * usual))
