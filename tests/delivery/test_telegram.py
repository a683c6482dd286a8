"""The telegram connector against a Bot API on this machine: sending, pairing, strangers, buttons, trouble."""

from __future__ import annotations

import asyncio
import json
import logging

import pytest

from tests.delivery.bot_server import PATIENCE, TOKEN, ZOE, bot_server
from tests.delivery.targets import stored
from tests.store.postgres_server import emptied_url
from wakeful import Manual, Scheduler
from wakeful.clock import SystemClock, sleep
from wakeful.delivery import Post, button, enqueue
from wakeful.delivery.chat import pairing
from wakeful.delivery.chat.tables import Chats
from wakeful.delivery.connector import Message
from wakeful.delivery.rules import Rules
from wakeful.delivery.sending import attempt
from wakeful.delivery.tables import Outbox
from wakeful.delivery.telegram.connector import TelegramConnector

BOB = 43


@pytest.fixture
def bot():
    with bot_server() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return emptied_url() if request.param == "postgres" else f"sqlite:///{tmp_path}/t.db"


def on(url, bot, *, allow_from=(), node="here", token=TOKEN):
    """A scheduler with the bot."""
    made = Scheduler(url, node=node, timezone="UTC")
    connector = TelegramConnector("bot", token, made.clock, allow_from=allow_from, base_url=bot.url)
    made.connectors.add("bot", connector, Rules(), "file")
    return made


async def wait(call, *given):
    """What a call that waits in its own thread comes to."""
    return await asyncio.to_thread(call, *given)


async def eventually(scheduler, read, is_so):
    """What is stored, once it is so."""
    async with asyncio.timeout(PATIENCE):
        while not is_so(found := await scheduler.look(read)):
            await sleep(0.02)
    return found


class Heard(asyncio.Queue):
    """Listens; each message can be waited for."""

    def __call__(self, message):
        self.put_nowait(message)

    async def next(self):
        return await asyncio.wait_for(self.get(), PATIENCE)


async def offer(scheduler, role="operator"):
    code = pairing.new_code()
    await scheduler.transact(lambda tx, _: pairing.offer(tx, "bot", code, role))
    return code


async def taken(bot):
    """Every update was taken and confirmed."""
    await wait(bot.until, lambda: not bot.updates and bot.polling)


async def paired(scheduler):
    return await scheduler.look(lambda tx: tx.of(Chats).people("bot"))


async def post(scheduler, *buttons, text="Look", **more):
    return await scheduler.transact(
        lambda tx, context: enqueue(tx, context, Post(text, "bot", "alert", extra={"buttons": list(buttons)}, **more))
    )


def send(bot, text, title=None, **more):
    """What the attempt to send a message was."""
    connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url=bot.url)
    message = Message("dlv_1", "output", text, title, None, None, None, None, str(ZOE), 1_700_000_000_000, **more)
    return asyncio.run(attempt(connector, message, SystemClock().boot))[0]


# -- sending -----------------------------------------------------------------------------------------------------------


def test_a_plain_text_arrives_as_it_is(bot):
    assert send(bot, "a_b *c 1 < 2 & snake_case_name", "backup: success").ok
    (call,) = bot.of("sendMessage")
    assert call["text"] == "backup: success\n\na_b *c 1 < 2 & snake_case_name"
    assert call["chat_id"] == ZOE
    assert "parse_mode" not in call


def test_markdown_is_kept_as_the_tags_that_telegram_knows(bot):
    text = (
        "**bold** and *it* and `x < 1` [docs](https://e.org/?a=1&b=2)\n```python\nif a < b: pass\n```\n# not & touched"
    )
    assert send(bot, text).ok
    (call,) = bot.of("sendMessage")
    assert call["parse_mode"] == "HTML"
    assert call["text"] == (
        '<b>bold</b> and <i>it</i> and <code>x &lt; 1</code> <a href="https://e.org/?a=1&amp;b=2">docs</a>\n'
        "<pre>if a &lt; b: pass</pre>\n# not &amp; touched"
    )


def test_what_telegram_cannot_parse_is_sent_again_as_plain_text(bot):
    bot.fail("sendMessage", (400, "Bad Request: can't parse entities: Unsupported start tag"))
    assert send(bot, "**bold**").ok
    assert [call["text"] for call in bot.of("sendMessage")] == ["<b>bold</b>", "**bold**"]


