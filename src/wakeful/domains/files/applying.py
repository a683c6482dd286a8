"""Applying a file: one transaction that makes the store what the file says, within what the file owns."""

from __future__ import annotations

import shlex
import socket
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from wakeful import ids
from wakeful.config.entries import FleetFile, forms
from wakeful.counting import counted
from wakeful.domains import domains
from wakeful.domains.files import CONFIG_ALERT
from wakeful.domains.files.planning import DesiredJob, JobUpdate, OwnedJob, Plan, PlanContext, make_plan
from wakeful.domains.files.tables import Fleets, OwnedRow
from wakeful.errors import JobExists, SchedulerError
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.actions.recording import Origin, on_record
from wakeful.kernel.engine.alerts import close_alert
from wakeful.kernel.rules.policy import add_note
from wakeful.triggers.moments import spoken

if TYPE_CHECKING:
    from wakeful.kernel.context import Context
    from wakeful.scheduler import Scheduler
    from wakeful.store.interface import Transaction
    from wakeful.store.records import JobDef


SOURCE = "file"
MOST_NAMED = 5


class TooMuchRemoved(SchedulerError):
    """A file that would remove more than half of what it owns; a person must say that this is meant."""

    exit_code = 4
    status = 409
    code = "too_much_removed"


class OfAnotherFile(TooMuchRemoved):
    """A file that would remove what another file of the same fleet has."""

    code = "of_another_file"


class Fleet(NamedTuple):
    """A file, ready to be applied."""

    name: str
    wanted: tuple[DesiredJob, ...]
    hash: str
    references: tuple[str, ...]
    place: str  # the node and the path of its file


def place_of(path: Path) -> str:
    """A file on this machine, as the store knows it."""
    return f"{socket.gethostname()}:{path.resolve()}"


def ready_fleet(scheduler: Scheduler, file: FleetFile) -> Fleet:
    """A file as it can be applied; InvalidJob where a job of it cannot be stored."""
    wanted = tuple(
        DesiredJob(scheduler.host.draft(entry.new, SOURCE, file.defaults), entry.enabled, entry.notes)
        for entry in file.entries
    )
    return Fleet(file.name, wanted, file.hash, file.references, place_of(file.path))


def terms_of(file: FleetFile, now: int) -> PlanContext:
    names = {field.stored: field.name for form in forms().values() for field in form.fields if field.stored}
    return PlanContext(now, file.zone, names)


def plan_fleet(tx: Transaction, fleet: Fleet, terms: PlanContext) -> Plan:
    """What applying the file would do now; JobExists for a name that belongs to another owner."""
    plan = make_plan(fleet.wanted, _owned(tx, fleet.name), terms)
    _refuse_taken(tx, plan)
    return plan._replace(notes=_waiting(tx, plan))


def apply_fleet(
    tx: Transaction,
    context: Context,
    fleet: Fleet,
    terms: PlanContext,
    *,
    confirmed: bool,
    unless_applied: bool = False,
    person: str | None = None,
) -> Plan | None:
    """Do what the plan says. None, with `unless_applied`, where this file was the last that this place applied.

    What it removes and switches on or off is an action of the `person` at the command line, else of the file.
    """
    fleets = tx.of(Fleets)
    fleets.lock()
    if unless_applied and fleets.applied_from(fleet.name, fleet.place) == fleet.hash:
        return None
    terms = terms._replace(now=tx.now)
    plan = plan_fleet(tx, fleet, terms)
    if not confirmed:
        _refuse_surprises(tx, fleet, plan)
    origin = Origin(*((person, "cli") if person is not None else (fleet.place, SOURCE)), context.new_id())
    removed = _remove(tx, context, plan, origin)
    _update(tx, context, plan, terms)
    switched = _switch_all(tx, context, plan, origin)
    _own(tx, fleet, [(one.owned.job.id, one.wanted) for one in plan.update])
    _create(tx, context, fleet, plan, terms)
    fleets.record(fleet.name, fleet.place, fleet.hash, fleet.references, tx.now)
    close_alert(tx, context, CONFIG_ALERT, fleet.place)
    return plan._replace(action=removed or switched)


