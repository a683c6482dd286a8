"""What the store keeps of messages, people and updates of a chat: each rule by itself, in virtual time."""

from __future__ import annotations

import asyncio
import os
import select
import signal
import sys

import pytest

from tests.delivery.targets import Target, refusing, sending_to, stored
from tests.kernel.scene import virtual
from wakeful import Retention, ids
from wakeful.domains.delivery import Post, enqueue, role_of
from wakeful.domains.delivery.chat.buttons import NotPressed, button, press
from wakeful.domains.delivery.chat.receiving import (
    LEASE_MS,
    BotAccount,
    ChatUpdate,
    give_up_lease,
    refuse,
    skip,
    take,
    take_lease,
)
from wakeful.domains.delivery.chat.tables import Chats, Person, ReceiverRow
from wakeful.domains.delivery.connector import Message
from wakeful.domains.delivery.local import CommandConnector
from wakeful.domains.delivery.outbox import NO_CONNECTOR, attempt_at, hasten
from wakeful.domains.delivery.tables import AttemptRow, ConnectorRow, Outbox
from wakeful.domains.delivery.telegram.polling import read_update
from wakeful.domains.delivery.views import delivery_number
from wakeful.kernel.engine.alerts import close_alert
from wakeful.store.records import NodeRow

ACCOUNT = BotAccount("hash", "bot", 1)


def bot(tx, *names):
    """Chats of these names, with one person in each."""
    for position, name in enumerate(names or ("bot",), 1):
        tx.of(Outbox).put_connector(ConnectorRow(name, "telegram", position, 0, "{}", "file", None))
        tx.of(Chats).pair(Person(name, "42", "operator", "Ann", "code", tx.now))


@pytest.mark.promise("A8")
@virtual
async def test_a_message_is_tried_at_once_where_the_clock_was_set_back_since_it_was_put_off(scene):
    async with scene.scheduler() as scheduler:

        def work(tx, context):
            bot(tx)
            number = enqueue(tx, context, Post("hello", "bot"))
            row = tx.of(Outbox).get(number)._replace(attempts=1, next_at=tx.now + 60_000)
            found = []
            for tried in (tx.now - 1_000, tx.now + 50_000):
                tx.of(Outbox).begin_attempt(AttemptRow(context.new_id(), number, "bot", tried, 1, 0, "refused"))
                found.append(attempt_at(tx, row) - tx.now)
            return found

        assert await scheduler.transact(work) == [60_000, 0]


@pytest.mark.promise("A9")
@virtual
async def test_a_start_tries_the_first_message_at_once_and_leaves_the_order(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {"attempts": 50}) as scheduler:
        numbers = [delivery_number(await scheduler.deliver(text, to="phone")) for text in ("one", "two")]
        await scene.sleep("20m")
        await scheduler.stop()

        def due(tx, _):
            for number in numbers:
                tx.of(Outbox).save(tx.of(Outbox).get(number)._replace(next_at=tx.now + 600_000))
            hasten(tx, "phone", tx.now)
            found = [tx.of(Outbox).get(number).next_at - tx.now for number in numbers]
            tx.of(Outbox).save(tx.of(Outbox).get(numbers[0])._replace(next_at=tx.now + 600_000))
            return found

        assert await scheduler.transact(due) == [0, 600_000]
    target.act = None
    target.mark()
    async with sending_to(scene, target):
        await scene.sleep(1)
        assert target.texts[:1] == ["one"]


@pytest.mark.promise("A10")
@virtual
async def test_a_start_sends_what_had_nowhere_to_go_though_its_alert_is_closed(scene):
    target = Target(scene)
    async with scene.scheduler() as scheduler:

        def leave(tx, context):
            enqueue(tx, context, Post("hello", "last"))
            assert close_alert(tx, context, NO_CONNECTOR, "last")

        await scheduler.transact(leave)
    async with sending_to(scene, target):
        await scene.sleep(1)
        assert target.texts == ["hello"]


