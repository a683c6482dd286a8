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

from tests.chaos.killing import ROOT
from tests.chaos.workflow_node import NAME, TOPIC, read_ledger, workflow
from tests.store.postgres_server import PostgresServer
from wakeful import Scheduler
from wakeful.domains.workflows import actions
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand
from wakeful.domains.workflows.phases import ACTIVE, COMMITTED
from wakeful.domains.workflows.tables import WorkflowRun, Workflows
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.store.interface import Transaction

SETTLE_S = 90.0


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

    def line(self) -> str:
        return (
            f"{self.messages} messages, {self.kills} kills: {self.crashed} runs cut off, {self.in_flight} of them in "
            f"mutate; lost {self.lost}, twice {self.twice}, not consumed {self.unconsumed}, "
            f"not passed on {self.not_passed_on}, committed and not a success {self.denied}"
        )

    def wrong(self) -> list[str]:
        faults = {"lost": self.lost, "twice": self.twice, "unconsumed": self.unconsumed, "missing": self.not_passed_on}
        found = [f"{count} messages {what}" for what, count in faults.items() if count]
        return [*found, f"{self.denied} runs committed and are no success"] if self.denied else found


class Drill:
    """So many kills of so many nodes on one store, while messages come in."""

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

    async def _deploy(self, outside: Scheduler) -> None:
        """The first node deploys the workflow; messages can come once it is there."""
        outside.add_workflow(workflow(self._ledger))
        await outside.start()
        await outside.stop()

    def _start(self, name: str) -> None:
        log = self._folder / f"{name}.log"
        said = log.read_text(encoding="utf-8", errors="replace") if log.exists() else ""
        self._ready_before[name] = said.count("ready\n")
        with (self._folder / f"{name}.log").open("ab") as said:
            self._nodes[name] = subprocess.Popen(
                [sys.executable, "-m", "tests.chaos.workflow_node", self._url, name, str(self._ledger)],
                cwd=ROOT, stdin=subprocess.PIPE, stdout=said, stderr=said, start_new_session=True,
            )  # fmt: skip

    async def _feed(self, outside: Scheduler) -> None:
        while True:
            for _ in range(self._rng.choice((1, 2, 4))):
                given = ByHand(TOPIC, f"m{len(self._published)}", None)
                await outside.transact(
                    lambda tx, context, given=given: publish_by_hand(tx, context, NAME, given, who="drill")
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
            while not await outside.look(_is_running):
                assert time.monotonic() < end, "no run was seen running"
                await asyncio.sleep(0.01)
            for name, process in self._nodes.items():
                if process is not None:
                    await asyncio.to_thread(_end, process)
                    self._nodes[name] = None
                    self._kills += 1
            if await outside.look(_is_running):
                return

    async def _resume(self, outside: Scheduler) -> None:
        """As a person does who knows why the process ended: the handler does not wait, and is not blamed."""
        await outside.transact(lambda tx, context: actions.resume(tx, context, NAME, who="drill"))

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
        end = time.monotonic() + SETTLE_S
        while time.monotonic() < end:
            if not await outside.look(lambda tx: _open_events(tx.of(Topics))):
                handler = await outside.look(lambda tx: tx.of(Workflows).handler(NAME, "add"))
                if handler is not None and handler.open_run is None:
                    return
            await asyncio.sleep(0.2)

    async def _count(self, outside: Scheduler) -> Counted:
        added = Counter(read_ledger(self._ledger))
        attempts = await outside.look(lambda tx: tx.of(Workflows).runs(NAME, 100_000))
        passed = await outside.look(lambda tx: tx.of(Topics).matching(NAME, "added", None, None, 100_000))
        names = Counter(name for event in passed for name in event.message_id.split("+"))
        crashed = [one for one in attempts if one.status == "crashed"]
        return Counted(
            len(self._published), self._kills, len(crashed), sum(one.mutation == "in_flight" for one in crashed),
            lost=sum(name not in added for name in self._published),
            twice=sum(count > 1 for count in added.values()),
            unconsumed=await outside.look(lambda tx: _open_events(tx.of(Topics))),
            not_passed_on=sum(names[name] != 1 for name in self._published),
            denied=await outside.look(lambda tx: _denied(tx, [one for one in attempts if one.status == COMMITTED])),
        )  # fmt: skip


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    if process.stdin is not None:
        process.stdin.close()


def _denied(tx: Transaction, committed: list[WorkflowRun]) -> int:
    found = [tx.runs.get(one.id) for one in committed]
    return sum(run is not None and run.outcome not in ("success", None) for run in found)


def _is_running(tx: Transaction) -> bool:
    handler = tx.of(Workflows).handler(NAME, "add")
    attempt = tx.of(Workflows).run(handler.open_run) if handler is not None and handler.open_run is not None else None
    return attempt is not None and attempt.status == ACTIVE


def _open_events(topics: Topics) -> int:
    return sum(len(topics.matching(NAME, TOPIC, status, None, 100_000)) for status in ("pending", "reserved"))


def one_node(folder: Path, *, kills: int, seed: int) -> Counted:
    """On SQLite."""
    return Drill(folder, f"sqlite:///{folder}/wakeful.db", nodes=1, kills=kills, seed=seed).run()


def two_nodes(folder: Path, *, kills: int, seed: int) -> Counted:
    """On PostgreSQL."""
    server = PostgresServer()
    try:
        server.start()
        return Drill(folder, server.new_database(), nodes=2, kills=kills, seed=seed).run()
    finally:
        server.remove()


def drill(folder: Path, seed: int, kills: int = 25) -> list[str]:
    """Both, with their counts; what was not as promised."""
    wrong: list[str] = []
    for label, once in (("one node, SQLite", one_node), ("two nodes, PostgreSQL", two_nodes)):
        place = folder / once.__name__
        place.mkdir()
        counted = once(place, kills=kills, seed=seed)
        print(f"  {label}: {counted.line()}", flush=True)
        wrong += [f"{label}: {fault}" for fault in counted.wrong()]
    return wrong
