"""The telegram connector against a Bot API on this machine: pairing, unpaired people, several nodes, trouble."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.delivery.bot_server import ZOE
from tests.delivery.bots import BOB, Heard, eventually, offer, on, paired, taken, wait
from tests.delivery.targets import stored
from tests.store.postgres_server import emptied_url
from wakeful import Scheduler
from wakeful.domains.delivery import Post, enqueue
from wakeful.domains.delivery.chat import pairing
from wakeful.domains.delivery.chat.tables import Chats, Person
from wakeful.domains.delivery.tables import Outbox
from wakeful.kernel.domain import Domain

# -- pairing -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("A10")
def test_a_person_pairs_with_a_code_once_and_is_answered(url, bot):
    async def main():
        async with on(url, bot) as scheduler:
            await scheduler.start()
            waiting = await scheduler.deliver("for whoever comes", to="bot")
            code = await offer(scheduler)
            bot.write(f"/start {code.lower()}")
            assert "You are paired, as operator" in await wait(bot.until_text, "paired")
            assert await wait(bot.until_text, "for whoever comes")
            assert [(one.sender, one.role, one.name) for one in await paired(scheduler)] == [("42", "operator", "Zoe")]
            bot.write(f"/start {code}", sender=BOB)  # used up, so there is no open code to answer about
            await taken(bot)
            assert [one.sender for one in await paired(scheduler)] == ["42"]
            assert bot.texts(BOB) == []
            by_id = {item["id"]: item for item in await stored(scheduler)}
            assert by_id[waiting]["to"] == "42"
            await scheduler.stop()

    asyncio.run(main())


@pytest.mark.promise("A10")
def test_a_stranger_who_guesses_is_no_longer_heard_and_the_owner_pairs_with_the_code(url, bot):
    async def main():
        async with on(url, bot) as scheduler:
            await scheduler.start()
            code = await offer(scheduler)
            for number in range(7):
                bot.write(f"/start WRONG{number}", sender=BOB)
            bot.write(f"/start {code}", sender=BOB)  # too late, even if it is the right one
            await taken(bot)
            await wait(bot.until, lambda: len(bot.texts(BOB)) == pairing.TRIES)
            assert all("This code is not valid" in text for text in bot.texts(BOB))
            assert await paired(scheduler) == []
            bot.write(f"/start {code}")
            assert "You are paired, as operator" in await wait(bot.until_text, "paired")
            assert [one.sender for one in await paired(scheduler)] == ["42"]
            assert len(bot.texts(BOB)) == pairing.TRIES
            await scheduler.stop()

    asyncio.run(main())


@pytest.mark.promise("A10")
def test_wrong_codes_count_for_ten_minutes_or_until_there_is_a_new_code(tmp_path):
    async def main():
        async with Scheduler(f"sqlite:///{tmp_path}/t.db") as scheduler:

            async def redeem(sender, code, later=0):
                def work(tx, context):
                    tx.now += later
                    return pairing.redeem(tx, context, "bot", sender, code) is not None

                return await scheduler.transact(work)

            first = await offer(scheduler)
            assert [await redeem("9", f"WRONG{number}") for number in range(5)] == [False] * 5
            assert await redeem("9", first) is False
            second = await offer(scheduler)
            assert await redeem("9", second) is True
            assert await redeem("42", first, later=pairing.LIFE_MS) is False, "no code lives longer"
            third = await offer(scheduler)
            for number in range(3 * pairing.MOST_SENDERS):
                await redeem(f"s{number}", "WRONG")
            tries = await scheduler.read(lambda tx: tx.tables.count("pairing_tries"))
            assert tries <= pairing.MOST_SENDERS, "however many senders guess"
            assert await redeem("42", third) is True
            assert await redeem("s1", "WRONG") is False
            assert await scheduler.read(lambda tx: tx.tables.count("pairing_tries")) == tries, "nothing is open"

    asyncio.run(main())


def test_the_record_names_people_by_the_name_they_chose_and_by_their_id():
    def by(sender, name):
        return Person("bot", sender, "operator", name, "code", 0).signature

    assert (by("42", "Zoe"), by("42", None)) == ("Zoe (bot 42)", "42 (bot)")
    assert by("7", "Zoe (bot 42)") == "Zoe (bot 42) (bot 7)", "the end of it is ours"
    assert by("7", "Zoe\nby admin\u202e") == "Zoe by admin (bot 7)"


@pytest.mark.promise("X18")
def test_an_unpaired_person_and_a_group_reach_nothing(url, bot):
    async def main():
        heard = Heard()
        async with on(url, bot, allow_from=[ZOE]) as scheduler:
            scheduler.connectors.listen(heard)
            await scheduler.start()
            bot.write("hello", sender=BOB)
            bot.write("/start GUESS", sender=BOB)
            bot.write("/approve run_0000000000000", sender=BOB)
            bot.write("from a group", chat=-100, kind="group")
            bot.press("0:dlv_0000000000000", sender=BOB, query="q-bob")
            bot.write("it is me")
            await wait(
                bot.until, lambda: any(call["callback_query_id"] == "q-bob" for call in bot.of("answerCallbackQuery"))
            )
            found = await eventually(scheduler, lambda tx: tx.of(Outbox).interactions(), bool)
            assert [(item.connector, item.sender) for item in found] == [("bot", "42")]
            item = await heard.next()
            assert (item.text, item.sender, item.role, heard.empty()) == ("it is me", "42", "operator", True)
            assert bot.of("sendMessage") == []
            assert await stored(scheduler) == []
            await scheduler.stop()

    asyncio.run(main())


@pytest.mark.promise("A10")
def test_a_message_makes_last_lead_to_its_sender_and_each_person_has_a_row_of_their_own(url, bot):
    async def main():
        async with on(url, bot, allow_from=[ZOE, BOB]) as scheduler:
            await scheduler.start()
            await scheduler.deliver("to all", to="bot")
            await wait(bot.until, lambda: "to all" in bot.texts(ZOE) and "to all" in bot.texts(BOB))
            bot.write("hi", sender=BOB)
            await eventually(scheduler, lambda tx: tx.of(Outbox).interactions(), bool)
            await scheduler.deliver("to one", to="last")
            await wait(bot.until_text, "to one", BOB)
            assert bot.texts(ZOE) == ["to all"]
            await scheduler.stop()
            found = await stored(scheduler)
            assert [(item["text"], item["to"]) for item in found] == [
                ("to all", "42"),
                ("to all", "43"),
                ("to one", "43"),
            ]

    asyncio.run(main())


def test_whom_the_file_lets_in_no_more_is_forgotten(tmp_path, bot):
    async def main():
        url = f"sqlite:///{tmp_path}/t.db"
        async with on(url, bot, allow_from=[ZOE, BOB]) as scheduler:
            await scheduler.start()
            bot.write("hi", sender=BOB)
            await eventually(scheduler, lambda tx: tx.of(Outbox).interactions(), bool)
            await scheduler.stop()
        async with on(url, bot, allow_from=[ZOE]) as scheduler:
            await scheduler.start()
            assert [one.sender for one in await paired(scheduler)] == ["42"]
            assert await scheduler.read(lambda tx: tx.of(Outbox).interactions()) == []
            await scheduler.stop()

    asyncio.run(main())


# -- trouble and several nodes -----------------------------------------------------------------------------------------


@pytest.mark.promise("A10")
def test_of_two_nodes_one_polls_and_the_other_takes_over(tmp_path, monkeypatch, bot):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("wakeful.domains.delivery.telegram.polling.WAIT_S", 0.1)
    url = emptied_url()

    async def main():
        heard = Heard()
        async with on(url, bot, allow_from=[ZOE], node="one") as one, on(url, bot, allow_from=[ZOE], node="two") as two:
            one.connectors.listen(lambda message: heard(("one", message.text)))
            two.connectors.listen(lambda message: heard(("two", message.text)))
            await one.start()
            await wait(bot.until, lambda: bot.polling)
            await two.start()
            bot.write("first")
            assert await heard.next() == ("one", "first")
            await one.stop()
            bot.write("second")
            assert await heard.next() == ("two", "second")
            await two.stop()
        assert bot.polling <= 1

    asyncio.run(main())


def test_a_wrong_token_is_an_alert_that_shows_no_token(tmp_path, bot, caplog):
    async def main():
        wrong = "999:planted-wrong-token"
        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE], token=wrong) as scheduler:
            await scheduler.start()
            await scheduler.deliver("hello", to="bot")
            alerts = await eventually(
                scheduler,
                lambda tx: tx.alerts.all_open(),
                lambda found: {item.kind for item in found} >= {"receiving", "delivery_failed"},
            )
            text = json.dumps([alert.message for alert in alerts])
            assert "the token is wrong" in text
            assert "planted" not in text + caplog.text
            await scheduler.stop()

    asyncio.run(main())


def test_another_poller_is_an_alert_that_closes_when_it_is_gone(tmp_path, monkeypatch, bot):
    monkeypatch.setattr("wakeful.domains.delivery.telegram.polling.WAIT_S", 0.05)

    async def main():
        conflict = (409, "Conflict: terminated by other getUpdates request")
        bot.fail("getUpdates", conflict, conflict)
        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE]) as scheduler:
            await scheduler.start()
            bot.write("hi")
            await eventually(scheduler, lambda tx: tx.of(Outbox).interactions(), bool)
            (alert,) = await scheduler.read(lambda tx: tx.alerts.latest())
            assert "another program receives" in alert.message
            assert alert.closed_at is not None
            await scheduler.stop()

    asyncio.run(main())


def test_an_update_that_breaks_a_listener_is_not_read_again_and_again(tmp_path, bot, caplog):
    async def main():
        heard = Heard()

        async def listener(message):
            heard(message.text)
            raise RuntimeError("broken")

        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE]) as scheduler:
            scheduler.connectors.listen(listener, "bot")
            await scheduler.start()
            bot.write("one")
            bot.write("two")
            assert [await heard.next(), await heard.next()] == ["one", "two"]
            await eventually(scheduler, lambda tx: tx.of(Chats).open_messages("bot", 10), lambda found: not found)
            await scheduler.stop()
        assert heard.empty()

    asyncio.run(main())
    assert "a listener failed" in caplog.text


def test_a_domain_hears_each_message_once_in_the_transaction_that_receives_it(tmp_path, bot, monkeypatch):
    fails = []

    def hears(tx, context, message):
        enqueue(tx, context, Post(f"heard {message.text}", message.connector, "reply", recipient=message.sender))
        if message.text == "poison":
            fails.append(message.id)
            raise RuntimeError("broken")

    monkeypatch.setattr("wakeful.domains.delivery.chat.receiving.domains", lambda: (Domain("sample", hears=hears),))

    async def main():
        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE]) as scheduler:
            await scheduler.start()
            for text in ("one", "poison", "two"):
                bot.write(text)
            await wait(bot.until_text, "heard two")
            await scheduler.stop()
        assert bot.texts() == ["heard one", "heard two"]  # what the broken one wrote is not stored
        assert len(fails) == 1

    asyncio.run(main())
