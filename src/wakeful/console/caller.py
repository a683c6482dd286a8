"""Who acts at this terminal, and how what they did can be undone."""

from __future__ import annotations

import getpass

from wakeful.console.failures import say_aside
from wakeful.kernel.actions.authorization import Rights
from wakeful.kernel.rules.undoing import UNDO_MS
from wakeful.scheduler import Scheduler


def user_name() -> str:
    """The person at this terminal, as far as the system knows."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return "unknown"


def rights_here(scheduler: Scheduler | None = None) -> Rights:
    """A user who can open the store may do everything. With a scheduler, all of it is recorded as one action."""
    action = scheduler.server_side.new_action() if scheduler is not None else None
    return Rights(user_name(), admin_kinds=True, priority=True, via="cli", action=action)


def say_undo(action: str | None) -> None:
    """How what was just done can be undone."""
    if action is not None:
        say_aside(f"undo within {UNDO_MS // 60_000} minutes: wakeful undo {action}")
