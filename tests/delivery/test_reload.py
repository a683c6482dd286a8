"""A change of `connectors` takes effect while the scheduler runs."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.delivery.bot_server import PATIENCE, TOKEN, bot_server
from tests.delivery.targets import known
from wakeful import Scheduler
from wakeful.clock import sleep
from wakeful.domains.delivery.chat.tables import Chats
from wakeful.domains.delivery.configuration import ConnectorsSection, register_all, reload_configured


def written(folder, **connectors):
    return ConnectorsSection.model_validate(connectors, context={"folder": folder})


async def lines(path, number):
    """The texts in a file of messages, once there are so many."""
    async with asyncio.timeout(PATIENCE):
        while not path.exists() or len(path.read_text().splitlines()) < number:
            await sleep(0.02)
    return [json.loads(line)["text"] for line in path.read_text().splitlines()]


@pytest.mark.promise("A9")
def test_connectors_are_added_changed_and_removed_and_the_others_stay(tmp_path):
    async def main():
        disk, other = {"type": "file", "path": "a.jsonl"}, {"type": "log"}
        async with Scheduler(f"sqlite:///{tmp_path}/t.db") as scheduler:
            register_all(scheduler.connectors, written(tmp_path, disk=disk, old=other), scheduler.clock)
            await scheduler.start()
            same = scheduler.connectors.find("old")
            await reload_configured(scheduler, written(tmp_path, disk=disk, old=other))
            assert scheduler.connectors.find("old") is same
            await scheduler.deliver("one", to="disk")
            assert await lines(tmp_path / "a.jsonl", 1) == ["one"]
            changed = written(tmp_path, disk={**disk, "path": "b.jsonl", "rate": "100/s"}, new=disk)
            await reload_configured(scheduler, changed)
            assert [(item["name"], item["rate"]) for item in await known(scheduler)] == [
                ("disk", "100/s"),
                ("new", None),
            ]
            await scheduler.deliver("two", to="disk")
            await scheduler.deliver("three", to="new")
            assert await lines(tmp_path / "b.jsonl", 1) == ["two"]
            assert await lines(tmp_path / "a.jsonl", 2) == ["one", "three"]
            assert scheduler.connectors.find("old") is None
            await scheduler.stop()

    asyncio.run(main())


def test_what_waits_for_a_connector_that_the_file_has_now_is_sent(tmp_path):
    async def main():
        async with Scheduler(f"sqlite:///{tmp_path}/t.db") as scheduler:
            register_all(scheduler.connectors, written(tmp_path), scheduler.clock)
            await scheduler.start()
            await scheduler.deliver("early", to="last")
            await reload_configured(scheduler, written(tmp_path, disk={"type": "file", "path": "a.jsonl"}))
            assert await lines(tmp_path / "a.jsonl", 1) == ["early"]
            await scheduler.stop()

    asyncio.run(main())


def test_a_bot_that_is_changed_polls_once_and_one_that_is_removed_no_more(tmp_path):
    async def main(bot):
        given = {"type": "telegram", "token": TOKEN, "base_url": bot.url, "allow_from": [42]}
        async with Scheduler(f"sqlite:///{tmp_path}/t.db") as scheduler:
            register_all(scheduler.connectors, written(tmp_path, bot=given), scheduler.clock)
            await scheduler.start()
            await asyncio.to_thread(bot.until, lambda: bot.polling == 1)
            await reload_configured(scheduler, written(tmp_path, bot={**given, "allow_from": [42, "43"]}))
            people = await scheduler.read(lambda tx: tx.of(Chats).people("bot"))
            assert [one.sender for one in people] == ["42", "43"]
            before = bot.polls
            await asyncio.to_thread(bot.until, lambda: bot.polls > before or bot.polling == 1)
            await reload_configured(scheduler, written(tmp_path))
            assert await known(scheduler) == []
            await scheduler.stop()

    with bot_server() as bot:
        asyncio.run(main(bot))


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"type": "telegram"}, "needs token"),
        ({"type": "telegram", "token": "a b"}, "token of a bot"),
        ({"type": "telegram", "token": TOKEN, "allow_from": [-100]}, "number of a person"),
        ({"type": "telegram", "token": TOKEN, "allow_from": ["@zoe"]}, "number of a person"),
        ({"type": "telegram", "token": TOKEN, "url": "https://e.org"}, "takes no url"),
        ({"type": "telegram", "token": TOKEN, "base_url": "ftp://e.org"}, "http"),
        ({"type": "log", "allow_from": [1]}, "takes no allow_from"),
    ],
)
def test_a_bot_that_cannot_work_is_refused(tmp_path, given, complaint):
    with pytest.raises(ValueError, match=complaint):
        written(tmp_path, bot=given)
