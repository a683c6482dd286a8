"""Workflows: producers that look for new things, consumers that work on them, and runs that survive every crash.

What must stay true:
- one run at a time per workflow, on all nodes together, and consumers before producers;
- no mutation is made a second time unless reconcile or a person says that the first did not happen;
- no event is lost and none is consumed twice: each checkpoint is one transaction;
- one handler that is stuck stops its workflow, and what is due meanwhile waits.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wakeful.domains.workflows.admission import SKIP_REASONS
from wakeful.kernel.domain import Domain, load
from wakeful.kernel.kinds import Kind, without_hooks

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wakeful.domains.workflows.authoring import (
        Applied,
        Event,
        Events,
        MutationResult,
        NotApplied,
        Prepared,
        Unknown,
        Workflow,
    )
    from wakeful.domains.workflows.context import Context
    from wakeful.domains.workflows.failures import LogicError
    from wakeful.domains.workflows.fixes.hook import FixRequest
    from wakeful.domains.workflows.plain_functions import PlainContext
    from wakeful.domains.workflows.steps.failures import StepFailed
    from wakeful.kernel.context import Context as Transacting
    from wakeful.kernel.hooks import Refused
    from wakeful.kernel.model.explanations import Subject
    from wakeful.kernel.rules.outcome import Result
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef, JobState, RunRow

__all__ = [
    "KIND", "Applied", "Context", "Event", "Events", "FixRequest", "LogicError", "MutationResult", "NotApplied",
    "PlainContext", "Prepared", "StepFailed", "Unknown", "Workflow", "domain",
]  # fmt: skip

KIND = "workflow"
LANE = "workflow:"  # of the runs of one workflow
_OFFERED = {
    "Applied": "authoring",
    "Context": "context",
    "Event": "authoring",
    "Events": "authoring",
    "FixRequest": "fixes.hook",
    "LogicError": "failures",
    "MutationResult": "authoring",
    "NotApplied": "authoring",
    "PlainContext": "plain_functions",
    "Prepared": "authoring",
    "StepFailed": "steps.failures",
    "Unknown": "authoring",
    "Workflow": "authoring",
}


def __getattr__(name: str) -> Any:
    if name in _OFFERED:
        return load(f"wakeful.domains.workflows.{_OFFERED[name]}:{name}")
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)


def _check(payload: Any) -> None:
    from wakeful.errors import InvalidJob

    if not isinstance(payload, dict) or set(payload) != {"workflow", "handler"}:
        raise InvalidJob("Jobs of kind workflow belong to workflows: write a workflow, and deploy it.")


def _reserves(tx: Transaction, names: Sequence[str]) -> str | None:
    from wakeful.domains.workflows.tables import WorkflowVerbs

    deployed = tx.of(WorkflowVerbs).deployed(sorted({name.partition(".")[0] for name in names}))
    taken = next((name for name in names if name.partition(".")[0] in deployed), None)
    if taken is None:
        return None
    return f"{taken!r:.120} would be a handler of the workflow {taken.partition('.')[0]}: choose another name."


def _admit(tx: Transaction, context: Transacting, job: JobDef, state: JobState) -> Refused | None:
    from wakeful.domains.workflows import hooks  # loaded when a workflow runs

    return hooks.admit(tx, context, job, state)


def _by_hand(tx: Transaction, _: Transacting, job: JobDef) -> Refused | None:
    from wakeful.domains.workflows import hooks

    return hooks.by_hand(tx, job)


def _story(subject: Subject) -> list[str]:
    from wakeful.domains.workflows.explanation import story

    return story(subject)


def _standing(subject: Subject) -> str | None:
    from wakeful.domains.workflows.explanation import standing

    return standing(subject)


def _claimed(tx: Transaction, context: Transacting, job: JobDef, run: RunRow) -> Mapping[str, Any] | None:
    from wakeful.domains.workflows import hooks

    return hooks.claimed(tx, context, job, run)


def _ended(tx: Transaction, context: Transacting, job: JobDef, run: RunRow, result: Result) -> None:
    from wakeful.domains.workflows import hooks

    hooks.ended(tx, context, job, run, result)


def _rearmed(tx: Transaction, context: Transacting, job: JobDef, state: JobState) -> JobState:
    from wakeful.domains.workflows.arming import arm_resumed

    return arm_resumed(tx, context, job, state)


def _set_back(tx: Transaction, back_ms: int, newer: int) -> None:
    from wakeful.domains.workflows.steps.tables import Tasks
    from wakeful.domains.workflows.tables import WorkflowVerbs

    tx.of(WorkflowVerbs).set_back(tx.now, back_ms, newer)
    tx.of(Tasks).set_back(tx.now, back_ms)


def _succeeded(tx: Transaction, run_ids: Sequence[int]) -> Mapping[int, Result]:
    from wakeful.domains.workflows import hooks

    return hooks.succeeded(tx, run_ids)


def _phases(tx: Transaction, run_ids: Sequence[int]) -> Mapping[int, str]:
    from wakeful.domains.workflows.tables import WorkflowVerbs

    return tx.of(WorkflowVerbs).phases(run_ids)


def _steps(tx: Transaction, run_ids: Sequence[int]) -> Mapping[int, list[dict[str, Any]]]:
    from wakeful.domains.workflows.steps.shown import steps_of_runs

    return steps_of_runs(tx, run_ids)


def _prune(tx: Transaction, before: int, limit: int) -> int:
    from wakeful.domains.workflows import hooks

    return hooks.prune(tx, before, limit)


def _runs_pruned(tx: Transaction, run_ids: Sequence[int]) -> None:
    from wakeful.domains.workflows.tables import WorkflowVerbs

    tx.of(WorkflowVerbs).forget_runs(run_ids)


def _thin(tx: Transaction, most: int, limit: int) -> int:
    from wakeful.domains.workflows import hooks

    return hooks.thin(tx, most, limit)


domain = Domain(
    "workflow",
    kinds=(
        Kind(
            KIND,
            simulated=without_hooks,
            check_payload=_check,
            reserved_lanes=(LANE,),
            admin_only=True,
            patient=True,
            alerts_itself=True,
            admit=_admit,
            by_hand=_by_hand,
            claimed=_claimed,
            ended=_ended,
            rearmed=_rearmed,
            set_back=_set_back,
            succeeded=_succeeded,
            reserves=_reserves,
            managed="it belongs to its workflow. Change the workflow, or take it out of wakeful.yaml",
            ends_itself="it asks whether its change happened. Settle that (wakeful workflow settle)",
        ),
    ),
    precious_tables=("workflows", "workflow_events"),
    prune=_prune,
    thin=_thin,
    runs_pruned=_runs_pruned,
    id_prefixes={"event_id": "evt", "input_id": "inp", "fix_id": "fix"},
    streams=("workflow",),
    alerts={
        "workflow": "a workflow waits for a person to act",
        "parked": "events of a workflow failed and are set aside until a person acts",
    },
    skip_reasons=SKIP_REASONS,
    start_reasons={
        "event": "an event came",
        "wake_time": "it asked to be woken then",
        "deployed": "it was deployed",
        "continued": "it continues its last run",
    },
    stories={KIND: _story},
    standings={KIND: _standing},
    started_when={KIND: "when an event arrives"},
    run_phases={KIND: _phases},
    run_steps={KIND: _steps},
    parts={
        "workflows": "wakeful.domains.workflows.operating:Operating",
        "add_workflow": "wakeful.domains.workflows.adding:adding_to",
    },
    section="workflows",
    settings="wakeful.domains.workflows.configuration:WorkflowSection",
    install="wakeful.domains.workflows.configuration:install_configured",
    reload="wakeful.domains.workflows.configuration:reload_configured",
    apply="wakeful.domains.workflows.configuration:ready_to_apply",
    undo={f"{what}_workflow": "wakeful.domains.workflows.undoing:take_back" for what in ("pause", "drain", "resume")},
    buttons={
        "settle": "wakeful.domains.workflows.chat:settle",
        "resume_workflow": "wakeful.domains.workflows.chat:resume",
        "correct_workflow": "wakeful.domains.workflows.chat:correct",
        "leave_workflow": "wakeful.domains.workflows.chat:leave",
    },
    routes=("wakeful.domains.workflows.routes:router", "wakeful.domains.workflows.topics.routes:router"),
    by_id={
        "evt_": {
            "show": "wakeful.domains.workflows.topics.commands:refuse_to_show",
            "explain": "wakeful.domains.workflows.topics.explanation:explain_event_by_id",
        },
        "inp_": {
            "show": "wakeful.domains.workflows.topics.commands:refuse_to_show",
            "explain": "wakeful.domains.workflows.topics.explanation:explain_input_by_id",
        },
    },
    commands="wakeful.domains.workflows.commands:app",
)
