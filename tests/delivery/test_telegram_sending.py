"""What the telegram connector sends, and what an answer of the Bot API means."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.delivery.bot_server import TOKEN, ZOE
from wakeful.clock import SystemClock
from wakeful.domains.delivery.connector import Message
from wakeful.domains.delivery.sending import attempt
from wakeful.domains.delivery.telegram.connector import TelegramConnector


def send(bot, text, title=None, **more):
    """What the attempt to send a message was."""
    connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url=bot.url)
    message = Message("dlv_1", "output", text, title, None, None, None, None, str(ZOE), 1_700_000_000_000, **more)
    return asyncio.run(attempt(connector, message, SystemClock().boot))[0]


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


def test_a_message_that_another_process_has_begun_goes_on_where_that_one_stopped(bot):
    text, kept = "\n\n".join(f"{number} " + "word " * 700 for number in range(3)), []
    message = Message("dlv_1", "output", text, None, None, None, None, None, str(ZOE), 1_700_000_000_000)
    bot.fail("sendMessage", None, (429, "Too Many Requests", {"retry_after": 1}))

    async def send(given):
        connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url=bot.url)
        return (await attempt(connector, given, SystemClock().boot))[0].ok

    assert asyncio.run(send(message._replace(keep=kept.append))) is False
    assert asyncio.run(send(message._replace(progress=kept[-1]))) is True
    assert [part.split()[0] for part in bot.texts()] == ["0", "1", "1", "2"]
    assert TOKEN not in kept[-1]


def test_no_error_shows_the_token_when_nothing_answers(caplog):
    caplog.set_level(logging.DEBUG)
    connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url="http://127.0.0.1:9")
    message = Message("dlv_1", "output", "x", None, None, None, None, None, "42", 1_700_000_000_000)
    tried = asyncio.run(attempt(connector, message, SystemClock().boot))[0]
    assert not tried.ok
    assert "planted" not in tried.error + caplog.text
