"""Actions as users see them: what people did, and what taking one back did."""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from wakeful import ids
from wakeful.kernel.rules.undoing import FINAL, UNDO_MS
from wakeful.store.actions import ActionHead
from wakeful.triggers.moments import from_ms, iso, to_ms


class Action(NamedTuple):
    """An action on jobs or alerts."""

    id: str
    at: datetime
    what: str
    """`pause`, `resume`, `disable`, `remove`, `acknowledge`, `snooze`, `pause_all` and `resume_all` of everything,
    `pause_workflow`, `resume_workflow`, `drain_workflow`, or `apply` where it was several things. What cannot be undone
    is on record, too: `run`, `retry`, `cancel`, `approve`, `reject`, `add`, `edit`, `drain`, `undrain`, `revoke_token`
    and `cancel_message`."""
    actor: str
    """Who did it: a user, the name of a token, or that of a program's node."""
    via: str
    """From where: `cli`, `api`, `chat`, `code` or `file`."""
    name: str
    """The first job or alert it changed."""
    changed: int
    """How many it changed."""
    undoable: bool
    """Whether this is something that can be taken back, for a while."""
    undo_until: datetime | None
    """Until when it can be taken back; None when it cannot, or was."""
    undone_at: datetime | None
    undone_by: str | None

    def __repr__(self) -> str:
        others = f" and {self.changed - 1} more" if self.changed > 1 else ""
        return f"<Action {self.id} {self.what} {self.name}{others} by {self.actor}>"

    def to_dict(self) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC."""
        fields = self._asdict().items()
        return {name: iso(to_ms(value)) if isinstance(value, datetime) else value for name, value in fields}


class Undone(NamedTuple):
    """The result of an undo; `kept` says why others stay as they are."""

    id: str
    what: str
    restored: list[str]
    kept: dict[str, str]

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**self._asdict(), "count": len(self.restored)}


def action_view(head: ActionHead, now: int) -> Action:
    """An action as users see it."""
    open_until = head.at + UNDO_MS
    undoable = head.what not in FINAL
    can = undoable and head.undone < head.subjects and now <= open_until
    return Action(
        ids.encode("act", head.id),
        from_ms(head.at),
        head.what,
        head.actor,
        head.via,
        head.name,
        head.subjects,
        undoable,
        from_ms(open_until) if can else None,
        from_ms(head.undone_at) if head.undone_at is not None else None,
        head.undone_by,
    )
