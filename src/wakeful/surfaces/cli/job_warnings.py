"""What looks wrong about a job and is stored all the same, because it may be right where or when the job runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wakeful.domains import domains
from wakeful.kernel.domain import load
from wakeful.kernel.rules.options import read_options
from wakeful.kernel.rules.pending import crowded_note
from wakeful.kernel.rules.policy import thinned_note
from wakeful.triggers import After

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wakeful import Job
    from wakeful.store.interface import Transaction
    from wakeful.triggers import Trigger

COMMAND, HTTP = "command", "http"


def warnings_about(job: Job, missing: Collection[str]) -> list[str]:
    """Sentences; `missing` are the predecessors that do not exist."""
    found = []
    if (before := predecessor(job)) in missing:
        found.append(f"There is no job {before!r} yet: {job.name} does not start until one of that name ends.")
    found += [f"{job.name} {note}." for note in left_out(job.trigger, job.options)]
    return [*found, *warnings_about_work(job, Path.cwd())]


def left_out(trigger: Trigger, options: Mapping[str, Any]) -> list[str]:
    """What to say about starts that come too close, and about retries that the schedule leaves no room for."""
    retry = options.get("retry")
    delays = () if retry is None else read_options({"retry": retry}).retry_delays(trigger.type)
    return [note for note in (thinned_note(trigger), crowded_note(trigger, delays)) if note]


def warnings_about_work(job: Job, here: Path | None) -> list[str]:
    """Only what concerns the command or the request. `here` is where a command runs that names no directory."""
    return obstacles(job.kind, job.payload, here)


def obstacles(kind: str, payload: Any, here: Path | None) -> list[str]:
    """The same for a payload."""
    found = next((domain.obstacles[kind] for domain in domains() if kind in domain.obstacles), None)
    return [] if found is None else load(found)(payload, here)


def overwritten_note(job: Job) -> str | None:
    """What takes back an edit of the job, because it is defined elsewhere; None where nothing does."""
    if job.source == "file":
        return (
            f"{job.name} is from a configuration file, which overwrites this when it is applied again: change it there."
        )
    if job.source == "code" and job.kind == job.name:
        return f"{job.name} is declared in a program, which overwrites this when it starts: change it there."
    return None


def returning_note(job: Job) -> str | None:
    """What brings a removed job back, because it is defined elsewhere; None where nothing does."""
    if job.source == "file":
        return f"{job.name} is from a configuration file, which adds it again when it is applied: remove it there."
    if job.source == "code" and job.kind == job.name:
        return f"{job.name} is declared in a program, which adds it again when it starts: remove it there."
    return None


def predecessor(job: Job) -> str | None:
    """The job that this one starts after, as it was named."""
    return job.trigger.job if isinstance(job.trigger, After) else None


def missing_predecessors(tx: Transaction, jobs: Iterable[Job]) -> set[str]:
    """The missing jobs that these jobs start after, with one query."""
    from wakeful import ids

    named = {name for job in jobs if (name := predecessor(job)) is not None}
    known = set(tx.jobs.names(sorted(named)))
    numbers = {name: parsed[1] for name in named - known if (parsed := ids.decode(name)) is not None}
    there = tx.jobs.definitions(sorted(numbers.values()))
    found = {name for name, number in numbers.items() if number in there and there[number].removed_at is None}
    return named - known - found
