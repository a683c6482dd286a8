"""What authors of workflows import; the code is in `domains/workflows`."""

from __future__ import annotations

from wakeful.domains.workflows import (
    Applied,
    Context,
    Event,
    Events,
    FixRequest,
    LogicError,
    MutationResult,
    NotApplied,
    PlainContext,
    Prepared,
    StepFailed,
    Unknown,
    Workflow,
)

__all__ = [
    "Applied", "Context", "Event", "Events", "FixRequest", "LogicError", "MutationResult", "NotApplied",
    "PlainContext", "Prepared", "StepFailed", "Unknown", "Workflow",
]  # fmt: skip
