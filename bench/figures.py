"""Figures of repeated runs: percentiles, medians, ratios to the best peer."""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Sequence
from typing import Any

Run = dict[str, float]


def percentile(values: Sequence[float], share: float) -> float:
    """The smallest value at or below which that share of them lies."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def spread(values: Sequence[float], unit: str = "ms") -> Run:
    """A latency's usual figures."""
    return {
        f"min_{unit}": min(values),
        f"p50_{unit}": percentile(values, 0.50),
        f"p95_{unit}": percentile(values, 0.95),
        f"p99_{unit}": percentile(values, 0.99),
        f"max_{unit}": max(values),
    }


def medians(runs: Iterable[Run]) -> Run:
    """Field by field over the runs that have it."""
    found: dict[str, list[float]] = {}
    for run in runs:
        for field, value in run.items():
            found.setdefault(field, []).append(value)
    return {field: statistics.median(values) for field, values in found.items()}


def ratio(ours: float, peers: Iterable[float], *, lower_is_better: bool = False) -> float | None:
    """How many times better than the best peer; None where there is no peer to compare with."""
    known = list(peers)
    if not known or not ours:
        return None
    return min(known) / ours if lower_is_better else ours / max(known)


def shown(value: Any) -> str:
    """A figure as people read it."""
    if value is None:
        return "-"
    if isinstance(value, str):
        return value
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:.2f}" if abs(value) < 10 else f"{value:.1f}"
