"""A ping as a run: begun, ended or added to, in one transaction and through the kernel's end of runs.

A monitor may have several runs open at once, identified by the `rid` of their pings. The job itself is occupied with
the oldest of them, whose deadline is its alarm; when that ends, the next takes its place.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from wakeful import ids
from wakeful.domains.monitors import MAX_BODY
from wakeful.domains.monitors.silence import note_silence
from wakeful.domains.monitors.tables import Monitors
from wakeful.kernel.context import Context
from wakeful.kernel.engine.stretches import keep_passed
from wakeful.kernel.engine.turn import FinishedRun, settle_all
from wakeful.kernel.rules.outcome import Result, clean
from wakeful.kernel.rules.policy import trigger_of
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, JobState, RunDetails, RunRow
from wakeful.triggers import Ping

if TYPE_CHECKING:
    from wakeful.scheduler import Scheduler

MAX_LOG = 6 * MAX_BODY  # characters kept of what one run's pings bring
MOST_OPEN = 20  # runs of one monitor at once
REASON = "ping"


class Report(NamedTuple):
    """What a ping says."""

    what: str  # success, fail, start or log
    exit_code: int | None = None
    rid: str | None = None
    text: str = ""


SUCCESS = Report("success")


class OpenRun(NamedTuple):
    """A run that began and has not ended, and what its pings brought so far."""

    run: RunRow
    rid: str | None
    said: dict[str, Any]


def receive(tx: Transaction, context: Context, key: str, report: Report) -> int | None:
    """Record a ping; the id of its run, or None where no monitor has this key."""
    job_id = tx.of(Monitors).job_of(key)
    state = tx.jobs.states([job_id]).get(job_id) if job_id is not None else None
    if job_id is None or state is None:
        return None
    job = tx.jobs.definitions([job_id])[job_id]
    trigger = trigger_of(job.trigger)
    if job.removed_at is not None or not isinstance(trigger, Ping):
        return None
    monitor = Monitor(tx, context, job, trigger)
    if report.what == "start":
        return monitor.start(report)
    return monitor.add_text(report) if report.what == "log" else monitor.end(report)


async def ping(scheduler: Scheduler, key: str, report: Report = SUCCESS) -> str | None:
    """Ping from within a program, with the same effect as over the network; the run's id, None for an unknown key."""
    run_id = await scheduler.transact(lambda tx, context: receive(tx, context, key, report))
    return None if run_id is None else ids.run_text(run_id)


def go_on_waiting(tx: Transaction, context: Context, job: JobDef, ended: RunRow) -> None:
    """A run of the job has ended: the job is occupied with the oldest of those that are still open, if any is."""
    left = [run for run in tx.runs.open(job.id) if run.status == "waiting" and run.id != ended.id]
    trigger = trigger_of(job.trigger)
    if not left:
        return
    state = tx.jobs.states([job.id])[job.id]
    grace = trigger.grace_ms if isinstance(trigger, Ping) else 0
    due_at = (left[0].started_at or tx.now) + grace
    tx.jobs.save([state._replace(run_id=left[0].id, due_at=due_at)])
    if job.removed_at is not None:
        result = Result("unknown", error="the job was removed before its end was reported")
        settle_all(tx, context, [FinishedRun(job, state.revision, left[0], result)])


