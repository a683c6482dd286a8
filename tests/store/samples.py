"""Records to put into a store, and a store that is spoken with one sentence at a time."""

from __future__ import annotations

import asyncio
import json

from wakeful.store import make_store
from wakeful.store.records import AlertRow, Finish, JobDef, JobState, RunRow

NOW = 1_767_225_600_000  # 2026-01-01T00:00:00Z, where the virtual clock begins


def job(job_id, name=None, *, trigger="manual", **changes):
    """A definition and a state with nothing remarkable about them, but for `changes` to either."""
    definition = JobDef(
        id=job_id,
        name=name or f"job-{job_id}",
        kind="work",
        owner=None,
        source="code",
        trigger=json.dumps({"type": trigger}, separators=(",", ":")),
        payload="null",
        options="{}",
        created_at=NOW,
        updated_at=NOW,
        removed_at=None,
    )
    empty = dict.fromkeys(JobState._fields)
    counters = dict.fromkeys(
        ("paused", "queued", "errors", "crashes", "missed", "slot_runs", "priority", "counted_to"), 0
    )
    state = JobState(**{**empty, **counters, "job_id": job_id, "revision": 1, "enabled": 1})
    mine = {key: value for key, value in changes.items() if key in JobDef._fields}
    return definition._replace(**mine), state._replace(**{k: v for k, v in changes.items() if k not in mine})


def run(run_id, job_id=1, **changes):
    """A run by hand that waits to be started, but for `changes`; `outcome` makes it a finished one."""
    values = dict.fromkeys(RunRow._fields)
    values.update(id=run_id, job_id=job_id, kind="work", reason="manual", attempt=1, status="queued", due_at=NOW)
    values.update(cancel=0)
    if "outcome" in changes:
        values.update(status="done", started_at=NOW, finished_at=NOW + 5)
    return RunRow(**{**values, **changes})


def end(run_id, outcome="success", at=NOW + 10):
    return Finish(run_id, "done", outcome, NOW, at, None)


def alert(alert_id, key="failing:1", **changes):
    plain = AlertRow(alert_id, key, "failing", 1, "job-1 fails", NOW, NOW, 1, None, None)
    return plain._replace(**changes)


class OpenStore:
    """An open store on an event loop of its own; each call runs that loop until the answer is there."""

    def __init__(self, url, clock, *, inline=False, create=True):
        self.store = make_store(url, clock, inline=inline)
        self._create = create
        self._runner = asyncio.Runner()

    def __enter__(self):
        try:
            self.do(self.store.open(create=self._create))
        except BaseException:
            self._runner.close()
            raise
        return self

    def __exit__(self, *_):
        try:
            self.do(self.store.close())
        finally:
            self._runner.close()

    def do(self, coroutine):
        async def bounded():
            async with asyncio.timeout(30):
                return await coroutine

        return self._runner.run(bounded())

    def write(self, work):
        return self.do(self.store.write(work))

    def read(self, work):
        return self.do(self.store.read(work))

    def add(self, *pairs):
        self.write(lambda tx: tx.jobs.add(pairs))

    def add_runs(self, *runs):
        self.write(lambda tx: tx.runs.add(runs))
