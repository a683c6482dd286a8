"""A session has one run at a time, whatever started the runs; in virtual time on both stores."""

from __future__ import annotations

import pytest

from tests.agents.test_chat_schedules import Phone, write
from tests.agents.virtual_agents import agent
from tests.agents.virtual_sessions import VirtualSessions
from tests.kernel.scene import virtual
from wakeful import Every, Manual
from wakeful.domains.agents import Reply
from wakeful.domains.agents.schedules import ScheduleSpec, put
from wakeful.domains.agents.task import Task
from wakeful.errors import InvalidJob
from wakeful.kernel.context import Rights

HOURLY = {"type": "cron", "expression": "0 * * * *"}
ANY = {"first": {"chat": {"match": "x"}}, "second": {"chat": {"match": "x"}}}


async def schedule(scheduler, slug, *, of="a", timing=HOURLY):
    """As `PUT /api/schedule/SLUG` does."""
    wanted = ScheduleSpec(Task("Go on."), timing, agent=of)
    rights = Rights("me", admin_kinds=True)
    return await scheduler.transact(lambda tx, context: put(tx, context, slug, wanted), rights=rights)


def slow(agents, seconds):
    """Agents that take long, and tell in which session they were asked."""
    asked = []

    async def act(turn):
        asked.append((turn.schedule, turn.session))
        await agents.scene.sleep(seconds)
        return Reply("ok", session=turn.session or f"s{len(asked)}")

    agents.act = act
    return asked


@pytest.mark.promise("A3", "D6")
@virtual
async def test_two_chat_schedules_of_one_sender_take_turns(scene, agents):
    asked = slow(agents, 60)
    async with agents.scheduler() as scheduler:
        Phone(scheduler)
        await scheduler.agents.apply({"a": agent(schedules=ANY, max_concurrent=2)})
        await scheduler.start()
        await write(scheduler, "x")
        await scene.sleep(30)
        assert (agents.busy, len(asked)) == (1, 1)
        (waiting,) = [name for name in ANY if name != asked[0][0]]
        assert "session:a/chat:phone:42" in str(await scheduler.explain(f"a.{waiting}"))
        await scene.sleep(200)
        assert (agents.most_busy, [session for _, session in asked]) == (1, [None, "s1"])


@pytest.mark.promise("A3")
@virtual
async def test_a_sender_does_not_wait_for_the_session_of_another(scene, agents):
    asked = slow(agents, 600)
    async with agents.scheduler() as scheduler:
        Phone(scheduler)
        await scheduler.agents.apply({"a": agent(schedules=ANY, max_concurrent=2)})
        await scheduler.start()
        await write(scheduler, "x", sender="42")
        await scene.sleep(5)
        await write(scheduler, "x", sender="43")
        await scene.sleep(5)
        assert (agents.busy, len(asked)) == (2, 2)  # the second message of 42 waits for its session, 43 does not
        await scene.sleep(3600)
        assert len(asked) == 4
        runs = [run for name in ANY for run in await scheduler.get_run_log(f"a.{name}", 10)]
        assert {run.outcome for run in runs} == {"success"}


@pytest.mark.promise("A3", "A5")
@virtual
async def test_a_schedule_made_over_the_network_has_a_session_of_its_own(scene, agents):
    asked = slow(agents, 10)
    schedules = {"standup": {"cron": "0 * * * *", "prompt": "Go."}}
    async with agents.scheduler_with({"a": agent(schedules=schedules, max_concurrent=2)}) as scheduler:
        await schedule(scheduler, "standup")
        await scheduler.start()
        await scene.sleep(2.5 * 3600)
        assert len(asked) == 4
        names = [kept["name"] for kept in (await scheduler.agents.get("a"))["sessions"]]
        assert names == ["a/job:standup", "a/standup"]
        assert "(a/job:standup)" in str(await scheduler.explain("standup"))


@pytest.mark.promise("A3")
@virtual
async def test_added_schedules_take_turns_in_a_session_that_their_agent_came_to_share(scene, agents):
    asked = slow(agents, 60)
    async with agents.scheduler_with({"a": agent(max_concurrent=2)}) as scheduler:
        await schedule(scheduler, "one")
        await schedule(scheduler, "two")
        await scheduler.agents.apply({"a": agent(session="team", max_concurrent=2)})
        await scheduler.start()
        await scene.sleep(1.5 * 3600)
        assert (len(asked), agents.most_busy) == (2, 1)


@pytest.mark.promise("A3")
@virtual
async def test_what_others_feed_takes_turns_in_the_session_that_holds_for_it(scene, agents):
    asked = slow(agents, 60)
    settings = {"session": "ephemeral", "untrusted": {"session": "persistent"}, "max_concurrent": 2}
    async with agents.scheduler() as scheduler:
        Phone(scheduler)
        await scheduler.agents.apply({"a": agent(schedules=ANY, **settings)})
        await scheduler.start()
        await write(scheduler, "x")
        await scene.sleep(200)
        assert (len(asked), agents.most_busy) == (2, 1)


@pytest.mark.promise("A3")
@virtual
async def test_a_run_with_a_payload_of_its_own_waits_for_the_session_that_this_names(scene, agents):
    asked = slow(agents, 60)
    tick = {"tick": {"every": "1d", "prompt": "x"}}
    plan = {"a": agent(schedules=tick), "b": agent(schedules=tick, session="team")}
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.start()
        other = {**(await scheduler.get_job("a.tick")).payload, "session": "team"}
        runs = [await scheduler.run_job("b.tick"), await scheduler.run_job("a.tick", payload=other)]
        await scene.sleep(200)
        assert [(await scheduler.get_run(run)).outcome for run in runs] == ["success", "success"]
        assert (len(asked), agents.most_busy) == (2, 1)


