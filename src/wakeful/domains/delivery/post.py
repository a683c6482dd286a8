"""A message as its sender writes it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple


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
