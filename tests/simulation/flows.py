"""A world with a workflow: its handlers fail at times, people publish, pause, replay and settle, and the process dies.

An outside ledger, which outlives every process, has each message once: no fault loses or doubles one.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.flow_rules import Doubts, check_flow, check_words
from tests.simulation.invariants import Broken
from tests.simulation.world import FOR_EVER, World
from wakeful import (
    Applied,
    ApprovalNeeded,
    Interval,
    NotApplied,
    Prepared,
    Scheduler,
    SchedulerError,
    TransientError,
    Unknown,
    Workflow,
)
from wakeful.domains.workflows import actions, views
from wakeful.domains.workflows.draining import drain
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand

NAME = "flow"


class Flowing(World):
    """A producer and two consumers, one after the other."""

    weights: ClassVar[dict[str, int]] = {
        **World.weights, "_add": 1, "_edit": 0, "_remove": 0, "_publish": 14, "_help": 10, "_meddle": 5,
    }  # fmt: skip

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.days = FOR_EVER
        self._mood = random.Random(f"flows {seed}")
        self.calm = False
        self.published: set[str] = set()  # acknowledged
        self.found = 0  # what the producer has found outside
        self.ledger: list[str] = []  # what was changed outside
        self.helped = 0
        self._doubts = Doubts()

    # -- the workflow --------------------------------------------------------------------------------------------------

    async def _furnish(self, scheduler: Scheduler) -> None:
        self._doubts.forget()
        scheduler.add_workflow(self._workflow())

    def _workflow(self) -> Workflow:
        workflow = Workflow(NAME)

        @workflow.producer(Interval("10m"), publishes=["mail"], timeout="2m")
        async def poll(ctx: Any, state: Any) -> Any:
            await self._trouble_in("poll")
            self.found = max(self.found, state.get("n", 0) + 1)
            await ctx.publish("mail", message_id=f"found-{state.get('n', 0)}")
            return {"n": state.get("n", 0) + 1}

        add = workflow.consumer("add", subscribes=["mail"], publishes=["added"], timeout="2m")

        @add.prepare
        async def prepare(ctx: Any, state: Any) -> Prepared:
            await self._trouble_in("prepare")
            mails = await ctx.peek("mail", limit=self._mood.choice((1, 3)))
            return Prepared({"mail": [mail.id for mail in mails]}, [mail.message_id for mail in mails])

        @add.mutate
        async def mutate(ctx: Any, prepared: Prepared) -> int:
            await self._trouble_in("mutate")
            self.ledger += prepared.data
            await self._trouble_in("after mutate", certain=False)
            return len(prepared.data)

        @add.reconcile
        async def reconcile(ctx: Any, prepared: Prepared) -> Any:
            if not self.calm and self._mood.random() < 0.2:
                return Unknown()
            return Applied(len(prepared.data)) if set(prepared.data) <= set(self.ledger) else NotApplied()

        @add.next
        async def next_(ctx: Any, prepared: Prepared, result: Any) -> Any:
            await self._trouble_in("next")
            for name in prepared.data:
                await ctx.publish("added", message_id=name)
            return {"added": state_of(result)}

        count = workflow.consumer("count", subscribes=["added"], timeout="2m")

        @count.prepare
        async def prepare_count(ctx: Any, state: Any) -> Prepared:
            await self._trouble_in("count")
            found = await ctx.peek("added", limit=50)
            return Prepared({"added": [one.id for one in found]}, len(found))

        @count.next
        async def next_count(ctx: Any, prepared: Prepared, result: Any) -> Any:
            return {"counted": prepared.data}

        return workflow

    async def _trouble_in(self, where: str, *, certain: bool = True) -> None:
        """Nothing, most of the time; `certain`: a failure says that nothing changed outside."""
        self._note(f"{where}")
        await asyncio.sleep(self._mood.choice((0, 0, 0.05, 1)))
        if self.calm or self._mood.random() > 0.15:
            return
        errors: list[Exception] = [TransientError("busy"), ApprovalNeeded("May I?"), ValueError("wrong")]
        if where == "mutate":
            errors = errors[:2]
        if not certain:
            errors = [RuntimeError("cut"), ValueError("nonsense")]
        if self._mood.random() < 0.1:
            await asyncio.sleep(600)  # over its time
        raise self._mood.choice(errors)

    # -- people --------------------------------------------------------------------------------------------------------

    async def _publish(self) -> None:
        name = f"m{self._mood.randrange(400)}"
        await self._do(publish_by_hand, ByHand("mail", name, None))
        self.published.add(name)

    async def _help(self) -> None:
        """What a person does about whatever waits for one."""
        assert self._scheduler is not None
        shown = await self._scheduler.read(lambda tx: views.workflow_view(tx, NAME))
        issue = shown["issue"]
        if issue is None:
            return
        self.helped += 1
        self._note(f"help {issue['kind']}")
        if shown["paused"]:
            await self._do(actions.resume)
        elif issue["kind"] == "approval":
            await self._do(actions.approve if self._mood.random() < 0.8 else actions.reject, issue["run"])
        elif issue["kind"] == "reconciliation":
            names = await self._reserved()
            happened = bool(names) and set(names) <= set(self.ledger)
            await self._do(actions.settle, issue["run"], "happened" if happened else "did_not_happen")
        else:
            await self._do(actions.resume)

    async def _reserved(self) -> list[str]:
        rows = self._watch().execute(
            "SELECT message_id FROM workflow_events WHERE topic = 'mail' AND status = 'reserved'"
        )
        return [row["message_id"] for row in rows]

    async def _meddle(self) -> None:
        what = self._mood.choice(("pause", "drain", "run"))
        if what == "pause":
            await self._do(actions.pause)
        elif what == "drain":
            await self._do(drain)
        else:
            await self._do(actions.run_now)

    async def _do(self, action: Any, *given: Any) -> Any:
        assert self._scheduler is not None
        return await self._scheduler.transact(lambda tx, context: action(tx, context, NAME, *given, who="Ada"))

    # -- looking -------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        super()._look()
        twice = [name for name, times in Counter(self.ledger).items() if times > 1]
        if twice:
            raise Broken(f"K10: {twice[0]} was changed outside twice")
        eye = self._watch()
        known = {
            row["message_id"] for row in eye.execute("SELECT message_id FROM workflow_events WHERE topic = 'mail'")
        }
        if lost := self.published - known:
            raise Broken(f"K6: {min(lost)} was published and is gone")
        for row in eye.execute("SELECT message_id FROM workflow_events WHERE topic = 'mail' AND status = 'consumed'"):
            if row["message_id"] not in self.ledger:
                raise Broken(f"K9: {row['message_id']} is consumed, and nothing was changed for it")
        doubts = [*check_flow(eye, NAME), *check_words(self._ledger(), eye, NAME, may_be_paused=True)]
        if not self._dead.is_set():
            self._doubts.hold(iter(doubts), self.clock.monotonic())

    async def _settle_down(self, ours: set[asyncio.Task[object] | None]) -> None:
        self.calm = True
        if self._dead.is_set():
            await self._rebirth(ours)
        for _ in range(8):
            for name in ("flow.poll", "flow.add", "flow.count"):
                await self._bounded(self._resumed(name))
            with contextlib.suppress(SchedulerError):  # it may just be finding out by itself
                await self._bounded(self._help())
            await self._bounded(self.clock.sleep("11m"))
        await super()._settle_down(ours)

    async def _resumed(self, name: str) -> None:
        """A person paused or disabled a handler's job by its name: that is lifted too."""
        assert self._scheduler is not None
        job = await self._scheduler.get_job(name)
        if job is not None and job.status == "paused":
            await self._scheduler.resume_job(name)

    async def _end(self) -> None:
        """With the faults over, everything was worked on once."""
        for row in self._watch().execute("SELECT message_id, topic, status FROM workflow_events ORDER BY id"):
            if row["status"] != "consumed":
                raise Broken(f"K13: {row['topic']} {row['message_id']} is still {row['status']}")
        if missing := self.published - set(self.ledger):
            raise Broken(f"K10: {min(missing)} was never worked on")
        await super()._end()


def state_of(result: Any) -> str:
    return str(result.status)
