"""What the buttons under messages about workflows do: settle, try again, deploy or reject a correction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wakeful.domains.workflows import actions
from wakeful.domains.workflows.issues import VERDICT_LABELS
from wakeful.kernel.actions.recording import Origin

if TYPE_CHECKING:
    from wakeful.domains.delivery import PressedButton
    from wakeful.kernel.context import Context
    from wakeful.store.interface import Transaction


def settle(tx: Transaction, context: Context, pressed: PressedButton, by: str) -> str:
    """Say whether an uncertain mutation happened."""
    verdict = str(pressed.more.get("verdict"))
    actions.settle(tx, context, _workflow(pressed), pressed.on, verdict, who=by)
    return f"Settled: {VERDICT_LABELS[verdict].lower()}."


def resume(tx: Transaction, context: Context, pressed: PressedButton, by: str) -> str:
    """Let the workflow try again."""
    actions.resume(tx, context, pressed.on, who=by, origin=Origin(by, "chat", context.new_id()))
    return f"{pressed.on} tries again."


def correct(tx: Transaction, context: Context, pressed: PressedButton, by: str) -> str:
    """Approve a correction of the code."""
    actions.approve(tx, context, _workflow(pressed), pressed.on, who=by)
    return "The correction is being deployed."


def leave(tx: Transaction, context: Context, pressed: PressedButton, by: str) -> str:
    """Reject a correction of the code."""
    actions.reject(tx, context, _workflow(pressed), pressed.on, who=by)
    return "The correction is rejected."


def _workflow(pressed: PressedButton) -> str:
    return str(pressed.more.get("workflow", ""))
