"""A cluster under fire: nodes killed and frozen, the database restarted and crashed, while thousands of jobs are due.

Everything random comes from the seed; when a blow lands within a node's work is never quite the same.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import psycopg

from tests.chaos.cluster_record import read_record
from tests.chaos.cluster_verdict import Cluster, ClusterVerdict, judge
from tests.chaos.fleet import Fleet
from tests.chaos.waiting import until
from tests.store.postgres_server import PostgresServer
from wakeful import Every, NewJob, Once, Scheduler

LEFT, RIGHT = frozenset({"left"}), frozenset({"right"})
LANES = {"narrow": 1, "gate": 3}
QUICK_LADDER = ["1s"]
LEAD_S = 4.0  # jobs are due from here on: until then the nodes start
SETTLE_S = 180.0
BACK_S = 120.0


@dataclass(frozen=True)
class Scenario:
    """How many nodes and jobs, over how long, and what is done to them."""

    seed: int
    nodes: int = 4
    jobs: int = 2000
    span_s: float = 60.0
    max_running: int = 48
    short: bool = False  # one kill and one freeze, no restart of the database


#: When (in seconds from the start), what, to whom (a node's number), and for how long.
Blows = list[tuple[float, str, int, float]]


def plan(scenario: Scenario) -> Blows:
    rng = random.Random(scenario.seed)
    if scenario.short:
        return [(LEAD_S + 1, "kill", 1, rng.uniform(0.2, 3)), (LEAD_S + 4, "freeze", 0, rng.uniform(26, 27))]
    blows = [
        (rng.uniform(8, 11), "freeze", 0, rng.uniform(26, 30)),
        (rng.uniform(38, 42), "freeze", 1, rng.uniform(22, 30)),
        (rng.uniform(29, 33), "kill", 2, rng.uniform(26, 29)),  # its work is for others to take over
        (rng.uniform(14, 17), "fast", -1, 0.0),
        (rng.uniform(45, 49), "immediate", -1, 0.0),
    ]
    quick = {0: [46, 55], 1: [7, 26], 2: [13, 22], 3: [10, 21, 36, 52]}
    for node, moments in quick.items():
        blows += [(at + rng.uniform(0, 2), "kill", node, rng.uniform(0.1, 3)) for at in moments]
    return sorted(blows)


def jobs_of(scenario: Scenario, now: datetime) -> list[NewJob]:
    """One-shots over the whole time, of every sort; and a few that come again and again.

    Few are long: those are hit most often, and what was hit twice is run one at a time.
    """
    rng = random.Random(scenario.seed + 1)
    jobs = []
    for number in range(scenario.jobs - 8):
        at = Once(now + timedelta(seconds=LEAD_S + rng.uniform(0, scenario.span_s)))
        sort = rng.choices(["free", "narrow", "gate", "left", "right", "long"], [57, 7, 15, 9, 9, 3])[0]
        seconds = rng.uniform(1, 5) if sort == "long" else rng.uniform(0, 0.2)
        options: dict[str, object] = {"lanes": {sort: LANES[sort]}} if sort in LANES else {}
        if sort in ("left", "right"):
            options = {"labels": [sort]}
        kind = rng.choice(["work", "work", "thread"])
        jobs.append(NewJob(f"{sort}-{number}", at, kind=kind, payload=seconds, backoff=QUICK_LADDER, **options))
    anchors = [now + timedelta(seconds=LEAD_S + rng.uniform(0, 10)) for _ in range(8)]
    ticks = [Every("10s", anchor=anchor) for anchor in anchors]
    jobs += [NewJob(f"tick-{n}", tick, kind="work", payload=0.1, backoff=QUICK_LADDER) for n, tick in enumerate(ticks)]
    return jobs


class ClusterDrill:
    """One scenario in one folder, on a server of its own that is as durable as in life."""

    def __init__(
        self,
        folder: Path,
        scenario: Scenario,
        *,
        way: Callable[[int], int] = lambda port: port,
        reached: Callable[[str], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        """`way` makes a way to the server's port and gives its own; `reached` lasts while it is used."""
        self._scenario = scenario
        self._way, self._reached = way, reached
        self._fleet = Fleet(folder)
        self._outages: list[tuple[float, float]] = []
        self._labels = {f"node-{n}": LEFT if n % 4 < 2 else RIGHT for n in range(scenario.nodes)}
        if scenario.nodes < 4:  # too few to be choosy
            self._labels = dict.fromkeys(self._labels, LEFT | RIGHT)

    def run(self) -> ClusterVerdict:
        server = PostgresServer(durable=True)
        try:
            server.start()
            url = server.new_database()
            url = url.replace(f":{server.port}/", f":{self._way(server.port)}/")
            begun = time.monotonic()
            asyncio.run(self._store(url))
            with self._reached(url):
                for name in self._labels:
                    self._start(name, url)
                self._strike(server, url, begun)
                self._fleet.until_ready()
                unsettled = asyncio.run(self._until_settled(url))
                missing = wait_for_nodes(url, len(self._labels))
                self._fleet.stop()
            self._fleet.surprises += [f"{missing} nodes never came back by themselves"] if missing else []
            if unsettled:
                print(f"  still not settled after {SETTLE_S:.0f} s: {', '.join(unsettled[:20])}")
            return judge(
                Cluster(
                    read_record(url), self._fleet.facts(), self._fleet.blows, self._outages,
                    self._scenario.max_running, self._labels, self._fleet.surprises,
                )
            )  # fmt: skip
        finally:
            self._fleet.close()
            server.remove()

    async def _store(self, url: str) -> None:
        async with Scheduler(url, timezone="UTC") as scheduler:
            await scheduler.add_jobs(jobs_of(self._scenario, datetime.now(UTC)))

    def _start(self, name: str, url: str) -> None:
        labels = ",".join(sorted(self._labels[name]))
        self._fleet.start(name, url, "--labels", labels, "--max-running", str(self._scenario.max_running))

    def _strike(self, server: PostgresServer, url: str, begun: float) -> None:
        """Each blow at its time, and the end of each that lasts."""
        coming: list[tuple[float, Callable[[], None]]] = []
        for at, what, number, seconds in plan(self._scenario):
            name = f"node-{number}"
            if what == "kill":
                coming += [(at, lambda n=name: self._fleet.kill(n)), (at + seconds, lambda n=name: self._start(n, url))]
            elif what == "freeze":
                coming += [
                    (at, lambda n=name: self._fleet.freeze(n)),
                    (at + seconds, lambda n=name: self._fleet.thaw(n)),
                ]
            else:
                coming.append((at, lambda mode=what: self._restart(server, mode)))
        for at, act in sorted(coming, key=lambda item: item[0]):
            self._fleet.stay_up(begun + at)
            act()

    def _restart(self, server: PostgresServer, mode: str) -> None:
        down = time.time()
        server.stop(mode)
        server.start()
        self._outages.append((down, time.time()))

    async def _until_settled(self, url: str) -> list[str]:
        """Wait until nothing is left to do but what comes again and again, and stop that; what is still left."""
        end = time.monotonic() + SETTLE_S + max(0.0, self._scenario.span_s - 60)
        async with Scheduler(url, timezone="UTC") as scheduler:
            await asyncio.to_thread(wait_for_none_left, url, "name NOT LIKE 'tick-%'", end)
            for number in range(8):
                await scheduler.pause_job(f"tick-{number}")
            return await asyncio.to_thread(wait_for_none_left, url, "true", end)


