"""What is recorded about an attempt, step by step, and when a connector's job looks again."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.delivery.targets import NIGHT, Target, one, refusing, sending_to, stored
from tests.kernel.scene import at, virtual
from wakeful.domains.delivery import Post, enqueue
from wakeful.domains.delivery.chat import pairing
from wakeful.domains.delivery.chat.receiving import BotAccount, ChatUpdate, take_lease
from wakeful.domains.delivery.chat.receiving import take as receive
from wakeful.domains.delivery.chat.tables import Chats, Person
from wakeful.domains.delivery.outbox import release_pending, requeue, requeue_all
from wakeful.domains.delivery.rules import Tried
from wakeful.domains.delivery.sending import record, take
from wakeful.domains.delivery.tables import ConnectorRow, Outbox
from wakeful.domains.delivery.views import delivery_number


@pytest.mark.promise("A8")
@virtual
async def test_an_attempt_that_was_given_up_says_nothing_about_the_next_one(scene):
    async with sending_to(scene, Target(scene)) as scheduler:
        await scheduler.stop()
        number = await scheduler.deliver("hello", to="phone")
        first = await scheduler.transact(lambda tx, context: take(tx, context, "phone"))
        late = Tried(ok=False, error="no answer", unclear=True)
        await scheduler.transact(lambda tx, context: record(tx, context, first, late, 1))
        await scene.sleep(6)
        second = await scheduler.transact(lambda tx, context: take(tx, context, "phone"))
        assert (first.row.attempts, second.row.attempts) == (1, 2)
        await scheduler.transact(lambda tx, _: requeue(tx, delivery_number(number)))  # it is being sent: it stays
        assert (await one(scheduler, number))["status"] == "sending"
        await scheduler.transact(lambda tx, context: record(tx, context, first, Tried(ok=True), 1))
        assert (await one(scheduler, number))["status"] == "sending"
        await scheduler.transact(lambda tx, context: record(tx, context, second, Tried(ok=True), 1))
        assert (await one(scheduler, number))["status"] == "sent"


@pytest.mark.promise("A8")
@virtual
async def test_a_message_that_cannot_be_read_is_not_tried_in_a_loop(scene):
    target = Target(scene)
    async with sending_to(scene, target) as scheduler:
        await scheduler.stop()
        number = delivery_number(await scheduler.deliver("hello", to="phone"))

        def damage(tx, _):
            tx.of(Outbox).save(tx.of(Outbox).get(number)._replace(extra="{"))

        await scheduler.transact(damage)
        await scheduler.start()
        await scene.sleep("1m")
        failed = [run for run in await scheduler.get_run_log("delivery.phone") if run.outcome == "error"]
        begun = sorted(run.started_at for run in await scheduler.get_run_log("delivery.phone"))
        assert failed
        assert target.calls == []
        assert all((after - before).total_seconds() >= 5 for before, after in itertools.pairwise(begun))


@pytest.mark.promise("A8")
@virtual
async def test_requeueing_what_failed_ends_its_alert_before_anything_is_sent(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {"attempts": 1}) as scheduler:
        await scheduler.deliver("hello", to="phone")
        await scene.sleep(1)
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["delivery_failed"]
        await scheduler.stop()
        await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed"))
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("A10")
@virtual
async def test_what_waits_for_a_person_who_is_paired_no_more_is_given_up(scene):
    rules = json.dumps({"attempts": 5})
    async with scene.scheduler() as scheduler:

        def prepare(tx, context):
            tx.of(Outbox).put_connector(ConnectorRow("bot", "telegram", 1, 0, rules, "file", None))
            pairing.allow(tx, context, "bot", ["42", "43"])
            enqueue(tx, context, Post("hello", "bot"))

        await scheduler.transact(prepare)
        await scheduler.transact(lambda tx, context: pairing.allow(tx, context, "bot", ["42"]))
        found = [(item["to"], item["status"], item["last_error"]) for item in await stored(scheduler)]
        assert found == [("42", "pending", None), ("43", "expired", "43 is no longer paired with bot")]
        other = Person("bot", "44", "operator", None, "code", 0)  # who used a code is not the file's to forget
        await scheduler.transact(lambda tx, _: tx.of(Chats).pair(other))
        await scheduler.transact(lambda tx, context: pairing.allow(tx, context, "bot", ["42"]))
        assert {one.sender for one in await scheduler.read(lambda tx: tx.of(Chats).people("bot"))} == {"42", "44"}


@pytest.mark.promise("A10")
@virtual
async def test_a_new_person_gets_what_waited_for_one_and_not_what_waits_for_another_reason(scene):
    async with scene.scheduler() as scheduler:

        def prepare(tx, context):
            tx.of(Outbox).put_connector(ConnectorRow("bot", "telegram", 1, 0, "{}", "file", None))
            enqueue(tx, context, Post("for anyone", "bot"))
            enqueue(tx, context, Post("restored", "bot", recipient="43"))
            tx.of(Outbox).hold_all("restore")
            pairing.allow(tx, context, "bot", ["42"])

        await scheduler.transact(prepare)
        found = [(item["text"], item["to"], item["status"]) for item in await stored(scheduler)]
        assert found == [("for anyone", "42", "pending"), ("restored", "43", "held")]


@pytest.mark.promise("X17")
@virtual
async def test_what_a_restore_holds_is_released_and_what_quiet_hours_hold_is_not(scene):
    async with sending_to(scene, Target(scene), NIGHT) as scheduler:
        await scheduler.stop()
        await scene.until(at(hours=12))
        await scheduler.deliver("restored", to="phone")
        await scheduler.transact(lambda tx, _: tx.of(Outbox).hold_all("restore"))
        await scene.until(at(hours=23))
        await scheduler.deliver("quiet", to="phone")
        assert await scheduler.transact(lambda tx, _: release_pending(tx)) == 1
        assert [item["status"] for item in await stored(scheduler)] == ["pending", "held"]


@pytest.mark.promise("X8", "X18")
@virtual
async def test_a_viewer_who_writes_approve_is_refused(scene):
    account = BotAccount("hash", "bot", 1)
    async with scene.scheduler() as scheduler:

        def write(tx, context):
            tx.of(Outbox).put_connector(ConnectorRow("bot", "telegram", 1, 0, "{}", "file", None))
            tx.of(Chats).pair(Person("bot", "7", "viewer", "Eve", "code", tx.now))
            take_lease(tx, account)
            return receive(tx, context, account, ChatUpdate(1, "7", "Eve", text="/approve run_0000000000000"))

        assert await scheduler.transact(write) is None
        assert [item["text"] for item in await stored(scheduler)] == ["Your role is viewer: this needs operator."]


@pytest.mark.promise("A10")
@virtual
async def test_a_code_from_before_the_clock_was_set_back_is_not_valid(scene):
    async with scene.scheduler() as scheduler:

        def offer_and_redeem(tx, context, step):
            code = pairing.new_code()
            pairing.offer(tx, "bot", code, "operator")
            tx.now += step
            return pairing.redeem(tx, context, "bot", "42", code) is not None

        for step, is_valid in ((pairing.LIFE_MS - 1, True), (-1, False)):
            assert await scheduler.transact(lambda tx, context, s=step: offer_and_redeem(tx, context, s)) is is_valid


@pytest.mark.promise("A8")
@virtual
async def test_a_test_that_failed_is_not_sent_again_with_the_others(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {"attempts": 1}) as scheduler:
        await scheduler.connectors.test("phone", "does it work?")
        await scheduler.deliver("hello", to="phone")
        await scene.sleep(1)
        target.act = None
        target.mark()
        assert await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed")) == 1
        await scene.sleep(1)
        assert target.texts == ["hello"]


@pytest.mark.promise("X19")
@virtual
async def test_what_is_in_a_digest_that_is_too_old_expires_with_it(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {**NIGHT, "max_age": "1m", "attempts": 9}) as scheduler:
        await scene.until(at(hours=23))
        for text in ("one", "two"):
            await scheduler.deliver(text, to="phone")
        await scene.until(at(days=1, hours=8))
        assert [(item["kind"], item["status"]) for item in await stored(scheduler)] == [
            ("output", "expired"),
            ("output", "expired"),
            ("digest", "expired"),
        ]


@pytest.mark.promise("X19")
@virtual
async def test_held_messages_go_out_once_quiet_hours_are_given_up(scene):
    target = Target(scene)
    async with sending_to(scene, target, NIGHT) as scheduler:
        await scene.until(at(hours=23))
        await scheduler.deliver("one", to="phone")
        await scene.sleep(1)
    async with sending_to(scene, target) as scheduler:
        await scheduler.deliver("two", to="phone")
        await scene.sleep(1)
        assert sorted("one" in text for text in target.texts) == [False, True]


@pytest.mark.promise("X19")
@virtual
async def test_what_is_in_a_digest_that_fails_has_failed(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {**NIGHT, "attempts": 1}) as scheduler:
        await scene.until(at(hours=23))
        await scheduler.deliver("one", to="phone")
        await scene.until(at(days=1, hours=8))
        found = [(item["status"], item["last_error"]) for item in await stored(scheduler)]
        assert found == [("failed", "ConnectionError: refused")] * 2  # the message, and the digest it is in
        member, digest = [delivery_number(item["id"]) for item in await stored(scheduler)]
        await scheduler.stop()
        await scheduler.transact(lambda tx, _: requeue(tx, member))
        assert [item["status"] for item in await stored(scheduler)] == ["failed", "failed"]
        assert await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed")) == 1
        assert (await scheduler.read(lambda tx: tx.of(Outbox).get(digest))).status == "pending"


@pytest.mark.promise("X19")
@virtual
async def test_an_urgent_message_behind_one_that_waits_for_the_morning_goes_on(scene):
    target = refusing(scene)
    async with sending_to(scene, target, NIGHT) as scheduler:
        await scene.until(at(hours=21, minutes=59, seconds=50))
        await scheduler.deliver("late", to="phone")
        await scheduler.deliver("fire", to="phone", urgent=True)
        await scene.sleep(11)
        target.act = None
        await scene.sleep("2h")
        assert target.texts[-1] == "fire"
        assert [item["status"] for item in await stored(scheduler)] == ["held", "sent"]


@pytest.mark.promise("X19")
@virtual
async def test_each_person_has_a_digest_of_their_own(scene):
    target = Target(scene)
    async with sending_to(scene, target, NIGHT) as scheduler:
        await scene.until(at(hours=23))
        for person in ("ann", "bob", "ann"):
            post = Post(f"for {person}", "phone", recipient=person)
            await scheduler.transact(lambda tx, context, one=post: enqueue(tx, context, one))
        await scene.until(at(days=1, hours=8))
        assert [(text.count("for ann"), text.count("for bob")) for text in target.texts] == [(2, 0), (0, 1)]
