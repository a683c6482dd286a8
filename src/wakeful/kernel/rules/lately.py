"""Runs of the last day that are no longer on record, by quarter of an hour: counts of today do not go down. Pure.

Of runs that are on record: whether a job fails more often than it used to, or than any job should.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from wakeful import ids
from wakeful.store.records import RunRow

PRUNED = "pruned_lately"  # the fact's name
FAILED = ("error", "timeout", "crashed")
QUARTER_MS = 900_000  # every zone's midnight is the beginning of one
KEPT_MS = 26 * 3_600_000  # the longest day, and a little

Counts = dict[str, dict[str, list[int]]]  # quarter: {kind: [began, failed]}


def with_pruned(text: str | None, runs: Sequence[RunRow], now: int) -> str | None:
    """The fact with these runs, which are about to be deleted; None where it need not be written."""
    began = [(ids.made_at(run.id), run) for run in runs if run.started_at is not None]
    lately = [(at - at % QUARTER_MS, run) for at, run in began if at > now - KEPT_MS]
    if not lately:
        return None
    counts = {quarter: kinds for quarter, kinds in _counts(text).items() if int(quarter) > now - KEPT_MS}
    for quarter, run in lately:
        found = counts.setdefault(str(quarter), {}).setdefault(run.kind, [0, 0])
        found[0] += 1
        found[1] += run.outcome in FAILED
    return json.dumps(counts)


def pruned_since(text: str | None, since: int, hidden: Sequence[str]) -> tuple[int, int]:
    """How many runs made since that time are gone, and how many of them had failed; without hidden kinds."""
    found = [
        pair
        for quarter, kinds in _counts(text).items()
        if int(quarter) >= since
        for kind, pair in kinds.items()
        if kind not in hidden
    ]
    return sum(began for began, _ in found), sum(failed for _, failed in found)


def _counts(text: str | None) -> Counts:
    known: Any = json.loads(text) if text else {}
    return known if isinstance(known, dict) else {}


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