def check_fleet(tx: Transaction, fleet: Fleet, terms: PlanContext) -> None:
    """Raise what `apply_fleet` would, unless a person confirmed it or this place applied the same file before."""
    if tx.of(Fleets).applied_from(fleet.name, fleet.place) != fleet.hash:
        _refuse_surprises(tx, fleet, plan_fleet(tx, fleet, terms))


def _refuse_surprises(tx: Transaction, fleet: Fleet, plan: Plan) -> None:
    """A person must say that it is meant to remove what another file has, or most of what this one owns."""
    if (why := of_another_file(tx, fleet, plan)) is not None:
        raise OfAnotherFile(why)
    if plan.removes_most:
        raise TooMuchRemoved(
            f"The file would remove {len(plan.remove)} of its {counted(plan.owned, 'job')}: see wakeful plan, "
            "then run wakeful apply --yes if that is intended. If another file has them, give this one a fleet of its "
            "own (fleet: NAME)."
        )


def of_another_file(tx: Transaction, fleet: Fleet, plan: Plan) -> str | None:
    """Why a plan needs a person's word: what it removes is in another file on this machine."""
    latest = tx.of(Fleets).latest(fleet.name)
    other = None if latest is None or not plan.remove else _other_file(latest.place, fleet.place)
    if other is None:
        return None
    ours, names = Path(fleet.place.partition(":")[2]), [one.job.name for one in plan.remove]
    shown = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    return (
        f"{ours} would remove {counted(len(names), 'job')} that {other} has ({shown}): both are of the fleet "
        f"{fleet.name!r}. To keep the jobs of both, give this file a fleet of its own (fleet: {ours.stem}). If it "
        f"replaces the other, run wakeful apply {shlex.quote(str(ours))} --yes."
    )


def _other_file(place: str, ours: str) -> Path | None:
    """The file at a place, if it is another one of this machine and still there; a copy elsewhere is the same file."""
    host, _, path = place.partition(":")
    our_host, _, our_path = ours.partition(":")
    is_other = host == our_host and path != our_path and Path(path).is_file()
    return Path(path) if is_other else None


def file_of(tx: Transaction, job_id: int) -> tuple[Path | None, str | None]:
    """The file on this machine that the job is from; for a job of no file, the one that was applied here last.

    Where the job's own file is not here: the place it was applied from.
    """
    fleets = tx.of(Fleets)
    fleet = fleets.owners([job_id]).get(job_id)
    known = fleets.files(fleet)
    path = next((path for row in known if (path := _path_here(row.place)) is not None), None)
    return path, known[0].place if known and fleet is not None and path is None else None


def _path_here(place: str) -> Path | None:
    host, _, path = place.partition(":")
    return Path(path) if host == socket.gethostname() and Path(path).is_file() else None


def replaced_by(tx: Transaction, fleet: Fleet) -> str | None:
    """What to say of a file that is not applied again, because another one was applied after it."""
    latest = tx.of(Fleets).latest(fleet.name)
    if latest is None or latest.hash == fleet.hash or latest.place == fleet.place:
        return None
    path = fleet.place.partition(":")[2]
    other = _other_file(latest.place, fleet.place)
    who = latest.place if other is None else other
    both = "to keep the jobs of both, give one of them a fleet of its own (fleet: NAME); " if other is not None else ""
    return (
        f"{path} is not applied: {who} was applied after it, at {spoken(latest.at)}, "
        f"and the jobs of the fleet {fleet.name!r} are as that file has them; {both}to go back to this one, run "
        f"wakeful apply {shlex.quote(path)} --yes"
    )


def _waiting(tx: Transaction, plan: Plan) -> tuple[str, ...]:
    """What waits for jobs that come, or that are gone."""
    coming, going = [one.draft.name for one in plan.create], [one.job.name for one in plan.remove]
    kinds = [kind for domain in domains() for kind in domain.kinds]
    return tuple(note for kind in kinds if kind.waiting is not None for note in kind.waiting(tx, coming, going))