def wait_for_nodes(url: str, wanted: int) -> int:
    """Wait until so many nodes serve, those that were taken for dead included; how many do not."""
    end = time.monotonic() + BACK_S
    sql = "SELECT count(*) FROM nodes WHERE stopped_at IS NULL"
    # Asked many times, perhaps through a pooler: nothing is prepared, because another server process may run the next.
    with psycopg.connect(url, autocommit=True, prepare_threshold=None) as connection:
        serving = until(lambda: (connection.execute(sql).fetchone() or (0,))[0], lambda found: found >= wanted, end)
        return wanted - int(serving)


def wait_for_none_left(url: str, which: str, end: float) -> list[str]:
    """Wait until nothing is left to do; what still is at the end."""
    return until(lambda: _left(url, which), lambda left: not left, end)


def _left(url: str, which: str) -> list[str]:
    """The jobs that still have something to do."""
    open_jobs = "due_at IS NOT NULL OR run_id IS NOT NULL OR parked IS NOT NULL OR (queued > 0 AND paused = 0)"
    sql = f"SELECT name FROM jobs JOIN job_state ON job_id = id WHERE ({open_jobs}) AND {which} ORDER BY name"  # noqa: S608
    with psycopg.connect(url) as connection:
        return [str(name) for (name,) in connection.execute(sql)]
