"""The crash matrix of steps: the process dies before and after every commit of every step, and in the midst of each.

Whatever happens: no step is done a second time unless its reconcile or a person says that it did not happen, no event
is lost or consumed twice, and in the end everything is consumed, or waits for a person whose word ends it.
"""

from __future__ import annotations

import asyncio

import pytest

from tests.workflows.dying import Dying
from tests.workflows.mailroom import virtual
from wakeful import Applied, NotApplied, Workflow
from wakeful.domains.workflows.steps.tables import Tasks
from wakeful.domains.workflows.steps.taking import ClaimedWork
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.testing import run

STEPS = ("label", "mail")
CHECKPOINTS = ["taken", "begun label", "ended label", "begun mail", "ended mail", "committed"]
POINTS = [
    *[(name, side) for name in CHECKPOINTS for side in ("before", "after")],
    *[(step, side) for step in STEPS for side in ("begins", "ends")],
    ("handler", "begins"),
    ("handler", "ends"),
]
AGAIN = [
    ("reconcile", "begins"),
    ("ended label", "after"),
    ("committed", "before"),
    ("mail", "ends"),
    ("taken", "after"),
]


class Life:
    """Lives of a process with one workflow, and the ledger outside."""

    def __init__(self, scene, *, reconciles, on_failure="park", concurrency=1):
        self.scene, self.reconciles = scene, reconciles
        self.options = {"on_failure": on_failure, "concurrency": concurrency, "key": lambda event: event.payload}
        self.ledger = []
        self.point, self.over, self.ending, self.scheduler = None, asyncio.Event(), None, None

    # -- the workflow --------------------------------------------------------------------------------------------------

    def workflow(self):
        workflow = Workflow("shop")

        @workflow.on("orders", publishes=["shipped"], **self.options)
        async def ship(ctx, event):
            await self.reach("handler", "begins")
            for step in STEPS:
                reconcile = self.look if self.reconciles else None
                await ctx.step(step, self.do, step, event.payload, reconcile=reconcile)
            await ctx.publish("shipped", message_id=event.message_id)
            await self.reach("handler", "ends")

        return workflow

    async def do(self, step, order):
        await self.reach(step, "begins")
        self.ledger.append((step, order))
        await self.reach(step, "ends")
        return f"{step} {order}"

    async def look(self, step, order):
        await self.reach("reconcile", "begins")
        return Applied(f"{step} {order}") if (step, order) in self.ledger else NotApplied()

    # -- dying ---------------------------------------------------------------------------------------------------------

    def is_at(self, *point):
        return point == self.point and not self.over.is_set()

    async def reach(self, *point):
        if self.is_at(*point):
            await self.die()

    async def die(self):
        self.over.set()
        self.ending = asyncio.ensure_future(self.scene.crash(self.scheduler))
        await asyncio.Event().wait()  # nothing more happens in this process

    def watch(self, scheduler):
        transact = scheduler.transact

        async def watched(work, **options):
            named = []

            def noting(tx, context):
                result = work(tx, context)
                named[:] = [self.name_of(tx, result)]
                if self.is_at(named[0], "before"):
                    raise Dying
                return result

            try:
                result = await transact(noting, **options)
            except Dying:
                await self.die()
            if self.is_at(named[0], "after"):
                await self.die()
            return result

        scheduler.transact = watched

    @staticmethod
    def name_of(tx, result):
        """Which checkpoint it was."""
        if isinstance(result, ClaimedWork):
            return "taken"
        if getattr(result, "type", None) != "steps":
            return None
        if result.phase == "committed":
            return "committed" if result.reserved else None
        events = [task.event_id for task in tx.of(Tasks).begun("shop", "ship")] or None
        steps = [step for number in (events or Life.events(tx)) for step in tx.of(Tasks).steps(number)]
        last = max(steps, key=lambda step: (step.run_id, step.number), default=None)
        return None if last is None else f"{'begun' if last.status == 'running' else 'ended'} {last.name}"

    @staticmethod
    def events(tx):
        return [row.event_id for row in tx.of(Tasks).with_status("shop", "running")]

    # -- living --------------------------------------------------------------------------------------------------------

    async def live(self, point, orders=(), interval="1h"):
        """A life of the process, until it dies at that point or for that long; the scheduler, if it lives."""
        self.point, self.over, self.ending = point, asyncio.Event(), None
        self.scheduler = scheduler = self.scene.scheduler()
        await scheduler.open()
        self.watch(scheduler)
        scheduler.add_workflow(self.workflow())
        await scheduler.start()
        for order in orders:
            publishing = scheduler.workflows.publish("shop", "orders", order, message_id=str(order))
            await asyncio.wait({asyncio.ensure_future(publishing)})
        sleeping = asyncio.ensure_future(self.scene.sleep(interval))
        await asyncio.wait({asyncio.ensure_future(self.over.wait()), sleeping}, return_when=asyncio.FIRST_COMPLETED)
        if not self.over.is_set():
            return scheduler
        await self.ending
        return None

    async def help_out(self, scheduler):
        """A person looks into the ledger, and says of each step that was cut off what happened."""
        for asked in range(10):
            issue = (await scheduler.workflows.get("shop"))["issue"]
            if issue is None:
                return asked
            run_view = next(one for one in await scheduler.workflows.runs("shop") if one["id"] == issue["run"])
            [step] = [one["name"] for one in run_view["steps"] if one["status"] == "uncertain"]
            [order] = [int(one) for one in [run_view["title"].split()[1]]]
            happened = (step, order) in self.ledger
            await scheduler.workflows.settle("shop", issue["run"], "happened" if happened else "did_not_happen")
            await self.scene.sleep("1m")
        raise AssertionError(issue)

    async def check(self, scheduler, orders):
        assert sorted(self.ledger) == sorted((step, order) for step in STEPS for order in orders)
        for order in orders:
            assert [step for step, one in self.ledger if one == order] == list(STEPS)
        for topic, status in (("orders", "consumed"), ("shipped", "pending")):
            found = {one["message_id"]: one["status"] for one in await scheduler.workflows.events("shop", topic)}
            assert found == {str(order): status for order in orders}
        assert (await scheduler.workflows.get("shop"))["issue"] is None

        def left(tx):
            active = [one for one in tx.of(WorkflowVerbs).runs("shop", 500) if one.status == "active"]
            return tx.of(WorkflowVerbs).open_runs("shop"), tx.of(Tasks).counts("shop"), active

        assert await scheduler.read(left) == ([], {}, [])


