"""What a target that is down does to its queue: order, rate, and what fails meanwhile."""

from __future__ import annotations

import pytest

from tests.delivery.targets import Target, raising, refusing, sending_to, stored
from tests.kernel.scene import virtual
from wakeful.domains.delivery.outbox import requeue_all


@pytest.mark.promise("A8")
@virtual
async def test_messages_to_one_target_keep_their_order_and_a_dead_target_delays_its_own_alone(scene):
    dead, fine = Target(scene), Target(scene)
    dead.act = raising(ConnectionError("refused"))
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("dead", dead)
        scheduler.connectors.register("fine", fine)
        await scheduler.start()
        fine.mark()
        for number in range(5):
            await scheduler.deliver(f"dead {number}", to="dead")
            await scheduler.deliver(f"fine {number}", to="fine")
        await scene.sleep(100)
        assert fine.times == [0] * 5
        assert fine.texts == [f"fine {number}" for number in range(5)]
        assert set(dead.texts) == {"dead 0"}  # the others wait for it
        dead.act = None
        dead.calls.clear()
        await scene.sleep("1h")
        assert dead.texts == [f"dead {number}" for number in range(5)]
        await scheduler.stop()


@pytest.mark.promise("A8")
@virtual
async def test_a_thousand_messages_queued_for_a_target_that_is_down_for_an_hour_arrive_in_order_within_its_rate(scene):
    target = refusing(scene)
    async with scene.scheduler() as scheduler:
        rules = {"rate": "20/s", "attempts": 12}
        scheduler.connectors.register("phone", target, rules=rules)
        await scheduler.start()
        for number in range(1000):
            await scheduler.deliver(f"m{number}", to="phone")
        await scene.sleep("1h")
        target.act = None
        target.mark()
        await scene.sleep("1h")
        assert target.texts == [f"m{number}" for number in range(1000)]
        assert max(sum(1 for at in target.times if begin <= at < begin + 1) for begin in set(target.times)) <= 20
        assert target.times[-1] - target.times[0] < 55
        await scheduler.stop()


@virtual
async def test_the_rate_holds_over_every_span_and_retries_count(scene):
    target = Target(scene)
    async with sending_to(scene, target, {"rate": "3/m"}) as scheduler:
        target.mark()
        for number in range(7):
            await scheduler.deliver(f"m{number}", to="phone")
        await scene.sleep("10m")
        assert target.times == [0, 0, 0, 60, 60, 60, 120]


@pytest.mark.promise("A8")
@virtual
async def test_with_five_attempts_an_hour_fails_the_first_few_messages_which_are_sent_when_a_person_asks(scene):
    target = refusing(scene)
    async with sending_to(scene, target) as scheduler:
        target.mark()
        for number in range(20):
            await scheduler.deliver(f"m{number}", to="phone")
        await scene.sleep("1h")
        tries = [target.texts.count(f"m{number}") for number in range(20)]
        assert tries == [5, 5, 5, 5, 4, *[0] * 15]  # each waits for the one before it
        assert target.times[5 * 3] == 3 * 750
        target.act = None
        target.mark()
        await scene.sleep("11m")
        assert target.texts == [f"m{number}" for number in range(4, 20)]
        assert [item["text"] for item in await stored(scheduler, status="failed")] == ["m0", "m1", "m2", "m3"]
        assert [alert.kind for alert in await scheduler.list_alerts()] == []  # the target takes messages again
        target.mark()
        assert await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed")) == 4
        await scene.sleep(1)
        assert target.texts == ["m0", "m1", "m2", "m3"]
