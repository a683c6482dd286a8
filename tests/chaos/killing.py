"""The kill loop: serve, kill at a random moment, serve again while others meddle; then let all end, and judge."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chaos.ledger import COMMAND, DEAD, READY, STORED, Ledger
from tests.chaos.meddler import QUICK_LADDER
from tests.chaos.server import store_of, url_of
from tests.chaos.verdict import Verdict, judge
from wakeful import After, Every, NewJob, Once, Scheduler

ROOT = Path(__file__).resolve().parents[2]
LANE_PLACES = 3
SETTLE_S = 150.0


@dataclass(frozen=True)
class Scenario:
    """How long, how often, how much; everything random comes from the seed."""

    seed: int
    kills: int
    longest_life_s: float = 2.5
    per_second: int = 12  # one-shots a second, of each sort about a third
    cancels: bool = True  # whether the meddler also cancels runs

    @property
    def span_s(self) -> float:
        """Over how long the stored one-shots are due: roughly the time in which there is killing."""
        return max(3.0, self.kills * (self.longest_life_s / 2 + 0.35))


def jobs_of(scenario: Scenario, ledger: Path, now: datetime) -> list[NewJob]:
    """Everything that is stored before the first start."""
    rng = random.Random(scenario.seed)
    jobs: list[NewJob] = []

    def at() -> Once:
        return Once(now + timedelta(seconds=rng.uniform(0, scenario.span_s)))

    for number in range(int(scenario.span_s * scenario.per_second / 3)):
        took = rng.uniform(0, 0.2)
        jobs += [
            NewJob(f"once-{number}", at(), kind=rng.choice(["work", "thread"]), payload=took, backoff=QUICK_LADDER),
            NewJob(
                f"lane-{number}", at(), kind="work", payload=took, backoff=QUICK_LADDER, lanes={"gate": LANE_PLACES}
            ),
        ]
        if number % 8 == 0:
            jobs.append(NewJob(f"long-{number}", at(), kind="work", payload=rng.uniform(1, 3), backoff=QUICK_LADDER))
        if number % 4 == 0:
            command = {"argv": ["sh", "-c", COMMAND, "sh", str(ledger), f"{took:.2f}"]}
            jobs.append(NewJob(f"command-{number}", at(), kind="command", payload=command, backoff=QUICK_LADDER))
        if number % 5 == 0:
            jobs += [
                NewJob(f"parent-{number}", at(), kind="work", payload=took, backoff=QUICK_LADDER),
                NewJob(
                    f"child-{number}",
                    After(f"parent-{number}", on="any"),
                    kind="work",
                    payload=took,
                    backoff=QUICK_LADDER,
                ),
            ]
        if number % 6 == 0:
            late = Once(now + timedelta(seconds=scenario.span_s * 0.8))
            jobs += [NewJob(f"{name}-{number}", late, kind="work", payload=0.01) for name in ("nap", "gone")]
    anchors = [now + timedelta(seconds=rng.uniform(0, 10)) for _ in range(12)]
    jobs += [
        NewJob(f"tick-{n}", Every("10s", anchor=anchor), kind="work", payload=0.05, backoff=QUICK_LADDER)
        for n, anchor in enumerate(anchors)
    ]
    return jobs


class Drill:
    """One scenario on one folder."""

    def __init__(self, folder: Path, scenario: Scenario) -> None:
        self._folder = folder
        self._scenario = scenario
        self._ledger = Ledger(folder / "ledger")
        self._rng = random.Random(scenario.seed + 1)

    def run(self) -> Verdict:
        asyncio.run(self._store())
        cancels = str(int(self._scenario.cancels))
        meddler = self._spawn("tests.chaos.meddler", str(self._scenario.seed), cancels, stdin=subprocess.PIPE)
        server: subprocess.Popen[bytes] | None = None
        try:
            for _ in range(self._scenario.kills):
                self._live_and_die()
            server = self._spawn("tests.chaos.server")
            meddler.communicate(timeout=120)  # its stdin ends, and with it its work
            assert meddler.returncode == 0, f"the meddler failed: {self._said('tests.chaos.meddler')[-2000:]}"
            asyncio.run(self._until_settled(server))
            server.terminate()
            assert server.wait(120) == 0, (
                f"the server did not stop in good order: {self._said('tests.chaos.server')[-2000:]}"
            )
            return asyncio.run(judge(store_of(self._folder), self._ledger.lines(), LANE_PLACES))
        finally:
            for process in (meddler, server):
                if process is not None and process.poll() is None:
                    process.kill()
                    process.wait()
            self._ledger.close()

    async def _store(self) -> None:
        async with Scheduler(url_of(self._folder)) as scheduler:
            jobs = jobs_of(self._scenario, self._ledger.path, datetime.now(UTC))
            await scheduler.add_jobs(jobs)
        for job in jobs:
            self._ledger.note(STORED, job=job.name)

    def _spawn(self, module: str, *arguments: str, stdin: int | None = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
        with (self._folder / f"{module}.log").open("ab") as said:
            command = [sys.executable, "-m", module, str(self._folder), *arguments]
            return subprocess.Popen(command, cwd=ROOT, stdin=stdin, stdout=said, stderr=said, start_new_session=True)

    def _said(self, module: str) -> str:
        return (self._folder / f"{module}.log").read_text(encoding="utf-8", errors="replace")

    def _live_and_die(self) -> None:
        """One life of the server; sometimes it does not even get to start."""
        server = self._spawn("tests.chaos.server")
        life = self._rng.uniform(0.05, self._scenario.longest_life_s)
        try:
            code = server.wait(life)
        except subprocess.TimeoutExpired:
            server.kill()
            server.wait()
            self._ledger.note(DEAD, str(server.pid))
        else:
            message = f"the server ended by itself with {code}: {self._said('tests.chaos.server')[-2000:]}"
            raise AssertionError(message)

    async def _until_settled(self, server: subprocess.Popen[bytes]) -> None:
        """Wait until nothing stored is left to do but the recurring jobs, and those are paused; bounded."""
        end = time.monotonic() + SETTLE_S
        async with Scheduler(url_of(self._folder)) as scheduler:
            await self._wait_ready(server, end)
            while left := await self._left(scheduler):
                assert server.poll() is None, f"the server died: {self._said('tests.chaos.server')[-2000:]}"
                if time.monotonic() > end:
                    print(f"still not settled after {SETTLE_S:.0f} s: {', '.join(sorted(left)[:20])}")
                    return
                await asyncio.sleep(0.1)

    async def _wait_ready(self, server: subprocess.Popen[bytes], end: float) -> None:
        while not any(line.what == READY and line.ref == str(server.pid) for line in self._ledger.lines()):
            assert server.poll() is None, f"the server died: {self._said('tests.chaos.server')[-2000:]}"
            assert time.monotonic() < end, "the last server never became ready"
            await asyncio.sleep(0.05)

    async def _left(self, scheduler: Scheduler) -> list[str]:
        """Jobs that still have something to do."""
        opened = {run.job for run in await scheduler.get_run_log(limit=2000) if run.status != "done"}
        left = []
        for job in await scheduler.list_jobs():
            waits = job.name in opened and job.status != "paused"  # a paused job's start waits for a person
            if job.name.startswith("tick-") and job.status == "idle" and not waits:
                await scheduler.pause_job(job.name)
            if waits or job.status == "running" or (job.status == "idle" and job.trigger.type != "after"):
                left.append(job.name)
        return left
