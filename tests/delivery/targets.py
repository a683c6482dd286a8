"""Targets for messages in virtual time, and how what is stored about them is read."""

from __future__ import annotations

import contextlib

from wakeful.domains.delivery.tables import DeliveryFilter
from wakeful.domains.delivery.views import get_delivery, list_connectors, list_deliveries

NIGHT = {"quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "UTC"}}


class Target:
    """Takes messages, or fails as configured; notes every call."""

    def __init__(self, scene):
        self._scene = scene
        self.calls = []  # (seconds since the first message was expected, id, text)
        self.act = None  # called with the message; what it raises is the answer
        self.since = scene.clock.now()

    async def __call__(self, message):
        self.calls.append(((self._scene.clock.now() - self.since) / 1000, message.id, message.text))
        if self.act is not None:
            await self.act(message)

    @property
    def times(self):
        return [at for at, _, _ in self.calls]

    @property
    def texts(self):
        return [text for _, _, text in self.calls]

    def mark(self):
        """Times count from here."""
        self.since = self._scene.clock.now()
        self.calls.clear()


def raising(error):
    async def act(_):
        raise error

    return act


def refusing(scene):
    """A target that takes no message."""
    target = Target(scene)
    target.act = raising(ConnectionError("refused"))
    return target


@contextlib.asynccontextmanager
async def sending_to(scene, target, rules=None):
    """A scheduler that has started, with `target` as its connector `phone`; it stops in the end."""
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("phone", target, rules=rules)
        await scheduler.start()
        yield scheduler
        await scheduler.stop()


async def stored(scheduler, **wanted):
    """All deliveries, the oldest first."""
    found = await scheduler.read(lambda tx: list_deliveries(tx, DeliveryFilter(**wanted, limit=10_000)))
    return found[::-1]


async def one(scheduler, number):
    from wakeful.domains.delivery.views import delivery_number

    return await scheduler.read(lambda tx: get_delivery(tx, delivery_number(number)))


async def known(scheduler):
    return await scheduler.read(list_connectors)
