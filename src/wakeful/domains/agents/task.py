"""What a run of kind `session` is to do: its job's payload, read and checked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from wakeful.domains.agents.answers import usable_id
from wakeful.errors import InvalidJob

MAX_PROMPT = 200_000
MAX_MODEL = 200


class Task(NamedTuple):
    """What a run of this kind is to do: its job's payload, read."""

    prompt: str
    model: str | None = None
    persist: bool = True
    session: str | None = None  # a session that the caller named, to share it
    deadline_ms: int | None = None

    def to_payload(self) -> dict[str, Any]:
        """As stored: what differs from the defaults."""
        return {
            key: value
            for key, value in self._asdict().items()
            if key == "prompt" or value != self._field_defaults.get(key)
        }


def read_task(payload: Any) -> Task:
    """The task behind a payload, or InvalidJob naming what is wrong with it."""
    if not isinstance(payload, dict):
        message = 'A session job\'s payload is a map with a "prompt".'
        raise InvalidJob(message)
    unknown = set(payload) - set(Task._fields)
    if unknown:
        message = f"A session job's payload has no {min(unknown)!r}: it takes {', '.join(Task._fields)}."
        raise InvalidJob(message)
    checks: dict[str, Callable[[Any], bool]] = {
        "prompt": lambda value: isinstance(value, str) and bool(value.strip()) and len(value) <= MAX_PROMPT,
        "model": lambda value: (
            value is None or (isinstance(value, str) and 0 < len(value) <= MAX_MODEL and value.isprintable())
        ),
        "persist": lambda value: isinstance(value, bool),
        "session": lambda value: value is None or (isinstance(value, str) and usable_id(value)),
        "deadline_ms": lambda value: value is None or (type(value) is int and 0 < value <= 30 * 86_400_000),
    }
    for key, check in checks.items():
        if not check(payload.get(key, Task._field_defaults.get(key))):
            message = f"A session job's {key} cannot be {payload.get(key)!r:.60}."
            raise InvalidJob(message)
    return Task(**payload)
