"""A digest has every message of quiet hours, whole; what is stored of each says what became of its text."""

from __future__ import annotations

import json

import pytest

from tests.delivery.targets import NIGHT, Target, refusing, sending_to, stored
from tests.kernel.scene import at, virtual
from wakeful.domains.delivery import Post, enqueue
from wakeful.domains.delivery.chat import pairing
from wakeful.domains.delivery.outbox import cancel, hold_pending, release_pending
from wakeful.domains.delivery.sending import take
from wakeful.domains.delivery.tables import ConnectorRow, Outbox
from wakeful.domains.delivery.views import delivery_number


def tale(number, size):
    """A text that is found again only where all of it arrived."""
    return f"<{number}" + "." * (size - len(f"<{number}") - len(f"{number}>")) + f"{number}>"


@pytest.mark.promise("X19", "A8")
@pytest.mark.parametrize(("count", "size"), [(30, 940), (3, 2_500), (2, 60_000), (1_100, 40)])
@virtual
async def test_every_message_of_quiet_hours_arrives_whole_in_as_many_parts_as_it_takes(scene, count, size):
    target = Target(scene)
    texts = [tale(number, size) for number in range(count)]
    async with sending_to(scene, target, NIGHT) as scheduler:
        await scene.until(at(hours=23))
        await scheduler.transact(lambda tx, context: [enqueue(tx, context, Post(text, "phone")) for text in texts])
        await scene.until(at(days=1, hours=8))
        arrived = "\n".join(target.texts)
        assert [text for text in texts if text not in arrived] == []
        positions = [arrived.index(text) for text in texts]
        assert positions == sorted(positions)
        found = await stored(scheduler)
        digests = {item["id"]: item for item in found if item["kind"] == "digest"}
        assert {item["status"] for item in found} == {"sent"}
        assert all(item["text"] in digests[item["digest"]]["text"] for item in found if item["kind"] == "output")


@pytest.mark.promise("X19", "A8")
@virtual
async def test_only_what_is_in_the_part_that_arrived_is_sent(scene):
    target = Target(scene)
    async with sending_to(scene, target, {**NIGHT, "attempts": 1}) as scheduler:
        await scene.until(at(hours=23))
        for number in range(30):
            await scheduler.deliver(tale(number, 940), to="phone")

        async def takes_one(_):
            if len(target.calls) > 1:
                raise ConnectionError("refused")

        target.act = takes_one
        await scene.until(at(days=1, hours=8))
        messages = [item for item in await stored(scheduler) if item["kind"] == "output"]
        assert {item["status"] for item in messages} == {"sent", "failed"}
        for item in messages:
            assert (item["text"] in target.texts[0]) is (item["status"] == "sent")


@pytest.mark.promise("X19", "A8")
@virtual
async def test_a_digest_that_waits_when_quiet_hours_begin_again_is_sent_at_their_end_with_all_that_is_in_it(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {**NIGHT, "attempts": 100}) as scheduler:
        await scene.until(at(hours=23))
        await scheduler.deliver("first night", to="phone")
        await scene.until(at(days=1, hours=23))
        await scheduler.deliver("second night", to="phone")
        await scene.until(at(days=2, hours=3))
        target.act = None
        target.mark()
        await scene.until(at(days=2, hours=8))
        assert [("first night" in text, "second night" in text) for text in target.texts] == [
            (True, False),
            (False, True),
        ]
        assert [item["status"] for item in await stored(scheduler)] == ["sent"] * 4


@pytest.mark.promise("X19")
@virtual
async def test_what_is_in_a_digest_that_a_person_cancels_is_not_left_waiting(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {**NIGHT, "attempts": 100}) as scheduler:
        await scene.until(at(hours=23))
        await scheduler.deliver("one", to="phone")
        await scene.until(at(days=1, hours=8))
        digest = delivery_number((await stored(scheduler))[-1]["id"])
        assert (await scheduler.transact(lambda tx, _: cancel(tx, digest))).status == "expired"
        found = [(item["status"], item["held_for"]) for item in await stored(scheduler)]
        assert found == [("expired", None)] * 2


@pytest.mark.promise("X17", "X19")
@virtual
async def test_a_digest_that_a_restore_holds_takes_its_messages_along(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {**NIGHT, "attempts": 100}) as scheduler:
        await scene.until(at(hours=23))
        await scheduler.deliver("one", to="phone")
        await scene.until(at(days=1, hours=8))
        await scheduler.transact(lambda tx, _: hold_pending(tx))
        await scene.until(at(days=2, hours=8))
        target.act = None
        await scheduler.transact(lambda tx, _: release_pending(tx))
        await scene.sleep("1m")
        assert [item["status"] for item in await stored(scheduler)] == ["sent", "sent"]


@pytest.mark.promise("X19", "A10")
@virtual
async def test_a_digest_for_a_person_who_is_unpaired_ends_with_all_that_is_in_it(scene):
    rules = json.dumps({"attempts": 5, **NIGHT})
    async with scene.scheduler() as scheduler:
        await scene.until(at(hours=23))

        def prepare(tx, context):
            tx.of(Outbox).put_connector(ConnectorRow("bot", "telegram", 1, 0, rules, "file", None))
            pairing.allow(tx, context, "bot", ["42"])
            enqueue(tx, context, Post("hello", "bot"))

        await scheduler.transact(prepare)
        await scene.until(at(days=1, hours=8))
        digest = (await scheduler.transact(lambda tx, context: take(tx, context, "bot"))).row
        assert digest.kind == "digest"
        await scheduler.transact(lambda tx, _: tx.of(Outbox).save(digest._replace(status="pending")))
        await scheduler.transact(lambda tx, _: pairing.forget(tx, "bot", "42"))
        found = [(item["status"], item["held_for"]) for item in await stored(scheduler)]
        assert found == [("expired", None)] * 2
