"""Buttons under messages on Telegram: each works once, and only for people whose role allows it."""

from __future__ import annotations

import asyncio

import pytest

from tests.delivery.bot_server import PATIENCE, ZOE
from tests.delivery.bots import BOB, Heard, eventually, offer, on, post, wait, waits
from wakeful import Manual
from wakeful.domains.alerts import configure
from wakeful.domains.delivery import button
from wakeful.domains.delivery.chat.tables import Chats


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
            assert "already approved by Zoe (bot 42)" in bot.of("answerCallbackQuery")[3]["text"]
            assert (await wait(bot.until, lambda: bot.of("editMessageReplyMarkup")))[0]["reply_markup"] == {
                "inline_keyboard": []
            }
            await done.next()
            await scheduler.stop()
        assert done.empty()

    asyncio.run(main())


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
            assert "rejected by Zoe (bot 42): not on a Friday" in (await scheduler.get_run(run)).error
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
            bot.press(bot.buttons()["Pause"], query="first")
            await wait(bot.until, lambda: len(bot.of("answerCallbackQuery")) == 2)
            await scheduler.resume_job("noisy")
            bot.press(bot.buttons()["Pause"], query="second")
            await wait(bot.until, lambda: len(bot.of("answerCallbackQuery")) == 3)
            answers = [(call["callback_query_id"], call["text"]) for call in bot.of("answerCallbackQuery")]
            assert answers == [(query, "noisy is paused.") for query in ("first", "first", "second")]
            assert [action.what for action in await scheduler.list_actions()] == ["resume", "pause"]
            assert (await scheduler.get_job("noisy")).status == "idle"
            await eventually(scheduler, lambda tx: tx.of(Chats).answers("bot", 10), lambda found: not found)
            await scheduler.stop()

    asyncio.run(main())


@pytest.mark.promise("X8")
def test_an_approval_on_telegram_is_one_press(url, bot):
    async def main():
        done = Heard()
        async with on(url, bot, allow_from=[ZOE, BOB]) as scheduler:
            scheduler.on_job_due("job", done)
            await configure(scheduler, to="bot")
            await scheduler.start()
            await scheduler.add_job("deploy", Manual(), approval=True)
            await scheduler.run_job("deploy")
            await wait(bot.until, lambda: len(bot.of("sendMessage")) == 2)
            bot.press(bot.buttons(ZOE)["Approve"], query="zoe")
            bot.press(bot.buttons(BOB)["Approve"], sender=BOB, query="bob")
            await done.next()
            await wait(bot.until, lambda: len(bot.of("answerCallbackQuery")) == 2)
            assert [call["text"] for call in bot.of("answerCallbackQuery")] == ["Approved."] * 2
            await wait(bot.until, lambda: len(bot.of("editMessageReplyMarkup")) == 2)
            edits = bot.of("editMessageReplyMarkup")
            assert [call["reply_markup"] for call in edits] == [{"inline_keyboard": []}] * 2
            await scheduler.stop()
        assert done.empty()

    asyncio.run(main())
