"""The difference between a file and the store, as a list of changes. Pure: the time is a parameter."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from wakeful.kernel.hooks import Draft
from wakeful.kernel.rules.options import as_written, from_text
from wakeful.kernel.rules.policy import next_start, trigger_of, trigger_text
from wakeful.store.records import JobDef, JobState
from wakeful.triggers import Every, Once, Trigger, iso, trigger_from_data

Change = tuple[Any, Any]


class DesiredJob(NamedTuple):
    """A job as the file has it."""

    draft: Draft
    enabled: bool = True
    notes: str | None = None


class OwnedJob(NamedTuple):
    """A job of this file as it is stored, and what the file last said besides its definition."""

    job: JobDef
    state: JobState
    enabled: bool = True
    notes: str | None = None


class JobUpdate(NamedTuple):
    """A stored job that is to become what the file has."""

    owned: OwnedJob
    wanted: DesiredJob
    fields: dict[str, Any]  # of the definition; `trigger` is the Trigger itself
    revives: bool  # a job that was over by itself has a future again
    changes: dict[str, Change]  # in words, old and new


class Plan(NamedTuple):
    """What applying the file does."""

    create: list[DesiredJob]
    update: list[JobUpdate]
    remove: list[OwnedJob]
    unchanged: int
    passed: list[str]  # one-shots that are not stored, and whose time has passed: they are left alone
    notes: tuple[str, ...] = ()  # what waits for jobs that it adds, or that are gone
    action: str | None = None  # once applied: by which what it removed and switched on or off can be undone

    @property
    def is_empty(self) -> bool:
        return not (self.create or self.update or self.remove)

    @property
    def owned(self) -> int:
        """How many jobs the file owns now."""
        return len(self.remove) + len(self.update) + self.unchanged

    @property
    def removes_most(self) -> bool:
        """Whether more than half of what the file owns would go."""
        return 2 * len(self.remove) > self.owned


class PlanContext(NamedTuple):
    """What a plan is made with."""

    now: int
    zone: str  # of triggers that name none
    keys: Mapping[str, str] = {}  # what parts of a payload are called in the file


def make_plan(wanted: Iterable[DesiredJob], owned: Iterable[OwnedJob], terms: PlanContext) -> Plan:
    """Stored jobs are changed as the file has them, new ones are added, and those no longer in the file are removed."""
    stored = {one.job.name: one for one in owned}
    plan = Plan([], [], [], 0, [])
    unchanged = 0
    for one in wanted:
        known = stored.pop(one.draft.name, None)
        if known is None and _has_passed(one.draft.trigger, terms.now):
            plan.passed.append(one.draft.name)
        elif known is None:
            plan.create.append(one)
        elif (update := _difference(known, one, terms)) is not None:
            plan.update.append(update)
        else:
            unchanged += 1
    plan.remove.extend(stored.values())
    return plan._replace(unchanged=unchanged)


def _is_over(known: OwnedJob, now: int) -> bool:
    """Whether the job is stopped because its trigger has no further start, and for no other reason."""
    job, state = known.job, known.state
    stands = known.enabled and not state.enabled and not state.paused
    return stands and next_start(trigger_of(job.trigger), state, now, 0.0).ended is not None


def _has_passed(trigger: Trigger, now: int) -> bool:
    return isinstance(trigger, Once) and trigger.at_ms < now


def _difference(known: OwnedJob, wanted: DesiredJob, terms: PlanContext) -> JobUpdate | None:
    job, draft = known.job, wanted.draft
    fields: dict[str, Any] = {}
    trigger = same_grid(draft.trigger, trigger_of(job.trigger)).resolved(
        terms.now, terms.zone, keep=trigger_of(job.trigger)
    )
    if trigger_text(trigger) != job.trigger:
        fields["trigger"] = trigger
    pairs = {name: (getattr(job, name), getattr(draft, name)) for name in ("kind", "owner", "payload", "options")}
    fields.update({name: new for name, (old, new) in pairs.items() if old != new})
    said = known.enabled != wanted.enabled or known.notes != wanted.notes
    if not fields and not said:
        return None
    update = JobUpdate(known, wanted, fields, "trigger" in fields and _is_over(known, terms.now), {})
    return update._replace(changes=_in_words(update, terms))


def same_grid(wanted: Trigger, stored: Trigger) -> Trigger:
    """An interval that stays as long as it was keeps its grid when other fields change."""
    if not (isinstance(wanted, Every) and isinstance(stored, Every)) or wanted.anchor_ms is not None:
        return wanted
    if stored.anchor_ms is None or (wanted.interval_ms, wanted.start_ms) != (stored.interval_ms, stored.start_ms):
        return wanted
    return trigger_from_data({**wanted.to_data(), "anchor": iso(stored.anchor_ms)})


# -- in words ---------------------------------------------------------------------------------------------------------


def _in_words(update: JobUpdate, terms: PlanContext) -> dict[str, Change]:
    owned, wanted, fields = update.owned, update.wanted, update.fields
    changes: dict[str, Change] = {}
    if "trigger" in fields:
        old = trigger_of(owned.job.trigger)
        changes["schedule"] = _words(old, fields["trigger"])
        times = (_shown(owned.state.next_at), _shown(_next(update, terms.now)))
        changes |= {"next": times} if times != (None, None) else {}
    for name in ("kind", "owner"):
        if name in fields:
            changes[name] = (getattr(owned.job, name), fields[name])
    if "payload" in fields:
        before, after = _parts(owned.job.payload), _parts(fields["payload"])
        changes.update({terms.keys.get(key, key): pair for key, pair in _unequal(before, after)})
    if "options" in fields:
        before, after = as_written(from_text(owned.job.options)), as_written(from_text(fields["options"]))
        changes.update(_unequal(before, after))
    said = {"enabled": (owned.enabled, wanted.enabled), "notes": (owned.notes, wanted.notes)}
    changes.update({name: pair for name, pair in said.items() if pair[0] != pair[1]})
    return changes


def _words(old: Trigger, new: Trigger) -> Change:
    """What people read; where that is the same for both, what is stored."""
    pair = (old.brief(), new.brief())
    return pair if pair[0] != pair[1] else (old.to_data(), new.to_data())


def _next(update: JobUpdate, now: int) -> int | None:
    """When the job starts next once the plan is applied, as far as that is known."""
    state = update.owned.state
    if state.next_at is not None and state.next_at <= now:
        return state.next_at  # what is due is run first
    if state.paused or not update.wanted.enabled or not (state.enabled or update.revives):
        return None
    state = state._replace(slot_runs=0, backoff_until=None, last_slot=_last_slot(update))
    return next_start(update.fields["trigger"], state, now, 0.0).at


def _last_slot(update: JobUpdate) -> int | None:
    last, trigger = update.owned.state.last_slot, update.fields["trigger"]
    return None if isinstance(trigger, Once) and last is not None and trigger.at_ms <= last else last


def _parts(payload: str) -> dict[str, Any]:
    found = json.loads(payload)
    return found if isinstance(found, dict) else {"payload": found}


def _unequal(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[tuple[str, Change]]:
    keys: Sequence[str] = [*before, *(key for key in after if key not in before)]
    return [(key, (before.get(key), after.get(key))) for key in keys if before.get(key) != after.get(key)]


def _shown(ms: int | None) -> str | None:
    return None if ms is None else iso(ms)
