"""Whose text is a request, and not data: people who are paired, and the owner of a work directory. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

OWN = "own"
"""Of a work item: nobody but the user of this process could have written it."""
NOBODY = "none"


def is_request(request: Mapping[str, Any], chat: Mapping[str, Any] | None) -> bool:
    """Whether what came in is what a person asks for. Only paired people who may start something get this far."""
    return request["type"] == "chat" and (chat or {}).get("trust") != NOBODY


def is_written_by_others(payload: Mapping[str, Any]) -> bool:
    """Whether a run's prompt has text that is data."""
    request, item = payload.get("request"), payload.get("item")
    if payload.get("outside") or (item is not None and not item.get(OWN)):
        return True
    return request is not None and not is_request(request, payload.get("chat"))
