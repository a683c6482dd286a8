"""The phases of a run, and where an attempt begins that continues another. Pure.

A mutation in flight is examined before anything else: nothing mutates again until it is known whether the first did
happen. Only then it matters whether the mutation was applied: before it, everything begins again; after it, only what
follows is done again.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

Phase = Literal["preparing", "prepared", "mutating", "mutated", "emitting", "committed"]
Mutation = Literal["none", "in_flight", "applied", "skipped"]
Begin = Literal["prepare", "mutate", "reconcile", "emit"]
Failure = Literal["transient", "approval", "reconciliation", "logic", "internal", "crashed"]

PHASES: tuple[str, ...] = get_args(Phase)
MUTATIONS: tuple[str, ...] = get_args(Mutation)
FAILURES: tuple[str, ...] = get_args(Failure)

ACTIVE, COMMITTED, CRASHED, REJECTED = "active", "committed", "crashed", "rejected"
GIVEN_UP = "given_up"  # its handler was removed before it had ended
#: The status of a run that failed, by the class of the failure.
STATUS: dict[Failure, str] = {
    "transient": "paused:transient",
    "approval": "paused:approval",
    "reconciliation": "paused:reconciliation",
    "logic": "failed:logic",
    "internal": "failed:internal",
    "crashed": CRASHED,
}
FAILURE_OF = {status: failure for failure, status in STATUS.items()}


def is_forward(before: str, after: str) -> bool:
    """Whether a run may go from one phase to another: it stays or moves on, and never goes back."""
    return PHASES.index(after) >= PHASES.index(before)


def where_to_begin(phase: str, mutation: str, failure: str) -> Begin:
    """Where the run begins that continues one which ended in that phase, for that class of failure."""
    if mutation == "in_flight":
        return "reconcile"
    if mutation in ("applied", "skipped"):
        return "emit"
    if failure == "approval" and phase in ("prepared", "mutating"):
        return "mutate"  # a person allowed this very mutation; asked again, prepare might choose another
    return "prepare"


def keeps_reservations(begin: Begin) -> bool:
    """Whether the continuing run takes over what was reserved; else it is released."""
    return begin != "prepare"


def first_phase(begin: Begin) -> Phase:
    """The phase in which such a run begins."""
    phases: dict[Begin, Phase] = {
        "prepare": "preparing", "mutate": "prepared", "reconcile": "mutating", "emit": "emitting",
    }  # fmt: skip
    return phases[begin]


def settled_mutation(verdict: str) -> Mutation:
    """What a person's verdict on an uncertain mutation makes of it."""
    verdicts: dict[str, Mutation] = {"happened": "applied", "did_not_happen": "none", "skip": "skipped"}
    return verdicts[verdict]


def likely_verdict(attempt: Any) -> str | None:
    """What most likely became of an uncertain mutation, by what its error says; None where it says nothing."""
    return "did_not_happen" if attempt.mutation == "in_flight" and attempt.refused else None


def why_uncertain(attempt: Any, trouble: str) -> str:
    """Why it is not known whether a mutation happened: what that failed with, then what came of asking."""
    first = (attempt.mutate_error or "").partition("\n")[0] if attempt.mutation == "in_flight" else ""
    return trouble if trouble.startswith(first) else f"{first}; {trouble}"


VERDICTS = ("happened", "did_not_happen", "skip")
