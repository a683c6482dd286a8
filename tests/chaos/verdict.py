"""The judgement: what the store says, through the public API, held against what the ledger saw."""

from __future__ import annotations

import sqlite3
from collections import defaultdict
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from tests.chaos.ledger import ASKED, CANCELLED, CUT, DEAD, END, PAUSED, READY, REMOVED, RESUMED, START, STORED, Line
from wakeful import Job, Run, Scheduler

LATE_BOUND_S = 10.0  # net of the time in which no server was there; generous, for a machine that does other things too
PAGE = 500
FOREVER = float("inf")


@dataclass
class Verdict:
    """Counts that must be 0, each with what was found, and a few that only describe the run."""

    lost: list[str] = field(default_factory=list)  # stored, and never settled
    settled_twice: list[str] = field(default_factory=list)  # a slot with two ends that are no crash
    doubled: list[str] = field(default_factory=list)  # a second start of a slot that no crash explains
    overlapping: list[str] = field(default_factory=list)  # two runs of one job at one time
    over_capacity: list[str] = field(default_factory=list)  # more in a lane than it holds
    unrecorded: list[str] = field(
        default_factory=list
    )  # a handler ran and no run says so, or its end was not as recorded
    against_orders: list[str] = field(default_factory=list)  # started while paused or after it was removed
    late: list[str] = field(default_factory=list)  # beyond the bound
    damaged: list[str] = field(default_factory=list)  # what SQLite itself finds wrong with the file
    facts: dict[str, float] = field(default_factory=dict)

    @property
    def faults(self) -> dict[str, list[str]]:
        names = "lost settled_twice doubled overlapping over_capacity unrecorded against_orders late damaged"
        return {name: getattr(self, name) for name in names.split()}

    @property
    def clean(self) -> bool:
        return not any(self.faults.values())

    def lines(self) -> list[str]:
        record = [f"{name.replace('_', ' '):<16} {len(found)}" for name, found in self.faults.items()]
        record += [f"  {name}: {item}" for name, found in self.faults.items() for item in found[:10]]
        return [*record, ", ".join(f"{name} {value:g}" for name, value in self.facts.items())]


async def judge(store: Path, lines: Sequence[Line], places: int) -> Verdict:
    """Read everything there is to know, and compare."""
    async with Scheduler(f"sqlite:///{store}") as scheduler:
        jobs = {job.name: job for job in await scheduler.list_jobs()}
        runs = await _all_runs(scheduler)
    record = _Record(lines)
    verdict = Verdict()
    _judge_slots(verdict, runs)
    _judge_chains(verdict, runs)
    _judge_stored(verdict, record, jobs, runs)
    _judge_asked(verdict, record, runs)
    _judge_lives(verdict, record, runs, places)
    _judge_orders(verdict, record, runs)
    _judge_lateness(verdict, record, runs)
    with closing(sqlite3.connect(store)) as connection:
        (said,) = connection.execute("PRAGMA integrity_check").fetchone()
    verdict.damaged += [said] if said != "ok" else []
    verdict.facts |= {
        "kills": len(record.deaths),
        "stored": len(record.of(STORED)),
        "runs": len(runs),
        "crashed": sum(run.outcome == "crashed" for run in runs),
        "cancelled": sum(run.outcome == "cancelled" for run in runs),
        "deepest": max((run.attempt for run in runs), default=0),
        "given up after crashes": sum(_given_up(job) for job in jobs.values()),
    }
    return verdict


async def _all_runs(scheduler: Scheduler) -> list[Run]:
    runs: list[Run] = []
    page = await scheduler.get_run_log(limit=PAGE)
    while page:
        runs += page
        page = await scheduler.get_run_log(limit=PAGE, before=page[-1].id)
    return runs


