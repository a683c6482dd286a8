"""Rate limits of accounts in virtual time: how long they hold, and what they count as."""

from __future__ import annotations

import httpx
import pytest

from tests.agents.test_calls import answering
from tests.agents.virtual_agents import PLACE, agent
from tests.kernel.scene import virtual
from wakeful.domains.agents.limits.holding import meet_limit, watch
from wakeful.domains.agents.limits.rules import RateLimit, ends_at, met_again
from wakeful.domains.agents.limits.tables import RateLimits
from wakeful.domains.agents.runners.turn import Answered, Limited, Reply
from wakeful.errors import LimitNotFound
from wakeful.kernel.actions import tokens
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app

MINUTE, HOUR, DAY = 60_000, 3_600_000, 86_400_000


@pytest.mark.parametrize(
    ("limited", "lasts"),
    [
        (Limited("limit reached"), 15 * MINUTE),
        (Limited("limit reached", 30 * MINUTE), 30 * MINUTE),
        (Limited("limit reached, try again in 30 days", 30 * DAY), HOUR),
        (Limited("limit reached", 30 * DAY, confirmed=True), 30 * DAY),
    ],
)
def test_a_limit_that_only_a_message_mentions_ends_after_an_hour_at_most(limited, lasts):
    assert ends_at(limited, 0) == lasts


TICK = {"tick": {"every": "10s", "prompt": "x"}}


@pytest.mark.promise("X7")
@virtual
async def test_a_call_that_meets_a_limit_counts_as_a_run_with_what_it_reported(scene, agents, monkeypatch):
    reply = Reply("", cost=0.1, tokens_in=5)
    calls = answering(monkeypatch, *[Limited("try again in 1 second", 1, reply=reply)] * 9)
    plan = {"a": agent(schedules=TICK, budget={"runs_per_day": 3})}
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.start()
        await scene.sleep(60)
        seen = await scheduler.agents.get("a")
        assert len(calls) == 3
        assert seen["spent_today"] == {"runs": 3, "cost": pytest.approx(0.3), "tokens": 15}
        assert seen["over_budget"] == "a is over budget: 3 of 3 runs are used today"


KNOWN = RateLimit("work", 10 * HOUR, "usage limit", HOUR)


@pytest.mark.parametrize(
    ("known", "now", "since", "until"),
    [
        (None, 9 * HOUR, 9 * HOUR, 12 * HOUR),
        (KNOWN, 9 * HOUR, HOUR, 12 * HOUR),
        (KNOWN, 30 * HOUR, HOUR, 33 * HOUR),  # nobody got past it in between
        (KNOWN, 34 * HOUR, 34 * HOUR, 37 * HOUR),  # it had ended a day before
        (KNOWN._replace(since=0), 9 * HOUR, 9 * HOUR, 12 * HOUR),
        (KNOWN._replace(until=20 * HOUR), 9 * HOUR, HOUR, 20 * HOUR),
    ],
)
def test_a_limit_that_is_met_again_within_a_day_goes_on(known, now, since, until):
    found = met_again(known, "work", now + 3 * HOUR, "again", now)
    assert (found.since, found.until) == (since, until)


def limited(**settings):
    made = agent(schedules={"tick": {"every": "30m", "prompt": "x"}}, **settings)
    return {**made, "runner": {**made["runner"], "account": "work"}}


async def alerts(scheduler):
    return [one.message for one in await scheduler.list_alerts() if one.kind == "rate_limited"]


def meets(account, lasts, why="out of credits"):
    return lambda tx, _: meet_limit(tx, account, tx.now + lasts, why)


async def look_after(scheduler, scene, hours):
    """Let time pass without an engine, and do what one does each minute."""
    await scene.sleep(hours * 3600)
    await scheduler.transact(watch)


