"""Where replies go, and that a person who writes is answered; in virtual time on both stores."""

from __future__ import annotations

import pytest

from tests.agents.test_chat_schedules import Phone, write
from tests.agents.test_one_run_per_session import schedule
from tests.agents.test_url_runner import UrlAgents, last, report
from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from wakeful.domains.agents import Reply
from wakeful.domains.agents.replies.tables import Replies

OFTEN = {"tick": {"every": "1h", "prompt": "Go."}}


def slow(agents, seconds=60):
    async def act(turn):
        await agents.scene.sleep(seconds)
        return f"{turn.schedule} {len(agents.turns)}"

    agents.act = act


@pytest.mark.promise("C7")
@pytest.mark.parametrize("job", ["a.tick", "a.wake", "mine", "a.talk"])
@virtual
async def test_a_reply_goes_where_its_run_was_to_send_it_when_it_started(scene, agents, job):
    slow(agents)
    async with agents.scheduler() as scheduler:
        old, new = Phone(scheduler, "old"), Phone(scheduler, "new")
        before = {"schedules": {**OFTEN, "talk": {"chat": {}, "deliver": "old"}}, "deliver": "old"}
        await scheduler.agents.apply({"a": agent(**before)})
        await schedule(scheduler, "mine")
        await scheduler.start()
        for moved in (True, False):
            if job == "a.wake":
                await scheduler.agents.request_wake("a")
            elif job == "a.talk":
                await write(scheduler, "hello", connector="old")
            else:
                await scheduler.run_job(job)
            await scene.sleep(30)
            if moved:
                after = {"schedules": {**OFTEN, "talk": {"chat": {}, "deliver": "new"}}, "deliver": "new"}
                await scheduler.agents.apply({"a": agent(**after)})
            await scene.sleep(60)
        assert (len(old.sent), len(new.sent)) == (1, 1)
        assert (old.sent[0][1].split()[1], new.sent[0][1].split()[1]) == ("1", "2")
        assert await scheduler.read(lambda tx: tx.of(Replies).all()) == []


@pytest.mark.promise("C7")
@virtual
async def test_a_reply_to_a_person_goes_to_them_even_if_the_schedule_changes_meanwhile(scene, agents):
    slow(agents)
    async with agents.scheduler() as scheduler:
        phone, new = Phone(scheduler), Phone(scheduler, "new")
        await scheduler.agents.apply({"a": agent(schedules={"talk": {"chat": {}}})})
        await scheduler.start()
        await write(scheduler, "hello")
        await scene.sleep(30)
        await scheduler.agents.apply({"a": agent(schedules={"talk": {"chat": {}, "deliver": "new"}})})
        await scene.sleep(60)
        assert (phone.sent, new.sent) == ([("42", "talk 1")], [])


@pytest.mark.promise("A6", "D4")
@pytest.mark.parametrize("text", ["HEARTBEAT_OK", "HEARTBEAT_OK means that nothing is to be reported."])
@virtual
async def test_a_person_who_writes_is_answered_even_if_the_answer_has_the_ack_token(scene, agents, text):
    agents.act = lambda turn: text
    async with agents.scheduler() as scheduler:
        phone = Phone(scheduler)
        await scheduler.agents.apply({"a": agent(schedules={"talk": {"chat": {}}})})
        await scheduler.start()
        await write(scheduler, "What does HEARTBEAT_OK mean?")
        await scene.sleep(5)
        assert phone.sent == [("42", text)]
        (run,) = await scheduler.get_run_log("a.talk", 10)
        assert run.output["outcome"] == "sent"


@pytest.mark.promise("A6")
@pytest.mark.parametrize(
    ("text", "sent"), [("HEARTBEAT_OK", ["HEARTBEAT_OK"]), ("Done. HEARTBEAT_OK", ["Done."]), ("", [])]
)
@virtual
async def test_a_person_whose_message_woke_the_agent_is_answered(scene, agents, text, sent):
    agents.act = lambda turn: text
    async with agents.scheduler() as scheduler:
        phone = Phone(scheduler)
        await scheduler.agents.apply({"a": agent()})
        await scheduler.start()
        await write(scheduler, "Please look at the build.", to="a")
        await scene.sleep(5)
        assert [text for _, text in phone.sent] == sent
        await scheduler.agents.request_wake("a")  # nobody has written
        await scene.sleep(5)
        assert len(phone.sent) == len(sent)