class _Record:
    """The ledger, sorted by what is asked of it."""

    def __init__(self, lines: Sequence[Line]) -> None:
        self.lines = sorted(lines)
        self.starts = {line.ref: line for line in self.of(START)}
        self.ends = {line.ref: line for line in self.of(END)}
        self.cuts = {line.ref: line for line in self.of(CUT)}
        self.deaths = [line.at for line in self.of(DEAD)]
        self.births = [line.at for line in self.of(READY)]

    def of(self, what: str) -> list[Line]:
        return [line for line in self.lines if line.what == what]

    def names(self, what: str) -> set[str]:
        return {line.job for line in self.of(what)}

    def ended(self, run: str) -> float:
        """When a started handler was over: its last line, or its process's death."""
        if over := self.ends.get(run) or self.cuts.get(run):
            return over.at
        return min((death for death in self.deaths if death >= self.starts[run].at), default=FOREVER)

    def down_between(self, begin: float, end: float) -> float:
        """For how long of that time there was no server that was ready."""
        total, covered = 0.0, begin
        for down in [0.0, *self.deaths]:
            up = min((birth for birth in self.births if birth > down), default=end)
            low, high = max(down, covered), min(up, end)
            if high > low:
                total, covered = total + high - low, high
        return total


def _judge_slots(verdict: Verdict, runs: Iterable[Run]) -> None:
    """Each slot: one first attempt, every further one linked to a crash before it, one end that is none."""
    slots: dict[tuple[str, object], list[Run]] = defaultdict(list)
    for run in runs:
        if run.slot is not None:
            slots[run.job_id, run.slot].append(run)
    for attempts in slots.values():
        name = f"{attempts[0].job} at {attempts[0].slot:%H:%M:%S.%f}"
        settled = [run for run in attempts if run.status == "done" and run.outcome not in ("crashed", "cancelled")]
        if len(settled) > 1:
            verdict.settled_twice.append(f"{name}: {[run.id for run in settled]}")
        known = {run.id: run for run in attempts}
        links = [run.retry_of for run in attempts]
        if links.count(None) > 1 or len(set(links)) < len(links):
            verdict.doubled.append(f"{name}: {[(run.id, run.retry_of) for run in attempts]}")
        for run in attempts:
            before = known.get(run.retry_of) if run.retry_of is not None else None
            if run.retry_of is not None and (before is None or before.outcome != "crashed"):
                verdict.doubled.append(f"{name}: {run.id} follows {run.retry_of}, which was no crash")


def _judge_chains(verdict: Verdict, runs: Sequence[Run]) -> None:
    """What starts after another job starts once for each of its ends."""
    known = {run.id: run for run in runs}
    causes: dict[str, list[str]] = defaultdict(list)
    for run in runs:
        if run.reason == "after" and run.caused_by is not None:
            causes[run.job].append(run.caused_by)
            cause = known.get(run.caused_by)
            if cause is None or cause.status != "done":
                verdict.doubled.append(f"{run.job}: {run.id} came before the end of {run.caused_by}")
    for name, found in causes.items():
        if len(found) > 1:  # its parent is a one-shot, and ends once
            verdict.doubled.append(f"{name} was started {len(found)} times, after {found}")


def _judge_stored(verdict: Verdict, record: _Record, jobs: dict[str, Job], runs: Sequence[Run]) -> None:
    """Everything that was reported as stored has ended, except what was stopped."""
    by_job: dict[str, list[Run]] = defaultdict(list)
    for run in runs:
        by_job[run.job].append(run)
    stopped = record.names(REMOVED) | (record.names(PAUSED) - _resumed_last(record))
    for name in record.names(STORED):
        if name not in jobs and name not in record.names(REMOVED):
            verdict.lost.append(f"{name} is not there any more")
        elif name.startswith("tick-") or name in stopped:
            continue
        elif not _has_ended(by_job[name]) and not _given_up(jobs[name]):
            verdict.lost.append(f"{name}: {[(run.id, run.status, run.outcome) for run in by_job[name]]}")


def _has_ended(runs: Sequence[Run]) -> bool:
    return any(run.outcome in ("success", "cancelled") for run in runs) and all(run.status == "done" for run in runs)


