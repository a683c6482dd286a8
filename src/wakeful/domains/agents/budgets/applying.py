"""`limits` of a file: what all agents together may use in a day, planned and applied with the rest of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from wakeful.domains.agents.budgets.rules import BudgetLimits, written
from wakeful.domains.agents.budgets.spending import DEFAULT, limits_of, store_limits
from wakeful.kernel.domain import FileChanges

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction

NAME = "limits"


class FileLimits:
    """The budget of all agents as a file has it, and what is to be said about budgets of the file."""

    def __init__(self, limits: BudgetLimits, notes: Sequence[str] = ()) -> None:
        self._limits, self._notes = limits, tuple(notes)

    def plan(self, tx: Transaction | None) -> FileChanges:
        """Where the store has another one: the old and the new numbers."""
        old, new = _shown(DEFAULT if tx is None else limits_of(tx)), _shown(self._limits)
        changed = {key: (old.get(key), new.get(key)) for key in old | new if old.get(key) != new.get(key)}
        if "runs_per_day" in changed:
            changed.pop("default_runs_per_day", None)  # which follows from it
        return FileChanges(update={NAME: changed} if changed else {}, notes=self._notes)

    def apply(self, tx: Transaction, context: Context) -> FileChanges:  # noqa: ARG002 - as every section is applied
        """Keep it; what waited for a larger one looks again."""
        changes = self.plan(tx)
        store_limits(tx, self._limits)
        return changes


def _shown(limits: BudgetLimits) -> dict[str, Any]:
    return {**written(limits.caps), "default_runs_per_day": limits.each}
