"""Runs of the last day that are no longer on record, by quarter of an hour: counts of today do not go down. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
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
