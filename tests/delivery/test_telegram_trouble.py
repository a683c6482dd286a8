"""Receiving through the telegram connector when something is wrong, and on several nodes."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.delivery.bot_server import ZOE
from tests.delivery.telegram_bot import Heard, eventually, on, wait
from tests.store.postgres_server import emptied_url
from wakeful.delivery import Post, enqueue
from wakeful.delivery.chat.tables import Chats
from wakeful.delivery.tables import Outbox
from wakeful.kernel.domain import Domain


@pytest.mark.promise("A10")
def test_of_two_nodes_one_polls_and_the_other_takes_over(tmp_path, monkeypatch, bot):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setattr("wakeful.delivery.telegram.polling.WAIT_S", 0.1)
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
                lambda tx: tx.journal.open_alerts(),
                lambda found: {item.kind for item in found} >= {"receiving", "delivery_failed"},
            )
            text = json.dumps([alert.message for alert in alerts])
            assert "the token is wrong" in text
            assert "planted" not in text + caplog.text
            await scheduler.stop()

    asyncio.run(main())


def test_another_poller_is_an_alert_that_closes_when_it_is_gone(tmp_path, monkeypatch, bot):
    monkeypatch.setattr("wakeful.delivery.telegram.polling.WAIT_S", 0.05)

    async def main():
        conflict = (409, "Conflict: terminated by other getUpdates request")
        bot.fail("getUpdates", conflict, conflict)
        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE]) as scheduler:
            await scheduler.start()
            bot.write("hi")
            await eventually(scheduler, lambda tx: tx.of(Outbox).interactions(), bool)
            (alert,) = await scheduler.look(lambda tx: tx.journal.alerts())
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

    monkeypatch.setattr("wakeful.delivery.chat.receiving.domains", lambda: (Domain("sample", hears=hears),))

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
