"""`wakeful import wakeful`: the jobs of an export into a store, with their states and next times."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.config.entries import Entry
from wakeful.domains.files.tables import Fleets, OwnedRow
from wakeful.errors import SchedulerError
from wakeful.kernel.actions.drafts import NewJob
from wakeful.kernel.actions.jobs import keep_new
from wakeful.kernel.rules.holding import Hold
from wakeful.kernel.rules.options import from_text
from wakeful.kernel.rules.policy import alarm, next_start, trigger_of, trigger_text
from wakeful.moving.checking import Batch, Checked, with_existing
from wakeful.moving.exported import STATE, ExportedJob, Owner, check_format, read_state
from wakeful.moving.found import PROGRAM, ImportEntry
from wakeful.moving.sources import Unreadable, map_in, read_json
from wakeful.moving.storing import TAKEN
from wakeful.store.records import JobDef
from wakeful.triggers import trigger_from_data
from wakeful.triggers.moments import read_moment

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobState

LARGEST = 512 * 1024 * 1024
WAITED = "it ran or waited when it was exported: what it waited for is not taken over"


class Returned(NamedTuple):
    """What came back: the batch for the report, and the jobs by name."""

    batch: Batch
    kept: Mapping[str, ExportedJob]
    secrets: tuple[str, ...]
    held: bool = False  # something was due already, and everything is held


def read(path: Path, scheduler: Scheduler) -> Returned:
    """The jobs of an export; what cannot be stored is refused with the reason."""
    file = path / STATE if path.is_dir() else path
    if file.name != STATE or not file.is_file():
        raise Unreadable(f"{path} is not an export: name the folder that has its {STATE}.")
    data = read_json(file, linked=False, most=LARGEST)
    kept: dict[str, ExportedJob] = {}
    entries = []
    for number, job in enumerate(check_format(data), 1):
        entries.append(_checked(f"{STATE}:{number}", job, scheduler, kept))
    secrets = data.get("secrets")
    names = tuple(str(name) for name in secrets) if isinstance(secrets, list) else ()
    return Returned(Batch(entries, {}, []), kept, names)


def _checked(source: str, data: Mapping[str, Any], scheduler: Scheduler, kept: dict[str, ExportedJob]) -> Checked:
    name = str(data.get("name"))
    found = ImportEntry(source, name, {"kind": data.get("kind"), **map_in(data, "trigger")}, part=PROGRAM)
    try:
        one = _kept(data, scheduler)
        if name in kept:
            raise Unreadable("an earlier job has this name")
    except (SchedulerError, TypeError, ValueError, KeyError) as error:
        return Checked(found._replace(refused=f"{error}"), found.job, None)
    kept[name] = one
    trigger = trigger_from_data(dict(data["trigger"]))
    new = NewJob(name, trigger, kind=one.job.kind, payload=data.get("payload"), owner=one.job.owner)
    notes = (WAITED,) if one.waits else ()
    return Checked(found._replace(notes=notes), found.job, Entry(new, bool(one.state.enabled), None, ()))


def _kept(data: Mapping[str, Any], scheduler: Scheduler) -> ExportedJob:
    """A job of the file, checked as one that is added."""
    parsed = ids.decode(str(data["id"]))
    if parsed is None or parsed[0] != "job":
        raise Unreadable(f"{data['id']!r:.40} is not the id of a job")
    trigger = trigger_from_data(dict(data["trigger"]))
    new = NewJob(data["name"], trigger, kind=data["kind"], payload=data.get("payload"), owner=data.get("owner"))
    new.options = dict(map_in(data, "options"))
    draft = scheduler.host.draft(new, str(data["source"]), {})
    if (draft.kind, draft.owner) != (data["kind"], data.get("owner")):
        raise Unreadable("its kind and its owner do not fit together")
    job = JobDef(
        parsed[1], draft.name, draft.kind, draft.owner, draft.source, trigger_text(trigger), draft.payload,
        draft.options, read_moment(data["created_at"], "created_at"), read_moment(data["updated_at"], "updated_at"),
        None,
    )  # fmt: skip
    state = read_state(job.id, map_in(data, "state"), from_text(draft.options).priority)
    fleet = data.get("fleet")
    owner = None
    if isinstance(fleet, dict):
        notes = fleet.get("notes")
        owner = Owner(str(fleet["fleet"]), fleet.get("enabled") is True, str(notes) if notes is not None else None)
    return ExportedJob(job, state, owner, map_in(data, "state").get("waits") is True)


async def compare(scheduler: Scheduler, returned: Returned) -> Returned:
    """With those marked that are stored already."""
    return await scheduler.read(lambda tx: returned._replace(batch=_compared(tx, returned)))


def _compared(tx: Transaction, returned: Returned) -> Batch:
    known = tx.jobs.names(list(returned.kept)) if returned.kept else {}
    stored = tx.jobs.definitions(list(known.values())) if known else {}
    same: dict[str, str | None] = {}
    for name, job_id in known.items():
        ours, theirs = returned.kept[name].job, stored[job_id]
        parts = ("kind", "trigger", "payload", "options")
        is_same = all(getattr(ours, part) == getattr(theirs, part) for part in parts)
        same[name] = None if is_same else TAKEN
    return with_existing(returned.batch, same)


async def store(scheduler: Scheduler, returned: Returned, person: str) -> Returned:
    """Add what is not there, in one transaction. Where work is due already, everything is held."""

    def work(tx: Transaction, context: Context) -> Returned:
        batch = _compared(tx, returned)
        new = [returned.kept[one.found.name] for one in batch.new]
        taken = set(tx.jobs.definitions([one.job.id for one in new])) if new else set()
        placed = [_placed(one, context, tx.now, taken) for one in new]
        keep_new(tx, context, [(one.job, one.state) for one in placed])
        owned = [(one.job.id, one.owner) for one in placed if one.owner is not None]
        tx.of(Fleets).own([OwnedRow(job_id, own.fleet, int(own.enabled), own.notes) for job_id, own in owned])
        due = any(one.state.due_at is not None and one.state.due_at <= tx.now for one in placed)
        if due and tx.nodes.held() is None:
            tx.nodes.hold(Hold(tx.now, person, "imported, and work is due already").text)
        return returned._replace(batch=batch, held=due)

    return await scheduler.transact(work)


def _placed(one: ExportedJob, context: Context, now: int, taken: set[int]) -> ExportedJob:
    """The job with an id that is free, and the next time that it had; a run in progress is not taken over."""
    job, state = one.job, one.state
    if job.id in taken:
        job = job._replace(id=context.new_id())
        state = state._replace(job_id=job.id)
    if state.enabled and not state.paused and state.next_at is None:
        coming = next_start(trigger_of(job.trigger), state, now, context.rng.random())
        state = state._replace(slot=coming.slot, next_at=coming.at)
    return one._replace(job=job, state=_armed(state))


def _armed(state: JobState) -> JobState:
    return state._replace(due_at=alarm(state))
