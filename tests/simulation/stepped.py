"""A world with a handler with steps: keys, places, failures, deploys, people, and a process that dies at any time.

An outside ledger, which outlives every process, has each step of each order once, and the orders of each key in order,
but for those that were set aside.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, ClassVar

from tests.simulation.flows import NAME, Flowing
from tests.simulation.invariants import Broken
from tests.simulation.world import World
from wakeful import Applied, NotApplied, Scheduler, StepFailed, Unknown, Workflow, ids
from wakeful.domains.workflows import actions, views
from wakeful.domains.workflows.draining import drain
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand, replay_all_parked

STEPS = ("label", "mail", "book")


class Stepped(Flowing):
    """One handler whose places, retries and reaction to failures are this world's."""

    weights: ClassVar[dict[str, int]] = {**Flowing.weights, "_deploy": 4}

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.places, self.keys = self._mood.choice((1, 2, 5)), self._mood.choice((1, 3, 50))
        self.on_failure = self._mood.choice(("stop", "park"))
        self.retry = self._mood.choice((None, ("10s", "1m"), ()))
        self.reconciles = self._mood.random() < 0.7
        self.done: list[tuple[str, str]] = []  # (order, step) outside, in the order in which it happened
        self.set_aside: set[str] = set()  # orders that later ones of their key may have overtaken
        self.version = 1

    # -- the workflow --------------------------------------------------------------------------------------------------

    def _workflow(self) -> Workflow:
        workflow = Workflow(NAME)
        workflow.version = f"{self.version}"

        @workflow.on(
            "orders", key=lambda event: int(event.message_id[1:]) % self.keys, concurrency=self.places,
            retry=self.retry, on_failure=self.on_failure, publishes=["shipped"], timeout="30m",
        )  # fmt: skip
        async def ship(ctx: Any, event: Any) -> None:
            await self._trouble_in("ship")
            for step in STEPS:
                reconcile = self._find if self.reconciles else None
                asks = "May I?" if not self.calm and self._mood.random() < 0.05 else None
                try:
                    await ctx.step(
                        step, self._act, step, event.message_id, reconcile=reconcile, approve=asks, timeout="2m"
                    )
                except StepFailed:
                    if step != "mail" or (not self.calm and self._mood.random() < 0.7):
                        raise
                    await ctx.step("instead", self._act, "instead", event.message_id, reconcile=self._find)
            await self._trouble_in("end")
            await ctx.publish("shipped", message_id=event.message_id)

        return workflow

    async def _act(self, step: str, order: str) -> str:
        await self._trouble_in("step")
        self.done.append((order, step))
        await asyncio.sleep(self._mood.choice((0, 0, 0.05, 1)))
        if not self.calm and self._mood.random() < 0.05:
            await asyncio.sleep(600)  # over its time
        return f"{step} {order}"

    async def _find(self, step: str, order: str) -> Any:
        if not self.calm and self._mood.random() < 0.2:
            return Unknown
        return Applied(f"{step} {order}") if (order, step) in self.done else NotApplied

    # -- people --------------------------------------------------------------------------------------------------------

    async def _publish(self) -> None:
        for _ in range(self._mood.choice((1, 1, 4))):
            name = f"m{self._mood.randrange(400)}"
            await self._do(publish_by_hand, ByHand("orders", name, None))
            self.published.add(name)

    async def _deploy(self) -> None:
        """New code: with other numbers of places, of keys and of tries, and the same steps."""
        assert self._scheduler is not None
        self.version += 1
        self.places, self.retry = self._mood.choice((1, 2, 5)), self._mood.choice((None, ("10s", "1m"), ()))
        await self._scheduler.add_workflow(self._workflow())

    async def _help(self) -> None:
        """What a person does about whatever waits for one."""
        assert self._scheduler is not None
        shown = await self._scheduler.read(lambda tx: views.workflow_view(tx, NAME))
        issue = shown["issue"]
        if issue is None:
            return
        self.helped += 1
        self._note(f"help {issue['kind']}")
        self._note_set_aside()
        doubtful = self._doubtful(issue["run"]) if issue["kind"] in ("parked", "reconciliation") else None
        if shown["paused"]:
            await self._do(actions.resume)
        elif issue["kind"] == "approval":
            await self._do(actions.approve if self._mood.random() < 0.8 else actions.reject, issue["run"])
        elif doubtful is not None:
            await self._do(actions.settle, issue["run"], "happened" if doubtful in self.done else "did_not_happen")
        elif issue["kind"] == "parked":
            await self._scheduler.transact(lambda tx, context: replay_all_parked(tx, context, NAME, who="Ada"))
        else:
            await self._do(actions.resume)

    def _note_set_aside(self) -> None:
        """Also before somebody replays them: between two looks they may be parked, replayed and done."""
        self.set_aside.update(
            row["message_id"]
            for row in self._watch().execute(
                "SELECT e.message_id FROM workflow_tasks t JOIN workflow_events e ON e.id = t.event_id "
                "WHERE t.status = 'parked'"
            )
        )

    def _doubtful(self, run: str) -> tuple[str, str] | None:
        """The first step of the event of that run that nobody knows to have happened."""
        row = self._watch().execute(
            "SELECT e.message_id, s.name FROM workflow_tasks t JOIN workflow_events e ON e.id = t.event_id JOIN "
            "workflow_steps s ON s.event_id = t.event_id WHERE t.run_id = ? AND s.status = 'uncertain' "
            "ORDER BY s.number",
            (ids.number_of("run", run),),
        )
        found = row.fetchone()
        return (found["message_id"], found["name"]) if found is not None else None

    async def _meddle(self) -> None:
        await self._do(self._mood.choice((actions.pause, drain)))

    # -- looking -------------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        World._look(self)
        twice = [one for one, times in Counter(self.done).items() if times > 1]
        if twice:
            raise Broken(f"X32: the step {twice[0][1]} of {twice[0][0]} was done twice")
        self._look_at_events()
        self._look_at_keys()

    def _look_at_events(self) -> None:
        eye = self._watch()
        rows = eye.execute(
            "SELECT e.message_id, e.status, t.status AS task, t.run_id FROM workflow_events e "
            "LEFT JOIN workflow_tasks t ON t.event_id = e.id WHERE e.topic = 'orders'"
        ).fetchall()
        if lost := self.published - {row["message_id"] for row in rows}:
            raise Broken(f"X32: {min(lost)} was published and is gone")
        self._note_set_aside()
        open_runs = {row["open_run"] for row in eye.execute("SELECT open_run FROM workflow_handlers")}
        for row in rows:
            order = row["message_id"]
            steps = {step for one, step in self.done if one == order}
            if row["status"] == "consumed" and (not {"label", "book"} <= steps or not steps & {"mail", "instead"}):
                raise Broken(f"X32: {order} is consumed, and only {sorted(steps)} of it is done")
            if row["status"] == "reserved" and (row["task"] is None or row["run_id"] is None):
                raise Broken(f"X32: {order} was begun, and nothing will go on with it")
            if row["status"] == "consumed" and row["task"] is not None:
                raise Broken(f"X32: {order} is consumed, and still {row['task']}")
            if row["task"] == "running" and row["run_id"] not in open_runs:
                raise Broken(f"X32: {order} is said to be worked on, by a run that is over")

    def _look_at_keys(self) -> None:
        eye = self._watch()
        for row in eye.execute(
            "SELECT key, sum(status IN ('ready', 'running', 'retrying', 'uncertain')) AS held, "
            "sum(status = 'queued') AS queued FROM workflow_tasks GROUP BY workflow, handler, key"
        ):
            if row["held"] > 1:
                raise Broken(f"X32: {row['held']} events of the key {row['key']} have their turn at once")
            if row["queued"] and not row["held"]:
                raise Broken(f"X32: events of the key {row['key']} wait for their turn, and nobody has it")
        seqs = {
            row["message_id"]: row["seq"]
            for row in eye.execute("SELECT message_id, seq FROM workflow_events WHERE topic = 'orders'")
        }
        by_key: dict[int, list[str]] = {}
        for order, step in self.done:
            if step == STEPS[0] and order not in self.set_aside:
                by_key.setdefault(int(order[1:]) % self.keys, []).append(order)
        for orders in by_key.values():
            if orders != sorted(orders, key=seqs.__getitem__):
                raise Broken(
                    f"X32: {' '.join(orders[-5:])} were worked on in another order than they were published in"
                )

    async def _resumed(self, name: str) -> None:
        """A person may have paused jobs by their names: that is lifted from each place."""
        if name == "flow.add":
            for place in ("flow.ship", *(f"flow.ship.{number}" for number in range(2, 6))):
                await super()._resumed(place)

    async def _end(self) -> None:
        """With the faults over, everything was worked on."""
        for row in self._watch().execute("SELECT message_id, status FROM workflow_events WHERE topic = 'orders'"):
            if row["status"] != "consumed":
                raise Broken(f"X32: {row['message_id']} is still {row['status']}")
        await World._end(self)

    async def _furnish(self, scheduler: Scheduler) -> None:
        scheduler.add_workflow(self._workflow())
