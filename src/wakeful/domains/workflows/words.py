"""Workflows in words for people: status, issue, schedule, what was done. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from wakeful.domains.workflows.phases import VERDICTS
from wakeful.domains.workflows.timing import ATTENTION_AFTER, MAX_FIXES
from wakeful.kernel.rules.outcome import beginning
from wakeful.triggers import Trigger

RUNNING, IDLE, NEEDS_ATTENTION, STOPPED = "running", "idle", "needs_attention", "stopped"
SHOWN = {RUNNING: "Running", IDLE: "Idle", NEEDS_ATTENTION: "Needs attention", STOPPED: "Stopped"}

ONCE_ENDED = "when its thread or program has ended"  # it works on after its run
UNSETTLED = "unsettled"  # of all events that are parked it is not known whether a step happened
SWITCHED_OFF = "switched_off"  # the job of a consumer that has events is paused or disabled

UNKNOWN, SETTLE = "It is not known whether", " Settle it: "  # of a step, on record with its event

MAX_SHOWN = 500  # characters of a value

ACTIONS = {
    "transient": ["resume"],
    "approval": ["approve", "reject"],
    "reconciliation": ["settle"],
    "logic": ["resume"],
    "internal": ["resume"],
    "load": ["apply"],
    "no_code": ["apply"],
    "paused": ["resume"],
    "parked": ["parked", "replay"],
    UNSETTLED: ["parked", "settle"],
    SWITCHED_OFF: [],
}


#: Why a verdict is the most likely one.
LIKELY = {"did_not_happen": "it was refused, so most likely it did not happen"}


def answer_commands(name: str, actions: Sequence[str], run: str | None, likely: str | None = None) -> list[str]:
    """What to type about an issue: how to see where the code failed, then the ways to answer, the likely one first."""
    first, *others = likely_first(VERDICTS, likely)
    written = {
        "apply": "wakeful apply",
        "resume": f"wakeful workflow resume {name}",
        "approve": f"wakeful workflow approve {name} {run}",
        "reject": f"wakeful workflow reject {name} {run}",
        "parked": f"wakeful workflow parked {name}",
        "replay": f"wakeful workflow replay {name} --parked",
        "settle": f"wakeful workflow settle {name} {run} {first} (or {', or '.join(others)})",
    }
    look = [f"wakeful show {run} (its trace)"] if run is not None and "resume" in actions else []
    return look + [written[action] for action in actions]


def change_words(prepared: Any, result: Any = None) -> list[str]:
    """What was prepared for a change, and what it returned: a line for each, of which the beginning is shown."""
    if prepared is None:
        return []
    events = [f"{len(found):,} of {topic}" for topic, found in prepared["reserve"].items() if found]
    lines = [f"data: {_shown(prepared['data'])}", f"events: {', '.join(events)}" if events else ""]
    return [line for line in [*lines, f"result: {_shown(result)}" if result is not None else ""] if line]


def _shown(value: Any) -> str:
    return beginning(json.dumps(value, ensure_ascii=False), MAX_SHOWN)


def likely_first(verdicts: Sequence[str], likely: str | None) -> list[str]:
    """The verdicts in the order in which they are offered."""
    return sorted(verdicts, key=lambda verdict: verdict != likely)


def still_waits(row: Any) -> str | None:
    """What a person must do before it continues, though it is not paused; None where nothing is."""
    if row.issue not in ("approval", "reconciliation", "logic", "internal") or asks_itself(row):
        return None
    words = issue_words(row.issue, row.issue_handler, row.issue_message).rstrip(".")
    return f"It cannot continue: {words} (wakeful workflow show {row.name})."


def asks_itself(row: Any) -> bool:
    """Whether what became of a change is about to be found out, so that no person must settle it yet."""
    return row.issue == "reconciliation" and row.backoff_until is not None and not row.paused


def status_word(*, paused: bool, issue: str | None, active: bool, failures: int = 0, halted: bool = False) -> str:
    """One of four words; what a person must do comes before what continues."""
    if issue in ("internal", "load", "no_code"):
        return STOPPED
    if halted or issue in ("approval", "reconciliation", "logic", "parked", UNSETTLED, SWITCHED_OFF):
        return NEEDS_ATTENTION
    if issue == "transient" and failures >= ATTENTION_AFTER and not paused:
        return NEEDS_ATTENTION
    if active:
        return RUNNING
    return STOPPED if paused else IDLE


def issue_words(
    kind: str,
    handler: str | None,
    message: str | None,
    fix: Any = None,
    halted: tuple[str, str] | None = None,
    *,
    asks: bool = False,
    again: str = "soon",
) -> str:
    """The problem and what happens next, as one or two sentences.

    `fix`: the correction of code that failed; `halted`: the job that is not tried again, and why that is; `asks`:
    whether what became of the change is about to be found out; `again`: when it continues.
    """
    said = (message or "").partition("\n")[0].rstrip(".")
    if halted is not None:
        job, how = halted
        return f"{said}. It is not tried again: {job} is {how}. Resume it (wakeful resume {job})."
    if kind == "logic" and fix is not None:
        return f"The code of {handler} failed: {said}. {fix_words(fix)}"
    settle = "Wakeful tries to find out; you may settle it meanwhile" if asks else "Look, and settle it"
    if again == ONCE_ENDED:
        settle = "A thread or program of it is still at work, and must end first"
    sentences = {
        "transient": f"Trying again {again}: {said}.",
        "approval": f"Waiting for your approval: {said}",
        "reconciliation": f"{_unknown(said)}. {settle}.",
        "logic": f"The code of {handler} failed: {said}. Correct it and apply, or resume to try again.",
        "internal": f"Wakeful failed: {said}. Report this, then resume.",
        "load": f"Its file cannot be loaded: {said}. Correct it, and apply the configuration.",
        "no_code": f"No running node has the deployed version, {said}. Start one that has it, or apply another.",
        SWITCHED_OFF: f"{said}.",
        "parked": f"{said}.",
        UNSETTLED: f"{said}.",
        "paused": f"Paused by a person: {said}." if said else "Paused by a person.",
    }
    return sentences[kind]


def _unknown(said: str) -> str:
    """What is not known. Of a step it is a sentence already, with the command that settles it."""
    if said.startswith(UNKNOWN):
        return said.partition(SETTLE)[0].rstrip(".")
    return f"{UNKNOWN} the last change happened ({said})"


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
    checks = "; ".join(dict.fromkeys(trigger.brief() for trigger in triggers))
    return f"Checks {checks}." + (f" Next check {next_in}." if next_in is not None else "")


def activity_words(attempt: Any) -> str:
    """What a run that committed did."""
    skipped = " (a person skipped it: it is not known whether it was done)" if attempt.mutation == "skipped" else ""
    if attempt.title:
        return f"{attempt.title}{skipped}"
    things = "event" if attempt.reserved == 1 else "events"
    did = f"{attempt.handler}: {attempt.reserved} {things}" if attempt.reserved else f"{attempt.handler} ran"
    return f"{did}{skipped}"
