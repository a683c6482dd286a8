"""When the machine slept: the times in which the one node of a store did not turn, though it ran."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction

#: A fact of the store: the last times the machine slept, each from when to when.
SLEEPS = "sleeps"
KEPT = 20


def note_sleep(tx: Transaction, begin: int, end: int) -> None:
    """Keep that nothing could run from `begin` to `end`; only where no other node could have."""
    if tx.exclusive:
        tx.facts.put({SLEEPS: json.dumps([*sleeps(tx), (begin, end)][-KEPT:])})


def sleeps(tx: Transaction) -> list[tuple[int, int]]:
    """The last times the machine slept, the oldest first."""
    return [(int(begin), int(end)) for begin, end in json.loads(tx.facts.get(SLEEPS) or "[]")]
