"""Messages that were given up are not called well, also once others arrive again."""

from __future__ import annotations

import pytest

from tests.delivery.targets import Target, one, raising, refusing, sending_to
from tests.kernel.scene import virtual
from wakeful import Every
from wakeful.domains.delivery.connector import Permanent, Temporary, Unclear
from wakeful.domains.delivery.outbox import cancel, requeue_all
from wakeful.domains.delivery.tables import Outbox
from wakeful.domains.delivery.views import delivery_number
from wakeful.kernel.loop.config import Tuning


@pytest.mark.promise("X26")
@virtual
async def test_messages_that_failed_for_good_are_not_well_until_they_are_sent_again(scene):
    scene.tuning = Tuning()
    target = Target(scene)
    target.act = raising(Permanent("gone"))
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        for number in range(4):
            await scheduler.deliver(f"text {number}", to="phone")
        await scene.sleep("1m")
        assert (await scheduler.get_verdict()).state == "needs_you"
        target.act = None
        await scheduler.deliver("one that arrives", to="phone")
        await scene.sleep("1m")
        assert await scheduler.list_alerts() == [], "the connector works again"
        assert await scheduler.get_verdict() == (
            "failing",
            "Failing: 4 messages were not delivered (wakeful delivery list --failed).",
        )
        await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed"))
        await scene.sleep("1m")
        assert (await scheduler.get_verdict()).well


@pytest.mark.promise("X26")
@virtual
async def test_what_failed_and_a_person_gives_up_is_no_longer_called_undelivered(scene):
    scene.tuning = Tuning()
    target = Target(scene)
    target.act = raising(Permanent("too long"))
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        number = await scheduler.deliver("no target takes this", to="phone")
        await scene.sleep("1m")
        target.act = None
        await scheduler.deliver("one that arrives", to="phone")
        await scene.sleep("1m")
        assert (await scheduler.get_verdict()).state == "failing"
        await scheduler.transact(lambda tx, _: cancel(tx, delivery_number(number)))
        assert (await one(scheduler, number))["status"] == "expired"
        assert (await scheduler.get_verdict()).well


@pytest.mark.promise("X26")
@virtual
async def test_messages_that_expire_because_their_target_is_down_are_an_alert_until_one_arrives(scene):
    scene.tuning = Tuning()
    target = refusing(scene)
    async with sending_to(scene, target, {"max_age": "5m"}) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        numbers = [await scheduler.deliver(f"text {number}", to="phone") for number in range(3)]
        await scene.sleep("10m")
        assert [(await one(scheduler, number))["status"] for number in numbers] == ["expired"] * 3
        (alert,) = await scheduler.list_alerts()
        said = "A message to phone expired before it could be delivered: "
        assert (alert.kind, alert.message) == ("delivery_failed", f"{said}ConnectionError: refused")
        assert (await scheduler.get_verdict()).state == "needs_you"
        target.act = None
        await scheduler.deliver("one that arrives", to="phone")
        await scene.sleep("1m")
        assert await scheduler.list_alerts() == []
        assert (await scheduler.get_verdict()).well


@pytest.mark.promise("A8")
@virtual
async def test_what_may_have_arrived_and_waits_to_be_sent_again_can_be_cancelled(scene):
    target = Target(scene)
    target.act = raising(Unclear("no answer"))
    async with sending_to(scene, target) as scheduler:
        number = await scheduler.deliver("hello", to="phone")
        await scene.sleep(1)
        assert (await one(scheduler, number))["status"] == "unknown"
        await scheduler.transact(lambda tx, _: cancel(tx, delivery_number(number)))
        await scene.sleep("1h")
        assert (await one(scheduler, number))["status"] == "expired"
        assert target.texts == ["hello"]


@pytest.mark.promise("X26")
@virtual
async def test_a_message_that_its_target_puts_off_for_hours_is_not_called_well(scene):
    scene.tuning = Tuning()
    target = Target(scene)
    target.act = raising(Temporary("busy", retry_after=7_200))
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.deliver("text", to="phone")
        await scene.sleep("14m")
        assert (await scheduler.get_verdict()).well
        target.act = None
        await scene.sleep("76m")
        assert await scheduler.get_verdict() == (
            "behind",
            "Behind: 1 message waits to be sent (wakeful delivery list), 1h 30m for the oldest.",
        )
        await scene.sleep("31m")
        assert (await scheduler.get_verdict()).well


@pytest.mark.promise("X26")
@virtual
async def test_a_test_message_that_fails_says_so_once_and_is_no_message_that_was_lost(scene):
    scene.tuning = Tuning()
    async with sending_to(scene, refusing(scene)) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        number = await scheduler.connectors.test("phone")
        assert (await scheduler.read(lambda tx: tx.of(Outbox).get(number))).status == "failed"
        assert (await scheduler.get_verdict()).well