def _given_up(job: Job) -> bool:
    """Disabled because its process died again and again while it ran; reported in its notes, and by an alert."""
    return job.last_outcome == "crashed" and any(note.startswith("disabled ") for note in job.notes)


def _resumed_last(record: _Record) -> set[str]:
    last = {line.job: line.what for line in record.lines if line.what in (PAUSED, RESUMED)}
    return {name for name, what in last.items() if what == RESUMED}


def _judge_asked(verdict: Verdict, record: _Record, runs: Sequence[Run]) -> None:
    """A run whose id was returned to a caller ends, itself or through its retry."""
    after = {run.retry_of: run for run in runs if run.retry_of is not None}
    known = {run.id: run for run in runs}
    for line in record.of(ASKED):
        run = known.get(line.ref)
        while run is not None and run.outcome == "crashed" and run.id in after:
            run = after[run.id]
        if run is None or run.status != "done" or run.outcome == "crashed":
            verdict.lost.append(f"asked for {line.job} as {line.ref}: {None if run is None else (run.id, run.status)}")


def _judge_lives(verdict: Verdict, record: _Record, runs: Sequence[Run], places: int) -> None:
    """Handlers as they really ran: once per run, as recorded, never beside another of the same job, lanes kept."""
    known = {run.id: run for run in runs}
    by_job: dict[str, list[Line]] = defaultdict(list)
    seen: set[str] = set()
    for line in record.of(START):
        by_job[line.job].append(line)
        if line.ref not in known or line.ref in seen:
            verdict.unrecorded.append(f"{line.job} ran as {line.ref}{' twice' if line.ref in seen else ''}")
        seen.add(line.ref)
    for run in runs:
        if run.outcome == "success" and run.id not in record.ends:
            verdict.unrecorded.append(f"{run.job}: {run.id} is a success that never reached its end")
    for lines in by_job.values():
        for one, two in pairwise(lines):
            if record.ended(one.ref) > two.at:
                verdict.overlapping.append(
                    f"{one.job}: {one.ref} until {record.ended(one.ref):.3f}, {two.ref} from {two.at:.3f}"
                )
    busiest = _busiest([line for line in record.of(START) if line.job.startswith("lane-")], record)
    verdict.facts["busiest lane"] = busiest
    if busiest > places:
        verdict.over_capacity.append(f"{busiest} ran in a lane of {places}")


def _busiest(starts: Sequence[Line], record: _Record) -> int:
    steps = sorted([(line.at, 1) for line in starts] + [(record.ended(line.ref), -1) for line in starts])
    now = most = 0
    for _, step in steps:
        now += step
        most = max(most, now)
    return most


def _judge_orders(verdict: Verdict, record: _Record, runs: Sequence[Run]) -> None:
    """Nothing starts while it is paused, and what was cancelled is not run again."""
    paused: set[str] = set()
    for line in record.lines:
        if line.what == PAUSED:
            paused.add(line.job)
        elif line.what == RESUMED:
            paused.discard(line.job)
        elif line.what == START and line.job in paused:
            verdict.against_orders.append(f"{line.job} started as {line.ref} while paused")
    cancelled = {line.ref for line in record.of(CANCELLED)}
    verdict.against_orders += [
        f"{run.job}: {run.retry_of} was cancelled, and run again as {run.id}"
        for run in runs
        if run.retry_of in cancelled
    ]


def _judge_lateness(verdict: Verdict, record: _Record, runs: Sequence[Run]) -> None:
    """First starts of slots that wait for nothing but a server."""
    worst = 0.0
    for run in runs:
        free = run.slot is not None and run.retry_of is None and not run.job.startswith(("lane-", "nap-"))
        if not free or run.id not in record.starts:
            continue
        due, started = run.due_at.timestamp(), record.starts[run.id].at
        late = started - due - record.down_between(due, started)
        worst = max(worst, late)
        if late > LATE_BOUND_S:
            verdict.late.append(f"{run.job}: {run.id} by {late:.1f} s")
    verdict.facts["worst lateness s"] = round(worst, 2)
    verdict.facts["cancels asked"] = len(record.of(CANCELLED))
