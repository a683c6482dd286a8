"""`limits` of a file: what all agents together may use in a day, planned and applied with the rest of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.agents.budgets.rules import Caps, Limits, written
from wakeful.agents.budgets.spending import DEFAULT, limits_of, store_limits
from wakeful.kernel.domain import FileChanges

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

NAME = "limits"


class FileLimits:
    """The budget of all agents as a file has it, with the zone of its days."""

    def __init__(self, caps: Caps, zone: str) -> None:
        self._limits = Limits(caps, zone)

    def plan(self, tx: Transaction | None) -> FileChanges:
        """Where the store has another one: the old and the new numbers."""
        old, new = _shown(DEFAULT if tx is None else limits_of(tx)), _shown(self._limits)
        changed = {key: (old.get(key), new.get(key)) for key in old | new if old.get(key) != new.get(key)}
        return FileChanges(update={NAME: changed} if changed else {})

    def apply(self, tx: Transaction, context: Context) -> FileChanges:  # noqa: ARG002 - as every section is applied
        """Keep it; what waited for a larger one looks again."""
        changes = self.plan(tx)
        store_limits(tx, self._limits)
        return changes


def _shown(limits: Limits) -> dict[str, Any]:
    return dict(written(limits.caps))
