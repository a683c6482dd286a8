"""Two nodes on one store: an incident that both notice is one alert and one message."""

from __future__ import annotations

import asyncio

import pytest

from tests.store.postgres_server import emptied_url
from wakeful import Scheduler
from wakeful.domains.alerts import configure
from wakeful.kernel.engine.alerts import close_alert, open_alert

PATIENCE = 120
BOTH = 20


def node(url, name, got):
    made = Scheduler(url, node=name)

    async def send(message):
        alert = message.data()["alert"]
        got.put_nowait((alert["kind"], alert["event"], alert["message"]))

    made.connectors.register("phone", send)
    return made


@pytest.mark.promise("X5")
def test_what_two_nodes_notice_at_once_is_one_alert_and_one_message(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = emptied_url()

    async def main():
        got = asyncio.Queue()
        async with node(url, "one", got) as one, node(url, "two", got) as two:
            await configure(one, to="phone")
            await one.start()
            await two.start()

            async def notice(scheduler):
                await scheduler.transact(lambda tx, context: open_alert(tx, context, "clock", "back", "set back"))

            await asyncio.gather(*[notice(scheduler) for scheduler in (one, two) for _ in range(BOTH)])
            async with asyncio.timeout(PATIENCE):
                assert await got.get() == ("clock", "opened", "set back")
            (alert,) = await one.list_alerts()
            assert alert.times == 2 * BOTH

            async def over(scheduler):
                return await scheduler.transact(lambda tx, context: close_alert(tx, context, "clock", "back"))

            assert sorted(await asyncio.gather(*[over(one), over(two)])) == [False, True]
            async with asyncio.timeout(PATIENCE):
                assert await got.get() == ("clock", "closed", "set back")
            await one.stop()
            await two.stop()
            assert got.empty()

    asyncio.run(main())


@pytest.mark.promise("X5")
def test_a_dead_node_is_reported_by_another(tmp_path, monkeypatch):
    from tests.kernel.crashing import die
    from wakeful.kernel.loop.config import Tuning
    from wakeful.kernel.rules.lease_times import LeaseTimes

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = emptied_url()
    quick = Tuning(lease=LeaseTimes(beat_ms=200, lease_ms=1_500, margin_ms=300))

    async def main():
        got = asyncio.Queue()

        async def send(message):
            alert = message.data()["alert"]
            got.put_nowait((alert["kind"], alert["event"], message.title))

        one, two = Scheduler(url, node="one", tuning=quick), Scheduler(url, node="two", tuning=quick)
        two.connectors.register("phone", send)
        await one.open()
        async with two:
            await configure(two, to="phone")
            await one.start()
            await two.start()
            await die(one)
            async with asyncio.timeout(PATIENCE):
                assert await got.get() == ("dead_node", "opened", "one: dead_node")
            await two.stop()

    asyncio.run(main())
