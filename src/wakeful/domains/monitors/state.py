"""A monitor as users see it: whether what it watches is up, and until when its silence is tolerated."""

from __future__ import annotations

from typing import Any

from wakeful.store.records import JobState
from wakeful.triggers import Ping, Trigger, format_interval
from wakeful.triggers.moments import iso


def state_of(state: JobState, now: int) -> str:
    """new, up, late, down or paused."""
    if state.paused or not state.enabled:
        return "paused"
    if state.errors:
        return "down"
    if state.slot is not None and state.slot <= now:
        return "late"
    return "new" if state.last_run_at is None else "up"


def monitor_of(trigger: Trigger, state: JobState, now: int) -> dict[str, Any]:
    """The monitor as plain data."""
    assert isinstance(trigger, Ping)  # noqa: S101 - jobs of this kind have no other
    deadline = state.due_at if state.run_id is not None else state.next_at
    last = max(state.last_run_at or 0, state.last_finished_at or 0)
    return {
        "state": state_of(state, now),
        "running": state.run_id is not None,
        "expected_at": _wire(state.slot),
        "deadline": _wire(deadline),
        "grace": format_interval(trigger.grace_ms),
        "last_ping_at": _wire(last or None),
        "down_since": _wire(state.failing_since),
        "ping_url": None,
    }


def _wire(ms: int | None) -> str | None:
    return iso(ms) if ms is not None else None
