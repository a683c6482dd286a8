"""What a person is asked about a schedule of an agent: who wants what, when, and what it would cost."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from wakeful import ids
from wakeful.counting import counted
from wakeful.domains.agents.budgets.rules import in_millionths, money
from wakeful.foresight.adding import DAYS, JobDelta, added
from wakeful.kernel.rules.policy import trigger_of
from wakeful.triggers.moments import from_ms

if TYPE_CHECKING:
    from wakeful.domains.agents.self_scheduling.requesting import Requester
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef
    from wakeful.triggers import Trigger

SHOWN = 5  # times in the question
LONGEST_SHOWN = 300
QUOTES = str.maketrans({"“": "'", "”": "'"})  # those around the words of the agent are ours


def question_about(tx: Transaction, who: Requester, job: JobDef, what: str | None, *, before: JobDef | None) -> str:
    """The question, on one line; `before`: the job without the change that is asked about."""
    trigger, sender = trigger_of(job.trigger), who.sender
    verb = "schedule" if before is None else "change its schedule"
    doing = "" if what is None else f": {_short(what)}"
    times = ", ".join(f"{from_ms(slot):%a %Y-%m-%d %H:%M}" for slot in trigger.upcoming_slots(tx.now, SHOWN))
    run = "" if sender is None else f" (asked in {ids.run_text(sender.run_id)})"
    fed = " The run that asks was given text from outside." if sender is not None and sender.is_fed else ""
    return (
        f"{who.name} asks to {verb} {job.name}{doing}. It would run {trigger.brief()}; next: {times} UTC{run}."
        f"{_sent(job, before)} {_costs(tx, job, trigger, before)}{fed}"
    )


def _short(text: str) -> str:
    line = " ".join(text.translate(QUOTES).split())
    more = len(line) - LONGEST_SHOWN
    return f"“{line}”" if more <= 0 else f"“{line[:LONGEST_SHOWN]}…” and {counted(more, 'more character')}"


def _sent(job: JobDef, before: JobDef | None) -> str:
    """Where what it says is sent, if that was said, or changes."""
    to = json.loads(job.payload).get("deliver")
    was = None if before is None else json.loads(before.payload).get("deliver")
    return "" if to == was else f" Its replies go to {to}." if to is not None else " Its replies go where others go."


def _costs(tx: Transaction, job: JobDef, trigger: Trigger, before: JobDef | None) -> str:
    """What it would cost, by what past runs of it, or of its agent, have cost."""
    changes = [JobDelta(1, job.name, job.kind, job.payload, trigger, job.id)]
    if before is not None:
        known = trigger_of(before.trigger)
        changes.append(JobDelta(-1, before.name, before.kind, before.payload, known, before.id))
    more = added(tx, changes, tx.now, "UTC")
    unknown = "What that costs is not known: no run has said so yet."
    if before is None and trigger.type == "once":
        return f"It would cost about {_money(more.cost * DAYS)}." if more.is_known else unknown
    words = more.words(_money)
    if words is None:
        return "It would cost what it costs now."
    verb, rest = ("add", words.removeprefix("+ ")) if words.startswith("+") else ("save", words.removeprefix("- "))
    return f"It would {verb} {rest}." + ("" if more.is_known else f" {unknown}")


def _money(amount: float) -> str:
    return f"${money(in_millionths(amount) or 0)}"
