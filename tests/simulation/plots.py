"""Workflows whose authors, code or surroundings do what is hard to bear, each in one way.

All have a producer `poll` and a consumer `work` of the topic `mail`, which adds each message to a ledger outside.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from tests.simulation.outside import Outside
from tests.simulation.threads import Work
from wakeful import Applied, ApprovalNeeded, Interval, NotApplied, Prepared, TransientError, Unknown, Workflow

if TYPE_CHECKING:
    from wakeful.domains.workflows import Consumer


class Plot:
    """A workflow, as it is deployed now, and what it does outside."""

    name = "plain"
    burst: tuple[int, ...] = (1, 1, 3)  # how many messages a person publishes at once
    poll_every = "10m"
    timeout = "1m"

    def __init__(self, seed: int, outside: Outside, die: Callable[[str], None]) -> None:
        self.rng = random.Random(f"{self.name} {seed}")
        self.outside = outside
        self.calm = False
        self.version = 1
        self.shape = "whole"  # or without the consumer: headless, or not deployed: gone
        self.published: set[str] = set()  # acknowledged
        self.lives = 0  # how often a process began with it
        self._die = die

    def workflow(self) -> Workflow:
        """Its code now."""
        workflow = Workflow(self.name)
        workflow.version = f"{self.shape}-{self.version}"

        @workflow.producer(Interval(self.poll_every), publishes=["mail"], timeout="2m")
        async def poll(ctx: Any, state: Any) -> Any:
            with self.outside.call("poll"):
                await self.trouble("poll")
                if self.calm:
                    return None
                await self.find(ctx, state.get("n", 0))
                return {"n": state.get("n", 0) + 1}

        if self.shape == "whole":
            self.consume(workflow)
        return workflow

    async def find(self, ctx: Any, number: int) -> None:
        await ctx.publish("mail", message_id=f"found-{number}")

    def consume(self, workflow: Workflow) -> None:
        work = workflow.consumer("work", subscribes=["mail"], publishes=["done"], timeout=self.timeout)

        @work.prepare
        async def prepare(ctx: Any, state: Any) -> Prepared:
            with self.outside.call("work.prepare"):
                await self.trouble("prepare")
                return await self.choose(ctx)

        @work.next
        async def next_(ctx: Any, prepared: Prepared, result: Any) -> Any:
            with self.outside.call("work.next"):
                await self.trouble("next")
                for name in prepared.data["names"]:
                    await ctx.publish("done", message_id=name)
                return {"last": result.status}

        self.mutates(work)

    def mutates(self, work: Consumer) -> None:
        @work.mutate
        async def mutate(ctx: Any, prepared: Prepared) -> int:
            with self.outside.call("work.mutate"):
                await self.trouble("mutate")
                await self.change(ctx, prepared.data)
                return len(prepared.data["names"])

        @work.reconcile
        async def reconcile(ctx: Any, prepared: Prepared) -> Any:
            with self.outside.call("work.reconcile"):
                await self.trouble("reconcile")
                if not self.calm and self.rng.random() < 0.1:
                    return Unknown()
                return Applied(1) if self.outside.has(prepared.data["names"]) else NotApplied()

    async def choose(self, ctx: Any) -> Prepared:
        mails = await ctx.peek("mail", limit=3)
        return Prepared({"mail": [mail.id for mail in mails]}, {"names": [mail.message_id for mail in mails]})

    async def change(self, ctx: Any, data: Any) -> None:
        self.outside.change(data["names"])

    async def trouble(self, phase: str) -> None:
        """Nothing, most of the time."""
        await asyncio.sleep(self.rng.choice((0, 0, 0.05, 1)))
        if not self.calm and self.rng.random() < 0.06:
            raise TransientError("busy")

    def begin_anew(self) -> None:
        """Another version is deployed."""

    def is_left(self, name: str) -> bool:
        """Whether a message rightly waits in the end."""
        return False


class Paying(Plot):
    """Every message needs an approval, asked for in prepare or in mutate; then it may fail, and choose another one.

    Some need two in prepare: that it begins at all, and for the message.
    """

    name = "paying"
    poll_every = "6h"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._asks_in = self.rng.choice(("prepare", "mutate", "twice"))
        self._takes = self.rng.choice((0, -1, -1))  # the oldest or the newest that it sees

    async def choose(self, ctx: Any) -> Prepared:
        if self._asks_in == "twice" and await ctx.peek("mail", limit=1):
            self._ask(ctx, {"names": "some"})
        mails = await ctx.peek("mail", limit=5)
        if not mails:
            return Prepared({}, {"names": []})
        mail = mails[self._takes]
        data = {"names": [mail.message_id]}
        if self._asks_in != "mutate":
            self._ask(ctx, data)
        return Prepared({"mail": [mail.id]}, data)

    async def change(self, ctx: Any, data: Any) -> None:
        if self._asks_in == "mutate":
            self._ask(ctx, data)
        self.outside.rely_on_approval(data)
        if not self.calm and self.rng.random() < 0.4:
            raise TransientError("the bank is busy")
        self.outside.change(data["names"])

    def _ask(self, ctx: Any, data: Any) -> None:
        if ctx.approved_by is None:
            self.outside.ask(ctx.run_id, data)
            raise ApprovalNeeded(f"Pay {data['names']}?")


class Threaded(Plot):
    """Its change is made in a thread, which nobody can stop: it ends after the time limit, or after a cancel."""

    name = "threaded"

    async def change(self, ctx: Any, data: Any) -> None:
        seconds = 0.5 if self.calm else self.rng.choice((0.5, 5, 50, 90, 400))
        fails = not self.calm and self.rng.random() < 0.15

        def deed() -> None:
            if fails:
                raise OSError("the cable is cut")
            self.outside.change(data["names"])

        await asyncio.to_thread(Work(seconds, deed, self.outside.thread("mutate")))


class Hasty(Plot):
    """It gives its call five seconds, and does not say that they were not enough."""

    name = "hasty"

    async def change(self, ctx: Any, data: Any) -> None:
        seconds = 1 if self.calm else self.rng.choice((1, 20))
        left = 5 if self.calm else self.rng.choice((0, 5, 5))  # 0: their time is over

        async def post() -> None:
            await asyncio.sleep(seconds)
            self.outside.change(data["names"])

        with contextlib.suppress(TimeoutError):  # as careless authors do
            await asyncio.wait_for(ctx.call(post), left)


class Refused(Plot):
    """For a spell every change fails before it is made, and reconcile says so."""

    name = "refused"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._spell = 0

    async def change(self, ctx: Any, data: Any) -> None:
        if not self.calm and not self._spell and self.rng.random() < 0.3:
            self._spell = self.rng.choice((1, 40, 40))
            self._error = self.rng.choice((ValueError("wrong"), ConnectionError("away"), PermissionError("no")))
        if not self.calm and self._spell:
            self._spell -= 1
            raise self._error
        self.outside.change(data["names"])


class Deadly(Plot):
    """For a spell one of its functions ends the process it runs in."""

    name = "deadly"

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._phases: tuple[str, ...] = ()
        self._spell = 0

    async def trouble(self, phase: str) -> None:
        if self.calm:
            return
        if not self._spell and self.rng.random() < 0.15:
            self._phases = self.rng.choice((("prepare",), ("mutate", "reconcile"), ("next",), ("poll",)))
            self._spell = 12
        if self._spell and phase in self._phases:
            self._spell -= 1
            self.outside.kill(phase if phase == "poll" else f"work.{phase}")
            self._die("by a workflow")
            await asyncio.sleep(10**9)
        await super().trouble(phase)


class Picky(Plot):
    """What it takes depends on its version and its process: it looks again when these are others."""

    name = "picky"
    poll_every = "7d"

    async def choose(self, ctx: Any) -> Prepared:
        mails = [mail for mail in await ctx.peek("mail", limit=100) if self._takes(mail.message_id)][:5]
        return Prepared({"mail": [mail.id for mail in mails]}, {"names": [mail.message_id for mail in mails]})

    def _takes(self, name: str) -> bool:
        return self.calm or (len(name) + sum(name.encode()) + self.version + self.lives) % 3 == 0


PLOTS: tuple[type[Plot], ...] = (Paying, Threaded, Hasty, Refused, Deadly, Picky)