def fails(agents, times):
    """Calls of the agent that fail, so many of them."""

    def act(turn):
        if len(agents.turns) <= times:
            raise RuntimeError("no credit")
        return "Done."

    agents.act = act


@pytest.mark.parametrize("deliver", [{"deliver": "phone"}, {}])
@virtual
async def test_a_failure_goes_where_replies_go_once_until_it_succeeds(scene, agents, deliver):
    fails(agents, times=3)
    async with agents.scheduler() as scheduler:
        phone = Phone(scheduler)
        await scheduler.agents.apply({"a": agent(schedules=OFTEN, **deliver)})
        await scheduler.start()
        await scene.sleep("3h10m")
        (failure,) = [text for _, text in phone.sent]
        assert failure.startswith("a.tick failed (error).")
        assert "no credit" in failure
        await scene.sleep("1h")
        assert [text for _, text in phone.sent][1:] == ["Done."]


@virtual
async def test_a_failure_is_not_sent_where_replies_are_not_or_where_hooks_say_what_is(scene, agents):
    fails(agents, times=9)
    async with agents.scheduler() as scheduler:
        phone = Phone(scheduler)
        silent, hooked = {"deliver": "none"}, {"hooks": {"to": "phone", "on": "success"}}
        named = {"a": agent(schedules=OFTEN, **silent), "b": agent(schedules=OFTEN, **hooked)}
        await scheduler.agents.apply(named)
        await scheduler.start()
        await scene.sleep("2h10m")
        assert phone.sent == []


@pytest.mark.promise("D4")
@virtual
async def test_a_person_who_writes_is_told_each_time_that_there_is_no_answer(scene, agents):
    fails(agents, times=9)
    async with agents.scheduler() as scheduler:
        phone = Phone(scheduler)
        await scheduler.agents.apply({"a": agent(schedules={"talk": {"chat": {}}})})
        await scheduler.start()
        for number in range(2):
            await write(scheduler, "hello", number=number)
            await scene.sleep("5m")
        assert phone.sent == [("42", "a could not answer: no credit")] * 2


# -- forgetting sessions ----------------------------------------------------------------------------------------------


@pytest.mark.promise("C4")
@virtual
async def test_a_shared_session_is_forgotten_whoever_used_it_last(scene, agents):
    agents.act = lambda turn: Reply("ok", session=turn.session or f"new-{len(agents.turns)}")
    often = {name: agent(session="team", schedules=OFTEN) for name in ("b", "c")}
    async with agents.scheduler_with({**often, "d": agent(schedules=OFTEN)}) as scheduler:
        await scheduler.start()
        for name in ("b", "c", "d"):
            await scheduler.wait_for_run(await scheduler.run_job(f"{name}.tick"))
        for name in ("b", "c"):
            assert [kept["name"] for kept in (await scheduler.agents.get(name))["sessions"]] == ["team"]
        assert await scheduler.agents.reset_session("b") == 1
        assert (await scheduler.agents.get("c"))["sessions"] == []
        await scheduler.wait_for_run(await scheduler.run_job("c.tick"))
        assert [turn.session for turn in agents.turns] == [None, "new-1", None, None]
        assert [kept["name"] for kept in (await scheduler.agents.get("d"))["sessions"]] == ["d/tick"]


@pytest.mark.promise("C4")
@virtual
async def test_forgetting_the_sessions_of_an_agent_leaves_a_session_that_it_shares_no_longer(scene, agents):
    agents.act = lambda turn: Reply("ok", session=turn.session or "s")
    shared, own = agent(session="team", schedules=OFTEN), agent(schedules=OFTEN)
    async with agents.scheduler_with({"b": shared, "c": shared}) as scheduler:
        await scheduler.start()
        await scheduler.wait_for_run(await scheduler.run_job("b.tick"))
        await scheduler.agents.apply({"b": own, "c": shared})
        assert await scheduler.agents.reset_session("b") == 0
        assert len((await scheduler.agents.get("c"))["sessions"]) == 1


