"""The ledger: every slot that was due in a span, and what became of it, for one job or all."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful.errors import IntervalParseError, InvalidSetting, InvalidTrigger
from wakeful.kernel.engine.draining import DRAINING, all_drain
from wakeful.kernel.rules.ledger import (
    DUE,
    NOT_DUE,
    RUNNING,
    UNACCOUNTED,
    Account,
    Counted,
    Fate,
    Listed,
    SlotRun,
    Sums,
    list_slots,
    quick_sums,
)
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.reigns import Reigns
from wakeful.kernel.views.readiness import waits_as
from wakeful.store.records import RunRow
from wakeful.store.stretches import KEPT_FROM, PastTrigger, Span, Stretch
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.moments import from_ms, iso, read_moment, to_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Transaction
    from wakeful.store.owners import Owned
    from wakeful.store.records import JobDef, JobState
    from wakeful.store.slots import Placed


class Tally(NamedTuple):
    """What became of the slots that were due; the parts add up to `due`."""

    due: int = 0
    ran: int = 0
    running: int = 0
    waiting: Mapping[str, int] = {}
    """How many wait, by reason."""
    passed_over: Mapping[str, int] = {}
    """How many were passed over, by reason."""
    merged: int = 0
    """How many were merged into another slot's run."""
    missing: int = 0
    """How many passed while nothing could run, and were not caught up."""
    unaccounted: int = 0
    """How many have no record: 0, unless there is a bug in Wakeful."""

    def to_dict(self) -> dict[str, Any]:
        """Plain data."""
        return {**self._asdict(), "waiting": dict(self.waiting), "passed_over": dict(self.passed_over)}


class Ledger(NamedTuple):
    """The sums of a span: of all jobs together, and of each that had slots."""

    since: datetime
    until: datetime
    total: Tally
    jobs: Mapping[str, Tally]

    def worst(self, limit: int | None = None) -> list[tuple[str, Tally]]:
        """The jobs, those with most slots that did not run first."""
        return sorted(self.jobs.items(), key=_worst_first)[:limit]

    def to_dict(self, limit: int | None = None) -> dict[str, Any]:
        """Plain data, times as ISO 8601 in UTC; with a limited number of jobs."""
        return {
            "since": iso(to_ms(self.since)),
            "until": iso(to_ms(self.until)),
            **self.total.to_dict(),
            "job_count": len(self.jobs),
            "jobs": [{"job": name, **tally.to_dict()} for name, tally in self.worst(limit)],
        }


def _worst_first(item: tuple[str, Tally]) -> tuple[int, int, int, str]:
    name, tally = item
    return -tally.unaccounted, -tally.missing, -sum(tally.waiting.values()) - sum(tally.passed_over.values()), name


def read_since(given: str | timedelta | datetime, now: int) -> int:
    """The start of a ledger: a duration up to now, or a time; InvalidSetting for anything else."""
    try:
        if isinstance(given, str) and not re.match(r"\d{4}-", given):
            return now - interval_ms(given)
        return now - interval_ms(given) if isinstance(given, timedelta) else read_moment(given, "since")
    except (InvalidTrigger, IntervalParseError, TypeError) as error:
        message = f"since is a duration such as 7d, or a time such as 2026-01-29T09:00:00Z, not {given!r:.80}."
        raise InvalidSetting(message) from error


def ledger_of_all(tx: Transaction, since: int, hidden: Sequence[str] = (), owned: Owned | None = None) -> Ledger:
    """All jobs, or an owner's, except removed ones and hidden kinds: a few queries, however many jobs there are."""
    span = Span(max(since, kept_from(tx)), tx.now)
    jobs = [placed for placed in tx.slots.jobs(hidden, owned) if is_timed(placed.trigger)]
    counts = _Counts(tx, span, [placed.state for placed in jobs])
    tallies, total = dict[str, Tally](), Sums()
    for placed in jobs:
        sums = counts.of(placed)
        if sums:
            tallies[placed.name] = tally_of(sums)
            total.update(sums)
    return Ledger(from_ms(span.after), from_ms(span.until), tally_of(total), tallies)