def _owned(tx: Transaction, fleet: str) -> list[OwnedJob]:
    rows = {row.job_id: row for row in tx.of(Fleets).owned(fleet)}
    states = tx.jobs.states(list(rows)) if rows else {}
    jobs = tx.jobs.definitions(list(rows)) if rows else {}
    return [
        OwnedJob(job, states[job.id], bool(rows[job.id].enabled), rows[job.id].notes)
        for job in sorted(jobs.values(), key=_by_name)
        if job.removed_at is None and job.source == SOURCE  # who replaced one since owns it
    ]


def _by_name(job: JobDef) -> str:
    return job.name


def _refuse_taken(tx: Transaction, plan: Plan) -> None:
    taken = tx.jobs.names([one.draft.name for one in plan.create]) if plan.create else {}
    if not taken:
        return
    name = min(taken)
    owner = tx.of(Fleets).owners([taken[name]]).get(taken[name])
    job = tx.jobs.definitions([taken[name]])[taken[name]]
    is_anothers = owner is not None and job.source == SOURCE
    who = f"belongs to the file of fleet {owner!r}" if is_anothers else f"was made by {_MAKERS.get(job.source)}"
    more = f" (and {len(taken) - 1} more)" if len(taken) > 1 else ""
    raise JobExists(f"A job named {name!r} {who}, and a file changes only its own{more}: rename or remove one of them.")


_MAKERS = {"cli": "wakeful add", "api": "the API", "mcp": "an agent", "code": "a program", "file": "another file"}


def _remove(tx: Transaction, context: Context, plan: Plan, origin: Origin) -> str | None:
    """On record: so they can be restored. Those that are stay the file's own, and go again when it is next applied."""

    def work() -> None:
        for one in plan.remove:
            job_actions.remove_job(tx, context, ids.job_text(one.job.id))

    return on_record(tx, origin, "remove", [(one.job, one.state) for one in plan.remove], work)[1]


def _update(tx: Transaction, context: Context, plan: Plan, terms: PlanContext) -> None:
    edits = [((one.owned.job, one.owned.state), one.fields) for one in plan.update]
    changed = job_actions.change_all(tx, context, edits, terms.zone, keep_due=True)
    job_actions.move_lanes(tx, [(one.owned.job, new) for one, new in zip(plan.update, changed, strict=True)])


def _switch_all(tx: Transaction, context: Context, plan: Plan, origin: Origin) -> str | None:
    """Switch stored jobs on and off as the file says; the action, if that changed any."""
    on = [one for one in plan.update if one.wanted.enabled and (not one.owned.enabled or one.revives)]
    off = [one for one in plan.update if not one.wanted.enabled and one.owned.enabled]
    done = [
        _switch(tx, origin, "resume", on, partial(pausing.enable_job, tx, context)),
        _switch(tx, origin, "disable", off, partial(pausing.disable_job, tx, context)),
    ]
    return next(filter(None, done), None)


def _switch(
    tx: Transaction, origin: Origin, what: str, updates: Sequence[JobUpdate], switch: Callable[[str], None]
) -> str | None:
    """Switch jobs on or off, on record; what else the file changed of them stays when that is undone."""
    refs = [ids.job_text(one.owned.job.id) for one in updates]

    def work() -> None:
        for ref in refs:
            switch(ref)

    return on_record(tx, origin, what, [find_job(tx, ref) for ref in refs], work)[1]


def _create(tx: Transaction, context: Context, fleet: Fleet, plan: Plan, terms: PlanContext) -> None:
    made = job_actions.add_jobs(tx, context, [one.draft for one in plan.create], "error", terms.zone)
    for job_id, one in zip(made, plan.create, strict=True):
        if not one.enabled:
            pausing.disable_job(tx, context, ids.job_text(job_id))
    _own(tx, fleet, list(zip(made, plan.create, strict=True)))


def _own(tx: Transaction, fleet: Fleet, jobs: Sequence[tuple[int, DesiredJob]]) -> None:
    tx.of(Fleets).own([OwnedRow(job_id, fleet.name, int(one.enabled), one.notes) for job_id, one in jobs])
    noted = {job_id: one.notes for job_id, one in jobs if one.notes is not None}
    states = tx.jobs.states(list(noted)) if noted else {}
    tx.jobs.save([state._replace(notes=add_note(state.notes, noted[job_id])) for job_id, state in states.items()])
