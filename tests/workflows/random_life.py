"""A random workflow in virtual time, and what happened outside: after every step all of it agrees.

The same rules as in the simulated worlds (`tests/simulation`): what is in the ledger and who agreed to it, how often
handlers are called, what becomes of events, and what people are shown.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any, NamedTuple

from tests.simulation.flow_rules import Doubts, check_flow, check_words, unlooked
from tests.simulation.outside import Outside
from wakeful import Applied, ApprovalNeeded, Interval, NotApplied, Prepared, Workflow
from wakeful.testing import WorkflowTest

NAME = "random"


class Shape(NamedTuple):
    """A random workflow: consumers in a row, the first of which changes something outside."""

    consumers: int  # each publishes what the next consumes
    batch: int
    reconciles: bool
    remembers: bool  # whether `next` keeps a state
    asks: str = ""  # in which phase each change needs an approval
    newest: bool = False  # whether the newest events come first
    hasty: bool = False  # whether mutate swallows that its call took too long
    declines: bool = False  # whether every other version takes nothing


class Named:
    """A SQLite connection whose rows have names, as the rules want them."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def execute(self, sql: str, params: tuple[object, ...] = ()) -> Any:
        cursor = self._connection.execute(sql, params)
        cursor.row_factory = lambda found, row: {
            column[0]: value for column, value in zip(found.description, row, strict=True)
        }
        return cursor


class Life:
    """One workflow of a shape, its versions, its mishaps, and the person who helps."""

    def __init__(self, shape: Shape) -> None:
        self.shape = shape
        self.published = {"1"}
        self.version, self.whole, self.may_be_paused, self.slow = 1, True, False, 0
        self.errors: dict[str, list[Exception]] = {}
        self.broken: list[str] = []
        self.outside = Outside(NAME, self._now, self.broken.append)
        self._doubts, self._since = Doubts(), 0.0
        self.test: Any = None  # while its first calls are made
        self.test = WorkflowTest(self.made())

    def _now(self) -> float:
        return 0.0 if self.test is None else float(self.test.clock.monotonic())

    # -- the workflow --------------------------------------------------------------------------------------------------

    def made(self) -> Workflow:
        workflow = Workflow(NAME)
        workflow.version = f"{self.version}-{self.whole}"

        @workflow.producer(Interval("1h"), publishes=["topic-0"])
        async def poll(ctx: Any, state: Any) -> Any:
            with self._call("poll"):
                await ctx.publish("topic-0", message_id="1")
                return {"polled": state.get("polled", 0) + 1}

        for number in range(self.shape.consumers if self.whole else 0):
            self._add_consumer(workflow, number)
        return workflow

    def _add_consumer(self, workflow: Workflow, number: int) -> None:
        source, target = f"topic-{number}", f"topic-{number + 1}"
        consumer = workflow.consumer(f"consumer-{number}", subscribes=[source], publishes=[target])
        changes, shape = not number, self.shape
        takes = not (changes and shape.declines and self.version % 2)

        @consumer.prepare
        async def prepare(ctx: Any, state: Any) -> Prepared:
            with self._call("prepare", number):
                found = list(await ctx.peek(source, limit=1_000)) if takes else []
                chosen = found[-shape.batch :] if shape.newest else found[: shape.batch]
                data = [event.message_id for event in chosen]
                if changes and data and shape.asks == "prepare":
                    self._ask(ctx, data)
                return Prepared({source: [event.id for event in chosen]}, data)

        if changes:
            self._mutates(consumer)

        @consumer.next
        async def next_(ctx: Any, prepared: Prepared, result: Any) -> Any:
            with self._call("next", number):
                if prepared.data:
                    await ctx.publish(target, message_id="+".join(prepared.data))
                return {"last": prepared.data} if shape.remembers else None

    def _mutates(self, consumer: Any) -> None:
        @consumer.mutate
        async def mutate(ctx: Any, prepared: Prepared) -> None:
            with self._call("mutate"):
                if self.shape.asks == "mutate":
                    self._ask(ctx, prepared.data)
                if self.shape.asks:
                    self.outside.rely_on_approval(prepared.data)
                await self._change(ctx, prepared.data)

        if not self.shape.reconciles:
            return

        @consumer.reconcile
        async def reconcile(ctx: Any, prepared: Prepared) -> Applied | NotApplied:
            with self._call("reconcile"):
                return Applied() if self.outside.has(prepared.data) else NotApplied()

    def _call(self, phase: str, number: int = 0) -> Any:
        return self.outside.call(f"consumer-{number}.{phase}", self.errors.get(phase) if not number else None)

    async def _change(self, ctx: Any, data: list[str]) -> None:
        if not self.shape.hasty:
            self.outside.change(data)
            return
        seconds, self.slow = (20, self.slow - 1) if self.slow else (1, 0)

        async def post() -> None:
            await asyncio.sleep(seconds)
            self.outside.change(data)

        with contextlib.suppress(TimeoutError):  # as careless authors do
            await asyncio.wait_for(ctx.call(post), 5)

    def _ask(self, ctx: Any, data: list[str]) -> None:
        if ctx.approved_by is None:
            self.outside.ask(ctx.run_id, data)
            raise ApprovalNeeded(f"{data}?")

    def has(self, phase: str) -> bool:
        """Whether the deployed version has such a function."""
        return phase == "poll" or (self.whole and (self.shape.reconciles or phase != "reconcile"))

    # -- people --------------------------------------------------------------------------------------------------------

    def publish(self, name: str) -> None:
        if self.whole:
            self.published.add(self.test.publish("topic-0", message_id=name))

    def deploy(self, *, whole: bool) -> None:
        """Another version, with its consumers or without."""
        self.version, self.whole = self.version + 1, whole
        self._since = self._now()
        self.test.redeploy(self.made())

    def help_out(self, *, agrees: bool = True) -> bool:
        """What a person does about whatever waits for one; False when nothing does."""
        issue = self.test.workflow()["issue"]
        if issue is None or issue["kind"] == "transient":
            return False
        self.outside.forgive()
        if issue["kind"] == "approval" and agrees:
            self.outside.agree(issue["run"])
            self.test.approve()
        elif issue["kind"] == "approval":
            self.may_be_paused = True
            self.test.reject()
        elif issue["kind"] == "reconciliation":
            self._settle()
        else:
            self.test.resume()
            self.may_be_paused = False
        return True

    def _settle(self) -> None:
        self.test.advance("1h")  # reconcile finds out by itself
        issue = self.test.workflow()["issue"]
        if issue is not None and issue["kind"] == "reconciliation":
            reserved = [event["message_id"] for event in self.test.events("topic-0") if event["status"] == "reserved"]
            self.test.settle("happened" if self.outside.has(reserved) else "did_not_happen")

    # -- looking -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Everything agrees, or has not been doubtful for long."""
        assert not self.broken, self.broken[0]
        looked = {what.partition(".")[0]: at for what, at in self.outside.last_call.items() if "prepare" in what}

        def doubts(tx: Any) -> list[str]:
            eye = Named(tx._session._connection)
            return [
                *check_flow(eye, NAME),
                *unlooked(eye, NAME, looked, self._since),
                *check_words(tx, eye, NAME, may_be_paused=self.may_be_paused),
            ]

        found = self.test._runner.run(self.test._scheduler.read(doubts))
        self._doubts.hold(iter(found), self._now())
