"""Wakeful wakes jobs, agents and workflows at the right time, once, and can explain what it did."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wakeful.errors import (
    ActionNotFound,
    AlertNotFound,
    AlreadyExists,
    CannotUndo,
    ChangedSinceRead,
    IntervalParseError,
    InvalidJob,
    InvalidSetting,
    InvalidTrigger,
    JobExists,
    JobNotFound,
    NodeNotAlive,
    NodeNotFound,
    NotFound,
    RunNotFound,
    SchedulerError,
    SchedulerForked,
    SchedulerNotOpen,
    SchedulerShutdownError,
    ScheduleTriggerError,
    SlotNotFound,
    StoreError,
    StoreFull,
    StoreGone,
    StoreLocked,
    StoreRefused,
    StoreUnreachable,
    StoreUnusable,
    TokenExists,
    TokenNotFound,
)
from wakeful.version import __version__ as __version__

if TYPE_CHECKING:
    from wakeful import sync as sync
    from wakeful.domains.agents import Reply, Turn
    from wakeful.domains.workflows import (
        Applied,
        Context,
        LogicError,
        MutationResult,
        NotApplied,
        Prepared,
        StepFailed,
        Unknown,
        Workflow,
    )
    from wakeful.kernel.actions.drafts import NewJob
    from wakeful.kernel.cluster.nodes import Node
    from wakeful.kernel.loop.config import Retention, Tuning
    from wakeful.kernel.model.job import Job
    from wakeful.kernel.model.run import Run
    from wakeful.kernel.rules.option_fields import JobChanges, JobOptions
    from wakeful.kernel.rules.outcome import ApprovalNeeded, Defer, Noop, Skip, TransientError, Wait
    from wakeful.kernel.rules.verdict import Verdict
    from wakeful.kernel.views.actions import Action, Undone
    from wakeful.kernel.views.events import Event
    from wakeful.kernel.views.explain import Explanation
    from wakeful.kernel.views.history import RunStats
    from wakeful.kernel.views.ledger import Ledger, Tally
    from wakeful.kernel.views.records import Alert, Token
    from wakeful.kernel.views.slots import Slot
    from wakeful.scheduler import Scheduler, SchedulerState, Summary
    from wakeful.triggers import (
        ActiveHours,
        After,
        Chat,
        Cron,
        Every,
        Interval,
        Manual,
        Once,
        Ping,
        Trigger,
        Webhook,
        parse_interval,
    )
    from wakeful.triggers.sentences import when

#: The modules that the public names are in. A module is loaded when one of its names is first used, so that a program
#: that only runs jobs starts without what explains, lists and undoes.
_HOMES = {
    "domains.agents": "Reply Turn",
    "kernel.actions.drafts": "NewJob",
    "kernel.cluster.nodes": "Node",
    "kernel.loop.config": "Retention Tuning",
    "kernel.rules.option_fields": "JobChanges JobOptions",
    "kernel.rules.outcome": "ApprovalNeeded Defer Noop Skip TransientError Wait",
    "kernel.rules.verdict": "Verdict",
    "kernel.views.actions": "Action Undone",
    "kernel.views.events": "Event",
    "kernel.views.explain": "Explanation",
    "kernel.views.history": "RunStats",
    "kernel.views.ledger": "Ledger Tally",
    "kernel.model.job": "Job Run",
    "kernel.views.records": "Alert Token",
    "kernel.views.slots": "Slot",
    "scheduler": "Scheduler SchedulerState Summary",
    "triggers": "ActiveHours After Chat Cron Every Interval Manual Once Ping Trigger Webhook parse_interval",
    "triggers.sentences": "when",
    "domains.workflows": "Applied Context LogicError MutationResult NotApplied Prepared StepFailed Unknown Workflow",
}
_HOME_OF = {name: f"{__name__}.{module}" for module, names in _HOMES.items() for name in names.split()}
_MODULES = ("agents", "alerts", "cli", "delivery", "http", "monitors", "sync", "triggers", "workflows")


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _HOME_OF:
        message = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(message)
    found = globals()[name] = getattr(importlib.import_module(_HOME_OF[name]), name)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})


__all__ = [
    "Action",
    "ActionNotFound",
    "ActiveHours",
    "After",
    "Alert",
    "AlertNotFound",
    "AlreadyExists",
    "Applied",
    "ApprovalNeeded",
    "CannotUndo",
    "ChangedSinceRead",
    "Chat",
    "Context",
    "Cron",
    "Defer",
    "Event",
    "Every",
    "Explanation",
    "Interval",
    "IntervalParseError",
    "InvalidJob",
    "InvalidSetting",
    "InvalidTrigger",
    "Job",
    "JobChanges",
    "JobExists",
    "JobNotFound",
    "JobOptions",
    "Ledger",
    "LogicError",
    "Manual",
    "MutationResult",
    "NewJob",
    "Node",
    "NodeNotAlive",
    "NodeNotFound",
    "Noop",
    "NotApplied",
    "NotFound",
    "Once",
    "Ping",
    "Prepared",
    "Reply",
    "Retention",
    "Run",
    "RunNotFound",
    "RunStats",
    "ScheduleTriggerError",
    "Scheduler",
    "SchedulerError",
    "SchedulerForked",
    "SchedulerNotOpen",
    "SchedulerShutdownError",
    "SchedulerState",
    "Skip",
    "Slot",
    "SlotNotFound",
    "StepFailed",
    "StoreError",
    "StoreFull",
    "StoreGone",
    "StoreLocked",
    "StoreRefused",
    "StoreUnreachable",
    "StoreUnusable",
    "Summary",
    "Tally",
    "Token",
    "TokenExists",
    "TokenNotFound",
    "TransientError",
    "Trigger",
    "Tuning",
    "Turn",
    "Undone",
    "Unknown",
    "Verdict",
    "Wait",
    "Webhook",
    "Workflow",
    "parse_interval",
    "sync",
    "when",
]
