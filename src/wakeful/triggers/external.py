"""Triggers started by something other than time: by another job's end, by hand, by a message."""

from __future__ import annotations

import json
from typing import Any, Literal

from wakeful.errors import InvalidTrigger
from wakeful.triggers.base import Trigger

ENDS = {"success": "succeeds", "failure": "fails", "any": "ends"}
#: What people call the job's own runs: a job of such a name stands in quotes.
OWN_RUNS = frozenset(f"{which} run" for which in ("the last", "the previous", "last", "each", "every")) | {"it"}


def spoken_name(text: str) -> str:
    """The name in `the backup job`."""
    inner = text.lower().startswith("the ") and text.lower().endswith(" job") and text[4:-4].strip()
    return inner or text


class After(Trigger):
    """`After("backup")`: when that job succeeds; `on="failure"` when it fails, `on="any"` however it ends."""

    __slots__ = ("job", "on")
    _fields = ("job", "on")
    type = "after"
    job: str
    on: str

    def __init__(self, job: str, on: Literal["success", "failure", "any"] = "success") -> None:
        given: object = job
        when: object = on
        if not isinstance(given, str) or not given.strip():
            raise InvalidTrigger("after needs the name or id of the job to wait for.", "job")
        if not isinstance(when, str) or when not in ENDS:
            raise InvalidTrigger(f'on must be "success", "failure" or "any", not {on!r:.40}.', "on")
        self._set(job=job, on=on)

    def describe(self) -> str:
        plain = self.job == " ".join(self.job.split()) and not self.job.startswith('"')
        plain = plain and self.job.lower() not in OWN_RUNS and spoken_name(self.job) == self.job
        return f"after {self.job if plain else json.dumps(self.job)} {ENDS[self.on]}"

    def to_data(self) -> dict[str, Any]:
        return {"type": self.type, "job": self.job, "on": self.on}

    def __repr__(self) -> str:
        return f"After({self.job!r}, on={self.on!r})"


class Webhook(Trigger):
    """Fires on an authenticated HTTP request."""

    __slots__ = ()
    type = "webhook"

    def describe(self) -> str:
        return "when its webhook is called"

    def __repr__(self) -> str:
        return "Webhook()"


class Chat(Trigger):
    """Fires on a message that a connector brings."""

    __slots__ = ()
    type = "chat"

    def describe(self) -> str:
        return "when a chat message arrives"

    def __repr__(self) -> str:
        return "Chat()"


class Manual(Trigger):
    """Fires when a person or a program asks for it."""

    __slots__ = ()
    type = "manual"

    def describe(self) -> str:
        return "only when asked to"

    def __repr__(self) -> str:
        return "Manual()"
