"""What a failure means: classified by where it arose and by its type, never by its message. Pure."""

from __future__ import annotations

from typing import Literal

from wakeful.kernel.rules.outcome import ApprovalNeeded, TransientError
from wakeful.workflows.phases import Failure

Place = Literal["handler", "call", "mutate", "timeout", "timeout_in_mutate", "engine"]
"""Where: in a handler's own code, in a call it made through `ctx`, in mutate, a call's time limit, our own code."""


class LogicError(Exception):
    """The workflow's code or data is wrong: no retry helps, a person or a new version must."""


def classify(error: BaseException, place: Place) -> Failure:
    """The class of a failure that arose in that place."""
    if place == "engine":
        return "internal"
    if isinstance(error, ApprovalNeeded):
        return "approval"
    if isinstance(error, TransientError):
        return "transient"
    if place in ("mutate", "timeout_in_mutate"):
        return "reconciliation"  # whether it changed something outside is not known
    if place == "timeout":
        return "transient"
    if place == "call" and isinstance(error, ConnectionError | TimeoutError):
        return "transient"
    if place == "call" and isinstance(error, PermissionError):
        return "approval"
    return "logic"
