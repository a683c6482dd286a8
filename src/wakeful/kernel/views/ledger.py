"""The ledger: every slot that was due in a span, and what became of it, for one job or all."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Callable, Generator, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import clock as clocks
from wakeful.errors import IntervalParseError, InvalidSetting, InvalidTrigger
from wakeful.kernel.engine.admission import DRAINING, all_drain
from wakeful.kernel.rules.ledger import (
    DUE,
    NOT_DUE,
    RUNNING,
    UNACCOUNTED,
    Account,
    Counted,
    Listed,
    SlotDisposition,
    SlotRun,
    Sums,
    due_slots,
    list_slots,
    quick_sums,
)
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.trigger_history import TriggerHistory
from wakeful.kernel.views.readiness import waits_as
from wakeful.store.records import RunRow
from wakeful.store.stretches import KEPT_FROM, Block, PastTrigger, SlotSpan, Stretch
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.moments import from_ms, iso, read_moment, to_ms

if TYPE_CHECKING:
    from wakeful.store.interface import Store, Transaction
    from wakeful.store.owners import Owned
    from wakeful.store.records import JobDef, JobState
    from wakeful.store.slots import Placed

STEP = 1_000  # jobs that are counted in one go
MOST_CLOSER, MOST_SLOTS = 500, 10_000  # jobs that are looked at slot by slot in one go, and with how many slots
PAUSE_S = 0.005  # between two steps, where each is a transaction of its own


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
    """All jobs, or an owner's, except removed ones and hidden kinds, as of one moment."""
    steps = _steps(SlotSpan(max(since, kept_from(tx)), tx.now), hidden, owned)
    step = next(steps)
    while True:
        try:
            step = steps.send(step(tx))
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]


async def ledger_in_steps(
    store: Store, since: Callable[[int], int], hidden: Sequence[str] = (), owned: Owned | None = None
) -> Ledger:
    """The same in many small transactions: nothing else waits for it, and a store that is closed ends it at once.

    Each job is as it is when it is looked at; slots are those up to when this began.
    """
    span = await store.read(lambda tx: SlotSpan(max(since(tx.now), kept_from(tx)), tx.now))
    steps = _steps(span, hidden, owned)
    step = next(steps)
    while True:
        part = await store.read(step)
        try:
            step = steps.send(part)
        except StopIteration as done:
            return done.value  # type: ignore[no-any-return]
        await clocks.sleep(PAUSE_S)


class _Part(NamedTuple):
    """What one step found: sums by job, which jobs are to be looked at slot by slot, and after which job to go on."""

    sums: Mapping[str, Sums]
    closer: Sequence[Sequence[int]] = ()
    following: int | None = None


def _steps(
    span: SlotSpan, hidden: Sequence[str], owned: Owned | None
) -> Generator[Callable[[Transaction], _Part], _Part, Ledger]:
    """What to look at, step by step, each time for no more than so many jobs or slots; the ledger in the end."""
    sums: dict[str, Sums] = defaultdict(Counter)
    after: int | None = 0
    while after is not None:
        part = yield partial(_count_jobs, span=span, after=after, hidden=hidden, owned=owned)
        _add(sums, part)
        for job_ids in part.closer:
            _add(sums, (yield partial(_look_at_slots, span=span, job_ids=job_ids)))
        after = part.following
    total: Sums = Counter()
    for counted in sums.values():
        total.update(counted)
    tallies = {name: tally_of(counted) for name, counted in sums.items() if counted}
    return Ledger(from_ms(span.after), from_ms(span.until), tally_of(total), tallies)


def _add(sums: dict[str, Sums], part: _Part) -> None:
    for name, counted in part.sums.items():
        sums[name].update(counted)


def _count_jobs(tx: Transaction, span: SlotSpan, after: int, hidden: Sequence[str], owned: Owned | None) -> _Part:
    """The next jobs, by counting: a few queries."""
    placed, following = tx.slots.next_jobs(after, STEP, hidden, owned)
    jobs = [one for one in placed if is_timed(one.trigger)]
    if not jobs:
        return _Part({}, (), following)
    block = Block(after, max(one.id for one in jobs))
    counts = _Counts(tx, span, block, [one.state for one in jobs])
    sums, closer, slots = dict[str, Sums](), list[list[int]](), 0
    for one in jobs:
        account, counted = counts.of(one)
        found = quick_sums(account, counted)
        if found is not None:
            sums[one.name] = found
            continue
        if not closer or len(closer[-1]) == MOST_CLOSER or slots >= MOST_SLOTS:
            closer.append([])
            slots = 0
        closer[-1].append(one.id)
        slots += max(counted.firsts, due_slots(account))
    return _Part(sums, closer, following)


