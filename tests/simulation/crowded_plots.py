"""Workflows with many events: orders that wait for their payment, and consumers that feed each other."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from tests.simulation.plots import Plot
from wakeful import Prepared, Workflow

MOST_ROUNDS = 130  # of consumers while the producer is due: they yield after 100
CALM_BALL, BALL = 2, (2, 2, 2, 210)  # how often consumers feed each other


class Shop(Plot):
    """Only what is paid is shipped, and a hundred unpaid orders may be older."""

    name = "shop"
    burst = (1, 3, 120)

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self.paid: set[str] = set()  # acknowledged
        self._asks_for_them = self.rng.random() < 0.5

    def consume(self, workflow: Workflow) -> None:
        super().consume(workflow)
        work: Any = workflow.handlers["work"]
        work.subscribes = ("mail", "paid")

    async def choose(self, ctx: Any) -> Prepared:
        paid = {one.message_id: one.id for one in await every(ctx, "paid")}
        if self._asks_for_them:
            orders = list(await ctx.peek("mail", limit=5, where={"message_id": sorted(paid)})) if paid else []
        else:
            orders = [one for one in await every(ctx, "mail") if one.message_id in paid][:5]
        reserve = {"mail": [one.id for one in orders], "paid": [paid[one.message_id] for one in orders]}
        return Prepared(reserve, {"names": [one.message_id for one in orders]})

    def is_left(self, name: str) -> bool:
        return name not in self.paid


async def every(ctx: Any, topic: str) -> list[Any]:
    """All pending events of a topic, read on as authors are told to."""
    page = await ctx.peek(topic)
    found = list(page)
    while page.more:
        page = await ctx.peek(topic, after=found[-1])
        found += page
    return found


class Rally(Plot):
    """Two consumers pass a ball to each other, beside a producer that is due meanwhile."""

    name = "rally"
    poll_every = "10m"
    is_due: Callable[[], bool] = staticmethod(lambda: False)  # whether the producer is, and may start

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._rounds = 0

    async def find(self, ctx: Any, number: int) -> None:
        self._rounds = 0
        if number % 10 == 0:
            await ctx.publish("mail", message_id=f"found-{number}", payload=CALM_BALL)

    def consume(self, workflow: Workflow) -> None:
        super().consume(workflow)
        self._pass_on(workflow, "serve", "done", "back")
        self._pass_on(workflow, "back", "back", "done")

    def _pass_on(self, workflow: Workflow, name: str, source: str, target: str) -> None:
        consumer = workflow.consumer(name, subscribes=[source], publishes=[target], timeout=self.timeout)

        @consumer.prepare
        async def prepare(ctx: Any, state: Any) -> Prepared:
            with self.outside.call(f"{name}.prepare"):
                self._count()
                await asyncio.sleep(10)
                balls = await ctx.peek(source, limit=10)
                return Prepared({source: [one.id for one in balls]}, [[one.message_id, one.payload] for one in balls])

        @consumer.next
        async def next_(ctx: Any, prepared: Prepared, result: Any) -> Any:
            with self.outside.call(f"{name}.next"):
                for message, left in prepared.data:
                    first, _, number = message.partition("#")
                    most = CALM_BALL if self.calm else left or self.rng.choice(BALL)
                    if int(number or 0) < most:
                        await ctx.publish(target, message_id=f"{first}#{int(number or 0) + 1}", payload=most)
                return {}

    def begin_anew(self) -> None:
        self._rounds = 0

    def _count(self) -> None:
        self._rounds = self._rounds + 1 if self.is_due() else 0
        if self._rounds > MOST_ROUNDS:
            self.outside.report(f"K13: {self.name}.poll is due for {self._rounds} rounds of consumers")
            self._rounds = 0


CROWDED: tuple[type[Plot], ...] = (Shop, Rally)
