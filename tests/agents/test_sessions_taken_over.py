"""What a run that others took over still does changes nothing about sessions; in virtual time on both stores."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import agent
from tests.agents.virtual_sessions import VirtualSessions
from tests.kernel.scene import virtual
from tests.store.samples import job
from wakeful import Manual, ids
from wakeful.domains.agents import Reply, kept_session
from wakeful.domains.agents.tables import AgentSession, AgentTables, KeptSession, Sessions
from wakeful.kernel.engine.recovery import crash_all
from wakeful.store.records import RunRow


async def take_over(scheduler, run_id):
    """As a node does with the runs of one that it holds for dead."""
    _, number = ids.decode(run_id)
    await scheduler.transact(lambda tx, context: crash_all(tx, context, [tx.runs.get(number)]))


@pytest.mark.promise("X2", "C4")
@pytest.mark.parametrize("policy", ["persistent", "team", "ephemeral"])
@virtual
async def test_the_session_of_a_run_that_was_taken_over_is_that_of_its_recovery(scene, agents, policy):
    async def act(turn):
        number = len(agents.turns)
        await scene.sleep(60 if number == 1 else 600)
        return Reply("ok", session=f"s{number}")

    agents.act = act
    plan = {"a": agent(session=policy, schedules={"tick": {"every": "1d", "prompt": "x"}}, max_concurrent=2)}
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.start()
        first = await scheduler.run_job("a.tick")
        await scene.sleep(30)
        await take_over(scheduler, first)
        name = {"persistent": "a/tick", "team": "team", "ephemeral": f"run:{first}"}[policy]
        known = AgentSession(name, "a", "of the recovery", 1, 1)
        await scheduler.transact(lambda tx, _: tx.of(AgentTables).keep_session(known))
        await scene.sleep(60)  # the one that was held for dead has answered
        assert len(agents.turns) == 2
        assert await scheduler.read(lambda tx: tx.of(AgentTables).session(name)) == known


@pytest.mark.promise("X2", "C4")
@virtual
async def test_a_session_that_a_run_made_after_it_was_taken_over_is_not_kept(scene):
    class Slow(VirtualSessions):
        async def handle_async_request(self, request):
            if request.method == "POST" and request.url.path.endswith("/sessions"):
                await scene.sleep(60)
            return await super().handle_async_request(request)

    sessions = Slow(scene)
    async with sessions.scheduler() as scheduler:
        job_id = ids.decode(await scheduler.add_job("one", Manual(), kind="session", payload={"prompt": "p"}))[1]
        await scheduler.start()
        first = await scheduler.run_job("one")
        await scene.sleep(30)
        await take_over(scheduler, first)
        known = KeptSession(job_id, "of the recovery", "", 1, 1)
        await scheduler.transact(lambda tx, _: tx.of(Sessions).keep(known))
        await scene.sleep(40)
        kept = await scheduler.read(lambda tx: tx.of(Sessions).of(job_id))
        assert kept.session == "of the recovery"
        sent = [message for _, message in sessions.messages]
        assert all("s-1" not in str(message) for message in sent)


@pytest.mark.promise("X2", "C6")
@virtual
async def test_a_run_that_was_taken_over_replaces_no_session_that_is_gone(scene):
    class Slow(VirtualSessions):
        async def handle_async_request(self, request):
            if request.method == "POST" and request.url.path.endswith("/sessions") and self.made:
                await scene.sleep(60)
            return await super().handle_async_request(request)

    sessions = Slow(scene, lambda number, message: (404, {}) if number == 2 else (200, {}))
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        await say(scheduler, scene, "keeper")
        await scheduler.add_job("sharer", Manual(), kind="session", payload={"prompt": "p", "session": "s-1"})
        first = await scheduler.run_job("sharer")
        await scene.sleep(30)
        await take_over(scheduler, first)
        await scene.sleep(60)
        assert sessions.made == 2  # it was made too late
        assert (await scheduler.get_job("sharer")).payload["session"] == "s-1"
        outcomes = [run.outcome for run in await scheduler.get_run_log("sharer", 9)]
        assert outcomes == ["success", "crashed"]


@pytest.mark.promise("X2", "C4")
@virtual
async def test_only_a_run_in_progress_forgets_a_session_that_it_did_not_find(scene, agents):
    known, gone = AgentSession("a/tick", "a", "s", 1, 1), kept_session.StoredSession(1, "a/tick", None)
    async with agents.scheduler() as scheduler:
        row = RunRow.queued(1, job(1)[0], "manual", 0)
        await scheduler.transact(lambda tx, _: tx.runs.add([row]))
        for status, left in (("queued", known), ("active", None)):
            await scheduler.transact(lambda tx, _, status=status: tx.runs.activate([row._replace(status=status)]))
            await scheduler.transact(lambda tx, _: tx.of(AgentTables).keep_session(known))
            await scheduler.transact(lambda tx, _: kept_session.forget(tx, gone))
            assert await scheduler.read(lambda tx: tx.of(AgentTables).session("a/tick")) == left


# -- sessions that others name ----------------------------------------------------------------------------------------


async def say(scheduler, scene, name, **payload):
    await scheduler.add_job(name, Manual(), kind="session", payload={"prompt": "p", **payload}, if_exists="update")
    run = await scheduler.run_job(name)
    await scene.sleep(10)
    return (await scheduler.get_run(run)).output["sessionId"]


@pytest.mark.promise("C4")
@virtual
async def test_a_session_that_another_job_names_is_not_discarded(scene):
    sessions = VirtualSessions(scene)
    async with sessions.scheduler(max_kept=1) as scheduler:
        await scheduler.start()
        assert await say(scheduler, scene, "keeper") == "s-1"
        assert await say(scheduler, scene, "sharer", session="s-1") == "s-1"
        assert await say(scheduler, scene, "other") == "s-2"
        assert await say(scheduler, scene, "another") == "s-3"
        assert sessions.discarded == ["s-2"]  # beyond the limit, and named by none
        assert await say(scheduler, scene, "keeper", model="large") == "s-4"
        assert "s-1" not in sessions.discarded
        assert await say(scheduler, scene, "sharer", session="s-1") == "s-1"
        await scheduler.remove_job("sharer")
        assert await say(scheduler, scene, "keeper", model="small") == "s-5"
        assert "s-4" in sessions.discarded


@pytest.mark.promise("C4")
@virtual
async def test_the_session_of_a_removed_job_stays_while_another_job_names_it(scene):
    sessions = VirtualSessions(scene)
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        await say(scheduler, scene, "keeper")
        await say(scheduler, scene, "sharer", session="s-1")
        await scheduler.remove_job("keeper")
        await say(scheduler, scene, "other")
        assert sessions.discarded == []
        await scheduler.remove_job("sharer")
        await say(scheduler, scene, "another")
        assert sessions.discarded == ["s-1"]
