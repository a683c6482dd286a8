"""Schedulers with a bot, and waiting for what becomes of what people write and press."""

from __future__ import annotations

import asyncio

import pytest

from tests.delivery.bot_server import PATIENCE, TOKEN, bot_server
from tests.store.postgres_server import emptied_url
from wakeful import Scheduler
from wakeful.clock import sleep
from wakeful.domains.delivery import Post, enqueue
from wakeful.domains.delivery.chat import pairing
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.domains.delivery.rules import Rules
from wakeful.domains.delivery.telegram.connector import TelegramConnector

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
        while not is_so(found := await scheduler.read(read)):
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
    return await scheduler.read(lambda tx: tx.of(Chats).people("bot"))


async def post(scheduler, *buttons, text="Look", **more):
    return await scheduler.transact(
        lambda tx, context: enqueue(tx, context, Post(text, "bot", "alert", extra={"buttons": list(buttons)}, **more))
    )


async def waits(scheduler, run):
    while (await scheduler.get_run(run)).status != "waiting":
        await sleep(0.02)