def test_ten_thousand_characters_arrive_in_parts_cut_between_paragraphs(bot):
    paragraphs = [f"{number}: " + "word " * 60 for number in range(40)]
    text = "\n\n".join(paragraphs)
    assert len(text) > 12_000
    assert send(bot, text).ok
    texts = bot.texts()
    assert len(texts) == 4
    assert all(len(part.encode("utf-16-le")) // 2 <= 4096 for part in texts)
    assert "\n\n".join(texts).split() == text.split()
    assert all(part.split(":")[0].isdigit() for part in texts)


def test_a_block_of_code_that_is_cut_goes_on_as_one(bot):
    assert send(bot, "```\n" + "\n".join(f"line {number} 🙂" for number in range(500)) + "\n```\nend").ok
    calls = bot.of("sendMessage")
    assert len(calls) > 1
    assert all(call["text"].startswith("<pre>line") and "</pre>" in call["text"] for call in calls)
    assert calls[-1]["text"].endswith("</pre>\nend")


def test_a_very_long_text_is_attached_as_a_file(bot):
    text = "\n\n".join(["paragraph " * 30] * 200)
    assert send(bot, text).ok
    assert len(bot.texts()) == 1
    (call,) = bot.of("sendDocument")
    assert call["document"] == text.strip()
    assert call["chat_id"] == str(ZOE)


@pytest.mark.parametrize(
    ("answer", "permanent", "unclear", "wait_ms"),
    [
        ((429, "Too Many Requests: retry after 7", {"retry_after": 7}), False, False, 7_000),
        ((403, "Forbidden: bot was blocked by the user"), True, False, None),
        ((400, "Bad Request: chat not found"), True, False, None),
        ((500, "Internal Server Error"), False, False, None),
        ("lost", False, True, None),
        (b"<html>a proxy</html>", False, True, None),
    ],
)
def test_an_answer_of_the_bot_api_means_this(bot, answer, permanent, unclear, wait_ms):
    bot.fail("sendMessage", answer)
    tried = send(bot, "hello")
    assert (tried.ok, tried.permanent, tried.unclear, tried.retry_after) == (False, permanent, unclear, wait_ms)
    assert "planted" not in tried.error
    assert TOKEN not in tried.error


def test_a_message_that_fails_half_way_goes_on_where_it_stopped(bot):
    connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url=bot.url)
    text = "\n\n".join(f"{number} " + "word " * 700 for number in range(3))
    message = Message("dlv_1", "output", text, None, None, None, None, None, str(ZOE), 1_700_000_000_000)
    bot.fail("sendMessage", None, (429, "Too Many Requests", {"retry_after": 1}))

    async def twice():
        boot = SystemClock().boot
        return [(await attempt(connector, message, boot))[0].ok for _ in range(2)]

    assert asyncio.run(twice()) == [False, True]
    assert [part.split()[0] for part in bot.texts()] == ["0", "1", "1", "2"]


def test_no_error_shows_the_token_when_nothing_answers(caplog):
    caplog.set_level(logging.DEBUG)
    connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url="http://127.0.0.1:9")
    message = Message("dlv_1", "output", "x", None, None, None, None, None, "42", 1_700_000_000_000)
    tried = asyncio.run(attempt(connector, message, SystemClock().boot))[0]
    assert not tried.ok
    assert "planted" not in tried.error + caplog.text


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
def test_five_wrong_codes_or_ten_minutes_close_a_code(tmp_path):
    async def main():
        async with Scheduler(f"sqlite:///{tmp_path}/t.db") as scheduler:
            code = await offer(scheduler)
            for number in range(4):
                wrong = f"WRONG{number}"
                assert (
                    await scheduler.transact(lambda tx, c, w=wrong: pairing.redeem(tx, c, "bot", "9", None, w)) is None
                )
            assert await scheduler.look(lambda tx: pairing.has_open_code(tx, "bot"))
            await scheduler.transact(lambda tx, c: pairing.redeem(tx, c, "bot", "9", None, "WRONG"))
            assert not await scheduler.look(lambda tx: pairing.has_open_code(tx, "bot"))
            assert await scheduler.transact(lambda tx, c: pairing.redeem(tx, c, "bot", "42", None, code)) is None
            again = await offer(scheduler)

            def later(tx, context):
                tx.now += pairing.LIFE_MS
                return pairing.redeem(tx, context, "bot", "42", None, again)

            assert await scheduler.transact(later) is None
            assert await scheduler.look(lambda tx: tx.of(Chats).people("bot")) == []

    asyncio.run(main())


@pytest.mark.promise("X18")
def test_a_stranger_and_a_group_reach_nothing(url, bot):
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
            assert await scheduler.look(lambda tx: tx.of(Outbox).interactions()) == []
            await scheduler.stop()

    asyncio.run(main())


