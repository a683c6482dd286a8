"""`wakeful export`: the jobs of a store with their states, its runs and its events, as files that anyone can read."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Iterable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.domains import domains
from wakeful.domains.files.tables import Fleets
from wakeful.errors import AlreadyExists, InvalidSetting
from wakeful.kernel.views.events import events_of
from wakeful.moving import exported
from wakeful.moving.exported import CONFIG, EVENTS, RUNS, STATE, Owner, Secrets
from wakeful.moving.retelling import yaml_of
from wakeful.private_files import FILE_MODE, make_private_folder
from wakeful.store.jobs import JobFilter
from wakeful.triggers import iso
from wakeful.version import __version__

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import EventGroup, JobDef, JobState

PAGE = 500
MAIN = "main"
_OF_RUNS = (
    "id", "job", "job_id", "kind", "reason", "slot", "attempt", "retry_of", "caused_by", "phase", "status", "outcome",
    "error", "error_type", "due_at", "started_at", "finished_at", "node",
)  # fmt: skip
"""What is written of a run. What it printed may hold anything, and is left out."""


class ExportContents(NamedTuple):
    """What an export holds."""

    files: list[str]
    jobs: int
    left: list[str]  # jobs that are not in it: of workflows, which are made by their files
    secrets: list[str]  # variables to set where it is imported
    runs: int
    events: int


class _Job(NamedTuple):
    job: JobDef
    state: JobState
    owner: Owner | None


async def export(scheduler: Scheduler, folder: Path, since: int) -> ExportContents:
    """Write all files; runs and events since a moment."""
    _refuse_full(folder)
    jobs, left = await scheduler.read(_jobs)
    redact = {kind.name: kind.redact for domain in domains() for kind in domain.kinds if kind.redact}
    secrets = Secrets(redact, [one.job.payload for one in jobs])
    listed = [exported.written(*one, secrets.without(one.job)) for one in jobs]
    make_private_folder(folder)
    files = {CONFIG if fleet == MAIN else f"fleet-{fleet}.yaml": rows for fleet, rows in _by_fleet(listed).items()}
    for name, rows in files.items():
        _write(folder / name, [yaml_of(rows, None if name == CONFIG else str(rows[0]["fleet"]["fleet"]))])
    state = {
        "format": exported.FORMAT,
        "version": __version__,
        "exported_at": iso(scheduler.clock.now()),
        "secrets": secrets.names,
        "left_out": left,
        "jobs": listed,
    }
    _write(folder / STATE, [json.dumps(state, indent=2, ensure_ascii=False) + "\n"])
    runs = await _write_lines(folder / RUNS, _runs(scheduler, since))
    events = await _write_lines(folder / EVENTS, _events(scheduler, since))
    return ExportContents([*files, STATE, RUNS, EVENTS], len(jobs), left, secrets.names, runs, events)


def _refuse_full(folder: Path) -> None:
    if folder.is_symlink() or (folder.exists() and not folder.is_dir()):
        raise InvalidSetting(f"{folder} is not a folder: name one that is empty, or a new one.")
    if folder.is_dir() and any(folder.iterdir()):
        raise AlreadyExists(f"{folder} is not empty, and is left as it is: name an empty folder, or a new one.")


def _jobs(tx: Transaction) -> tuple[list[_Job], list[str]]:
    kinds = {kind.name: kind for domain in domains() for kind in domain.kinds}
    hidden = tuple(name for name, kind in kinds.items() if kind.internal)
    pairs = tx.jobs.matching(JobFilter(hidden=hidden))
    kept = [pair for pair in pairs if getattr(kinds.get(pair[0].kind), "managed", None) is None]
    left = sorted({job.name for job, _ in pairs} - {job.name for job, _ in kept})
    fleets = tx.of(Fleets)
    owners = fleets.owners([job.id for job, _ in kept]) if kept else {}
    rows = {row.job_id: row for fleet in set(owners.values()) for row in fleets.owned(fleet)}
    found = [
        _Job(job, state, Owner(rows[job.id].fleet, bool(rows[job.id].enabled), rows[job.id].notes))
        if job.id in rows and job.source == "file"
        else _Job(job, state, None)
        for job, state in kept
    ]
    return sorted(found, key=lambda one: one.job.name), left


def _by_fleet(listed: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    """One file for each fleet; what belongs to none is in the main one."""
    found: dict[str, list[dict[str, Any]]] = {MAIN: []}
    for job in listed:
        found.setdefault(MAIN if job["fleet"] is None else job["fleet"]["fleet"], []).append(job)
    return found


async def _runs(scheduler: Scheduler, since: int) -> AsyncIterator[dict[str, Any]]:
    """Runs, newest first."""
    before = None
    while page := await scheduler.get_run_log(limit=PAGE, before=before):
        for run in page:
            data = run.to_dict()
            if data["due_at"] < iso(since):
                return
            yield {name: data[name] for name in _OF_RUNS}
        before = page[-1].id


async def _events(scheduler: Scheduler, since: int) -> AsyncIterator[dict[str, Any]]:
    after = 0
    while groups := await scheduler.read(partial(_groups, after)):
        for group in groups:
            if group.at >= since:
                for event in events_of(group):
                    yield event.to_dict()
        after = groups[-1].id


def _groups(after: int, tx: Transaction) -> list[EventGroup]:
    return tx.events.after(after, None, PAGE)


# -- files ------------------------------------------------------------------------------------------------------------


def _write(path: Path, texts: Iterable[str]) -> None:
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        for text in texts:
            file.write(text)


async def _write_lines(path: Path, items: AsyncIterator[dict[str, Any]]) -> int:
    """One JSON object a line; how many."""
    count = 0
    number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, FILE_MODE)
    with os.fdopen(number, "w", encoding="utf-8") as file:
        async for item in items:
            file.write(json.dumps(item, ensure_ascii=False) + "\n")
            count += 1
    return count
