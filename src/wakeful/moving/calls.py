"""A call of a Python function as a command: `python3 -c "from tasks import tick; tick(1)"`."""

from __future__ import annotations

import math
from typing import Any

MOST_VALUES, DEEPEST, LONGEST = 1_000, 10, 20_000


class NoCall(Exception):
    """A call that cannot be written; the reason, as the end of a sentence."""


def call_command(reference: str, args: Any, kwargs: Any) -> list[str]:
    """The command that imports a function (`package.module:name`) and calls it; only plain values are written."""
    module, _, function = reference.partition(":")
    parts = (*module.split("."), *function.split("."))
    if not function or not all(part.isidentifier() for part in parts):
        raise NoCall(f"{reference!r:.80} does not name a function of a module")
    if not isinstance(args, list | tuple) or not isinstance(kwargs, dict):
        raise NoCall("its arguments are not a list and a map")
    writer = _Writer()
    given = [writer.text(value) for value in args]
    for name, value in kwargs.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise NoCall(f"{name!r:.40} is not the name of an argument")
        given.append(f"{name}={writer.text(value)}")
    first = function.partition(".")[0]
    return ["python3", "-c", f"from {module} import {first}; {function}({', '.join(given)})"]


class _Writer:
    """Writes values as Python has them; what shares parts with itself is counted as often as it is written."""

    def __init__(self) -> None:
        self._left, self._room = MOST_VALUES, LONGEST

    def text(self, value: Any, depth: int = 0) -> str:
        self._left -= 1
        if self._left < 0 or depth > DEEPEST:
            raise NoCall("its arguments are too many to write")
        kind = type(value)
        if kind in (list, tuple):
            return self._several(value, depth)
        if kind is dict:
            return "{" + ", ".join(f"{self.text(k, depth)}: {self.text(v, depth + 1)}" for k, v in value.items()) + "}"
        if value is None or kind in (bool, int, str) or (kind is float and math.isfinite(value)):
            return self._plain(value)
        raise NoCall(f"an argument of type {kind.__name__} cannot be written")

    def _several(self, value: Any, depth: int) -> str:
        inner = ", ".join(self.text(item, depth + 1) for item in value)
        if type(value) is list:
            return f"[{inner}]"
        return f"({inner},)" if len(value) == 1 else f"({inner})"

    def _plain(self, value: Any) -> str:
        if type(value) is int and value.bit_length() > 1000:
            raise NoCall("an argument is a number that is too large")
        text = repr(value)
        self._room -= len(text)
        if self._room < 0:
            raise NoCall("its arguments are too long")
        return text
