"""What restarts, a person's word and a target that comes back do to the attempts of a message."""

from __future__ import annotations

import asyncio
import json
import random

import pytest

from tests.delivery.targets import NIGHT, Target, one, raising, refusing, sending_to, stored
from tests.kernel.scene import at, virtual
from wakeful import ids
from wakeful.domains.delivery import Post, enqueue
from wakeful.domains.delivery.chat import pairing
from wakeful.domains.delivery.connector import Arrived, Temporary
from wakeful.domains.delivery.outbox import requeue, requeue_all
from wakeful.domains.delivery.sending import begin, take
from wakeful.domains.delivery.tables import ConnectorRow, Outbox
from wakeful.domains.delivery.views import delivery_number

BOT = ConnectorRow("bot", "telegram", 1, 0, json.dumps({"attempts": 5}), "file", None)


@pytest.mark.promise("A8", "A9")
@virtual
async def test_restarts_use_up_no_attempt_and_leave_the_ladder_as_it_was(scene):
    target = refusing(scene)
    target.mark()
    for _ in range(12):
        async with sending_to(scene, target) as scheduler:
            if not target.calls:
                number = await scheduler.deliver("hello", to="phone")
            await scene.sleep(2)
            assert (await one(scheduler, number))["status"] == "pending"
    assert len([moment for moment in target.times if moment < 20]) > 6  # every start tries once
    target.mark()
    async with sending_to(scene, target) as scheduler:
        found = await one(scheduler, number)
        assert (found["status"], found["attempts"]) == ("pending", len(found["log"]))
        await scene.sleep("20m")
        assert (await one(scheduler, number))["status"] == "failed"
        assert len(target.times) == 4  # at the start, and the third to the fifth that count
        assert target.times[-1] > 600


@pytest.mark.promise("A8", "A9")
@virtual
async def test_a_restart_does_not_shorten_the_time_that_a_target_asked_for(scene):
    target = Target(scene)
    target.act = raising(Temporary("busy", retry_after=3600))
    async with sending_to(scene, target) as scheduler:
        target.mark()
        number = await scheduler.deliver("hello", to="phone")
        await scene.sleep(1)
    for _ in range(5):
        async with sending_to(scene, target) as scheduler:
            await scene.sleep(3)
            await scheduler.deliver("another", to="phone")
            await scene.sleep(1)
    assert target.times == [0]
    target.act = None
    async with sending_to(scene, target) as scheduler:
        await scene.sleep("1h")
        assert target.times[1] == pytest.approx(3600, abs=1)
        assert (await one(scheduler, number))["status"] == "sent"


@pytest.mark.promise("A8")
@virtual
async def test_processes_that_die_while_they_send_use_up_no_attempt_until_it_looks_like_their_cause(scene):
    target = Target(scene)
    async with sending_to(scene, target) as scheduler:
        await scheduler.stop()
        number = delivery_number(await scheduler.deliver("hello", to="phone"))

        def die(tx, context):
            row = tx.of(Outbox).connectors()[0]
            tx.now += 3_600_000
            begin(tx, context, "phone", ids.job_text(row.job_id))
            if tx.of(Outbox).get(number).status != "sending":
                tx.now += 3_600_000
                take(tx, context, "phone")
            return tx.of(Outbox).get(number).status

        found = [await scheduler.transact(die) for _ in range(30)]
        assert set(found[:12]) == {"sending"}
        assert found[-1] == "failed"


@pytest.mark.promise("A8")
@virtual
async def test_what_a_person_queues_again_is_sent_however_old_it_is(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {"max_age": "1m", "attempts": 2}) as scheduler:
        number = await scheduler.deliver("old", to="phone")
        await scene.sleep("2h")
        assert (await one(scheduler, number))["status"] == "failed"
        await scheduler.transact(lambda tx, _: requeue(tx, delivery_number(number)))
        await scene.sleep(2)
        assert (await one(scheduler, number))["status"] == "pending"
        await scene.sleep("2h")
        await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed"))
        target.act = None
        await scene.sleep(2)
        assert (await one(scheduler, number))["status"] == "sent"


