"""A node that cannot reach the database: two nodes, each through a proxy of its own, and one is cut off.

For a minute: it starts and records nothing, the other takes its work over once, within a lease and five seconds, what
its handlers end with is discarded, and it comes back by itself. For less than a lease: no node takes anything over,
and its handlers' results are stored when it is back. The cuts fall at the worst moments of a claim, too.
"""

from __future__ import annotations

import asyncio
import random
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.chaos.cluster import wait_for_nodes, wait_for_none_left
from tests.chaos.cluster_record import read_record
from tests.chaos.cluster_verdict import Cluster, ClusterVerdict, judge
from tests.chaos.fleet import Blow, Fleet
from tests.chaos.node import START
from tests.chaos.proxy import Moment, Proxy
from tests.store.postgres_server import PostgresServer
from wakeful import NewJob, Once, Scheduler

LEAD_S, BEFORE_S, AFTER_S = 4.0, 6.0, 14.0
PER_SECOND = 6
IN_FLIGHT_S = 0.3  # what had arrived when the cut fell is still started
LONG_S, SHORT_S = 60.0, 8.0
SETTLE_S = 180.0
CUT_OFF, OTHER = "cut-off", "other"


@dataclass(frozen=True)
class Partition:
    """One drill: for how long, at which moment, and whether the connections survive it."""

    name: str
    seconds: float
    moment: Moment
    torn: bool = False
    seed: int = 1

    @property
    def long(self) -> bool:
        return self.seconds > 20


DRILLS = (
    Partition("a minute", LONG_S, "now"),
    Partition("a minute, a claim is left half made", LONG_S, "request"),
    Partition("a minute, a claim's answer is lost", LONG_S, "answer", torn=True),
    Partition("a minute, a claim's answer arrives late", LONG_S, "answer"),
    Partition("8 seconds", SHORT_S, "now"),
    Partition("8 seconds, a claim's answer is lost", SHORT_S, "answer", torn=True),
)


def drill(partitions: tuple[Partition, ...] = DRILLS) -> list[str]:
    """All of them at once, each in a database of its own; prints the counts, and gives what was wrong."""
    server = PostgresServer(durable=True)
    over = threading.Event()
    try:
        server.start(max_connections=120)
        with tempfile.TemporaryDirectory(prefix="chaos-") as folder, ThreadPoolExecutor(len(partitions)) as pool:
            homes = [Path(folder) / str(number) for number in range(len(partitions))]
            try:
                verdicts = list(pool.map(lambda each: _one(server, *each, over), zip(partitions, homes, strict=True)))
            finally:
                over.set()
    finally:
        server.remove()
    wrong = []
    for partition, verdict in zip(partitions, verdicts, strict=True):
        print(f"  cut off for {partition.name}:")
        print("\n".join(f"    {line}" for line in verdict.lines()))
        wrong += [f"{partition.name}: {len(found)} {name}" for name, found in verdict.faults.items() if found]
    return wrong


def _one(server: PostgresServer, partition: Partition, home: Path, over: threading.Event) -> ClusterVerdict:
    home.mkdir()
    url = server.new_database()
    fleet = Fleet(home)
    ways = {name: Proxy(server.port) for name in (CUT_OFF, OTHER)}
    try:
        begun = time.monotonic()
        asyncio.run(_store(url, partition))
        for name, at in ((CUT_OFF, 0.0), (OTHER, LEAD_S + BEFORE_S)):  # what runs at the cut runs there
            over.wait(max(0.0, begun + at - time.monotonic()))
            fleet.start(name, url.replace(f":{server.port}/", f":{ways[name].port}/"))
            fleet.until_ready()
        blow = _cut(ways[CUT_OFF], fleet.pid(CUT_OFF), partition, over)
        fleet.blows.append(blow)
        assert not over.is_set(), "interrupted"
        left = wait_for_none_left(url, "true", begun + _span_s(partition) + LEAD_S + SETTLE_S)
        wait_for_nodes(url, len(ways))
        fleet.stop()
        cluster = Cluster(
            read_record(url), fleet.facts(), fleet.blows, [], 10_000, dict.fromkeys(ways, frozenset()), fleet.surprises
        )
        verdict = judge(cluster)
        verdict.surprises += [f"never settled: {', '.join(left[:10])}"] if left else []
        _judge_silence(verdict, cluster, blow)
        _judge_return(verdict, cluster, blow, taken=partition.long)
        return verdict
    finally:
        fleet.close()
        for way in ways.values():
            way.close()


