"""What people call a job or a run, and which one they mean: an id, or a job's name."""

from __future__ import annotations

from wakeful import ids
from wakeful.errors import JobNotFound, RunNotFound
from wakeful.spelling import did_you_mean, nearest
from wakeful.store.interface import Transaction
from wakeful.store.jobs import JobFilter
from wakeful.store.records import JobDef, JobState, RunRow

LOOKED_AT = 1_000  # names, for one that was misspelt


def find_job(tx: Transaction, ref: str) -> tuple[JobDef, JobState]:
    """The job of that id or name; JobNotFound offers the nearest name."""
    _require_name(ref)
    number = ids.number_of("job", ref)
    if number is not None:
        found = tx.jobs.by_id(number)
        if found is not None and found[0].removed_at is None:
            return found
    found = tx.jobs.by_name(ref)
    if found is not None:
        return found
    names = _names(tx)
    parts = [name for name in names if name.startswith(f"{ref}.")]  # of an agent or a workflow
    hint = f" Did you mean one of {', '.join(parts[:5])}?" if parts else did_you_mean(ref, names)
    message = f"There is no job {ref!r}.{hint}"
    raise JobNotFound(message)


def near_names(tx: Transaction, name: str) -> list[str]:
    """The names of jobs that are spelled nearly like this one, the nearest first."""
    return nearest(name, _names(tx), number=3)


def _names(tx: Transaction) -> list[str]:
    return [job.name for job, _ in tx.jobs.matching(JobFilter(limit=LOOKED_AT))]


def _require_name(ref: object) -> None:
    """What can be no name is not looked for: a database may refuse to."""
    if not isinstance(ref, str) or not ref.isprintable():
        message = f"There is no job {ref!r:.300}."
        raise JobNotFound(message)


def history_of(tx: Transaction, ref: str) -> int:
    """The job for a history; a removed one is found by its id or last name."""
    _require_name(ref)
    number = ids.number_of("job", ref)
    found = tx.jobs.by_id(number) if number is not None else tx.jobs.by_name(ref)
    found = found or tx.jobs.removed_by_name(ref)
    return found[0].id if found is not None else find_job(tx, ref)[0].id


def run_number(ref: str) -> int | None:
    """The number of the run that `ref` names; None if it does not name a run."""
    given: object = ref
    return ids.number_of("run", ref) if isinstance(given, str) else None


def require_run(ref: str) -> int:
    """The number of the run that `ref` names, which must name one."""
    number = run_number(ref)
    if number is None:
        message = f"There is no run {ref!r}: a run's id looks like run_0000000000000."
        raise RunNotFound(message)
    return number


def find_run(tx: Transaction, run_id: int) -> tuple[JobDef, JobState, RunRow]:
    """A run with its job, which may have been removed since; RunNotFound if it is no longer on record."""
    seen = tx.runs.get(run_id)
    pair = tx.jobs.by_id(seen.job_id) if seen is not None else None
    run = tx.runs.get(run_id) if pair is not None else None  # again: reading the job may have waited for another node
    if run is None or pair is None:
        message = f"There is no run {ids.run_text(run_id)}: it may have been pruned."
        raise RunNotFound(message)
    return pair[0], pair[1], run
