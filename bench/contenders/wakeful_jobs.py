"""Wakeful on SQLite or PostgreSQL, through its public Python API."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from bench.contenders.contender import Jobs, act, mark
from bench.contenders.contender import Scheduler as Contender
from wakeful import Every, NewJob, Once, Retention, Run, Scheduler

PROBE_S = 0.005
FAR = timedelta(days=300)


def moment(epoch: float) -> datetime:
    return datetime.fromtimestamp(epoch, UTC)


class Wakeful(Contender):
    """What the other verbs ask is asked of the library as any user would."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._url = self.address or f"sqlite:///{folder}/wakeful.db"
        self._retention = Retention()
        self._asked: tuple[asyncio.Runner, Scheduler] | None = None

    def _with(self, use: Callable[[Scheduler], Awaitable[None]]) -> None:
        async def go() -> None:
            async with Scheduler(self._url, retention=self._retention) as scheduler:
                await use(scheduler)

        asyncio.run(go())

    def prepare(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - the shape of every contender
        async def use(_: Scheduler) -> None:
            """Opening it is enough."""

        self._with(use)

    def store(self, jobs: Jobs) -> None:
        self._add([NewJob(f"j{number}", Once(moment(due)), kind="mark", payload=[number, due]) for number, due in jobs])

    def recur(self, count: int) -> None:
        first = datetime.now(UTC) + timedelta(minutes=10)
        self._add(
            [
                NewJob(
                    f"s{n}",
                    Every("1h", anchor=first + timedelta(seconds=n * 2940 / count)),
                    kind="mark",
                    payload=[n, 0],
                )
                for n in range(count)
            ]
        )

    def _add(self, jobs: list[NewJob]) -> None:
        async def use(scheduler: Scheduler) -> None:
            await scheduler.add_jobs(jobs)

        self._with(use)

    def tick(self, options: dict[str, Any]) -> None:
        """Recurring jobs whose starts are spread evenly over their interval."""
        count, every, first = options["count"], options["every"], options["first"]
        grid = [moment(first + number * every / count) for number in range(count)]
        self._add(
            [NewJob(f"t{n}", Every(every, anchor=anchor), kind="tick", payload=n) for n, anchor in enumerate(grid)]
        )
        print(json.dumps({}))

    def park(self, options: dict[str, Any]) -> None:
        """Due jobs that all wait for a lane one job holds."""
        lanes, now = {"gate": 1}, moment(options["first"])
        hold = NewJob("hold", Once(now - timedelta(seconds=1)), kind="hold", lanes=lanes)
        crowd = [NewJob(f"p{n}", Once(now), kind="mark", payload=[n, 0], lanes=lanes) for n in range(options["count"])]
        self._add([hold, *crowd])
        print(json.dumps({}))

    def pending(self) -> int:
        if self._asked is None:
            runner = asyncio.Runner()
            scheduler = Scheduler(self._url)
            runner.run(scheduler.open())
            self._asked = (runner, scheduler)
        runner, scheduler = self._asked
        return len(runner.run(scheduler.list_jobs(enabled=True, limit=1)))

    def serve(self, options: dict[str, Any]) -> None:
        self._retention = Retention(**options.get("retention", {}))

        async def use(scheduler: Scheduler) -> None:
            @scheduler.on_job_due("mark")
            async def run_mark(run: Run) -> None:
                mark(*run.payload)

            @scheduler.on_job_due("tick")
            async def tick(run: Run) -> None:
                assert run.slot is not None
                mark(run.payload, run.slot.timestamp())

            @scheduler.on_job_due("hold")
            async def hold(_: Run) -> None:
                await asyncio.Event().wait()

            over = asyncio.Event()
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
            lags: list[tuple[float, float]] = []
            if "lags" in options:
                _probe(lags)
            await scheduler.start()
            for number in range(options.get("pickups", 0)):
                await asyncio.sleep(options["every"])
                now = time.time()
                await scheduler.add_job(f"now{number}", Once(moment(now)), kind="mark", payload=[number, now])
            await over.wait()
            if "lags" in options:
                Path(options["lags"]).write_text(json.dumps(lags), encoding="utf-8")  # noqa: ASYNC240 - it is over
            state = scheduler.get_state()
            print(json.dumps({"checks": state.check_count, "starts": state.trigger_count}), flush=True)

        self._with(use)

    def write(self, options: dict[str, Any]) -> None:
        """Add jobs one by one beside a serving process, as the command line does; print when, and how long it took."""

        async def use(scheduler: Scheduler) -> None:
            took: list[tuple[float, float]] = []
            due = datetime.now(UTC) + (FAR if options["far"] else timedelta())
            print("ready", flush=True)
            end = time.time() + options["seconds"]
            stop = Path(options["stop"])
            while time.time() < end and len(took) < options["samples"] and not stop.exists():  # noqa: ASYNC240
                began = time.time()
                when = Once(due if options["far"] else moment(began))
                name = f"w{os.getpid()}-{len(took)}"
                await scheduler.add_job(name, when, kind="mark", payload=[len(took), began])
                took.append((began, time.time() - began))
                await asyncio.sleep(options["every"])
            print(json.dumps(took), flush=True)

        self._with(use)


def _probe(lags: list[tuple[float, float]]) -> None:
    """Every 5 ms note how much later than asked the loop came round."""
    loop = asyncio.get_running_loop()

    def tick(expected: float) -> None:
        late = loop.time() - expected
        lags.append((time.time(), late))
        loop.call_later(PROBE_S, tick, loop.time() + PROBE_S)

    loop.call_later(PROBE_S, tick, loop.time() + PROBE_S)


if __name__ == "__main__":
    act(Wakeful)
