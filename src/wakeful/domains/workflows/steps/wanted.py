"""A step as a handler asks for it, and what an approval of it is about."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from wakeful.domains.workflows.steps.authoring import STEP_LIMIT_MS

if TYPE_CHECKING:
    import asyncio

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


class StepRequest:
    """A step as the handler asks for it."""

    def __init__(self, name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        self.name = name
        self.function = function
        self.args = args
        self.kwargs = kwargs
        self.limit = STEP_LIMIT_MS
        self.caller: asyncio.Task[Any] | None = None

    def mark(self) -> str:
        """What an approval of it is about: the step, and what it is given; the same for whoever gives the same."""
        given = [self.name, self.args, self.kwargs]
        try:
            return json.dumps(given, default=_as_given, sort_keys=True)
        except (TypeError, ValueError):  # keys that no JSON has
            return _ADDRESS.sub("", repr(given))


def _as_given(value: Any) -> Any:
    """What is no JSON, without what differs from one process to the next."""
    if isinstance(value, set | frozenset):
        return sorted(_ADDRESS.sub("", repr(one)) for one in value)
    return _ADDRESS.sub("", repr(value))
