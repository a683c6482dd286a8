"""Webhooks on a store that several nodes share: whichever node takes a request, it counts once."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.hooks import Sender, hook
from tests.agents.virtual_agents import VirtualAgents, agent
from tests.service.real_time import real
from tests.store.postgres_server import postgres_url
from wakeful import Scheduler

SENT = 20


@pytest.mark.promise("D4")
@real
async def test_the_same_request_to_two_nodes_at_once_starts_one_run():
    agents = VirtualAgents()
    url = postgres_url()
    async with Scheduler(url, timezone="UTC", node="one") as one, Scheduler(url, timezone="UTC", node="two") as two:
        await one.agents.apply({"a": agent(schedules={"deploy": hook(prompt="{payload.n}")})})
        _ = two.agents
        await one.start()
        await two.start()
        senders = [Sender(one), Sender(two)]
        calls = [sender.send({"n": n}, f"d-{n}") for n in range(SENT) for sender in senders]
        answers = [answer.json() for answer in await asyncio.gather(*calls)]
        pairs = list(zip(answers[::2], answers[1::2], strict=True))
        assert [sorted((first["duplicate"], second["duplicate"])) for first, second in pairs] == [[False, True]] * SENT
        assert all(first["run"] == second["run"] for first, second in pairs)
        async with asyncio.timeout(30):
            while any(run.status != "done" for run in await one.get_run_log("a.deploy", 100)):
                await one.wait_for_run(pairs[-1][0]["run"])
        runs = await one.get_run_log("a.deploy", 100)
        assert [run.outcome for run in runs] == ["success"] * SENT
        assert len(agents.turns) == SENT
        await one.stop()
        await two.stop()
