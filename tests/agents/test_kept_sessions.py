"""How long agents keep their sessions; in virtual time on both stores."""

from __future__ import annotations

import pytest

from tests.agents.test_chat_schedules import Phone, write
from tests.agents.test_one_run_per_session import schedule
from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents import Reply
from wakeful.domains.agents.tables import AgentSession, AgentTables
from wakeful.triggers import to_ms

MONTHLY = {"cron": "0 0 1 * *", "prompt": "Sum up."}


def remember(agents):
    """Agents that begin a session where they are given none."""
    agents.act = lambda turn: Reply("ok", session=turn.session or f"s{len(agents.turns)}")


@pytest.mark.promise("C4")
@virtual
async def test_a_monthly_schedule_goes_on_in_its_session(scene, agents):
    remember(agents)
    async with agents.scheduler() as scheduler:
        await scheduler.agents.apply({"a": agent(schedules={"report": MONTHLY})})
        await scheduler.start()
        for _ in range(3):
            scene.step(days=31)
            await scene.sleep(300)
        assert [turn.session for turn in agents.turns] == [None, "s1", "s1"]


@pytest.mark.promise("C4")
@virtual
async def test_every_session_that_may_be_used_again_outlives_retention_and_others_do_not(scene, agents):
    remember(agents)
    async with agents.scheduler() as scheduler:
        Phone(scheduler)
        schedules = {"report": MONTHLY, "gone": {**MONTHLY, "enabled": False}, "talk": {"chat": {}}}
        plan = {"a": agent(schedules=schedules), "b": agent(session="team", schedules={"x": MONTHLY})}
        await scheduler.agents.apply({**plan, "c": agent()})
        await schedule(scheduler, "mine", timing={"type": "cron", "expression": "0 0 1 1 *"})
        await scheduler.start()
        await scheduler.agents.request_wake("a")
        await scheduler.agents.request_wake("c")
        await write(scheduler, "hello")
        for job in ("a.report", "mine", "b.x"):
            await scheduler.run_job(job)
        await scene.sleep(60)
        old = [AgentSession(name, "a", "s", 1, 1) for name in ("a/gone", "a/never", "a/job:never", "run:run_1")]
        old.append(AgentSession("a/lately", "a", "s", 1, to_ms(at(days=30))))
        await scheduler.transact(lambda tx, _: [tx.of(AgentTables).keep_session(one) for one in old])
        plan["a"]["schedules"].pop("gone")
        await scheduler.agents.apply(plan)  # c is gone, too
        scene.step(days=31)
        await scene.sleep("7h")  # until the clock counts as steady again
        names = {kept.name for kept in await scheduler.read(lambda tx: tx.of(AgentTables).all_sessions())}
        assert names == {"a/heartbeat", "a/chat:phone:42", "a/report", "a/job:mine", "team", "a/lately"}