@pytest.mark.promise("A8")
@virtual
async def test_what_is_held_is_not_pruned(scene):
    async with scene.scheduler() as scheduler:

        def work(tx, context):
            bot(tx)
            enqueue(tx, context, Post("held", "bot"))
            tx.of(Outbox).hold_all("restore")
            held = tx.of(Outbox).prune(tx.now + 1_000, 9)
            tx.of(Outbox).release_held("restore", tx.now)
            return held, tx.of(Outbox).prune(tx.now + 1_000, 9)

        assert await scheduler.transact(work) == (0, 0)
        assert [item["status"] for item in await stored(scheduler)] == ["pending"]


@pytest.mark.promise("X18")
@virtual
async def test_a_button_is_pressed_in_the_chat_that_its_message_went_to(scene):
    async with scene.scheduler() as scheduler:

        def work(tx, context, connector):
            bot(tx, "bot", "other")
            extra = {"buttons": [button("pause", "job")]}
            number = enqueue(tx, context, Post("hello", "bot", recipient="42", extra=extra))
            data = "0:" + ids.encode("dlv", number)
            press(tx, context, tx.of(Chats).person(connector, "42"), connector, data)

        with pytest.raises(NotPressed, match="no longer valid"):
            await scheduler.transact(lambda tx, context: work(tx, context, "other"))


@pytest.mark.promise("A10", "X18")
@virtual
async def test_an_unpaired_person_leaves_nothing_and_may_do_nothing(scene):
    async with scene.scheduler() as scheduler:

        def work(tx, context):
            bot(tx)
            take_lease(tx, ACCOUNT)
            said = take(tx, context, ACCOUNT, ChatUpdate(1, "99", "Eve", text="hello"))
            roles = role_of(tx, "bot", "42"), role_of(tx, "bot", "99")
            return said, roles, tx.of(Outbox).interactions(), tx.of(Chats).open_messages("bot", 9)

        assert await scheduler.transact(work) == (None, ("operator", None), [], [])


@pytest.mark.promise("A10")
@virtual
async def test_an_update_counts_once_and_moves_the_position_with_it(scene):
    async with scene.scheduler() as scheduler:

        def work(tx, context):
            bot(tx)
            chats = tx.of(Chats)
            assert take_lease(tx, ACCOUNT) == 0
            for position in (5, 5, 4):
                take(tx, context, ACCOUNT, ChatUpdate(position, "42", "Ann", text="hello"))
            assert (len(chats.open_messages("bot", 9)), chats.receiver("hash").position) == (1, 6)
            assert not skip(tx, ACCOUNT, 5)
            refuse(tx, context, ACCOUNT, ChatUpdate(6, "42", "Ann", text="hello"), "broken")
            assert chats.receiver("hash").position == 7
            refuse(tx, context, ACCOUNT, ChatUpdate(7, "42", "Ann", press="0", query="q"), "broken")
            refuse(tx, context, ACCOUNT, ChatUpdate(7, "42", "Ann", press="0", query="q"), "again")
            answers = [row.said for row in chats.answers("bot", 9)]
            return answers, take_lease(tx, ACCOUNT), chats.receiver("hash").position

        assert await scheduler.transact(work) == (["broken"], 8, 8)


@pytest.mark.promise("A10")
@virtual
async def test_a_node_that_no_longer_receives_takes_nothing_and_ends_no_lease_of_another(scene):
    async with scene.scheduler() as scheduler:

        def work(tx, context):
            bot(tx)
            chats = tx.of(Chats)
            chats.put_receiver(ReceiverRow("hash", "bot", 2, tx.now + 9_000, 3))
            take(tx, context, ACCOUNT, ChatUpdate(5, "42", "Ann", text="hello"))
            give_up_lease(tx, ACCOUNT)
            row = chats.receiver("hash")
            give_up_lease(tx, ACCOUNT._replace(node=2))
            return chats.open_messages("bot", 9), row.position, row.until - tx.now, chats.receiver("hash").until

        assert await scheduler.transact(work) == ([], 3, 9_000, 0)


