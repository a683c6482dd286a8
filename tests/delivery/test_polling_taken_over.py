"""Two processes with one bot on one database: when the one that polls is killed, the other continues where it was."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import closing

import pytest

from tests.delivery.bot_server import PATIENCE, TOKEN, ZOE, bot_server
from tests.simulation.eye import Eye
from tests.store.postgres_server import emptied_url
from tests.waiting import eventually

PROGRAM = """
import asyncio, sys
from wakeful import Scheduler
from wakeful.domains.delivery.rules import Rules
from wakeful.domains.delivery.telegram.connector import TelegramConnector
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.kernel.loop.config import Tuning

async def main(url, node, token, base_url, person):
    quick = Tuning(lease=LeaseTimes(beat_ms=200, lease_ms=1_500, margin_ms=300))
    async with Scheduler(url, node=node, tuning=quick) as scheduler:
        bot = TelegramConnector("bot", token, scheduler.clock, allow_from=[person], base_url=base_url)
        scheduler.connectors.add("bot", bot, Rules(), "file")
        await scheduler.start()
        print("started", flush=True)
        await asyncio.Event().wait()

asyncio.run(main(*sys.argv[1:]))
"""


@pytest.fixture
def start(tmp_path):
    """Starts a node as a process of its own."""
    processes = []

    def start(url, node, bot):
        argv = [sys.executable, "-c", PROGRAM, url, node, TOKEN, bot.url, str(ZOE)]
        env = {**os.environ, "XDG_STATE_HOME": str(tmp_path)}
        process = subprocess.Popen(argv, env=env, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        processes.append(process)
        assert process.stdout.readline() == "started\n"
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


@pytest.mark.promise("A10")
@pytest.mark.parametrize("moment", ["polling", "answered"])
def test_another_node_takes_over_from_one_that_was_killed_and_each_message_counts_once(start, moment):
    """`polling`: killed while it waits for messages; `answered`: when they are there to be read, stored or not."""
    url = emptied_url()
    with bot_server() as bot, closing(Eye(url)) as eye:

        def texts():
            return [row["text"] for row in eye.execute("SELECT text FROM chat_messages ORDER BY id")]

        def poller():
            sql = "SELECT n.name FROM receivers r JOIN nodes n ON n.id = r.node"
            return [row["name"] for row in eye.execute(sql)]

        one = start(url, "one", bot)
        bot.write("first")
        eventually(texts, lambda found: found == ["first"])
        start(url, "two", bot)
        bot.until(lambda: bot.polling and not bot.updates)
        assert poller() == ["one"]
        polls = bot.polls

        def after_call(method, answer):
            if method == "getUpdates" and answer.get("result"):
                bot.after_call = None
                os.kill(one.pid, signal.SIGKILL)

        if moment == "answered":
            bot.after_call = after_call
        else:
            assert bot.polls == polls  # the other one leaves it alone
            os.kill(one.pid, signal.SIGKILL)
        bot.write("second")
        bot.write("third")
        one.wait(PATIENCE)
        eventually(texts, lambda found: len(found) >= 3)
        bot.until(lambda: bot.polling and not bot.updates)
        assert texts() == ["first", "second", "third"]
        assert poller() == ["two"]
