"""Long and odd texts, as the services count them: they take every part, and nothing of the text is missing."""

from __future__ import annotations

import asyncio
import json

import pytest
import requests
from apprise import Apprise
from apprise.conversion import text_to_html

from tests.delivery.bot_server import TOKEN, ZOE
from wakeful.clock import SystemClock
from wakeful.domains.delivery.apprise_urls import AppriseConnector, parts_for
from wakeful.domains.delivery.connector import Message
from wakeful.domains.delivery.sending import attempt
from wakeful.domains.delivery.telegram.connector import TelegramConnector
from wakeful.domains.delivery.texts import is_visible

DISCORD = "discord://123456789012345678/" + "abcdefghijklmnopqrstuvwxyz" * 2
TGRAM = "tgram://123456789:abcdefg_hijklmnop/12315544/"


def send(connector, text, title="backup: success", kind="output"):
    message = Message("dlv_1", kind, text, title, None, None, None, None, str(ZOE), 1_700_000_000_000)
    return asyncio.run(attempt(connector, message, SystemClock().boot))[0]


def apprise_of(url):
    made = Apprise()
    assert made.add(url)
    return made


class Service:
    """Takes what is posted, as a service on the network would, up to its limit."""

    def __init__(self, monkeypatch, field, fits, answer=b'{"ok": true, "result": {}}'):
        self.taken = []
        self._field, self._fits, self._says = field, fits, answer
        monkeypatch.setattr(requests, "post", self.post)
        monkeypatch.setattr(requests, "request", lambda _, url, **more: self.post(url, **more))

    def post(self, url, **more):
        text = json.loads(more["data"])
        for key in self._field.split("."):
            text = text[int(key)] if isinstance(text, list) else text[key]
        answer = requests.Response()
        answer.status_code = 200 if self._fits(text) else 400
        answer._content = self._says
        self.taken += [text] if self._fits(text) else []
        return answer


def utf16(text):
    return len(text.encode("utf-16-le")) // 2


def words(text):
    return text.replace("\\", "").split()


@pytest.mark.promise("A8")
@pytest.mark.parametrize("url", [DISCORD, f"{DISCORD}?format=text"])
@pytest.mark.parametrize("size", [1_990, 2_000, 2_001, 10_000])
@pytest.mark.parametrize("title", ["backup: success", "t" * 240, "t" * 3_000])
def test_discord_gets_parts_that_it_takes_with_their_title(monkeypatch, url, size, title):
    discord = Service(monkeypatch, "content", lambda text: len(text) <= 2_000)
    text = ("word " * 2_000)[:size]
    assert send(AppriseConnector(url), text, title).ok
    assert "".join(words(" ".join(discord.taken))) == "".join(words(f"{title} {text}"))


@pytest.mark.promise("A8")
def test_what_a_service_escapes_counts(monkeypatch):
    discord = Service(monkeypatch, "embeds.0.description", lambda text: len(text) <= 2_000)
    text = "snake_case_name [x] " * 200
    assert send(AppriseConnector(f"{DISCORD}?format=markdown"), text).ok
    assert words(" ".join(discord.taken)) == words(text)


@pytest.mark.promise("A8")
@pytest.mark.parametrize("ping", ["@everyone", "<@%26123456789012345678>,<@4711>,@here"])
def test_whom_discord_mentions_with_every_part_counts(monkeypatch, ping):
    discord = Service(monkeypatch, "content", lambda text: utf16(text) <= 2_000)
    text = "word " * 1_000
    assert send(AppriseConnector(f"{DISCORD}?ping={ping}"), text).ok
    assert sum(part.count("word") for part in discord.taken) == 1_000


@pytest.mark.promise("A8")
@pytest.mark.parametrize("style", ["", "?format=text", "?format=html"])
def test_tabs_count_as_the_blanks_that_telegram_gets_for_them(monkeypatch, style):
    telegram = Service(monkeypatch, "text", lambda given: utf16(given.replace("\r", "")) <= 4_096)
    assert send(AppriseConnector(TGRAM + style), "name\t17\n" * 1_000).ok
    assert "".join(telegram.taken).count("name") == 1_000


@pytest.mark.promise("A8")
def test_blanks_count_as_they_are_written_in_html():
    service = apprise_of("mailto://user:secret@example.org?format=html")
    _, parts = parts_for(service, "", "a b\tc " * 20_000, "text")
    assert all(len(text_to_html(part)) <= 32_768 for part in parts)
    assert sum(part.count("c") for part in parts) == 20_000


@pytest.mark.promise("A8")
@pytest.mark.parametrize("kind", ["output", "reply"])
@pytest.mark.parametrize("text", ["\U0001f389" * 5_000, "\U0001f389 party " * 900, "a<b & c " * 1_200])
def test_telegram_through_apprise_gets_parts_as_it_counts_them(monkeypatch, text, kind):
    def fits(given):
        plain = given.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&").replace("\\", "")
        return 0 < utf16(plain.replace("<b>", "").replace("</b>", "")) <= 4_096

    telegram = Service(monkeypatch, "text", fits)
    assert send(AppriseConnector(TGRAM), text, kind=kind).ok
    assert "".join(telegram.taken).count("\U0001f389") == text.count("\U0001f389")
    assert sum(part.count("a") for part in telegram.taken) >= text.count("a")


@pytest.mark.promise("A8")
@pytest.mark.parametrize("blank", [" ", "\u2003", "\u200b", "\u3164"])
def test_discord_gets_no_part_in_which_nothing_can_be_seen(monkeypatch, blank):
    discord = Service(monkeypatch, "content", lambda text: is_visible(text) and len(text) <= 2_000)
    assert send(AppriseConnector(DISCORD), "begin" + blank * 9_000 + "end").ok
    assert "".join(discord.taken).index("begin") < "".join(discord.taken).index("end")


@pytest.mark.promise("A8")
@pytest.mark.parametrize(
    "text",
    [
        "begin" + " " * 9_000 + "end",
        "begin\n" + "\n" * 9_000 + "end",
        "\u2003" * 5_000 + "end",
        "begin" + "\t" * 20_000,
    ],
)
def test_a_long_run_of_blanks_fails_no_message(bot, text):
    connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url=bot.url)
    assert send(connector, text, None).ok
    assert all(part.strip() for part in bot.texts())
    assert " ".join(bot.texts()).split() == text.split()


@pytest.mark.promise("A8")
@pytest.mark.parametrize("text", ["```\n```", "\u200b\u200b", "\u2800", "  \n ", "\u3164", "``````"])
def test_a_message_in_which_nothing_can_be_seen_fails_for_no_reason_of_ours(bot, text):
    connector = TelegramConnector("bot", TOKEN, SystemClock(), base_url=bot.url)
    assert send(connector, text, None).ok
    assert len(bot.texts()) == 1