@pytest.mark.promise("A8", "A10")
@virtual
async def test_nothing_is_queued_again_for_a_person_who_is_no_longer_paired(scene):
    async with scene.scheduler() as scheduler:

        def prepare(tx, context):
            tx.of(Outbox).put_connector(BOT)
            pairing.allow(tx, context, "bot", ["42", "43"])
            first = enqueue(tx, context, Post("hello", "bot"))
            for sender in ("42", "43"):
                tx.of(Outbox).give_up_for("bot", sender, "in this test")
            pairing.forget(tx, "bot", "42")
            return first

        number = await scheduler.transact(prepare)
        row, why = await scheduler.transact(lambda tx, _: requeue(tx, number))
        assert (row.status, why) == ("expired", "for 42, who is no longer paired with bot")
        assert await scheduler.transact(lambda tx, context: requeue_all(tx, context, "expired")) == 1
        assert [(item["to"], item["status"]) for item in await stored(scheduler)] == [
            ("42", "expired"),
            ("43", "pending"),
        ]


@pytest.mark.promise("A10")
@virtual
async def test_what_failed_while_a_person_was_unpaired_is_not_tried_again(scene):
    async with scene.scheduler() as scheduler:

        def work(tx, context):
            tx.of(Outbox).put_connector(BOT)
            pairing.allow(tx, context, "bot", ["42"])
            number = enqueue(tx, context, Post("hello", "bot"))
            row = take(tx, context, "bot").row
            pairing.forget(tx, "bot", "42")
            tx.of(Outbox).save(row._replace(status="pending", next_at=tx.now))
            return take(tx, context, "bot"), tx.of(Outbox).get(number)

        taken, row = await scheduler.transact(work)
        assert taken is None
        assert (row.status, row.last_error) == ("expired", "42 is no longer paired with bot")


@pytest.mark.promise("A10")
@virtual
async def test_a_message_that_waits_for_a_pairing_cannot_be_queued_again_and_fails_for_nobody(scene):
    async with scene.scheduler() as scheduler:

        def prepare(tx, context):
            tx.of(Outbox).put_connector(BOT)
            return enqueue(tx, context, Post("hello", "bot"))

        number = await scheduler.transact(prepare)
        row, why = await scheduler.transact(lambda tx, _: requeue(tx, number))
        assert (row.status, why) == ("held", "held until a person is paired with bot")
        assert await scheduler.transact(lambda tx, context: requeue_all(tx, context, "held")) == 0

        def unaddressed(tx, context):  # as one that failed before
            tx.of(Outbox).save(tx.of(Outbox).get(number)._replace(status="failed", held_for=None))
            requeue(tx, number)
            assert take(tx, context, "bot") is None
            held = tx.of(Outbox).get(number).held_for
            pairing.allow(tx, context, "bot", ["42"])
            return held, take(tx, context, "bot").row.recipient

        assert await scheduler.transact(unaddressed) == ("pairing", "42")


@pytest.mark.promise("X19")
@virtual
async def test_all_that_is_held_for_quiet_hours_stays_so_when_everything_is_queued_again(scene):
    target = Target(scene)
    async with sending_to(scene, target, NIGHT) as scheduler:
        await scene.until(at(hours=23))
        await scheduler.deliver("one", to="phone")
        assert await scheduler.transact(lambda tx, context: requeue_all(tx, context, "held")) == 0
        await scene.sleep("1h")
        assert [item["status"] for item in await stored(scheduler)] == ["held"]
        assert target.calls == []


@pytest.mark.promise("A8")
@virtual
async def test_a_target_with_short_outages_does_not_make_messages_wait_for_minutes(scene):
    target, chance, begin = Target(scene), random.Random(4), scene.clock.now()
    changes = [0.0]
    while changes[-1] < 400:
        changes.append(changes[-1] + chance.uniform(5, 25))

    async def flap(_):
        now = (scene.clock.now() - begin) / 1000
        if sum(moment <= now for moment in changes) % 2 == 0:
            raise ConnectionError("refused")

    async with sending_to(scene, target) as scheduler:
        target.mark()
        begin, target.act = scene.clock.now(), flap
        for number in range(75):
            await scheduler.deliver(str(number), to="phone")
            await scene.sleep(4)
        target.act = None
        await scene.sleep("20m")
        arrived = {int(text): moment for moment, _, text in target.calls}
        assert list(arrived) == sorted(arrived)
        assert max(moment - 4 * number for number, moment in arrived.items()) < 60


@pytest.mark.promise("A8")
@virtual
async def test_messages_that_join_the_queue_of_a_dead_target_cost_it_little_and_use_up_no_attempt(scene):
    target = refusing(scene)
    async with sending_to(scene, target) as scheduler:
        target.mark()
        for number in range(180):
            await scheduler.deliver(str(number), to="phone")
            await scene.sleep(4)
        first = [moment for moment, _, text in target.calls if text == "0"]
        assert {0, 5, 30, 150} <= set(first)  # its turns are where they were
        assert len(first) < 40
        assert [item["status"] for item in await stored(scheduler)] == ["pending"] * 180


