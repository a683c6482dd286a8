"""Runs that others took over: what their handlers still do must change nothing that their recovery relies on."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction


def holds(tx: Transaction, run_id: int) -> bool:
    """Whether the run is still in progress; asked in the transaction that writes what follows from it."""
    row = tx.runs.get(run_id)
    return row is not None and row.status in ("active", "waiting")
