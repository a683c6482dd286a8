"""A place for tests in virtual time: a store, a clock, and a handler that notes every start.

Every test with a `scene` runs on SQLite and on PostgreSQL. What only one of them promises asks for `sqlite_scene`, and
lives in a file that says why (test_on_sqlite.py).
"""

from __future__ import annotations

import functools
import os
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.kernel.crashing import die
from tests.store.postgres_server import emptied_url
from tests.store.sqlite_template import lay_out
from wakeful import Scheduler
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.testing import VirtualClock, run

START = datetime(2026, 1, 1, tzinfo=UTC)  # a Thursday
#: Sweeps of every minute would be most of what happens in a month. What is about sweeps asks for `minutely_sweeps`.
SWEEP_MS = 600_000


def at(hours=0, minutes=0, seconds=0, days=0):
    """That long after the start."""
    return START + timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


class Scene:
    """One store through several lives of a scheduler."""

    def __init__(self, url, tuning=None):
        self.clock = VirtualClock(START)
        self.url = url
        self.tuning = tuning if tuning is not None else Tuning()
        self.runs = []  # every run the handler was given, as it saw it
        self.times = []  # when it was given it
        self.act = None  # what the handler does: an async function of the run
        self.lives = 0
        self.busy = {}  # how many runs of a job are inside the handler right now
        self.most_busy = {}

    @property
    def now(self):
        return datetime.fromtimestamp(self.clock.now() / 1000, UTC)

    @property
    def slots(self):
        return [run.slot for run in self.runs]

    def of(self, name):
        """What the handler was given for one job."""
        return [run for run in self.runs if run.job == name]

    def scheduler(self, *kinds, **options):
        """A scheduler on this store whose kinds (`job` unless said) are handled here."""
        options.setdefault("timezone", "UTC")
        options.setdefault("tuning", self.tuning)
        self.lives += 1  # ids and chances of each life are its own, and the same in every test run
        made = Scheduler(self.url, clock=self.clock, seed=self.lives, node="here", **options)
        for kind in kinds or ("job",):
            made.on_job_due(kind, self.handle)
        return made

    async def handle(self, run):
        self.runs.append(run)
        self.times.append(self.now)
        self.busy[run.job] = self.busy.get(run.job, 0) + 1
        self.most_busy[run.job] = max(self.most_busy.get(run.job, 0), self.busy[run.job])
        try:
            return await self.act(run) if self.act is not None else None
        finally:
            self.busy[run.job] -= 1

    async def sleep(self, interval):
        await self.clock.sleep(interval)

    async def until(self, moment):
        """Let time pass until the wall clock shows that."""
        await self.clock.sleep(self.clock.until(int(moment.timestamp() * 1000)))

    def step(self, **delta):
        self.clock.step(timedelta(**delta))

    async def crash(self, scheduler):
        await die(scheduler)


def settled_slots(runs):
    """The slots among these runs that were tried for the first time; each may be there once."""
    return [run.slot for run in runs if run.slot is not None and run.attempt == 1]


def virtual(test):
    """Run an async test, whose first argument is the scene, in virtual time."""

    @functools.wraps(test)
    def wrapper(scene, **others):
        run(test(scene, **others), scene.clock)

    return wrapper


@pytest.fixture(params=["sqlite", "postgres"])
def scene(request):
    """A new, empty store of each dialect: a fixture `DIALECT_scene` makes it."""
    return request.getfixturevalue(f"{request.param}_scene")


@pytest.fixture
def sqlite_scene(tmp_path):
    # Weeks of virtual time are thousands of commits: memory where the system offers it as a disk, a real one elsewhere.
    memory = Path("/dev/shm")  # noqa: S108 - a folder of our own is made in it
    with tempfile.TemporaryDirectory(dir=memory if os.access(memory, os.W_OK) else tmp_path) as folder:
        yield Scene(lay_out(Path(folder, "wakeful.db")), Tuning(sweep_ms=SWEEP_MS))


@pytest.fixture
def postgres_scene(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))  # what does not fit into a row goes there
    # There is one node, and it never waits for another: beats of five seconds would be most of what happens in a month.
    lease = LeaseTimes(beat_ms=3_600_000, lease_ms=4 * 3_600_000)
    return Scene(emptied_url(), Tuning(lease=lease, sweep_ms=SWEEP_MS))


@pytest.fixture
def minutely_sweeps(scene):
    """On every store as in life."""
    scene.tuning = scene.tuning._replace(sweep_ms=Tuning().sweep_ms)


async def raising(error):
    raise error


def failing(message="broken", kind=RuntimeError):
    """An act that always fails."""

    async def act(run):
        raise kind(message)

    return act
