"""What a run keeps of a call of its agent that did not go well; the program at the other end is a function here."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from wakeful import ids
from wakeful.domains.agents import Reply, handler
from wakeful.domains.agents.handler import AgentKind
from wakeful.domains.agents.hops import RequestingAgent
from wakeful.domains.agents.kept_session import StoredSession
from wakeful.domains.agents.runners.presets import PRESETS
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Gone, ProgramInfo
from wakeful.domains.agents.tables import AgentSession, AgentTables
from wakeful.domains.agents.wakes import add_event
from wakeful.domains.agents.work import NewItem, add_item

TICK = {"tick": {"every": "1d", "prompt": "x"}}


class Calls(list):
    """The sessions that calls were to go on in."""

    def __init__(self):
        super().__init__()
        self.prompts = []


def answering(monkeypatch, *endings, session=None):
    """Calls end so, one after the other, and name a session first."""
    left, calls = list(endings), Calls()

    async def call(_, turn, around):
        calls.append(turn.session)
        calls.prompts.append(turn.prompt)
        if session is not None:
            around.on_session(session)
        return left.pop(0)

    monkeypatch.setattr(handler, "call_agent", call)
    return calls


@pytest.mark.promise("A5")
@virtual
async def test_a_session_that_is_gone_is_forgotten_though_the_new_one_fails(scene, agents, monkeypatch):
    calls = answering(monkeypatch, Gone("no conversation found"), CallFailed("broken"))
    async with agents.scheduler_with({"a": agent(schedules=TICK)}) as scheduler:
        kept = AgentSession("a/tick", "a", "old", 0, scene.clock.now())
        await scheduler.transact(lambda tx, _: tx.of(AgentTables).keep_session(kept))
        await scheduler.start()
        await scheduler.run_job("a.tick")
        await scene.sleep(5)
        assert calls == ["old", None]
        assert await scheduler.read(lambda tx: tx.of(AgentTables).session("a/tick")) is None


@pytest.mark.promise("A3")
@virtual
async def test_a_call_ends_when_the_session_it_named_is_stored(scene, agents, monkeypatch):
    answering(monkeypatch, Answered(Reply("Done.")), session="new")
    payload = {"agent": "a", "schedule": "tick", "runner": {}}
    async with agents.scheduler_with({"a": agent(schedules=TICK)}) as scheduler:
        await scheduler.start()
        run = await scheduler.get_run(await scheduler.run_job("a.tick"))
        _, number = ids.decode(run.id)
        await scheduler.stop()
        await scheduler.transact(lambda tx, _: tx.runs.activate([tx.runs.get(number)._replace(status="active")]))
        before = asyncio.all_tasks()
        await AgentKind(scheduler)._call(run, payload, "x", StoredSession(number, "a/tick", None))
        assert asyncio.all_tasks() <= before
        assert (await scheduler.read(lambda tx: tx.of(AgentTables).session("a/tick"))).session == "new"


@pytest.mark.promise("X7")
@pytest.mark.parametrize(("preset", "tokens"), [("codex", None), ("claude", 70)])
@virtual
async def test_tokens_of_a_whole_session_do_not_count_for_a_run_that_failed(scene, preset, tokens):
    async with scene.scheduler() as scheduler:
        ending = CallFailed("broken", reply=Reply("", cost=0.5, tokens_in=70, tokens_out=7))
        payload = {"agent": "a", "runner": {"preset": preset}}
        found = await AgentKind(scheduler)._problem(ending, payload, handler._of_this_call(ending, payload))
        assert found.output.usage == {"cost": 0.5, "tokens_in": tokens, "tokens_out": tokens and 7}


CLAUDE, CODEX = {"preset": "claude"}, {"preset": "codex"}


async def run_and_look(scene, scheduler, job):
    await scheduler.run_job(job)
    await scene.sleep(5)
    return (await scheduler.get_run_log(job))[0].output


@pytest.mark.promise("A5")
@virtual
async def test_an_agent_that_changes_its_program_begins_a_new_session_and_says_so(scene, agents, monkeypatch):
    calls = answering(monkeypatch, *[Answered(Reply("Done.", f"s{number}")) for number in (1, 1, 2, 3)])
    async with agents.scheduler_with({"a": {"runner": CLAUDE, "schedules": TICK}}) as scheduler:
        await scheduler.start()
        await run_and_look(scene, scheduler, "a.tick")
        assert "notes" not in await run_and_look(scene, scheduler, "a.tick")
        await scheduler.agents.apply({"a": {"runner": CODEX, "schedules": TICK}})
        changed = await run_and_look(scene, scheduler, "a.tick")
        assert changed["notes"] == ["the session s1 is one of claude; a new one began"]
        silent = await run_and_look(scene, scheduler, "a.tick")
        assert silent["notes"] == ["the session s2 was not known; a new one began"]
        assert calls == [None, "s1", None, "s2"]


@pytest.mark.promise("A5")
@virtual
async def test_a_session_whose_program_is_not_known_goes_on(scene, agents, monkeypatch):
    calls = answering(monkeypatch, Answered(Reply("Done.", "old")))
    async with agents.scheduler_with({"a": {"runner": CODEX, "schedules": TICK}}) as scheduler:
        kept = AgentSession("a/tick", "a", "old", 0, scene.clock.now())
        await scheduler.transact(lambda tx, _: tx.of(AgentTables).keep_session(kept))
        await scheduler.start()
        await run_and_look(scene, scheduler, "a.tick")
        assert calls == ["old"]
        assert (await scheduler.read(lambda tx: tx.of(AgentTables).session("a/tick"))).program == "codex"


@pytest.mark.promise("X18")
@pytest.mark.parametrize(("runner", "text"), [(CLAUDE, "see \\@/etc/passwd"), (CODEX, "see @/etc/passwd")])
@virtual
async def test_a_work_item_names_no_file_to_a_program_that_would_read_it(scene, agents, monkeypatch, runner, text):
    calls = answering(monkeypatch, *[Answered(Reply("Done."))] * 2)
    work = {"work": {"source": "queue"}, "schedules": {"next": {"every": "1d", "work": True, "prompt": "Work."}}}
    async with agents.scheduler_with({"a": {"runner": runner, **work}}) as scheduler:
        item = NewItem("see @/etc/passwd")
        await scheduler.transact(lambda tx, context: add_item(tx, context, "a", item))
        await scheduler.start()
        await run_and_look(scene, scheduler, "a.next")
        assert f"title: {text}\n" in calls.prompts[0]


@pytest.mark.promise("X18", "X30")
@pytest.mark.parametrize("preset", sorted(name for name, preset in PRESETS.items() if preset.takes_paths))
@virtual
async def test_what_another_run_relays_names_no_file_to_such_a_program_either(scene, agents, monkeypatch, preset):
    calls = answering(monkeypatch, Answered(Reply("Done.")))
    sender = RequestingAgent("b", 1, 1, is_fed=True)
    async with agents.scheduler_with({"a": {"runner": {"preset": preset, "cwd": "."}}}) as scheduler:
        said = {"source": "b", "context_key": None, "sender": sender}
        await scheduler.transact(lambda tx, context: add_event(tx, context, "a", "see @/etc/passwd", **said))
        await scheduler.start()
        await run_and_look(scene, scheduler, "a.wake")
        assert "b: see \\@/etc/passwd\n" in calls.prompts[0]


@pytest.mark.promise("X7")
@virtual
async def test_the_tool_and_what_it_was_not_allowed_are_on_the_run(scene, agents, monkeypatch):
    tool = ProgramInfo(scene.clock.now(), "2.1.325", ("Bash(rm x)",))
    answering(monkeypatch, Answered(Reply("Done."), tool=tool), CallFailed("broken", tool=tool))
    async with agents.scheduler_with({"a": {"runner": CLAUDE, "schedules": TICK}}) as scheduler:
        await scheduler.start()
        done = await run_and_look(scene, scheduler, "a.tick")
        assert (done["tool"], done["notes"]) == (tool.shown(), ["not allowed: Bash(rm x)"])
        assert (await run_and_look(scene, scheduler, "a.tick")) == {"tool": tool.shown()}
