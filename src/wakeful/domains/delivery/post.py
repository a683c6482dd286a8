"""A message as its sender writes it, and a press of one of its buttons as the sender's domain gets it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol


class Post(NamedTuple):
    """A message to be stored."""

    text: str
    to: str  # a connector, last or none
    kind: str = "output"
    title: str | None = None
    job_id: int | None = None
    job: str | None = None
    run_id: int | None = None
    agent: str | None = None
    outcome: str | None = None
    urgent: bool = False
    dedupe: str | None = None
    recipient: str | None = None
    extra: Mapping[str, Any] | None = None


class PressedButton(Protocol):
    """A button that a person pressed."""

    @property
    def on(self) -> str:
        """What it is about: the id of a run or an alert, or a name."""

    @property
    def more(self) -> Mapping[str, Any]:
        """What else the button was made with."""