@pytest.mark.promise("X5")
@virtual
async def test_six_hours_at_a_limit_open_one_alert_and_the_first_success_closes_it(scene, agents):
    async with agents.scheduler_with({"a": limited(), "b": limited()}) as scheduler:
        for _ in range(6):
            await scheduler.transact(meets("work", HOUR))
            await look_after(scheduler, scene, hours=0.9)
        assert await alerts(scheduler) == []
        await scheduler.transact(meets("work", HOUR))
        await look_after(scheduler, scene, hours=0.7)
        [message] = await alerts(scheduler)
        assert "The account work has been at its rate limit since 2026-01-01 00:00 UTC" in message
        assert "no run of a and b has succeeded since. It said: out of credits." in message
        assert message.endswith("clear it: wakeful agent limits clear work")
        await look_after(scheduler, scene, hours=0.2)
        assert [one.times for one in await scheduler.list_alerts()] == [1]
        await scheduler.start()
        await scene.sleep(60)
        assert (len(await alerts(scheduler)), agents.turns) == (1, [])
        await scene.sleep(600)
        assert await scheduler.list_alerts() == []
        assert await scheduler.read(lambda tx: tx.of(RateLimits).all()) == []
        assert len(agents.turns) == 2


@pytest.mark.promise("X5")
@virtual
async def test_an_engine_opens_the_alert_although_no_run_meets_the_limit_again(scene, agents):
    async with agents.scheduler_with({"a": limited()}) as scheduler:
        await scheduler.transact(meets("work", 3 * DAY))
        await scene.sleep(6 * 3600 - 900)
        await scheduler.start()
        await scene.sleep(840)
        assert await alerts(scheduler) == []
        await scene.sleep(900)
        assert len(await alerts(scheduler)) == 1
        assert agents.turns == []


@virtual
async def test_a_limit_that_nobody_met_for_a_day_is_forgotten_with_its_alert(scene, agents):
    async with agents.scheduler_with({"a": limited()}) as scheduler:
        await scheduler.transact(meets("work", 7 * HOUR))
        await look_after(scheduler, scene, hours=6.5)
        assert len(await alerts(scheduler)) == 1
        await look_after(scheduler, scene, hours=24)
        assert len(await alerts(scheduler)) == 1
        await look_after(scheduler, scene, hours=0.5)
        assert await alerts(scheduler) == []
        assert await scheduler.read(lambda tx: tx.of(RateLimits).all()) == []


@virtual
async def test_a_limit_that_ended_opens_no_alert(scene, agents):
    async with agents.scheduler_with({"a": limited()}) as scheduler:
        await scheduler.transact(meets("work", HOUR))
        await look_after(scheduler, scene, hours=8)
        assert await alerts(scheduler) == []


@virtual
async def test_a_run_that_began_before_a_limit_does_not_end_it(scene, agents):
    agents.act = lambda _: scene.sleep(60)
    async with agents.scheduler_with({"a": limited()}) as scheduler:
        await scheduler.start()
        await scheduler.run_job("a.tick")
        await scene.sleep(30)
        await scheduler.transact(meets("work", HOUR))
        await scene.sleep(60)
        assert (await scheduler.get_run_log("a.tick"))[0].outcome == "success"
        assert [one["account"] for one in await scheduler.agents.rate_limits()] == ["work"]


@pytest.mark.promise("X3")
@virtual
async def test_clearing_a_limit_starts_what_was_refused_and_what_was_deferred_at_once(scene, agents, monkeypatch):
    calls = answering(
        monkeypatch, Limited("usage limit", 3 * HOUR + 10**13, confirmed=True), *[Answered(Reply("Hi."))] * 4
    )
    async with agents.scheduler_with({name: limited() for name in ("a", "b", "c")}) as scheduler:
        await scheduler.start()
        asked = await scheduler.agents.request_wake("a")  # met the limit, and is deferred
        await scene.sleep(5)
        await scheduler.run_job("b.tick")  # is refused
        await scene.sleep(5)
        assert len(calls) == 1
        told = await scheduler.agents.request_wake("c")
        [limit] = await scheduler.agents.rate_limits()
        assert (told["waits_for"], told["waits_until"]) == ("rate_limited", limit["until"])
        assert (limit["account"], limit["why"], limit["agents"]) == ("work", "usage limit", ["a", "b", "c"])
        assert (await scheduler.agents.get("a"))["rate_limited"]["until"] == limit["until"]
        assert "clear it: wakeful agent limits clear work" in str(await scheduler.explain("b.tick"))
        await scene.sleep(5)
        assert await scheduler.agents.clear_rate_limit("work") == limit
        await scene.sleep(5)
        assert len(calls) == 4
        assert (await scheduler.get_run(asked["run"])).outcome == "deferred"
        assert [(await scheduler.get_run_log(job))[0].outcome for job in ("a.wake", "b.tick", "c.wake")] == [
            "success"
        ] * 3
        assert await scheduler.agents.rate_limits() == []
        with pytest.raises(LimitNotFound, match=r"no rate limit on an account 'work'[.] No account is"):
            await scheduler.agents.clear_rate_limit("work")


