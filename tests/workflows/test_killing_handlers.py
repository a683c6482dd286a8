"""A handler that ends its process is found: it backs off, its workflow is stopped, and others beside it go on."""

from __future__ import annotations

import asyncio
from itertools import pairwise

import pytest

from tests.workflows.mailroom import virtual
from wakeful import Interval, Workflow
from wakeful.domains.workflows import views


class Killer:
    """Ends the process in a phase, each time it gets there with something to do."""

    def __init__(self, room, *phases, patience="20m"):
        self.room, self.deaths, self.scheduler, self.patience = room, [], None, patience
        self.dying = asyncio.Event()
        room.mails = ["a"]
        for phase in phases:
            room.act[phase] = self.kill

    async def kill(self, ctx):
        if "poll" not in self.room.phases():
            return  # deployed, and with nothing to do
        self.deaths.append(self.room.now)
        self.dying.set()
        await asyncio.Event().wait()

    async def live(self):
        """A life of the process; the scheduler if it outlives the ladder, with which the caller goes on."""
        self.scheduler = self.room.open()
        self.dying.clear()
        await self.scheduler.open()
        await self.scheduler.start()
        ways = [asyncio.ensure_future(way) for way in (self.dying.wait(), self.room.sleep(self.patience))]
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        ways[1].cancel()
        if not self.dying.is_set():
            return self.scheduler
        await self.room.scene.crash(self.scheduler)
        return None

    async def lives(self, most=30):
        """Lives until one is not ended."""
        for _ in range(most):
            scheduler = await self.live()
            if scheduler is not None:
                return scheduler
        return pytest.fail("the handler was never found")

    @property
    def gaps(self):
        return [(later - earlier).total_seconds() for earlier, later in pairwise(self.deaths)]


async def shown(scheduler):
    return await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))


async def open_alerts(scheduler):
    return [alert for alert in await scheduler.list_alerts() if alert.closed_at is None]


LADDER = (30, 60, 300)


def assert_by_ladder(killer):
    assert len(killer.deaths) == 5
    assert killer.gaps[0] < 30, "the first time at once"
    assert all(gap >= rung for gap, rung in zip(killer.gaps[1:], LADDER, strict=True)), killer.gaps


async def goes_on(room, scheduler):
    """Once it is mended, everything is done, and nothing is left to look at."""
    await room.sleep("10m")
    found = await shown(scheduler)
    assert (found["status"], found["issue"]) == ("idle", None)
    assert await room.events(scheduler) == {"a": "consumed"}
    assert room.ledger == ["a"]
    assert await open_alerts(scheduler) == []


@pytest.mark.promise("X14")
@pytest.mark.parametrize(("phase", "left"), [("poll", {}), ("prepare", {"a": "pending"}), ("next", {"a": "reserved"})])
@virtual
async def test_a_handler_that_ends_its_process_backs_off_by_the_ladder_and_stops_its_workflow(room, phase, left):
    killer = Killer(room, phase)
    scheduler = await killer.lives()
    try:
        assert_by_ladder(killer)
        found = await shown(scheduler)
        handler = "poll" if phase == "poll" else "append"
        assert (found["status"], found["issue"]["handler"]) == ("needs_attention", handler)
        words = f"The code of {handler} failed: it ended its process 5 times in a row. Correct it and apply, or resume"
        assert found["issue"]["message"].startswith(words)
        assert [alert.kind for alert in await open_alerts(scheduler)] == ["workflow"]
        assert await room.events(scheduler) == left
        room.act.clear()
        await room.act_on(scheduler, "resume", who="Ada")
        await goes_on(room, scheduler)
    finally:
        await scheduler.close()


@pytest.mark.promise("X14", "K11")
@virtual
async def test_a_mutation_that_ends_its_process_is_not_made_again_and_again(room):
    killer = Killer(room, "mutate")  # before it changes anything: reconcile says so each time
    scheduler = await killer.lives()
    try:
        assert_by_ladder(killer)
        assert room.phases().count("reconcile") == 4
        found = await shown(scheduler)
        assert (found["status"], found["issue"]["kind"]) == ("needs_attention", "reconciliation")
        assert "it ended its process 5 times in a row" in found["issue"]["message"]
        assert [alert.kind for alert in await open_alerts(scheduler)] == ["workflow"]
        room.act.clear()
        await room.act_on(scheduler, "settle", found["issue"]["run"], "did_not_happen", who="Ada")
        await goes_on(room, scheduler)
    finally:
        await scheduler.close()


@pytest.mark.promise("X14", "K11")
@virtual
async def test_a_reconcile_that_ends_its_process_is_tried_five_times_and_then_a_person_decides(room):
    killer = Killer(room, "mutate", "reconcile")
    scheduler = await killer.lives()
    try:
        assert [phase for phase in room.phases() if phase in ("mutate", "reconcile")] == ["mutate", *["reconcile"] * 4]
        assert_by_ladder(killer)
        found = await shown(scheduler)
        assert (found["status"], found["issue"]["kind"]) == ("needs_attention", "reconciliation")
        assert [alert.kind for alert in await open_alerts(scheduler)] == ["workflow"]
        room.act.clear()
        await room.act_on(scheduler, "settle", found["issue"]["run"], "did_not_happen", who="Ada")
        await goes_on(room, scheduler)
    finally:
        await scheduler.close()


@pytest.mark.promise("X14")
@virtual
async def test_what_runs_beside_a_handler_that_ends_its_process_is_not_blamed_and_goes_on(room):
    killer, plain = Killer(room, "poll", patience="2h"), room.open
    innocent = Workflow("innocent")

    @innocent.producer(Interval("10m"))
    async def look(ctx, state):
        await room.sleep("20s")

    def open_both():
        scheduler = plain()
        scheduler.add_workflow(innocent)
        return scheduler

    room.open = open_both
    scheduler = await killer.lives()
    try:
        assert len(killer.deaths) <= 8
        assert (await shown(scheduler))["status"] == "needs_attention"
        beside = await scheduler.read(lambda tx: views.workflow_view(tx, "innocent"))
        assert (beside["issue"], beside["handlers"][0]["last_run"]["workflow_status"]) == (None, "committed")
        assert [alert.key for alert in await open_alerts(scheduler)] == ["workflow:mailroom"]
    finally:
        await scheduler.close()


@pytest.mark.promise("X14", "H8")
@pytest.mark.parametrize("phase", ["prepare", "mutate"])
@virtual
async def test_a_person_who_resumes_a_workflow_waits_for_no_ladder(room, phase):
    killer = Killer(room, phase)
    for _ in range(3):
        assert await killer.live() is None
    room.act.clear()
    killer.patience = "1s"
    scheduler = await killer.live()
    try:
        assert room.ledger == [], "it waits for a minute"
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("25s")
        assert room.ledger == ["a"]
    finally:
        await scheduler.close()
