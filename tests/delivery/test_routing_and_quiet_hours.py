"""`last` finds people, messages without a place wait for one, quiet hours hold, and held messages become a digest."""

from __future__ import annotations

import pytest

from tests.delivery.targets import NIGHT, Target, one, refusing, sending_to, stored
from tests.kernel.scene import at, virtual
from wakeful import Manual
from wakeful.domains.delivery import Post, enqueue
from wakeful.domains.delivery.outbox import hold_pending, release_pending, requeue
from wakeful.domains.delivery.views import delivery_number


@pytest.mark.promise("A10")
@virtual
async def test_last_leads_to_the_last_interaction_and_survives_a_restart(scene):
    a, b = Target(scene), Target(scene)

    def register(scheduler):
        scheduler.connectors.register("a", a)
        scheduler.connectors.register("b", b)

    async with scene.scheduler() as scheduler:
        register(scheduler)
        await scheduler.start()
        await scheduler.deliver("first registered")
        await scheduler.connectors.touch("b", "bob")
        await scheduler.deliver("where bob wrote")
        await scheduler.connectors.touch("a", "ann", agent="bot")
        await scheduler.deliver("the agent's", agent="bot")
        await scheduler.connectors.touch("b", "bob")
        await scheduler.stop()
    async with scene.scheduler() as scheduler:
        register(scheduler)
        await scheduler.start()
        await scheduler.deliver("the agent's again", agent="bot")
        await scheduler.deliver("anyone's")
        await scene.sleep(1)
        assert a.texts == ["first registered", "the agent's", "the agent's again"]
        assert b.texts == ["where bob wrote", "anyone's"]
        assert [item["to"] for item in await stored(scheduler)] == [None, "bob", "ann", "ann", "bob"]
        await scheduler.stop()


@pytest.mark.promise("A10")
@virtual
async def test_with_nowhere_to_go_a_message_waits_with_the_reason_until_there_is_a_connector(scene):
    target = Target(scene)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        number = await scheduler.deliver("hello")
        await scheduler.add_job("a", Manual(), kind="job", deliver="later")
        await scheduler.run_job("a")
        await scene.sleep("1h")
        found = await one(scheduler, number)
        assert (found["status"], found["attempts"], found["connector"]) == ("pending", 0, None)
        assert "no connector is registered" in found["last_error"]
        second = (await stored(scheduler))[1]
        assert (second["connector"], second["attempts"]) == ("later", 0)
        assert second["last_error"] == "no connector named later is registered"
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["no_connector"] * 2
        scheduler.connectors.register("later", target)
        await scene.sleep("5s")
        assert len(target.calls) == 2
        assert [item["status"] for item in await stored(scheduler)] == ["sent", "sent"]
        assert await scheduler.list_alerts() == []
        await scheduler.stop()


@virtual
async def test_a_message_of_a_single_run_is_no_incident_until_a_server_misses_its_connector(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), kind="job", deliver="phone")
        await scheduler.run_here("a")
        assert [item["status"] for item in await stored(scheduler)] == ["pending"]
        assert await scheduler.list_alerts() == []
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("another", Target(scene))
        await scheduler.start()
        (alert,) = await scheduler.list_alerts()
        assert (alert.kind, alert.message) == ("no_connector", "Messages wait: no connector named phone is registered.")
        target = Target(scene)
        scheduler.connectors.register("phone", target)
        await scene.sleep("5s")
        assert (len(target.calls), await scheduler.list_alerts()) == (1, [])
        await scheduler.stop()


@virtual
async def test_a_connector_that_is_unregistered_keeps_its_queue_until_it_is_back(scene):
    target = Target(scene)
    async with scene.scheduler() as scheduler:
        unregister = scheduler.connectors.register("phone", target)
        await scheduler.start()
        unregister()
        await scene.sleep(1)
        await scheduler.add_job("a", Manual(), kind="job", deliver="phone")
        await scheduler.run_job("a")
        await scene.sleep("1h")
        assert target.calls == []
        assert [item["status"] for item in await stored(scheduler)] == ["pending"]
        scheduler.connectors.register("phone", target)
        await scene.sleep("2m")
        assert len(target.calls) == 1
        await scheduler.stop()