@pytest.mark.promise("C4")
@pytest.mark.parametrize("known", [None, "s"])
@virtual
async def test_a_session_that_is_forgotten_while_a_run_works_in_it_stays_forgotten(scene, agents, known):
    async def act(turn):
        await scene.sleep(60)
        return Reply("ok", session=turn.session or f"s{len(agents.turns)}")

    agents.act = act
    async with agents.scheduler_with({"a": agent(schedules=OFTEN)}) as scheduler:
        await scheduler.start()
        if known:
            await scheduler.wait_for_run(await scheduler.run_job("a.tick"))
        run = await scheduler.run_job("a.tick")
        await scene.sleep(30)
        assert await scheduler.agents.reset_session("a") == bool(known)
        assert (await scheduler.wait_for_run(run)).outcome == "success"
        kept = (await scheduler.agents.get("a"))["sessions"]
        assert len(kept) == (0 if known else 1)  # what began before anything was to be forgotten is new


def accepting(scene):
    """A session server that accepts every message and reports later."""
    return UrlAgents(scene, lambda number, message: (202, {"status": "accepted"}))


@pytest.mark.promise("C7")
@pytest.mark.parametrize(
    ("before", "after", "sent", "outcome"),
    [("none", "phone", [], "silent"), ("phone", "none", [(None, "All is well.")], "sent")],
)
@virtual
async def test_a_reply_that_is_reported_goes_where_it_was_to_go_when_its_run_started(
    scene, before, after, sent, outcome
):
    server = accepting(scene)
    async with server.scheduler() as scheduler:
        phone = Phone(scheduler)
        await server.begun(scheduler, deliver=before)
        await scheduler.run_job("a.tick")
        await scene.sleep(5)
        await scheduler.agents.apply({"a": agent(runner={"url": "http://sessions"}, schedules=OFTEN, deliver=after)})
        await report(scheduler, server, {"reply": "All is well."})
        await scene.sleep(5)
        assert (phone.sent, (await last(scheduler)).output["outcome"]) == (sent, outcome)


@pytest.mark.promise("C7", "A12")
@virtual
async def test_what_a_session_server_reports_counts_also_if_the_agent_has_another_runner_by_then(scene, agents):
    server = accepting(scene)
    async with server.scheduler() as scheduler:
        phone = Phone(scheduler)
        await server.begun(scheduler, deliver="phone")
        await scheduler.run_job("a.tick")
        await scene.sleep(5)
        await scheduler.agents.apply({"a": agent(schedules=OFTEN, deliver="phone")})
        await report(scheduler, server, {"reply": "All is well.", "cost": 0.5})
        await scene.sleep(5)
        assert phone.sent == [(None, "All is well.")]
        assert (await scheduler.agents.get("a"))["spent_today"]["cost"] == 0.5
        await scheduler.run_job("a.tick")
        await scene.sleep(5)
        assert [turn.session for turn in agents.turns] == [None]  # the session is the server's


@pytest.mark.promise("D4")
@virtual
async def test_who_asks_an_agent_on_a_session_server_gets_the_whole_reply_where_they_want_it(scene):
    server = accepting(scene)
    async with server.scheduler() as scheduler:
        phone, other = Phone(scheduler), Phone(scheduler, "other")
        await server.begun(scheduler, deliver="phone")
        asked = await scheduler.agents.ask("a", "What does HEARTBEAT_OK mean?", deliver="other")
        await scene.sleep(5)
        await report(scheduler, server, {"reply": "HEARTBEAT_OK: all is well."})
        await scene.sleep(5)
        assert (phone.sent, other.sent) == ([], [(None, "HEARTBEAT_OK: all is well.")])
        assert (await scheduler.get_run(asked["run"])).output["outcome"] == "sent"
