"""What was found, as jobs that can be stored: read as a file with them would be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.config.entries import Entry, Setting, forms, read_entry
from wakeful.domains.agents.agents_file import entries_of
from wakeful.errors import InvalidJob, SchedulerError
from wakeful.kernel.actions.drafts import NewJob
from wakeful.moving.exported import escaped
from wakeful.moving.found import HEARTBEAT, PROGRAM, SCHEDULE, ImportEntry, Reading
from wakeful.references import map_texts
from wakeful.triggers import Cron, Once
from wakeful.triggers.fields import trigger_as_written

_WHEN = ("cron", "every", "interval", "at", "after", "anchor", "start", "until", "stagger")
WAKE = "wake"


class Checked(NamedTuple):
    """An entry with what is stored for it; without an entry it cannot be."""

    found: ImportEntry
    job: Mapping[str, Any]  # as a file has it
    entry: Entry | None
    exists: bool = False  # it is there already

    @property
    def status(self) -> str:
        if self.entry is None:
            return "refused"
        return "differs" if self.found.notes else "maps"


class Batch(NamedTuple):
    """All of a source: entries, agents as a file has them, and the jobs that stand for these agents themselves."""

    entries: list[Checked]
    agents: Mapping[str, Mapping[str, Any]]
    wakes: list[Entry]

    @property
    def new(self) -> list[Checked]:
        """What is to be imported."""
        return [one for one in self.entries if one.entry is not None and not one.exists]


class ImportContext(NamedTuple):
    """What entries are read with."""

    folder: Path  # where relative paths begin
    zone: str  # of times that name none
    local: str  # that of this machine
    now: int


def check(reading: Reading, terms: ImportContext) -> Batch:
    """Every entry as it would be stored, or refused with the reason."""
    agents = {name: map_texts(dict(settings), escaped) for name, settings in reading.agents.items()}
    entries = [_checked(one, agents, terms) for one in reading.entries]
    used = {one.found.agent for one in entries if one.entry is not None}
    agents = {name: settings for name, settings in agents.items() if name in used}
    hearts = {one.found.agent: {"heartbeat": one.job} for one in entries if one.entry and one.found.part == HEARTBEAT}
    whole = {name: {**settings, **hearts.get(name, {})} for name, settings in agents.items()}
    wakes = [entry for name, settings in whole.items() for entry in _of_agent(name, settings, terms)]
    return Batch(entries, agents, [entry for entry in wakes if entry.new.name.endswith(f".{WAKE}")])


def _checked(found: ImportEntry, agents: Mapping[str, Any], terms: ImportContext) -> Checked:
    job: dict[str, Any] = map_texts(dict(found.job), escaped)
    if found.refused is not None:
        return Checked(found, job, None)
    job = _placed(job, terms) if found.part != HEARTBEAT else job
    try:
        entry = _entry(found, job, agents, terms)
    except SchedulerError as error:
        return Checked(found._replace(refused=str(error)), job, None)
    trigger = entry.new.trigger
    if isinstance(trigger, Once) and trigger.at_ms < terms.now:
        return Checked(found._replace(refused="its one time has passed"), job, None)
    return Checked(found, job, entry)


def _placed(job: dict[str, Any], terms: ImportContext) -> dict[str, Any]:
    """With the zone of this machine, where jobs without one would be in another."""
    if terms.zone == terms.local or "timezone" in job or not {"cron", "at"} & set(job):
        return job
    return {**job, "timezone": terms.local}


def _entry(found: ImportEntry, job: Mapping[str, Any], agents: Mapping[str, Any], terms: ImportContext) -> Entry:
    if found.part == PROGRAM:
        return _of_program(found.name, job, terms)
    if found.agent is not None:
        part = {"heartbeat": job} if found.part == HEARTBEAT else {}
        _, _, own = found.name.partition(".")
        schedules = {"schedules": {own: job}} if found.part == SCHEDULE else {}
        settings = {**agents[found.agent], **part, **schedules}
        made = {entry.new.name: entry for entry in _of_agent(found.agent, settings, terms)}
        return made[found.name]
    entry, problems = read_entry(found.name, dict(job), Setting(terms.folder, terms.zone, forms()))
    if entry is None:
        raise InvalidJob("; ".join(problem.message.removeprefix(f"jobs.{found.name}.") for problem in problems))
    return entry


def _of_agent(name: str, settings: Mapping[str, Any], terms: ImportContext) -> list[Entry]:
    return entries_of({name: settings}, terms.folder, terms.zone)


def _of_program(name: str, job: Mapping[str, Any], terms: ImportContext) -> Entry:
    when = {key: job[key] for key in _WHEN if key in job}
    zone = job.get("timezone", terms.zone if "cron" in job else None)
    trigger = trigger_as_written({**when, **({"tz": zone} if zone is not None else {})})
    if isinstance(trigger, Cron) and trigger.next_slot(terms.now) is None:
        raise InvalidJob("its expression never matches")
    new = NewJob(name, trigger, kind=str(job["kind"]), payload=job.get("payload"))
    return Entry(new, bool(job.get("enabled", True)), None, ())


def with_existing(batch: Batch, known: Mapping[str, str | None]) -> Batch:
    """The batch with those marked that are there; a text says why one cannot be taken for that."""
    entries = []
    for one in batch.entries:
        name = one.found.name
        if one.entry is None or name not in known:
            entries.append(one)
        elif known[name] is None:
            entries.append(one._replace(exists=True))
        else:
            entries.append(Checked(one.found._replace(refused=known[name]), one.job, None))
    return batch._replace(entries=entries)


def names_of(batch: Batch) -> Sequence[str]:
    """The names of all jobs that the batch stands for."""
    return [entry.new.name for entry in all_entries(batch)]


def all_entries(batch: Batch) -> list[Entry]:
    return [*batch.wakes, *(one.entry for one in batch.entries if one.entry is not None)]
