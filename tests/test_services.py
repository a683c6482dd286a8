"""Background services: one loop with an interval, errors that are logged, and an end; driven here in virtual time."""

from __future__ import annotations

import asyncio
import logging
import math

import pytest

from wakeful import services
from wakeful.errors import StoreError
from wakeful.services import Service
from wakeful.testing import VirtualClock, run


class Noting(Service):
    """Notes when its steps are taken; fails with what it is given."""

    def __init__(self, clock, every=10.0, **options):
        super().__init__("the noting", every, **options)
        self._clock = clock
        self.began = clock.now()
        self.steps, self.errors, self.pauses = [], [], []

    async def run_once(self):
        self.steps.append((self._clock.now() - self.began) // 1000)
        if self.errors:
            raise self.errors.pop(0)
        return self.pauses.pop(0) if self.pauses else None


def lived(act, **options):
    """What a service did that `act` drives, and that is ended then."""
    clock = VirtualClock()

    async def main():
        service = Noting(clock, **options)
        service.begin()
        await act(service, clock)
        await service.end()
        taken = list(service.steps)
        await clock.sleep("1h")
        assert service.steps == taken, "after its end nothing is done"
        return service

    return run(main(), clock)


@pytest.mark.parametrize(("options", "steps"), [({}, [0, 10, 20]), ({"first": 4.0}, [4, 14, 24])])
def test_a_service_takes_a_step_at_every_interval_until_it_is_ended(options, steps):
    assert lived(lambda _, clock: clock.sleep("25s"), **options).steps == steps


def test_a_step_can_say_when_the_next_one_comes():
    async def act(service, clock):
        service.pauses = [3.0, 1.0]
        await clock.sleep("15s")

    assert lived(act).steps == [0, 3, 4, 14]


def test_a_service_that_is_woken_takes_its_step_at_once_and_one_without_an_interval_only_then():
    async def act(service, clock):
        await clock.sleep("5s")
        service.wake()
        await clock.sleep("5s")

    assert lived(act, every=math.inf).steps == [0, 5]


def test_what_happens_during_a_step_is_not_missed():
    class Busy(Noting):
        async def run_once(self):
            await super().run_once()
            if len(self.steps) == 1:
                self.wake()

    async def main():
        service = Busy(clock)
        service.begin()
        await clock.sleep("1s")
        await service.end()
        return service.steps

    clock = VirtualClock()
    assert run(main(), clock) == [0, 0]


def test_a_step_that_fails_is_tried_again_and_the_same_error_is_logged_once(caplog):
    caplog.set_level(logging.WARNING, "wakeful.services")

    async def act(service, clock):
        away = StoreError("The store is away.")
        service.errors = [away, away, ValueError("a mistake"), ValueError("a mistake")]
        await clock.sleep("1s")
        assert service.trouble == "The store is away."
        await clock.sleep("13s")
        assert service.trouble is None

    assert lived(act, retry=2.0).steps == [0, 2, 4, 6, 8]
    said = [(record.getMessage(), record.exc_info is not None) for record in caplog.records]
    assert said == [
        ("the noting failed and is tried again: The store is away.", False),
        ("the noting failed and is tried again: a mistake", True),
    ]


def test_services_that_run_are_listed_with_what_is_wrong():
    async def act(service, clock):
        service.errors = [StoreError("The store is away.")]
        await clock.sleep("1s")
        assert ("the noting", 10.0, "The store is away.") in services.running()

    lived(act)
    assert [one for one in services.running() if one.name == "the noting"] == []


def test_services_of_one_name_are_listed_whichever_of_them_is_in_trouble():
    async def act(service, clock):
        twin = Noting(clock)
        twin.begin()
        service.errors = [StoreError("The store is away.")]
        await clock.sleep("1s")
        listed = [one.trouble for one in services.running() if one.name == "the noting"]
        await twin.end()
        assert listed == [None, "The store is away."]

    lived(act)


def test_a_step_that_is_under_way_at_the_end_is_cancelled():
    cut_off = []

    async def step():
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cut_off.append(True)
            raise

    async def main():
        service = Service("waiting", 1.0, step=step)
        service.begin()
        await clock.sleep("1s")
        await service.end()

    clock = VirtualClock()
    run(main(), clock)
    assert cut_off == [True]
