"""What a run keeps of a call of its agent that did not go well; the program at the other end is a function here."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from wakeful.agents import Reply, asking
from wakeful.agents.asking import AgentKind, Kept
from wakeful.agents.runners.turn import Answered, Gone, Wrong
from wakeful.agents.tables import AgentSession, AgentTables

TICK = {"tick": {"every": "1d", "prompt": "x"}}


def answering(monkeypatch, *endings, session=None):
    """Calls end so, one after the other, and name a session first."""
    left, calls = list(endings), []

    async def call(_, turn, around):
        calls.append(turn.session)
        if session is not None:
            around.on_session(session)
        return left.pop(0)

    monkeypatch.setattr(asking, "call_agent", call)
    return calls


@pytest.mark.promise("A5")
@virtual
async def test_a_session_that_is_gone_is_forgotten_though_the_new_one_fails(scene, agents, monkeypatch):
    calls = answering(monkeypatch, Gone("no conversation found"), Wrong("broken"))
    async with agents.scheduler_with({"a": agent(schedules=TICK)}) as scheduler:
        kept = AgentSession("a/tick", "a", "old", 0, scene.clock.now())
        await scheduler.transact(lambda tx, _: tx.of(AgentTables).keep_session(kept))
        await scheduler.start()
        await scheduler.run_job("a.tick")
        await scene.sleep(5)
        assert calls == ["old", None]
        assert await scheduler.look(lambda tx: tx.of(AgentTables).session("a/tick")) is None


@pytest.mark.promise("A3")
@virtual
async def test_a_call_ends_when_the_session_it_named_is_stored(scene, agents, monkeypatch):
    answering(monkeypatch, Answered(Reply("Done.")), session="new")
    payload = {"agent": "a", "schedule": "tick", "runner": {}}
    async with agents.scheduler_with({"a": agent(schedules=TICK)}) as scheduler:
        await scheduler.start()
        run = await scheduler.get_run(await scheduler.run_job("a.tick"))
        await scheduler.stop()
        before = asyncio.all_tasks()
        await AgentKind(scheduler)._call(run, payload, "x", Kept("a/tick", None))
        assert asyncio.all_tasks() <= before
        assert (await scheduler.look(lambda tx: tx.of(AgentTables).session("a/tick"))).session == "new"


@pytest.mark.promise("X7")
@pytest.mark.parametrize(("preset", "tokens"), [("codex", None), ("claude", 70)])
@virtual
async def test_tokens_of_a_whole_session_do_not_count_for_a_run_that_failed(scene, preset, tokens):
    async with scene.scheduler() as scheduler:
        ending = Wrong("broken", reply=Reply("", cost=0.5, tokens_in=70, tokens_out=7))
        found = await AgentKind(scheduler)._problem(ending, {"agent": "a", "runner": {"preset": preset}})
        assert found.output.usage == {"cost": 0.5, "tokens_in": tokens, "tokens_out": tokens and 7}