def is_timed(trigger: str) -> bool:
    """Whether it has times; one that cannot be read has none, and its job was disabled for that."""
    try:
        return trigger_of(trigger).timed
    except InvalidTrigger:
        return False


def ledger_of_job(tx: Transaction, job: JobDef, state: JobState, since: int) -> Ledger:
    """One job, slot by slot."""
    account = account_of(tx, job, state, Span(max(since, kept_from(tx)), tx.now))
    tally = tally_of(listed_of(tx, account).sums())
    return Ledger(from_ms(account.span.after), from_ms(account.span.until), tally, {job.name: tally})


def kept_from(tx: Transaction) -> int:
    """Before this, slots are no longer on record."""
    return int(tx.facts.get(KEPT_FROM) or 0)


def account_of(tx: Transaction, job: JobDef, state: JobState, span: Span) -> Account:
    """What is known of a job's slots in a span; that of a removed one ends with it."""
    past = tx.stretches.past_triggers(job.id)
    within = span if job.removed_at is None else span._replace(until=min(span.until, job.removed_at))
    waits = waits_as(tx, [state]).get(job.id) or _due_as(tx)
    return Account(state, Reigns(past, job.trigger), job.trigger, job.created_at, within, tx.now, waits)


def _due_as(tx: Transaction) -> str:
    """What those wait for that are due and were not refused."""
    return DRAINING if all_drain(tx) else DUE


def listed_of(tx: Transaction, account: Account) -> Listed:
    """What became of each slot of an account."""
    job_id = account.state.job_id
    runs = [slot_run(run) for run in tx.slots.runs(job_id, account.span)]
    return list_slots(account, runs, tx.stretches.within(job_id, account.span))


def slot_run(run: RunRow) -> SlotRun:
    return SlotRun(run.slot or 0, run.attempt, run.status, run.started_at, run.reason)


def tally_of(sums: Sums) -> Tally:
    """The sums by name."""
    reasons: dict[str, dict[str, int]] = {"waiting": {}, "passed_over": {}}
    for fate, count in sorted(sums.items()):
        if fate.what in reasons:
            reasons[fate.what][fate.why] = count
    return Tally(
        sums.total() - sums[NOT_DUE],
        sums[Fate("ran")],
        sums[RUNNING],
        reasons["waiting"],
        reasons["passed_over"],
        sums[Fate("merged")],
        sums[Fate("missing")],
        sums[UNACCOUNTED],
    )


class _Counts:
    """What the store counts of all jobs in a span, asked once."""

    def __init__(self, tx: Transaction, span: Span, states: Sequence[JobState]) -> None:
        self._tx = tx
        self._waits, self._due_as = waits_as(tx, states), _due_as(tx)
        self._span = span
        self._firsts = tx.slots.firsts(span)
        self._unstarted = tx.slots.unstarted(span)
        self._past: Mapping[int, list[PastTrigger]] = tx.stretches.all_past_triggers(span.after)
        self._opened: dict[int, list[SlotRun]] = defaultdict(list)
        for run in tx.slots.opened(span):
            self._opened[run.job_id].append(slot_run(run))
        self._sums: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for job_id, fate, slots in tx.stretches.sums(span):
            self._sums[job_id].append((fate, slots))
        self._cut: dict[int, list[Stretch]] = defaultdict(list)
        for stretch in tx.stretches.crossing(span):
            self._cut[stretch.job_id].append(stretch)

    def of(self, placed: Placed) -> Sums:
        job_id = placed.id
        reigns = Reigns(self._past.get(job_id, ()), placed.trigger)
        waits = self._waits.get(job_id, self._due_as)
        account = Account(placed.state, reigns, placed.trigger, placed.created_at, self._span, self._tx.now, waits)
        counted = Counted(
            self._firsts.get(job_id, 0),
            self._unstarted.get(job_id, 0),
            self._opened.get(job_id, ()),
            self._sums.get(job_id, ()),
            self._cut.get(job_id, ()),
        )
        sums = quick_sums(account, counted)
        if sums is not None:
            return sums
        found = self._tx.jobs.by_id(job_id)
        return listed_of(self._tx, account_of(self._tx, *found, self._span)).sums() if found is not None else Sums()
