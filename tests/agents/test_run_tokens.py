"""The token of a run, and agents that wake agents, in virtual time on both stores."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful import ids
from wakeful.domains.agents import run_requests
from wakeful.domains.agents.hops import MOST_HOPS, TooManyHops, hops_of
from wakeful.domains.agents.route_models import EventIn
from wakeful.errors import AgentNotFound, NotAllowed
from wakeful.kernel.actions.run_tokens import RunToken, run_token


def number(turn):
    return ids.decode(turn.run.id)[1]


class Tokens:
    """Keeps the token of every run, and whose it was while the run went on."""

    def __init__(self, scheduler):
        self.scheduler = scheduler
        self.secrets = []

    async def keep(self, turn):
        secret = await self.scheduler.transact(lambda tx, _: run_token(tx, number(turn)))
        self.secrets.append(secret)
        assert await self.whose(secret) == RunToken(turn.agent, number(turn), "agent")
        return secret

    async def whose(self, secret):
        return await self.scheduler.server_side.find_token(secret)

    async def alive(self):
        return [secret for secret in self.secrets if await self.whose(secret) is not None]


@virtual
async def test_a_token_is_valid_for_its_run_and_dead_when_that_ends_whichever_way(scene, agents):
    async with agents.scheduler() as scheduler:
        tokens, ways = Tokens(scheduler), {"good": "Done.", "bad": RuntimeError("no")}
        started = asyncio.Event()

        async def act(turn):
            await tokens.keep(turn)
            if turn.schedule in ways:
                return ways[turn.schedule]
            started.set()
            await scene.sleep(7200)
            return None

        async def raising(turn):
            answer = await act(turn)
            if isinstance(answer, Exception):
                raise answer
            return answer

        agents.act = raising
        schedules = {
            name: {"at": "2099-01-01T00:00:00", "prompt": "x"} for name in ("good", "bad", "long", "cancelled")
        }
        await scheduler.agents.apply({"a": agent(schedules=schedules, max_concurrent=4)})
        await scheduler.start()
        for name in ("good", "bad"):
            await scheduler.wait_for_run(await scheduler.run_job(f"a.{name}"))
        assert (len(tokens.secrets), await tokens.alive()) == (2, [])
        cancelled = await scheduler.run_job("a.cancelled")
        await started.wait()
        assert len(await tokens.alive()) == 1
        await scheduler.cancel_run(cancelled)
        await scheduler.wait_for_run(cancelled)
        assert await tokens.alive() == []
        await scheduler.run_job("a.long")  # ended by its time limit
        await scene.until(at(hours=2))
        assert (len(tokens.secrets), await tokens.alive()) == (4, [])
        assert await tokens.whose(f"{tokens.secrets[0][:-1]}0") is None
        assert await tokens.whose("wk_run_nonsense") is None


@virtual
async def test_a_token_of_a_run_that_was_cut_off_is_dead_once_the_crash_is_on_record(scene, agents):
    started = asyncio.Event()
    secrets = []
    async with agents.scheduler() as scheduler:
        tokens = Tokens(scheduler)

        async def hang(turn):
            secrets.append(await tokens.keep(turn))
            started.set()
            await scene.sleep(3600)

        agents.act = hang
        await scheduler.agents.apply({"a": agent()})
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await started.wait()
        await scene.crash(scheduler)
    async with agents.scheduler() as scheduler:
        tokens, seen = Tokens(scheduler), []

        async def look(turn):
            seen.append((await tokens.whose(secrets[0]), await tokens.keep(turn) != secrets[0]))
            return "ok"

        agents.act = look
        await scheduler.start()
        await scene.sleep(60)
        assert seen == [(None, True)]  # the run that goes on has a token of its own


@virtual
async def test_agents_that_wake_each_other_stop_after_so_many_hops_with_the_reason(scene, agents):
    async with agents.scheduler() as scheduler:
        refused = []

        async def act(turn):
            other = {"a": "b", "b": "a"}[turn.agent]
            try:
                await run_requests.wake(scheduler, number(turn), other)
            except TooManyHops as error:
                refused.append((error.code, str(error)))
            return "ok"

        agents.act = act
        await scheduler.agents.apply({"a": agent(), "b": agent()})
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.until(at(hours=1))
        assert [turn.agent for turn in agents.turns] == ["a", "b", "a", "b", "a", "b"]
        assert [turn.run.reason for turn in agents.turns] == ["manual", *["agent"] * MOST_HOPS]
        last = agents.turns[-1].run.id
        said = f"a is neither woken nor left an event: {last} of b is 5 hops from where this began, and 5 is the most."
        assert refused == [("too_many_hops", said)]
        assert (await scheduler.agents.get("a"))["skips"] == {"too_many_hops": 1}
        sentences = (await scheduler.explain("a.wake")).sentences
        why = "1 start refused as too_many_hops: too many agents in a row had woken each other (asked for by b)"
        assert any(sentence.startswith(why) for sentence in sentences)
        await scheduler.agents.request_wake("a")  # a person begins anew
        await scene.until(at(hours=2))
        assert len(agents.turns) == 2 * (1 + MOST_HOPS)


@virtual
async def test_events_have_hops_too_and_say_which_agent_they_come_from(scene, agents):
    async with agents.scheduler() as scheduler:
        refused = []

        async def act(turn):
            other, given = {"a": "b", "b": "a"}[turn.agent], EventIn(text="Your turn.", source="game")
            try:
                await run_requests.leave_event(scheduler, number(turn), other, given)
            except TooManyHops as error:
                refused.append(error.code)
            return "ok"

        agents.act = act
        beat = {"every": "30m", "prompt": "Look."}  # a heartbeat has no hops: what is heard counts
        await scheduler.agents.apply({"a": agent(heartbeat=beat), "b": agent(heartbeat=beat)})
        await scheduler.start()
        await scene.until(at(hours=12))
        heard = [turn.prompt.splitlines()[-1] for turn in agents.turns if "System events" in turn.prompt]
        assert set(heard) == {"- [a/game] Your turn.", "- [b/game] Your turn."}
        assert refused
        hops = [await scheduler.read(lambda tx, turn=turn: hops_of(tx, number(turn))) for turn in agents.turns]
        assert max(hops) == MOST_HOPS


@virtual
async def test_a_run_that_is_tried_again_has_the_hops_it_had(scene, agents):
    async with agents.scheduler() as scheduler:

        async def act(turn):
            if turn.agent == "a":
                await run_requests.wake(scheduler, number(turn), "b")
                return "ok"
            if len(agents.turns) < 4:
                raise RuntimeError("no")
            return "ok"

        agents.act = act
        await scheduler.agents.apply({"a": agent(), "b": agent()})
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scene.until(at(hours=1))
        of_b = [number(turn) for turn in agents.turns if turn.agent == "b"]
        assert [await scheduler.read(lambda tx, run=run: hops_of(tx, run)) for run in of_b] == [1, 1, 1]


@virtual
async def test_a_run_wakes_no_paused_agent_sees_its_own_alone_and_asks_nothing_once_it_has_ended(scene, agents):
    async with agents.scheduler() as scheduler:
        found = []

        async def act(turn):
            found.append((await run_requests.wake(scheduler, number(turn), "b"))["wake_at"])
            found.append((await run_requests.see_agent(scheduler, number(turn)))["name"])
            with pytest.raises(AgentNotFound, match="There is no agent 'b' that a run of a may see"):
                await run_requests.see_agent(scheduler, number(turn), "b")
            return "ok"

        agents.act = act
        await scheduler.agents.apply({"a": agent(), "b": agent()})
        await scheduler.start()
        await scheduler.agents.pause("b")
        await scheduler.agents.request_wake("a")
        await scene.sleep(60)
        assert found == [None, "a"]
        ended = number(agents.turns[0])
        with pytest.raises(NotAllowed, match="has ended, and its token with it"):
            await run_requests.wake(scheduler, ended, "b")
