"""Two nodes on one store, each with a connector of its own."""

from __future__ import annotations

import asyncio

import pytest

from tests.delivery.targets import known, stored
from tests.store.postgres_server import emptied_url
from wakeful import Scheduler
from wakeful.domains.delivery.local import CallConnector
from wakeful.domains.delivery.rules import Rules

PATIENCE = 120


def node(url, name, connector, got):
    made = Scheduler(url, node=name)

    async def send(message):
        got.put_nowait((name, message.text))

    made.connectors.add(connector, CallConnector(send), Rules(), "file")
    return made


@pytest.mark.promise("A8")
def test_each_node_sends_through_its_own_connectors_also_messages_of_other_nodes(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = emptied_url()

    async def main():
        got = asyncio.Queue()
        async with node(url, "one", "a", got) as one, node(url, "two", "b", got) as two:
            await one.start()
            await two.start()
            assert [item["name"] for item in await known(one)] == ["a", "b"]  # the second start took nothing away
            await two.deliver("for a", to="a")
            await one.deliver("for b", to="b")
            async with asyncio.timeout(PATIENCE):
                arrived = {await got.get(), await got.get()}
            assert arrived == {("one", "for a"), ("two", "for b")}
            await one.stop()
            await two.stop()
            assert {item["connector"] for item in await stored(one)} == {"a", "b"}

    asyncio.run(main())