def _look_at_slots(tx: Transaction, span: SlotSpan, job_ids: Sequence[int]) -> _Part:
    """These jobs, slot by slot: a few queries."""
    found, states = tx.jobs.definitions(job_ids), tx.jobs.states(job_ids)
    pairs = [(found[job_id], states[job_id]) for job_id in job_ids if job_id in found and job_id in states]
    runs, stretches = tx.slots.runs_of_each(job_ids, span), tx.stretches.of_each(job_ids, span)
    sums = {}
    for (job, _), account in zip(pairs, _accounts_of(tx, pairs, span), strict=True):
        listed = list_slots(account, map(slot_run, runs.get(job.id, ())), stretches.get(job.id, ()))
        sums[job.name] = listed.sums()
    return _Part(sums)


def is_timed(trigger: str) -> bool:
    """Whether it has times; one that cannot be read has none, and its job was disabled for that."""
    try:
        return trigger_of(trigger).timed
    except InvalidTrigger:
        return False


def ledger_of_job(tx: Transaction, job: JobDef, state: JobState, since: int) -> Ledger:
    """One job, slot by slot."""
    account = account_of(tx, job, state, SlotSpan(max(since, kept_from(tx)), tx.now))
    tally = tally_of(listed_of(tx, account).sums())
    return Ledger(from_ms(account.span.after), from_ms(account.span.until), tally, {job.name: tally})


def kept_from(tx: Transaction) -> int:
    """Before this, slots are no longer on record."""
    return int(tx.facts.get(KEPT_FROM) or 0)


def account_of(tx: Transaction, job: JobDef, state: JobState, span: SlotSpan) -> Account:
    """What is known of a job's slots in a span; that of a removed one ends with it."""
    return _accounts_of(tx, [(job, state)], span)[0]


def _accounts_of(tx: Transaction, pairs: Sequence[tuple[JobDef, JobState]], span: SlotSpan) -> list[Account]:
    """The same of several jobs."""
    past = tx.stretches.past_triggers_of([job.id for job, _ in pairs])
    waits, due_as = waits_as(tx, [state for _, state in pairs]), _due_as(tx)
    accounts = []
    for job, state in pairs:
        within = span if job.removed_at is None else span._replace(until=min(span.until, job.removed_at))
        history = TriggerHistory(past.get(job.id, ()), job.trigger)
        accounts.append(
            Account(state, history, job.trigger, job.created_at, within, tx.now, waits.get(job.id) or due_as)
        )
    return accounts


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
        sums[SlotDisposition("ran")],
        sums[RUNNING],
        reasons["waiting"],
        reasons["passed_over"],
        sums[SlotDisposition("merged")],
        sums[SlotDisposition("missing")],
        sums[UNACCOUNTED],
    )


class _Counts:
    """What the store counts of some jobs in a span, asked once."""

    def __init__(self, tx: Transaction, span: SlotSpan, block: Block, states: Sequence[JobState]) -> None:
        self._now = tx.now
        self._waits, self._due_as = waits_as(tx, states), _due_as(tx)
        self._span = span
        self._firsts = tx.slots.firsts(span, block)
        self._unstarted = tx.slots.unstarted(span, block)
        self._past: Mapping[int, list[PastTrigger]] = tx.stretches.all_past_triggers(span.after, block)
        self._opened: dict[int, list[SlotRun]] = defaultdict(list)
        for run in tx.slots.opened(span, block):
            self._opened[run.job_id].append(slot_run(run))
        self._sums: dict[int, list[tuple[str, int]]] = defaultdict(list)
        for job_id, fate, slots in tx.stretches.sums(span, block):
            self._sums[job_id].append((fate, slots))
        self._cut: dict[int, list[Stretch]] = defaultdict(list)
        for stretch in tx.stretches.crossing(span, block):
            self._cut[stretch.job_id].append(stretch)

    def of(self, placed: Placed) -> tuple[Account, Counted]:
        job_id = placed.id
        history = TriggerHistory(self._past.get(job_id, ()), placed.trigger)
        waits = self._waits.get(job_id, self._due_as)
        account = Account(placed.state, history, placed.trigger, placed.created_at, self._span, self._now, waits)
        return account, Counted(
            self._firsts.get(job_id, 0),
            self._unstarted.get(job_id, 0),
            self._opened.get(job_id, ()),
            self._sums.get(job_id, ()),
            self._cut.get(job_id, ()),
        )
