"""Whether a reply says that there is nothing to report: pure functions.

The token counts at the beginning or at the end of a reply. Inside a sentence it is text: a reply that says why the
token cannot be given is an alarm.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

_MARKS = "*_`~\"'"  # what a program that writes Markdown puts around a word


class Ack(NamedTuple):
    """How an agent says that it has nothing to report."""

    token: str
    most: int  # further characters of such a reply
    anywhere: bool = False  # whether the token also counts inside a sentence


def outcome_of(reply: str, ack: Ack | None) -> str:
    """Empty is `ok-empty`; the token and at most so many further characters `ok-ack`; anything else is `sent`."""
    text = reply.strip()
    if not text:
        return "ok-empty"
    rest = None if ack is None else _without_token(text, ack)
    return "sent" if ack is None or rest is None or len(rest) > ack.most else "ok-ack"


def delivered_text(reply: str, ack: Ack | None) -> str:
    """What is sent of a reply: it without the token, unless it is nothing else."""
    text = reply.strip()
    return (None if ack is None else _without_token(text, ack)) or text


def _without_token(text: str, ack: Ack) -> str | None:
    """The text without the token, or None where the token is missing or is part of a sentence."""
    if ack.anywhere:
        return text.replace(ack.token, "").strip() if ack.token in text else None
    first = _after(text, ack.token)
    last = _before(text if first is None else first, ack.token)
    return first if last is None else last.strip()


def _after(text: str, token: str) -> str | None:
    """What follows the token at the beginning of a text."""
    begun = text.lstrip(_MARKS)
    rest = begun.removeprefix(token)
    if rest == begun or rest[:1].isalnum():
        return None
    return _without_stop(rest.lstrip(_MARKS)).lstrip(_MARKS).strip()


def _before(text: str, token: str) -> str | None:
    """What precedes the token at the end of a text. With a full stop it must be a sentence of its own."""
    ended = text.rstrip(_MARKS)
    bare = ended.rstrip(".!").rstrip(_MARKS)
    rest = bare.removesuffix(token)
    said = rest.rstrip(_MARKS)
    if rest == bare or said[-1:].isalnum():
        return None
    is_sentence = not said.strip() or said.rstrip(" \t")[-1] in ".!?:;\n"
    return said if is_sentence or not ended.endswith((".", "!")) else None


def _without_stop(text: str) -> str:
    return text[1:] if text[:1] in (".", "!") else text


def ack_of(payload: Mapping[str, Any]) -> Ack | None:
    """How the replies of a job may acknowledge; None unless it wakes its agent: only then may nothing be an answer."""
    token = payload.get("ack_token")
    if payload.get("does") != "wake" or token is None:
        return None
    return Ack(token, payload.get("ack_max_chars", 300), payload.get("ack_anywhere", False))
