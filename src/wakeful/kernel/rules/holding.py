"""A hold on everything: its fields, its stored form and its description. Pure."""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from wakeful.triggers.moments import iso, spoken


class Hold(NamedTuple):
    """Everything is held: by whom, since when and why. With `messages` nothing is sent either."""

    at: int
    by: str
    note: str | None = None
    messages: bool = False

    @property
    def text(self) -> str:
        """As it is stored."""
        return json.dumps(self._asdict())

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {"since": iso(self.at), "by": self.by, "note": self.note, "messages": self.messages}


def hold_of(text: str | None) -> Hold | None:
    """The hold from its stored form; fields that a later version added are left out."""
    if text is None:
        return None
    found: dict[str, Any] = json.loads(text)
    return Hold(**{name: value for name, value in found.items() if name in Hold._fields})


def hold_words(hold: Hold) -> str:
    """By whom, since when and why: what stands after "Everything is paused"."""
    why = f" ({hold.note.rstrip('.')})" if hold.note else ""
    return f"by {hold.by} since {spoken(hold.at)}{why}"