def _cut(way: Proxy, pid: int, partition: Partition, over: threading.Event) -> Blow:
    way.cut(partition.moment)
    assert way.is_cut.wait(120), "nothing was claimed: the cut never fell"
    blow = Blow("cut", CUT_OFF, pid, time.time())
    over.wait(partition.seconds)
    blow.until = time.time()
    way.resume(torn=partition.torn)
    return blow


def _span_s(partition: Partition) -> float:
    return BEFORE_S + partition.seconds + AFTER_S


async def _store(url: str, partition: Partition) -> None:
    """Short work all the time, and some that is under way whenever the cut falls."""
    rng = random.Random(partition.seed)
    now, span = datetime.now(UTC), _span_s(partition)
    longest = min(30.0, span / 2)
    jobs = []
    for number in range(int(span * PER_SECOND)):
        at = LEAD_S + number / PER_SECOND
        long = number % 6 == 0 and at < LEAD_S + span - longest
        seconds = rng.uniform(2, longest) if long else rng.uniform(0, 0.2)
        kind = rng.choice(["work", "thread"]) if seconds < 1 else "work"
        jobs.append(NewJob(f"job-{number}", Once(now + timedelta(seconds=at)), kind=kind, payload=seconds))
    async with Scheduler(url, timezone="UTC") as scheduler:
        await scheduler.add_jobs(jobs)


def _judge_silence(verdict: ClusterVerdict, cluster: Cluster, blow: Blow) -> None:
    """While it is cut off it starts nothing, by its ledger, and records nothing."""
    own = {node.id for node in cluster.record.nodes.values() if node.name == CUT_OFF}
    begin, end = blow.at + IN_FLIGHT_S, blow.until
    started = [fact for fact in cluster.facts if fact.what == START and fact.node == CUT_OFF and begin < fact.at < end]
    verdict.unexplained += [f"{fact.run} was started {fact.at - blow.at:.1f} s into the cut" for fact in started]
    for run in cluster.record.runs.values():
        if run.node not in own:
            continue
        if begin < (run.started_at or 0) < end:
            verdict.unexplained.append(f"{run.id} is on record as started {run.started_at} during the cut")
        if run.outcome == "success" and begin < (run.finished_at or 0) < end:
            verdict.unexplained.append(f"{run.id} is on record as ended {run.finished_at} during the cut")


def _judge_return(verdict: ClusterVerdict, cluster: Cluster, blow: Blow, *, taken: bool) -> None:
    """It works again afterwards: after a long cut as another incarnation, after a short one with what it held."""
    record = cluster.record
    own = [node for node in record.nodes.values() if node.name == CUT_OFF]
    running = [
        fact for fact in cluster.starts.values() if fact.node == CUT_OFF and fact.at < blow.at < cluster.over(fact)
    ]
    back = sorted(fact.at for fact in cluster.starts.values() if fact.node == CUT_OFF and fact.at > blow.until)
    crashed = [fact.run for fact in running if record.runs[fact.run].outcome == "crashed"]
    verdict.facts |= {
        "running at the cut": f"{len(running)}, {len(crashed)} of them taken over",
        "incarnations": len(own),
        "back at work after": f"{back[0] - blow.until:.1f} s" if back else "never",
    }
    if not back:
        verdict.surprises.append(f"{CUT_OFF} never worked again")
    if not running:
        verdict.surprises.append("nothing ran at the cut: the drill proved nothing")
    if taken and (len(own) != 2 or sum(node.taken_by is not None for node in own) != 1):
        verdict.surprises.append(f"{CUT_OFF} should have been taken over from once: {own}")
    if not taken and (len(own) != 1 or crashed or own[0].taken_by is not None):
        verdict.surprises.append(f"{CUT_OFF} should have kept what it ran: {crashed}, {own}")
