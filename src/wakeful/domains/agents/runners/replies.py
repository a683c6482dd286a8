"""The reply in what a session server answered or reported. Pure."""

from __future__ import annotations

import json
from typing import Any

from wakeful.domains.agents.runners.turn import Reply
from wakeful.domains.agents.runners.usage import countable

PLACES = ("reply", "result", "output", "text", "message", "answer")
LONGEST_REPLY = 100_000


def reply_in(body: Any, session: str | None) -> Reply:
    """The text of an answer, with what it says about cost and tokens; an object without a text is the text itself."""
    said = body if isinstance(body, dict) else {}
    text = next((said[key] for key in PLACES if isinstance(said.get(key), str)), None)
    if text is None:
        text = body if isinstance(body, str) else "" if body is None else json.dumps(body, ensure_ascii=False)
    counts = (said.get("cost"), said.get("tokens_in"), said.get("tokens_out"))
    return countable(Reply(text[:LONGEST_REPLY], session, *counts))