@pytest.mark.promise("A8")
@virtual
async def test_a_test_that_arrives_sends_what_waits_for_its_turn(scene):
    target = refusing(scene)
    async with sending_to(scene, target) as scheduler:
        for number in range(3):
            await scheduler.deliver(str(number), to="phone")
        await scene.sleep("1m")
        target.act = None
        target.mark()
        await scheduler.connectors.test("phone", "does it work?")
        await scene.sleep(1)
        assert target.texts == ["does it work?", "0", "1", "2"]


@pytest.mark.promise("H2", "A8")
@virtual
async def test_a_server_that_starts_while_the_clock_is_behind_makes_no_id_a_second_time(scene):
    target = refusing(scene)
    async with sending_to(scene, target) as scheduler:
        scene.step(hours=-2)
        for number in range(20):
            await scheduler.deliver(f"message {number}", to="phone")
        target.act = None
        await scene.sleep("10s")  # one run made twenty attempts: the newest ids are theirs
    scene.step(minutes=-10)
    async with sending_to(scene, target) as scheduler:
        number = await scheduler.deliver("hello", to="phone")
        target.mark()
        await scene.sleep(1)
        assert (target.times, (await one(scheduler, number))["status"]) == ([0], "sent")


@pytest.mark.promise("A8", "H15")
@virtual
async def test_a_stop_waits_for_a_message_on_its_way_for_seconds_and_begins_no_other(scene):
    target = Target(scene)

    async def slow(_):
        await scene.sleep(2)

    target.act = slow
    async with sending_to(scene, target) as scheduler:
        numbers = [await scheduler.deliver(f"message {number}", to="phone") for number in range(20)]
        await scene.sleep(1)
        begun = scene.clock.now()
        await scheduler.stop()
        assert scene.clock.now() - begun < 2_000
        assert len(target.calls) == 1
        assert [(await one(scheduler, number))["status"] for number in numbers] == ["sent", *["pending"] * 19]


@pytest.mark.promise("A8", "H15")
@virtual
async def test_a_message_that_hangs_does_not_keep_a_stop_for_longer_than_seconds_and_is_sent_again(scene):
    target = Target(scene)

    async def hang(_):
        await asyncio.Event().wait()

    target.act = hang
    async with sending_to(scene, target) as scheduler:
        number = await scheduler.deliver("hello", to="phone")
        await scene.sleep(1)
        begun = scene.clock.now()
        await scheduler.stop(timeout=30)  # no SchedulerShutdownError: what hangs is no job of anybody
        assert scene.clock.now() - begun == pytest.approx(5_000, abs=1_000)
    target.act = None
    async with sending_to(scene, target) as scheduler:
        await scene.sleep("1m")
        found = await one(scheduler, number)
        assert (found["status"], len(target.calls)) == ("sent", 2)


class InParts:
    """A connector that sends each word by itself; the process ends before the word `last`."""

    type = "words"

    def __init__(self, address, taken, last=None):
        self.taken, self._last, self._arrived = taken, last, Arrived(address)

    async def send(self, message):
        words = message.text.split()
        for number, word in enumerate(words):
            if number < self._arrived.of(message, len(words)):
                continue
            if word == self._last:
                await asyncio.sleep(25)
            self.taken.append(word)
            self._arrived.note(message, number + 1, len(words))
            await asyncio.sleep(0.1)


@pytest.mark.promise("A8")
@pytest.mark.parametrize(
    ("address", "taken"),
    [("here", ["one", "two", "three", "four"]), ("elsewhere", ["one", "two", "one", "two", "three", "four"])],
)
@virtual
async def test_parts_that_have_arrived_are_not_sent_again_after_a_restart_unless_they_went_elsewhere(
    scene, address, taken
):
    found = []
    async with sending_to(scene, InParts("here", found, "three")) as scheduler:
        number = await scheduler.deliver("one two three four", to="phone")
        await scene.sleep(5)
        assert found == ["one", "two"]
        await scheduler.stop(wait_for_jobs=False, timeout=0)
    async with sending_to(scene, InParts(address, found)) as scheduler:
        await scene.sleep("10m")
        assert (await one(scheduler, number))["status"] == "sent"
        assert found == taken
