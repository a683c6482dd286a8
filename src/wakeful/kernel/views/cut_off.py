"""Runs that are stored as active and that no process works on: their node has ended, and the next one takes them up."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.kernel.cluster.nodes import Seen, is_gone

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.records import RunRow

CUT_OFF = "cut off"


def cut_off_runs(tx: Transaction, seen: Seen | None) -> dict[int, RunRow]:
    """The active runs of nodes that have ended, by id; none where it is not known which nodes live.

    A run that waits for a report from elsewhere was not cut off. It costs what is active, not what is stored.
    """
    gone = [node for node in tx.nodes.running() if is_gone(tx, node, seen)] if seen is not None else []
    return {run.id: run for run in tx.runs.of_nodes(gone)} if gone else {}
