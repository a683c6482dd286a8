"""kill -9 on nodes with a workflow, one on SQLite and two on PostgreSQL: each message is added exactly once."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from tests.chaos import step_node
from tests.chaos.killing import ROOT
from tests.chaos.workflow_node import NAME, TOPIC, read_ledger, workflow
from tests.store.postgres_server import PostgresServer
from wakeful import Scheduler, Workflow
from wakeful.domains.workflows import actions
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand
from wakeful.domains.workflows.phases import ACTIVE, COMMITTED
from wakeful.domains.workflows.tables import WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.store.interface import Transaction

SETTLE_S = 180.0


class Counted(NamedTuple):
    """What a drill came to."""

    messages: int
    kills: int
    crashed: int  # attempts that a kill cut off
    in_flight: int  # of these, with the mutation under way
    lost: int
    twice: int
    unconsumed: int
    not_passed_on: int
    denied: int  # runs that committed and are on record as something else than a success
    unordered: int = 0  # keys whose events were not worked on in their order

    def line(self) -> str:
        return (
            f"{self.messages} messages, {self.kills} kills: {self.crashed} runs cut off, {self.in_flight} of them in "
            f"mutate; lost {self.lost}, twice {self.twice}, not consumed {self.unconsumed}, "
            f"not passed on {self.not_passed_on}, committed and not a success {self.denied}"
        )

    def wrong(self) -> list[str]:
        faults = {"lost": self.lost, "twice": self.twice, "unconsumed": self.unconsumed, "missing": self.not_passed_on}
        found = [f"{count} messages {what}" for what, count in faults.items() if count]
        if self.unordered:
            found.append(f"{self.unordered} keys out of order")
        return [*found, f"{self.denied} runs committed and are no success"] if self.denied else found


class Drill:
    """So many kills of so many nodes on one store, while messages come in."""

    name, topic, passed_on, node = NAME, TOPIC, "added", "tests.chaos.workflow_node"

    def __init__(self, folder: Path, url: str, *, nodes: int, kills: int, seed: int) -> None:
        self._folder, self._url = folder, url
        self._ledger = folder / "ledger"
        self._rng = random.Random(seed)
        self._kills = kills
        self._nodes: dict[str, subprocess.Popen[bytes] | None] = {f"node-{number}": None for number in range(nodes)}
        self._published: list[str] = []
        self._ready_before: dict[str, int] = {}  # how often a node had said so when it was started

    def run(self) -> Counted:
        try:
            return asyncio.run(self._run())
        finally:
            for process in self._nodes.values():
                if process is not None:
                    _end(process)

    async def _run(self) -> Counted:
        async with Scheduler(self._url, node="outside") as outside:
            await self._deploy(outside)
            for name in self._nodes:
                self._start(name)
            feeding = asyncio.ensure_future(self._feed(outside))
            for _ in range(self._kills):
                await self._kill_one()
            await self._kill_all_in_a_run(outside)
            feeding.cancel()
            await asyncio.gather(feeding, return_exceptions=True)
            for name, process in self._nodes.items():
                if process is None:
                    self._start(name)
            await self._resume(outside)
            await self._until_settled(outside)
            return await self._count(outside)

    def workflow(self) -> Workflow:
        """What the nodes run."""
        return workflow(self._ledger)

    async def _deploy(self, outside: Scheduler) -> None:
        """The first node deploys the workflow; messages can come once it is there."""
        outside.add_workflow(self.workflow())
        await outside.start()
        await outside.stop()

    def _start(self, name: str) -> None:
        log = self._folder / f"{name}.log"
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        self._ready_before[name] = said.count("ready\n")
        with (self._folder / f"{name}.log").open("ab") as said:
            self._nodes[name] = subprocess.Popen(
                [sys.executable, "-m", self.node, self._url, name, str(self._ledger)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip

    async def _feed(self, outside: Scheduler) -> None:
        while True:
            for _ in range(self._rng.choice((1, 2, 4))):
                given = ByHand(self.topic, f"m{len(self._published)}", None)
                await outside.transact(
                    lambda tx, context, given=given: publish_by_hand(tx, context, self.name, given, who="drill")
                )
                self._published.append(given.message_id)
            await asyncio.sleep(self._rng.uniform(0.05, 0.4))

    async def _kill_one(self) -> None:
        """One life of a node; it may stay away for longer than its lease, so that another takes over."""
        name = self._rng.choice(list(self._nodes))
        if self._nodes[name] is None:
            self._start(name)
        process = self._nodes[name]
        assert process is not None
        if self._rng.random() < 0.8:  # else it may not even get to start
            await self._until_ready(name, process)
        await asyncio.sleep(self._rng.uniform(0.1, 1.5))
        assert process.poll() is None, f"{name} ended by itself: {self._said(name)}"
        await asyncio.to_thread(_end, process)
        self._nodes[name] = None
        if len(self._nodes) == 1 or self._rng.random() < 0.6:
            await asyncio.sleep(self._rng.uniform(0, 0.3))
            self._start(name)

    async def _kill_all_in_a_run(self, outside: Scheduler) -> None:
        """Kill all nodes once more, so that no drill ends without a run that was cut off."""
        end = time.monotonic() + SETTLE_S
        while True:
            for name, process in self._nodes.items():
                if process is None:
                    self._start(name)
            await self._resume(outside)
            while not await outside.read(self._is_running):
                assert time.monotonic() < end, "no run was seen running"
                await asyncio.sleep(0.01)
            for name, process in self._nodes.items():
                if process is not None:
                    await asyncio.to_thread(_end, process)
                    self._nodes[name] = None
                    self._kills += 1
            if await outside.read(self._is_running):
                return

    async def _resume(self, outside: Scheduler) -> None:
        """As a person does who knows why the process ended: the handler does not wait, and is not blamed."""
        await outside.transact(lambda tx, context: actions.resume(tx, context, self.name, who="drill"))

    async def _until_ready(self, name: str, process: subprocess.Popen[bytes]) -> None:
        end = time.monotonic() + SETTLE_S
        log = self._folder / f"{name}.log"
        while log.read_text(encoding="utf-8", errors="replace").count("ready\n") < self._readies(name):
            assert process.poll() is None, f"{name} ended by itself: {self._said(name)}"
            assert time.monotonic() < end, f"{name} did not become ready: {self._said(name)}"
            await asyncio.sleep(0.05)

    def _readies(self, name: str) -> int:
        """How often it has said so once it is ready again."""
        return self._ready_before.get(name, 0) + 1

    def _said(self, name: str) -> str:
        return (self._folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")[-2000:]

    async def _until_settled(self, outside: Scheduler) -> None:
        """For as long as anything goes on, however slowly."""
        least, end = sys.maxsize, time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            left = await outside.read(lambda tx: self._open_events(tx) + len(tx.of(WorkflowVerbs).open_runs(self.name)))
            if not left:
                return
            if left < least:
                least, end = left, time.monotonic() + SETTLE_S
            await asyncio.sleep(0.2)

    async def _count(self, outside: Scheduler) -> Counted:
        added = Counter(read_ledger(self._ledger))
        wanted = [line for name in self._published for line in self.lines_of(name)]
        attempts = await outside.read(lambda tx: tx.of(WorkflowVerbs).runs(self.name, 100_000))
        passed = await outside.read(lambda tx: tx.of(Topics).matching(self.name, self.passed_on, None, None, 100_000))
        names = Counter(name for event in passed for name in event.message_id.split("+"))
        crashed = [one for one in attempts if one.status == "crashed"]
        return Counted(
            len(self._published), self._kills, len(crashed), sum(one.mutation == "in_flight" for one in crashed),
            lost=sum(line not in added for line in wanted),
            twice=sum(count > 1 for count in added.values()),
            unconsumed=await outside.read(self._open_events),
            not_passed_on=sum(names[name] != 1 for name in self._published),
            denied=await outside.read(lambda tx: _denied(tx, [one for one in attempts if _did_something(one)])),
        )  # fmt: skip

    def lines_of(self, name: str) -> list[str]:
        """What the ledger has of a message in the end."""
        return [name]

    def _is_running(self, tx: Transaction) -> bool:
        return any(
            one.status == ACTIVE
            for one in tx.of(WorkflowVerbs).runs_of(tx.of(WorkflowVerbs).open_runs(self.name)).values()
        )

    def _open_events(self, tx: Transaction) -> int:
        statuses = ("pending", "reserved", "parked")
        return sum(len(tx.of(Topics).matching(self.name, self.topic, one, None, 100_000)) for one in statuses)


class StepsDrill(Drill):
    """The same with a workflow of steps."""

    name, topic, passed_on, node = step_node.NAME, step_node.TOPIC, "shipped", "tests.chaos.step_node"

    def workflow(self) -> Workflow:
        """What the nodes run."""
        return step_node.workflow(self._ledger)

    def lines_of(self, name: str) -> list[str]:
        """Each step, once."""
        return [f"{step}:{name}" for step in step_node.STEPS]

    async def _count(self, outside: Scheduler) -> Counted:
        """Of each customer the orders are done in their order, and of each order the steps."""
        counted = await super()._count(outside)
        by_key: dict[int, list[tuple[int, int]]] = {}
        for line in read_ledger(self._ledger):
            step, _, order = line.partition(":")
            number = int(order[1:])
            by_key.setdefault(number % step_node.KEYS, []).append((number, step_node.STEPS.index(step)))
        return counted._replace(unordered=sum(done != sorted(done) for done in by_key.values()))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _denied(tx: Transaction, committed: list[WorkflowRun]) -> int:
    found = [tx.runs.get(one.id) for one in committed]
    return sum(run is not None and run.outcome not in ("success", None) for run in found)


def _did_something(attempt: WorkflowRun) -> bool:
    """A place of a handler with steps may find that others have taken all events: that run is no success."""
    return attempt.status == COMMITTED and (attempt.type != "steps" or attempt.reserved > 0)


def one_node(folder: Path, *, kills: int, seed: int, kind: type[Drill] = Drill) -> Counted:
    """On SQLite."""
    return kind(folder, f"sqlite:///{folder}/wakeful.db", nodes=1, kills=kills, seed=seed).run()


def two_nodes(folder: Path, *, kills: int, seed: int, kind: type[Drill] = Drill) -> Counted:
    """On PostgreSQL."""
    server = PostgresServer()
    try:
        server.start()
        return kind(folder, server.new_database(), nodes=2, kills=kills, seed=seed).run()
    finally:
        server.remove()


def drill(folder: Path, seed: int, kills: int = 25) -> list[str]:
    """Both kinds of workflows on both stores, with their counts; what was not as promised."""
    wrong: list[str] = []
    for kind in (Drill, StepsDrill):
        for label, once in (("one node, SQLite", one_node), ("two nodes, PostgreSQL", two_nodes)):
            place = folder / f"{kind.name}-{once.__name__}"
            place.mkdir()
            counted = once(place, kills=kills, seed=seed, kind=kind)
            print(f"  {kind.name}, {label}: {counted.line()}", flush=True)
            wrong += [f"{kind.name}, {label}: {fault}" for fault in counted.wrong()]
    return wrong
