"""Workflows in words for people: status, issue, schedule, what was done. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from wakeful.triggers import Trigger
from wakeful.workflows.timing import ATTENTION_AFTER, MAX_FIXES

RUNNING, IDLE, NEEDS_ATTENTION, STOPPED = "running", "idle", "needs_attention", "stopped"
SHOWN = {RUNNING: "Running", IDLE: "Idle", NEEDS_ATTENTION: "Needs attention", STOPPED: "Stopped"}

ACTIONS = {
    "transient": ["resume"],
    "approval": ["approve", "reject"],
    "reconciliation": ["settle"],
    "logic": ["resume"],
    "internal": ["resume"],
    "load": ["apply"],
    "paused": ["resume"],
}


def answer_commands(name: str, actions: Sequence[str], run: str | None) -> list[str]:
    """What to type about an issue: how to see where the code failed, then the ways to answer."""
    written = {
        "apply": "wakeful apply",
        "resume": f"wakeful workflow resume {name}",
        "approve": f"wakeful workflow approve {name} {run}",
        "reject": f"wakeful workflow reject {name} {run}",
        "settle": f"wakeful workflow settle {name} {run} happened (or did_not_happen, or skip)",
    }
    look = [f"wakeful show {run} (its trace)"] if run is not None and "resume" in actions else []
    return look + [written[action] for action in actions]


def still_waits(row: Any) -> str | None:
    """What a person must do before it goes on, though it is not paused; None where nothing is."""
    if row.issue not in ("approval", "reconciliation", "logic", "internal"):
        return None
    words = issue_words(row.issue, row.issue_handler, row.issue_message).rstrip(".")
    return f"It cannot go on: {words} (wakeful workflow show {row.name})."


def status_word(*, paused: bool, issue: str | None, active: bool, failures: int = 0) -> str:
    """One of four words; what a person must do comes before what goes on."""
    if issue in ("internal", "load"):
        return STOPPED
    if issue in ("approval", "reconciliation", "logic") or (issue == "transient" and failures >= ATTENTION_AFTER):
        return NEEDS_ATTENTION
    if active:
        return RUNNING
    return STOPPED if paused else IDLE


def issue_words(kind: str, handler: str | None, message: str | None, fix: Any = None) -> str:
    """The problem and what happens next, as one or two sentences; `fix` is the correction of code that failed."""
    said = (message or "").partition("\n")[0].rstrip(".")
    if kind == "logic" and fix is not None:
        return f"The code of {handler} failed: {said}. {fix_words(fix)}"
    sentences = {
        "transient": f"Trying again soon: {said}.",
        "approval": f"Waiting for your approval: {said}",
        "reconciliation": f"It is not known whether the last change happened ({said}). Look, and settle it.",
        "logic": f"The code of {handler} failed: {said}. Correct it and apply, or resume to try again.",
        "internal": f"Wakeful failed: {said}. Report this, then resume.",
        "load": f"Its file cannot be loaded: {said}. Correct it, and apply the configuration.",
        "paused": f"Paused by a person: {said}." if said else "Paused by a person.",
    }
    return sentences[kind]


def fix_words(fix: Any) -> str:
    """How a correction stands, and what to do about it."""
    then = "Correct it and apply, or resume to try again."
    about = f": {fix.note.rstrip('.')}" if fix.note else ""
    return {
        "asked": f"A correction is being requested, try {fix.number} of {MAX_FIXES}.",
        "proposed": f"A correction is proposed{about}. Approve or reject it.",
        "accepted": "A correction is being deployed.",
        "refused": f"The correction was rejected. {then}",
        "none": f"The hook has no correction. {then}",
    }.get(fix.status, f"{fix.number} of {MAX_FIXES} corrections did not help. {then}")


def schedule_words(triggers: Sequence[Trigger], next_in: str | None, *, loaded: bool = True) -> str:
    """When it looks for new things."""
    if not loaded:
        return "Not known: its file was never loaded."
    if not triggers:
        return "Runs when something arrives."
    checks = "; ".join(dict.fromkeys(trigger.describe() for trigger in triggers))
    return f"Checks {checks}." + (f" Next check {next_in}." if next_in is not None else "")


def activity_words(attempt: Any) -> str:
    """What a run that committed did."""
    skipped = " (not done: a person skipped it)" if attempt.mutation == "skipped" else ""
    if attempt.title:
        return f"{attempt.title}{skipped}"
    things = "event" if attempt.reserved == 1 else "events"
    did = f"{attempt.handler}: {attempt.reserved} {things}" if attempt.reserved else f"{attempt.handler} ran"
    return f"{did}{skipped}"