RESERVED = ["heartbeat", "wake", "a.heartbeat", "b.wake", "b.mine", "a.b.c"]


@pytest.mark.promise("A4")
@pytest.mark.parametrize("slug", RESERVED)
@virtual
async def test_a_schedule_has_no_name_of_another_job_of_an_agent(scene, agents, slug):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        with pytest.raises(InvalidJob, match="name"):
            await schedule(scheduler, slug)
        payload = {"agent": "a", "schedule": "x", "does": "ask", "prompt": "p"}
        with pytest.raises(InvalidJob, match="name"):
            await scheduler.add_job(slug, Every("1h"), kind="agent", payload=payload)
        await schedule(scheduler, "fine")
        with pytest.raises(InvalidJob, match="name"):
            await scheduler.update_job("fine", name=slug)
        assert [found["name"] for found in await scheduler.agents.list()] == ["a"]


@pytest.mark.promise("A4")
@virtual
async def test_a_job_does_not_become_the_one_that_wakes_an_agent(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:
        await schedule(scheduler, "mine")
        for does in ("wake", "beat"):
            with pytest.raises(InvalidJob, match=r"'mine' cannot be its name: a job that .* is called a\."):
                await scheduler.update_job("mine", payload={"agent": "a", "schedule": "mine", "does": does})


# -- sessions on a server ---------------------------------------------------------------------------------------------


@pytest.mark.promise("A3", "C6")
@virtual
async def test_jobs_that_name_a_session_wait_for_the_job_that_keeps_it(scene):
    busy = []

    async def act(number, message):
        busy.append(message["schedule"])
        await scene.sleep(60)
        busy.remove(message["schedule"])
        assert busy == []
        return 200, {"reply": number}

    sessions = VirtualSessions(scene, act)
    async with sessions.scheduler() as scheduler:
        await scheduler.add_job("keeper", Manual(), kind="session", payload={"prompt": "p"})
        await scheduler.start()
        await scheduler.run_job("keeper")
        await scene.sleep(10)  # the session is made in this run, and used in it
        for name in ("one", "two"):
            await scheduler.add_job(name, Manual(), kind="session", payload={"prompt": "p", "session": "s-1"})
            await scheduler.run_job(name)
        await scene.sleep(10)
        assert busy == ["keeper"]
        await scene.sleep(200)
        await scheduler.run_job("keeper")
        await scheduler.run_job("one")
        await scene.sleep(200)
        assert len(sessions.messages) == 5
        outcomes = [run.outcome for name in ("keeper", "one", "two") for run in await scheduler.get_run_log(name, 9)]
        assert outcomes == ["success"] * 5


@pytest.mark.promise("A3")
@virtual
async def test_jobs_that_keep_one_session_take_turns_in_it(scene):
    busy, most = [], []

    async def act(number, message):
        busy.append(message["schedule"])
        most.append(len(busy))
        await scene.sleep(60)
        busy.remove(message["schedule"])
        return 200, {}

    class Single(VirtualSessions):
        """A server that has one session."""

        async def handle_async_request(self, request):
            self.made = 0
            return await super().handle_async_request(request)

    sessions = Single(scene, act)
    async with sessions.scheduler() as scheduler:
        await scheduler.start()
        for name in ("one", "two"):
            await scheduler.add_job(name, Manual(), kind="session", payload={"prompt": "p"})
            await scheduler.run_job(name)
            await scene.sleep(100)
        for name in ("one", "two"):
            await scheduler.run_job(name)
        await scene.sleep(300)
        assert most == [1, 1, 1, 1]


@pytest.mark.promise("A3", "C10")
@virtual
async def test_a_session_is_busy_until_what_goes_on_in_it_is_reported(scene):
    sessions = VirtualSessions(scene, lambda number, message: (202, {}) if number == 1 else (200, {}))
    async with sessions.scheduler() as scheduler:
        for name in ("one", "two"):
            payload = {"prompt": "p", "session": "s"}
            await scheduler.add_job(name, Manual(), kind="session", payload=payload, lanes={"machine": 1})
        await scheduler.add_job("other", Manual(), kind="session", payload={"prompt": "p"}, lanes={"machine": 1})
        await scheduler.start()
        first = await scheduler.run_job("one")
        await scene.sleep(5)
        assert (await scheduler.get_run(first)).status == "waiting"
        second = await scheduler.run_job("two")
        await scene.sleep(60)
        assert (await scheduler.get_run(second)).status == "queued"
    async with sessions.scheduler() as scheduler:  # it stays so after a restart
        await scheduler.start()
        other = await scheduler.run_job("other")
        await scene.sleep(60)
        assert (await scheduler.get_run(second)).status == "queued"
        assert "session:s" in str(await scheduler.explain("two"))
        assert (await scheduler.get_run(other)).outcome == "success"  # it holds no other lane
        await scheduler.complete_run(first, {"ok": True})
        await scene.sleep(5)
        assert (await scheduler.get_run(second)).outcome == "success"
        assert set((await scheduler.read(lambda tx: tx.lanes.all())).values()) == {0}
        await scene.sleep(700)
        assert await scheduler.read(lambda tx: tx.lanes.all()) == {"machine": 0}  # no session leaves anything behind