@pytest.mark.promise("X19")
@virtual
async def test_messages_in_quiet_hours_become_one_digest_at_their_end_and_urgent_ones_pass(scene):
    target = Target(scene)
    async with sending_to(scene, target, NIGHT) as scheduler:
        await scene.until(at(hours=22))
        held = [await scheduler.deliver("one", to="phone", title="First")]
        await scene.sleep("1h")
        held.append(await scheduler.deliver("two", to="phone"))
        await scheduler.deliver("fire", to="phone", urgent=True)
        await scene.sleep(1)
        assert target.texts == ["fire"]
        assert [(await one(scheduler, number))["status"] for number in held] == ["held", "held"]
        kept, why = await scheduler.transact(lambda tx, _: requeue(tx, delivery_number(held[0])))
        assert (kept.status, why) == ("held", "held until quiet hours end")
        target.mark()
        await scene.until(at(days=1, hours=7, seconds=1))
        (call,) = target.calls
        assert call[2] == "22:00 First\none\n\n23:00\ntwo"
        assert call[0] == pytest.approx(8 * 3600 - 1)
        found = (await stored(scheduler))[-1]
        assert (found["kind"], found["status"]) == ("digest", "sent")
        members = [await one(scheduler, number) for number in held]
        assert [(item["status"], item["digest"]) for item in members] == [("sent", found["id"])] * 2
        await scheduler.deliver("day", to="phone")
        await scene.sleep(1)
        assert target.texts[1:] == ["day"]


@pytest.mark.promise("X19")
@virtual
async def test_a_retry_that_falls_into_quiet_hours_waits_for_their_end(scene):
    target = refusing(scene)
    async with sending_to(scene, target, NIGHT) as scheduler:
        await scene.until(at(hours=21, minutes=59, seconds=50))
        number = await scheduler.deliver("late", to="phone")
        await scene.sleep("1h")
        assert len(target.calls) == 2  # at once and after five seconds
        assert (await one(scheduler, number))["status"] == "held"
        target.act = None
        await scene.until(at(days=1, hours=8))
        assert "late" in target.texts[-1]
        assert (await one(scheduler, number))["status"] == "sent"


@pytest.mark.promise("X19")
@virtual
async def test_without_a_digest_held_messages_follow_one_by_one(scene):
    target = Target(scene)
    rules = {"quiet_hours": {**NIGHT["quiet_hours"], "digest": False}}
    async with sending_to(scene, target, rules) as scheduler:
        await scene.until(at(hours=23))
        for text in ("one", "two"):
            await scheduler.deliver(text, to="phone")
        await scene.until(at(days=1, hours=8))
        assert target.texts == ["one", "two"]


@pytest.mark.promise("X17")
@virtual
async def test_what_is_held_for_a_person_is_not_sent_until_they_release_it(scene):
    target = refusing(scene)
    async with sending_to(scene, target) as scheduler:
        await scheduler.deliver("one", to="phone")
        await scene.sleep(1)
        assert await scheduler.transact(lambda tx, _: hold_pending(tx)) == 1
        target.act = None
        target.mark()
        await scene.sleep("1d")
        assert target.calls == []
        assert [item["status"] for item in await stored(scheduler)] == ["held"]
        await scheduler.transact(lambda tx, _: release_pending(tx))
        await scene.sleep(1)
        assert target.texts == ["one"]


@virtual
async def test_a_message_with_a_known_key_is_stored_once_and_one_of_a_failed_transaction_never(scene):
    target = Target(scene)
    async with sending_to(scene, target) as scheduler:
        post = Post("fire", "phone", kind="alert", urgent=True, dedupe="alert:1:opened")
        first = await scheduler.transact(lambda tx, context: enqueue(tx, context, post))
        assert await scheduler.transact(lambda tx, context: enqueue(tx, context, post)) == first

        def fails(tx, context):
            enqueue(tx, context, post._replace(dedupe=None))
            raise RuntimeError("undone")

        with pytest.raises(RuntimeError, match="undone"):
            await scheduler.transact(fails)
        await scene.sleep("1h")
        assert target.texts == ["fire"]
        assert await scheduler.transact(lambda tx, context: enqueue(tx, context, post._replace(to="none"))) is None