@pytest.mark.promise("A10")
@pytest.mark.parametrize(
    ("until", "lives", "is_free"),
    [
        (1, True, False),
        (0, True, True),  # its time is over
        (LEASE_MS, True, False),
        (LEASE_MS + 1, True, True),  # from before the clock was set back
        (1, False, True),
    ],
)
@virtual
async def test_where_nodes_share_a_store_a_lease_is_taken_once_it_is_over_or_its_node_is_gone(
    scene, until, lives, is_free
):
    async with scene.scheduler() as scheduler:

        def work(tx, _):
            tx.exclusive = False
            tx.members.join(NodeRow(2, "there", tx.now, tx.now, None if lives else tx.now, "{}"))
            tx.of(Chats).put_receiver(ReceiverRow("hash", "bot", 2, tx.now + until, 3))
            own = take_lease(tx, ACCOUNT._replace(node=2))  # who has it goes on
            tx.of(Chats).put_receiver(ReceiverRow("hash", "bot", 2, tx.now + until, 3))
            return own, take_lease(tx, ACCOUNT)

        assert await scheduler.transact(work) == (3, 3 if is_free else None)


ANN = {"id": 42, "first_name": "Ann"}


@pytest.mark.promise("A10")
@pytest.mark.parametrize(
    ("changes", "is_read"),
    [
        ({}, True),
        ({"chat": {"id": 42, "type": "group"}}, False),
        ({"chat": {"id": 43, "type": "private"}}, False),
        ({"chat": None}, False),
        ({"from": {**ANN, "is_bot": True}}, False),
        ({"from": None}, False),
    ],
)
def test_only_what_a_person_writes_in_their_own_chat_is_read(changes, is_read):
    message = {"from": ANN, "chat": {"id": 42, "type": "private"}, "text": "hello", **changes}
    update = read_update({"update_id": 7, "message": message})
    assert (update is not None) is is_read
    if update is not None:
        assert (update.position, update.sender, update.text, update.chat) == (7, "42", "hello", "42")


@pytest.mark.promise("A8")
def test_a_program_that_is_given_up_leaves_no_process_behind(tmp_path):
    program = "import os, subprocess; pipe = os.open('pipe', os.O_WRONLY); os.set_inheritable(pipe, True); "
    program += "child = subprocess.Popen(['sleep', '60'], close_fds=False); os.write(pipe, b'%d\\n' % child.pid); "
    connector = CommandConnector([sys.executable, "-c", f"{program}child.wait()"], tmp_path)
    message = Message("dlv_1", "test", "hello", None, None, None, None, None, None, 0)
    os.mkfifo(tmp_path / "pipe")

    async def main():
        sending = asyncio.create_task(connector.send(message))
        with await asyncio.to_thread((tmp_path / "pipe").open, "rb", 0) as pipe:
            child = int(await asyncio.to_thread(pipe.readline))
            sending.cancel()
            await asyncio.gather(sending, return_exceptions=True)
            ended, _, _ = await asyncio.to_thread(select.select, [pipe], [], [], 5)  # none has it open any more
            if not ended:
                os.kill(child, signal.SIGKILL)
            return ended

    assert asyncio.run(main())


@pytest.mark.promise("X11")
@virtual
async def test_of_messages_that_are_over_no_more_are_kept_than_said(scene):
    target = Target(scene)
    async with scene.scheduler(retention=Retention(records=20)) as scheduler:
        scheduler.connectors.register("phone", target)
        await scheduler.start()
        for number in range(60):
            await scheduler.deliver(str(number), to="phone")
        await scene.sleep("30m")
        assert len(target.calls) == 60
        counts = await scheduler._store.read(
            lambda tx: (tx.tables.count("deliveries"), tx.tables.count("delivery_attempts"))
        )
        assert counts == (20, 20)