@virtual
async def test_whatever_a_tool_says_about_its_limit_is_stored(scene, agents):
    async with agents.scheduler_with({"a": limited()}) as scheduler:
        await scheduler.transact(meets("work", HOUR, "limit \0 reached \ud800" + "x" * 500))
        [limit] = await scheduler.agents.rate_limits()
        assert (limit["why"][:18], len(limit["why"])) == ("limit \ufffd reached ?x", 200)


@pytest.mark.promise("X7")
@virtual
async def test_limits_are_listed_and_cleared_over_http_by_those_who_may(scene, agents):
    async with agents.scheduler_with({"a": limited()}) as scheduler:
        await scheduler.transact(meets("work", HOUR))
        await scheduler.transact(meets("github:owner/name", HOUR))
        for role in ("viewer", "operator"):
            await scheduler.transact(lambda tx, _, role=role: tokens.create(tx, role, role, f"wk_{role}"))
        transport = httpx.ASGITransport(app=create_app(scheduler, ServerSettings()))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:

            async def ask(method, path, role):
                headers = {"Authorization": f"Bearer wk_{role}"} if role else {}
                return await client.request(method, path, headers=headers)

            listed = (await ask("GET", "/api/limits", "viewer")).json()
            assert [one["account"] for one in listed["items"]] == ["github:owner/name", "work"]
            assert listed["items"] == await scheduler.agents.rate_limits()
            assert (await ask("GET", "/api/limits", None)).status_code == 401
            assert (await ask("POST", "/api/limits/work/clear", "viewer")).status_code == 403
            assert len(await scheduler.agents.rate_limits()) == 2
            assert (await ask("POST", "/api/limits/none/clear", "operator")).status_code == 404
            assert (await ask("POST", "/api/limits/work/clear", "operator")).json() == listed["items"][1]
            assert await scheduler.agents.rate_limits() == listed["items"][:1]


@pytest.mark.promise("X3")
@virtual
async def test_explain_says_what_a_run_waits_for_that_was_asked_for_at_a_limit_or_beyond_a_budget(scene, agents):
    limited = agent(runner={"python": PLACE, "account": "work"}, schedules={"tick": {"manual": True}})
    async with agents.scheduler_with({"a": limited, "b": agent(budget={"runs_per_day": 0})}) as scheduler:
        await scheduler.start()
        until = scene.clock.now() + HOUR
        await scheduler.transact(lambda tx, _: meet_limit(tx, "work", until, "limit reached"))
        run = await scheduler.run_job("a.tick")
        woken = (await scheduler.agents.request_wake("b"))["run"]
        await scene.sleep(5)
        said = str(await scheduler.explain(run))
        assert "The account work is at its rate limit until 2026-01-01 01:00:00 UTC: limit reached." in said
        said = str(await scheduler.explain(woken))
        assert "A budget is used up, and it waits until 2026-01-02 00:" in said
        assert "Used today: 0 of 0 runs by b" in said
        await scene.sleep(HOUR // 1000)
        assert "rate limit" not in str(await scheduler.explain(run))


@pytest.mark.promise("X7")
@virtual
async def test_an_agent_without_an_account_has_a_limit_of_its_own_that_others_do_not_wait_for(
    scene, agents, monkeypatch
):
    calls = answering(monkeypatch, *[Limited("out of credits")] * 300)
    ticks = {"tick": {"every": "10m", "prompt": "x"}, "tock": {"every": "10m", "prompt": "x"}}
    async with agents.scheduler_with({"a": agent(schedules=ticks), "b": agent()}) as scheduler:
        await scheduler.start()
        await scene.sleep("3d")
        assert len(calls) <= 4 * 24 * 3 + 1  # every 15 minutes, and not by each schedule
        (limit,) = await scheduler.agents.rate_limits()
        assert (limit["account"], limit["agents"]) == ("agent:a", ["a"])
        assert (await scheduler.agents.get("a"))["rate_limited"]["account"] == "agent:a"
        assert (await scheduler.agents.get("b"))["rate_limited"] is None
        assert len(await alerts(scheduler)) == 1
        await scheduler.agents.clear_rate_limit("agent:a")
        assert await alerts(scheduler) == []
