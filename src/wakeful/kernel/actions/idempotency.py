"""Doing what a request asks for once, however often it is sent.

A caller marks a request with a key. The answer is kept under the key in the very transaction that does the work, so
either both are stored or neither is, also after a crash: a request that is sent again finds the answer, or is
done for the first time. Two that come at once are one after the other, on one node and on several. What was refused
leaves the key free, also where the refusal itself is stored.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from wakeful.errors import SchedulerError
from wakeful.store.interface import Transaction
from wakeful.store.records import KeptAnswer

KEPT_MS = 24 * 3_600_000

T = TypeVar("T")


class IdempotentRequest(NamedTuple):
    """A request that carries a key: its caller, what exactly it asks for, and how its answer is rendered.

    An answer is a text that the caller understands; here it is only kept. None is a refusal.
    """

    caller: str
    key: str
    request: str  # the request as a sentence
    content: str  # the same for the same request in every detail
    render: Callable[[Any], str | None]


class Replayed(Exception):
    """The request was done before, and this is what it was answered with. Not an error: an answer from the inside."""

    def __init__(self, answer: str) -> None:
        super().__init__()
        self.answer = answer


class KeyReused(SchedulerError):
    """The key was used for another request."""

    exit_code = 4
    status = 422
    code = "key_reused"


class KeyBusy(SchedulerError):
    """The first request with this key is still being done."""

    exit_code = 4
    status = 409
    code = "in_progress"


def run_idempotent(tx: Transaction, once: IdempotentRequest | None, work: Callable[[], T]) -> T:
    """Do `work` unless it was done under this key, and keep its answer; raises Replayed with the answer if it was."""
    if once is None:
        return work()
    mine = KeptAnswer(once.caller, once.key, once.request, once.content, None, tx.now)
    kept = tx.access.begin_answer(mine)
    if kept is not None and kept.created_at <= tx.now - KEPT_MS:  # it is not pruned yet
        tx.access.drop_answer(once.caller, once.key)
        kept = tx.access.begin_answer(mine)
    if kept is not None:
        _replay(once, kept)
    result = work()
    text = once.render(result)
    if text is None:
        tx.access.drop_answer(once.caller, once.key)
    else:
        tx.access.keep_answer(once.caller, once.key, text)
    return result


def _replay(once: IdempotentRequest, kept: KeptAnswer) -> None:
    if (kept.request, kept.content) != (once.request, once.content):
        message = f"The key {once.key!r} was used for another request ({kept.request}): use a new key."
        raise KeyReused(message)
    if kept.answer is None:
        message = f"The first request with the key {once.key!r} is still being done: ask again in a moment."
        raise KeyBusy(message)
    raise Replayed(kept.answer)