async def die_and_recover(life, points):
    for number, point in enumerate(points):
        scheduler = await life.live(point, orders=[7] if not number else [])
        assert scheduler is None or number, "the point was never reached"
        if scheduler is not None:
            await scheduler.close()
        assert len(life.ledger) == len(set(life.ledger)), "done twice"
    scheduler = await life.live(None)
    try:
        asked = await life.help_out(scheduler)
        assert not (asked and life.reconciles)
        await life.check(scheduler, [7])
        return asked
    finally:
        await scheduler.close()


@pytest.mark.promise("X32")
@pytest.mark.parametrize("reconciles", [True, False], ids=["reconcile", "person"])
@pytest.mark.parametrize("point", POINTS, ids="-".join)
@virtual
async def test_whenever_the_process_dies_each_step_is_done_once(room, point, reconciles):
    asked = await die_and_recover(Life(room.scene, reconciles=reconciles), [point])
    begun = [(f"begun {step}", "after") for step in STEPS]
    unended = [(f"ended {step}", "before") for step in STEPS]
    assert bool(asked) == (not reconciles and (point[0] in STEPS or point in begun or point in unended))


@pytest.mark.promise("X32")
@pytest.mark.parametrize("on_failure", ["stop", "park"])
@pytest.mark.parametrize("reconciles", [True, False], ids=["reconcile", "person"])
@pytest.mark.parametrize("point", POINTS, ids="-".join)
def test_so_it_is_when_the_recovery_dies_too(sqlite_scene, point, reconciles, on_failure):
    number = POINTS.index(point)
    life = Life(sqlite_scene, reconciles=reconciles, on_failure=on_failure, concurrency=1 + number % 3)
    run(die_and_recover(life, [point, AGAIN[(number + reconciles) % len(AGAIN)]]), sqlite_scene.clock)
