"""A scheduler with a telegram bot, and waiting for what comes of it."""

from __future__ import annotations

import asyncio

from tests.delivery.bot_server import PATIENCE, TOKEN
from wakeful import Scheduler
from wakeful.clock import sleep
from wakeful.delivery.rules import Rules
from wakeful.delivery.telegram.connector import TelegramConnector


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
