"""Jobs that were declared in code and that no running program handles: renamed or dropped there, left in the store."""

from __future__ import annotations

import json
from collections.abc import Iterable

from wakeful.store.interface import Transaction

MOST_NAMED = 20


def orphans(tx: Transaction, handled: Iterable[str] = ()) -> list[str]:
    """The names of enabled jobs that a program once declared and no live node handles; `handled`: by this one.

    The program that declares such a job may merely not be running: only a person knows, so nothing is removed.
    """
    names = tx.jobs.declared()
    if not names:
        return []
    served = set(handled)
    for node in tx.members.alive():
        served.update(json.loads(node.details).get("kinds", ()))
    return [name for name in names if name not in served]
