"""Handlers with steps in words for people. Pure."""

from __future__ import annotations

from wakeful.counting import counted
from wakeful.domains.workflows.words import SETTLE, UNKNOWN


def parked_words(workflow: str, count: int, error: str | None) -> str:
    """How many events are parked, why the last one is, and what to do."""
    is_are = "is" if count == 1 else "are"
    last = (error or "").partition("\n")[0].rstrip(".")
    said = f" The last one: {last}." if last else ""
    return f"{counted(count, 'event')} of {workflow} {is_are} parked.{said} See wakeful workflow parked {workflow}"


def no_such_step(name: str, workflow: str, event: str) -> str:
    """A step is stored that the code does not have any more."""
    return (
        f"The step {name!r} is stored, and this version of the code does not call it. "
        f"Go on with what is stored (wakeful workflow replay {workflow} {event}), start over (wakeful workflow replay "
        f"{workflow} {event} --start-over), or skip the event (wakeful workflow skip {workflow} {event} --reason TEXT)"
    )


def uncertain_step(name: str, why: str, workflow: str, run: str) -> str:
    """A step was cut off, and nothing can find out what became of it."""
    first = why.partition("\n")[0]
    return (
        f"{UNKNOWN} the step {name!r} happened ({first.rstrip('.')}).{SETTLE}"
        f"wakeful workflow settle {workflow} {run} happened (or did_not_happen, or skip)"
    )