class Monitor:
    """One monitor in one transaction."""

    def __init__(self, tx: Transaction, context: Context, job: JobDef, trigger: Ping) -> None:
        self._tx = tx
        self._context = context
        self._job = job
        self._trigger = trigger

    def start(self, report: Report) -> int:
        """A run begins. One with the same rid that is still open is replaced, and how it ended is not known."""
        open_runs = self._open()
        same = [one for one in open_runs if one.rid == report.rid]
        for one in same:
            self._settle(one.run, _unknown(one, "another start came before its end"))
        others = [one for one in open_runs if one not in same]
        for one in others[: len(others) - MOST_OPEN + 1] if len(others) >= MOST_OPEN else ():
            self._settle(one.run, _unknown(one, f"{MOST_OPEN} runs that began later are open as well"))
        state = self._state()
        if same and state.next_at is not None and state.next_at <= self._tx.now:
            state = self._silent(state)  # beginning again and again is no sign of success
        run = self._begin(report.rid)
        state = state._replace(last_run_id=run.id, last_run_at=self._tx.now)
        if state.run_id is None:
            state = state._replace(run_id=run.id, due_at=self._tx.now + self._trigger.grace_ms)
        self._tx.jobs.save([state])
        self._add_output(run.id, _with_text({}, report.text))
        return run.id

    def end(self, report: Report) -> int:
        """A run ends: the one that began, or else one that began and ended now."""
        found = self._find(report.rid)
        run = found.run if found is not None else self._begin(report.rid)
        self._settle(run, _result(report, found.said if found is not None else {}))
        return run.id

    def add_text(self, report: Report) -> int:
        """A note to the run that is open; alone, it is kept and changes nothing."""
        found = self._find(report.rid)
        if found is not None:
            self._add_output(found.run.id, _with_text(found.said, report.text))
            return found.run.id
        run = self._begin(report.rid)
        said = _with_text(_about(report), report.text)
        self._settle(run, Result("noop", output=json.dumps(said) if said else None))
        return run.id

    # -- the parts ----------------------------------------------------------------------------------------------------

    def _state(self) -> JobState:
        return self._tx.jobs.states([self._job.id])[self._job.id]

    def _open(self) -> list[OpenRun]:
        runs = [run for run in self._tx.runs.open(self._job.id) if run.status == "waiting" and run.reason == REASON]
        details = self._tx.runs.details_of([run.id for run in runs]) if runs else {}
        return [_opened(run, details.get(run.id)) for run in runs]

    def _find(self, rid: str | None) -> OpenRun | None:
        """The open run that a ping is about: of the same rid; without one, the latest, best one without a rid too."""
        open_runs = self._open()
        same = [one for one in open_runs if one.rid == rid]
        if same or rid is not None:
            return same[-1] if same else None
        return open_runs[-1] if open_runs else None

    def _begin(self, rid: str | None) -> RunRow:
        now, job = self._tx.now, self._job
        run = RunRow(
            id=self._context.new_id(), job_id=job.id, kind=job.kind, reason=REASON, slot=None, attempt=1,
            retry_of=None, caused_by=None, phase=None, status="waiting", outcome=None, due_at=now, started_at=now,
        )  # fmt: skip
        self._tx.runs.add([run])
        if rid is not None:
            self._tx.runs.detail([RunDetails(run.id, payload=json.dumps({"rid": rid}))])
        about = {"run": run.id, "job_id": job.id, "job": job.name}
        self._tx.events.emit("run", {"type": "started", **about, "reason": REASON})
        return run

    def _settle(self, run: RunRow, result: Result) -> None:
        state = self._state()
        # The job is occupied with the run that ends; then it continues with one that is still open.
        last = max(run.started_at or 0, state.last_run_at or 0)
        self._tx.jobs.save([state._replace(run_id=run.id, last_run_id=run.id, last_run_at=last)])
        settle_all(self._tx, self._context, [FinishedRun(self._job, state.revision, run, result)])

    def _silent(self, state: JobState) -> JobState:
        now_due = state._replace(due_at=self._tx.now)  # nothing was late: the job waited for the run that is replaced
        silence = note_silence(self._tx, self._context, self._job, now_due, self._trigger)
        self._tx.skips.count([silence.skip])
        keep_passed(self._tx, silence.passed)
        return silence.state

    def _add_output(self, run_id: int, said: Mapping[str, Any]) -> None:
        if said:
            self._tx.runs.detail([RunDetails(run_id, output=json.dumps(said))])


def _opened(run: RunRow, details: RunDetails | None) -> OpenRun:
    given = json.loads(details.payload) if details is not None and details.payload else {}
    said = json.loads(details.output) if details is not None and details.output else {}
    return OpenRun(run, given.get("rid"), said)


def _about(report: Report) -> dict[str, Any]:
    rid = {} if report.rid is None else {"rid": report.rid}
    return rid if report.exit_code is None else {**rid, "exit_code": report.exit_code}


def _with_text(said: Mapping[str, Any], text: str) -> dict[str, Any]:
    """The kept text with one more added; the beginning is kept if it is too long."""
    if not text:
        return dict(said)
    before = said.get("text", "")
    both = f"{before.rstrip()}\n{text}" if before else text
    return {**said, "text": both if len(both) <= MAX_LOG else f"{both[:MAX_LOG]}…"}


def _unknown(one: OpenRun, why: str) -> Result:
    return Result("unknown", output=json.dumps(one.said) if one.said else None, error=why)


def _result(report: Report, before: Mapping[str, Any]) -> Result:
    said = {**_about(report), **_with_text(before, report.text)}
    output = json.dumps(said) if said else None
    if report.what == "success":
        return Result("success", output=output)
    why = "it reported a failure" if report.exit_code is None else f"it ended with exit code {report.exit_code}"
    lines = [line.strip() for line in report.text.splitlines() if line.strip()]
    return Result("error", output=output, error_type="Reported", error=f"{why}: {lines[-1][:300]}" if lines else why)


def read_text(body: bytes) -> str:
    """What a ping brought, as text every database takes; the rest of a long one is left out."""
    return clean(body[:MAX_BODY].decode("utf-8", "replace"))
