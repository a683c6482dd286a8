"""The telegram connector against a Bot API on this machine: pairing, strangers, buttons."""

from __future__ import annotations

import asyncio

import pytest

from tests.delivery.bot_server import PATIENCE, ZOE
from tests.delivery.targets import stored
from tests.delivery.telegram_bot import Heard, eventually, on, wait
from tests.store.postgres_server import emptied_url
from wakeful import Manual, Scheduler
from wakeful.clock import sleep
from wakeful.delivery import Post, button, enqueue
from wakeful.delivery.chat import pairing
from wakeful.delivery.chat.tables import Chats
from wakeful.delivery.tables import Outbox

BOB = 43


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return emptied_url() if request.param == "postgres" else f"sqlite:///{tmp_path}/t.db"


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
                assert await scheduler.transact(lambda tx, c, w=wrong: pairing.redeem(tx, c, "bot", "9", w)) is None
            assert await scheduler.look(lambda tx: pairing.has_open_code(tx, "bot"))
            await scheduler.transact(lambda tx, c: pairing.redeem(tx, c, "bot", "9", "WRONG"))
            assert not await scheduler.look(lambda tx: pairing.has_open_code(tx, "bot"))
            assert await scheduler.transact(lambda tx, c: pairing.redeem(tx, c, "bot", "42", code)) is None
            again = await offer(scheduler)

            def later(tx, context):
                tx.now += pairing.LIFE_MS
                return pairing.redeem(tx, context, "bot", "42", again)

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
