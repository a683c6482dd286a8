"""Nodes that stop, or die, while a thread of a run works on: no other node goes on too early, or never."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.simulation.invariants import Broken
from tests.workflows.mailroom import Mailroom, publish
from tests.workflows.test_threads_of_other_nodes import lives_on
from wakeful import Scheduler
from wakeful.domains.workflows import working
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.store.nodes import LEASE_MS
from wakeful.testing import run
from wakeful.triggers.durations import interval_ms

FIRST, SEEDS = 400_000, 4
FOUND_BY = 400_001


class StoppedBeside:
    """A node that goes on, others that come and go beside it, and what each of them left at work."""

    def __init__(self, seed: int, room: Mailroom) -> None:
        self._mood, self._room = random.Random(f"stopped {seed}"), room
        self._timeout = self._mood.choice(("30s", "1m", "2m"))
        self._works_until = 0  # a thread that another process may still have
        self._published, self._wrong = 0, ""
        room.act = dict.fromkeys(("mutate", "reconcile", "next"), self._touched)

    async def _touched(self, _: Any) -> None:
        if (left := self._works_until - self._room.clock.now()) > 0:
            self._wrong = self._wrong or f"K11: it goes on beside a thread that may work for {left} ms more"

    async def live(self) -> int:
        """Raise what was broken; else how many events were published, and done once each."""
        room, scheduler = self._room, await self._begin()
        for _ in range(2):
            await self._publish(scheduler, self._mood.choice((1, 1, 3)))
            await room.sleep("10s")
            await self._leave(scheduler)
            await self._publish(scheduler, self._mood.choice((0, 1, 2)))
            if self._mood.random() < 0.5:  # who takes over knows no more than what is stored
                await scheduler.close()
                scheduler = await self._begin()
            await room.sleep(self._mood.choice(("1s", "30s", "1m", "3m")))
            await self._publish(scheduler, self._mood.choice((0, 1)))
            await room.sleep(f"{max(0, self._works_until - room.clock.now()) // 1000 + 40}s")
            if self._wrong:
                raise Broken(self._wrong)
            if sorted(room.ledger) != sorted(f"m{number}" for number in range(self._published)):
                raise Broken(f"K13: {self._published} were published, and {len(room.ledger)} are done")
        await scheduler.close()
        return self._published

    async def _begin(self) -> Scheduler:
        scheduler: Scheduler = self._room.open(append={"timeout": self._timeout})
        await scheduler.open()
        await scheduler.start()
        return scheduler

    async def _publish(self, scheduler: Scheduler, times: int) -> None:
        for _ in range(times):
            await publish(scheduler, f"m{self._published}")
            self._published += 1

    async def _leave(self, scheduler: Scheduler) -> None:
        """Another node cuts off the last run, of which a thread works on, and is gone; its process perhaps not."""
        room, attempt = self._room, (await self._room.attempts(scheduler))[-1]
        name = f"there-{room.clock.now()}"
        other = Scheduler(room.url, clock=room.clock, node=name, seed=self._mood.getrandbits(32), tuning=room.tuning)
        await other.open()
        await other.start()
        values = {"working_run": attempt.id, "working_since": room.clock.now()}

        def cut_off(tx: Any, _: Any) -> None:
            table, node = tx.of(WorkflowVerbs), tx.nodes.named(name).id
            table.change("mailroom", tx.now, **values, working_node=node)

        await scheduler.transact(cut_off)
        await other.close()
        if self._mood.random() < 0.7:
            self._works_until = room.clock.now() + LEASE_MS + interval_ms(self._timeout)
            lives_on(room.url, name)


@pytest.mark.promise("K11", "X2")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + SEEDS))
def test_no_node_goes_on_beside_a_thread_that_a_stopped_node_may_have_left(postgres_scene, seed: int) -> None:
    assert run(StoppedBeside(seed, Mailroom(postgres_scene)).live(), postgres_scene.clock) >= 2


def test_a_node_that_stopped_is_not_waited_for_is_found(postgres_scene, monkeypatch) -> None:
    monkeypatch.setattr(working, "may_work", working.still_works)
    with pytest.raises(Broken, match="K11"):
        run(StoppedBeside(FOUND_BY, Mailroom(postgres_scene)).live(), postgres_scene.clock)
