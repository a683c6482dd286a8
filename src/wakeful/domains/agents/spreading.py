"""Heartbeats that are stored together, spread over their interval. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

from wakeful.domains.agents.naming import HEARTBEAT
from wakeful.triggers import Every, iso, trigger_from_data

if TYPE_CHECKING:
    from wakeful.kernel.hooks import Draft


def spread_beats(drafts: Sequence[Draft], now: int) -> dict[str, Every]:
    """The heartbeats among new jobs with a grid of their own each, by name.

    Those of one interval beat one after the other at equal distances: in the order of their names, the first one a
    whole interval from now, the others before it. A heartbeat that is stored alone has its grid from now on.
    """
    together: defaultdict[int, dict[str, Every]] = defaultdict(dict)
    for draft in drafts:
        trigger = draft.trigger
        if draft.name.endswith(f".{HEARTBEAT}") and isinstance(trigger, Every) and trigger.anchor_ms is None:
            together[trigger.interval_ms][draft.name] = trigger
    return {
        name: _from(beats[name], now - interval * number // len(beats))
        for interval, beats in together.items()
        for number, name in enumerate(sorted(beats))
    }


def _from(trigger: Every, anchor: int) -> Every:
    placed = trigger_from_data({**trigger.to_data(), "anchor": iso(anchor)})
    assert isinstance(placed, Every)  # noqa: S101 - made from one
    return placed