# -- buttons -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("X8")
def test_a_run_is_approved_by_a_button_that_works_once_and_survives_a_restart(url, bot):
    async def main():
        done = Heard()
        async with on(url, bot, allow_from=[ZOE]) as scheduler:
            scheduler.on_job_due("job", done)
            await scheduler.start()
            await scheduler.add_job("deploy", Manual(), approval=True)
            run = await scheduler.run_job("deploy")
            await asyncio.wait_for(waits(scheduler, run), PATIENCE)
            await post(scheduler, button("approve", run), button("reject", run), text="Run deploy?")
            await wait(bot.until_text, "Run deploy?")
            await scheduler.stop()
        async with on(url, bot, allow_from=[ZOE]) as scheduler:
            scheduler.on_job_due("job", done)
            await scheduler.start()
            data = bot.buttons()["Approve"]
            for number in range(3):
                bot.press(data, query=f"press-{number}")
            await wait(bot.until, lambda: len(bot.of("answerCallbackQuery")) == 3)
            assert [call["text"] for call in bot.of("answerCallbackQuery")] == ["Approved."] * 3
            bot.press(bot.buttons()["Reject"], query="late")
            await wait(bot.until, lambda: len(bot.of("answerCallbackQuery")) == 4)
            assert "already approved by Zoe (bot)" in bot.of("answerCallbackQuery")[3]["text"]
            assert (await wait(bot.until, lambda: bot.of("editMessageReplyMarkup")))[0]["reply_markup"] == {
                "inline_keyboard": []
            }
            await done.next()
            await scheduler.stop()
        assert done.empty()

    asyncio.run(main())


async def waits(scheduler, run):
    while (await scheduler.get_run(run)).status != "waiting":
        await sleep(0.02)


@pytest.mark.promise("X8")
def test_a_run_is_rejected_by_a_written_command(tmp_path, bot):
    async def main():
        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE]) as scheduler:
            scheduler.on_job_due("job", print)
            await scheduler.start()
            await scheduler.add_job("deploy", Manual(), approval=True)
            run = await scheduler.run_job("deploy")
            await asyncio.wait_for(waits(scheduler, run), PATIENCE)
            bot.write(f"/reject {run} not on a Friday")
            await wait(bot.until_text, "Rejected.")
            assert "rejected by Zoe (bot): not on a Friday" in (await scheduler.get_run(run)).error
            bot.write(f"/approve {run}")
            assert "already rejected" in await wait(bot.until_text, "already")
            await scheduler.stop()

    asyncio.run(main())


def test_buttons_pause_a_job_and_acknowledge_an_alert_for_roles_that_may(tmp_path, bot):
    async def main():
        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE]) as scheduler:
            await scheduler.start()
            bot.write(f"/start {await offer(scheduler, 'viewer')}", sender=BOB)
            await wait(bot.until_text, "as viewer", BOB)
            await scheduler.add_job("noisy", Manual())
            await post(scheduler, button("pause", "noisy", "Pause noisy"), button("acknowledge", "alr_0000000000000"))
            await wait(bot.until, lambda: len(bot.of("sendMessage")) == 3)
            bot.press(bot.buttons(BOB)["Pause noisy"], sender=BOB, query="viewer")
            bot.press(bot.buttons(ZOE)["Pause noisy"], sender=BOB, query="another's")
            bot.press(bot.buttons(ZOE)["Acknowledge"], query="no alert")
            bot.press("7" + bot.buttons(ZOE)["Pause noisy"][1:], query="no button")
            bot.press("nonsense", query="nonsense")
            bot.press(bot.buttons(ZOE)["Pause noisy"], query="good")
            await wait(bot.until, lambda: len(bot.of("answerCallbackQuery")) == 6)
            assert {call["callback_query_id"]: call["text"] for call in bot.of("answerCallbackQuery")} == {
                "viewer": "Your role is viewer: this needs operator.",
                "another's": "This button is no longer valid.",
                "no alert": "There is no alert 'alr_0000000000000'.",
                "no button": "This button is no longer valid.",
                "nonsense": "This button is no longer valid.",
                "good": "noisy is paused.",
            }
            (edit,) = await wait(bot.until, lambda: bot.of("editMessageReplyMarkup"))
            assert [one["text"] for row in edit["reply_markup"]["inline_keyboard"] for one in row] == ["Acknowledge"]
            assert (await scheduler.get_job("noisy")).status == "paused"
            await scheduler.stop()

    asyncio.run(main())


def test_a_press_is_answered_again_where_the_answer_was_lost_and_counts_once(tmp_path, bot):
    async def main():
        async with on(f"sqlite:///{tmp_path}/t.db", bot, allow_from=[ZOE]) as scheduler:
            await scheduler.start()
            await scheduler.add_job("noisy", Manual())
            await post(scheduler, button("pause", "noisy"))
            await wait(bot.until, lambda: bot.of("sendMessage"))
            bot.fail("answerCallbackQuery", "lost", (400, "Bad Request: query is too old and response timeout expired"))
            bot.press(bot.buttons()["Pause"])
            bot.press(bot.buttons()["Pause"])
            await wait(bot.until, lambda: len(bot.of("answerCallbackQuery")) == 3)
            await eventually(scheduler, lambda tx: tx.of(Chats).answers("bot", 10), lambda found: not found)
            await scheduler.stop()

    asyncio.run(main())


# -- trouble and several nodes -----------------------------------------------------------------------------------------


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
