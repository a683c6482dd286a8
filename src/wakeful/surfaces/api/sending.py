"""Answers on their way out: long ones are sent in pieces, and all that are being sent are within one bound.

A client that asks and does not read leaves its answer with us. What is handed to the connection at once is kept there
twice, so a long answer goes out piece by piece, each when the one before was taken; and there is only so much room for
long answers together, a small part of it for callers without a token. A short answer always goes out.
"""

from __future__ import annotations

from collections.abc import Iterator

from starlette.types import Message

from wakeful.routing.problems import ApiError

PIECE = 64 * 1024  # bytes; an answer that is not longer is short
MOST_TOGETHER = 64 * 1024 * 1024
MOST_UNKNOWN = 16 * 1024 * 1024  # for callers without a token


class SendBudget:
    """What is taken by the long answers of a server that are being sent."""

    def __init__(self) -> None:
        self._held = {True: 0, False: 0}  # bytes, by whether their callers are known

    def take(self, size: int, *, is_known: bool) -> None:
        """Keep a long answer of so many bytes; 503 if there is no room for it alongside others."""
        others = self._held[True] + self._held[False] if is_known else self._held[False]
        if others and others + size > (MOST_TOGETHER if is_known else MOST_UNKNOWN):
            sentence = "Too many long answers wait to be read: ask again in a moment, or for less."
            raise ApiError(503, "busy", sentence, headers={"Retry-After": "5"})
        self._held[is_known] += size

    def give_back(self, size: int, *, is_known: bool) -> None:
        self._held[is_known] -= size


def length_of(start: Message) -> int:
    """How long an answer is that begins so; 0 for one that does not say, which is sent in pieces by who makes it."""
    given = next((value for name, value in start.get("headers", ()) if name.lower() == b"content-length"), b"0")
    return int(given) if given.isdigit() else 0


def pieces(message: Message) -> Iterator[Message]:
    """A part of an answer as parts that are no longer than a piece."""
    body, more = message.get("body", b""), message.get("more_body", False)
    for begin in range(0, max(1, len(body)), PIECE):
        end = begin + PIECE
        yield {**message, "body": body[begin:end], "more_body": more or end < len(body)}
