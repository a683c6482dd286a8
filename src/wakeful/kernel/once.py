"""Doing what a request asks for once, however often it is sent.

A caller marks a request with a key. The answer is kept under the key in the very transaction that does the work, so
whatever dies in between, either both are stored or neither is: a request that is sent again finds the answer, or is
done for the first time. Two that come at once are one after the other, on one node and on several. What was refused
changed nothing, and leaves the key free.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from wakeful.errors import SchedulerError
from wakeful.store.interface import Transaction
from wakeful.store.records import KeptAnswer

KEPT_MS = 24 * 3_600_000

T = TypeVar("T")


class Answer(NamedTuple):
    """What a request was answered with."""

    status: int
    headers: dict[str, str]
    body: str


class Once(NamedTuple):
    """A request that carries a key: who asks, what exactly for, and how what it does is told."""

    caller: str
    key: str
    method: str
    path: str
    body_hash: str
    tell: Callable[[Any], Answer]


class Replayed(Exception):
    """The request was done before, and this is what it was answered with. Not an error: an answer from the inside."""

    def __init__(self, answer: Answer) -> None:
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


def exactly_once(tx: Transaction, once: Once | None, work: Callable[[], T]) -> T:
    """Do `work` unless it was done under this key, and keep its answer; raises Replayed with the answer if it was."""
    if once is None:
        return work()
    mine = KeptAnswer(once.caller, once.key, once.method, once.path, once.body_hash, None, None, None, tx.now)
    kept = tx.access.begin_answer(mine)
    if kept is not None and kept.created_at <= tx.now - KEPT_MS:  # nobody has swept it up yet
        tx.access.drop_answer(once.caller, once.key)
        kept = tx.access.begin_answer(mine)
    if kept is not None:
        _replay(once, kept)
    result = work()
    answer = once.tell(result)
    tx.access.keep_answer(once.caller, once.key, answer.status, json.dumps(answer.headers), answer.body)
    return result


def _replay(once: Once, kept: KeptAnswer) -> None:
    if (kept.method, kept.path, kept.body_hash) != (once.method, once.path, once.body_hash):
        message = f"The key {once.key!r} was used for another request ({kept.method} {kept.path}): use a new key."
        raise KeyReused(message)
    if kept.status is None:
        message = f"The first request with the key {once.key!r} is still being done: ask again in a moment."
        raise KeyBusy(message)
    raise Replayed(Answer(kept.status, json.loads(kept.headers or "{}"), kept.body or ""))
