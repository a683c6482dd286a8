"""What belongs to agents by their names: it waits while they are gone, is named, and can be moved."""

from __future__ import annotations

import asyncio

import pytest

from tests.agents.test_work import NEXT, WORK, add, items
from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful import Retention
from wakeful.domains.agents.belongings.moving import move_all, move_item, waiting_notes
from wakeful.domains.agents.belongings.tables import Left
from wakeful.domains.agents.tables import AgentTables, WorkItem
from wakeful.domains.agents.work import get_item, list_items
from wakeful.errors import AgentNotFound, ScheduleTriggerError, WorkNotFound
from wakeful.kernel.actions.pausing import disable_job

WORKER = {"a": agent(work=WORK, schedules=NEXT)}
OTHER = {"b": agent(work=WORK, schedules=NEXT)}


async def listed(scheduler, **options):
    found = await scheduler.read(lambda tx: list_items(tx, options.pop("agent", None), None, None, 100, **options))
    return {one["title"]: (one["agent"], one["status"], one["orphaned"]) for one in found}


async def notes(scheduler, coming=(), going=()):
    return await scheduler.read(lambda tx: waiting_notes(tx, coming, going))


@pytest.mark.promise("D10", "A4")
@virtual
async def test_an_agent_that_is_removed_and_put_back_works_on_what_waited_and_hears_what_was_left(scene, agents):
    async with agents.scheduler_with(WORKER) as scheduler:
        for title in ("one", "two"):
            await add(scheduler, title)
        await scheduler.agents.add_event("a", "The door is open.")
        await scheduler.agents.apply({})
        assert await listed(scheduler) == {"one": ("a", "ready", True), "two": ("a", "ready", True)}
        await scene.sleep("2h")
        await scheduler.agents.apply(WORKER)
        assert await listed(scheduler) == {"one": ("a", "ready", False), "two": ("a", "ready", False)}
        found = await scheduler.agents.get("a")
        assert (found["work_waiting"], found["events_waiting"]) == (2, 1)
        await scheduler.start()
        await scene.sleep("1m")
        assert ["The door is open." in prompt for prompt in agents.prompts] == [True]  # it has no other wake
        await scene.sleep("21m")
        assert {title: one["status"] for title, one in (await items(scheduler)).items()} == {
            "one": "done",
            "two": "done",
        }
        assert len(agents.turns) == 3
        await scheduler.stop()


@pytest.mark.promise("D10", "A4")
@virtual
async def test_what_waits_outlives_the_jobs_of_its_agent(scene, agents):
    async with agents.scheduler_with({**WORKER, **OTHER}, retention=Retention(days=1)) as scheduler:
        await add(scheduler, "one")
        await scheduler.agents.add_event("a", "The door is open.")
        old = (await scheduler.get_job("a.wake")).id
        await scheduler.agents.apply(OTHER)
        await scheduler.start()
        await scene.sleep("72h")
        assert await scheduler.get_job(old) is None
        assert await listed(scheduler) == {"one": ("a", "ready", True)}
        await scheduler.agents.apply({**WORKER, **OTHER})
        await scene.sleep("15m")
        assert await listed(scheduler) == {"one": ("a", "done", False)}
        assert any("The door is open." in prompt for prompt in agents.prompts)
        await scheduler.stop()


@pytest.mark.promise("D10", "A4")
@virtual
async def test_a_run_that_ends_after_its_agent_was_put_back_gives_back_what_it_had(scene, agents):
    go_on = asyncio.Event()

    async def fail_later(turn):
        await go_on.wait()
        return RuntimeError("no ladder")

    agents.act = fail_later
    async with agents.scheduler_with({"a": agent(work=WORK, schedules=NEXT, max_concurrent=2)}) as scheduler:
        await add(scheduler, "one")
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scheduler.start()
        await scene.until(at(minutes=10, seconds=1))
        assert len(agents.turns) == 2
        await scheduler.agents.apply({})
        await scheduler.agents.apply(WORKER)
        agents.act = lambda turn: "Done."
        go_on.set()
        await scene.sleep(1)
        item, found = (await items(scheduler))["one"], await scheduler.agents.get("a")
        assert (item["status"], item["orphaned"], found["events_waiting"]) == ("ready", False, 0)
        assert "The door is open." in agents.turns[2].prompt  # which woke it again
        await scene.sleep("15m")
        assert (await items(scheduler))["one"]["status"] == "done"
        await scheduler.stop()


@pytest.mark.promise("A4", "X15")
@virtual
async def test_who_undoes_the_removal_of_an_agent_lets_it_hear_what_it_was_woken_for(scene, agents):
    async with agents.scheduler_with(WORKER) as scheduler:
        await scheduler.agents.add_event("a", "The door is open.", wake=True)
        await scheduler.agents.apply({})
        await scheduler.undo()
        await scheduler.start()
        await scene.sleep(5)
        assert ["The door is open." in prompt for prompt in agents.prompts] == [True]
        await scheduler.stop()


@virtual
async def test_what_waits_for_agents_that_come_go_and_are_gone_is_named(scene, agents):
    async with agents.scheduler_with({**WORKER, **OTHER}) as scheduler:
        assert await notes(scheduler, [], ["a.wake"]) == []
        await add(scheduler, "one")
        await add(scheduler, "two")
        await scheduler.agents.add_event("a", "The door is open.")
        assert await notes(scheduler) == []
        gone = (
            "2 work items and 1 event wait for a, which is not there: until it is back, or until wakeful agent move a"
        )
        assert await notes(scheduler, ["c.wake", "d.wake"], ["a.wake", "a.next"]) == [f"{gone} NAME."]
        assert await notes(scheduler, ["c.wake", "c.next"], ["a.wake"]) == [f"{gone} c."]  # as if it was renamed
        await scheduler.agents.apply(OTHER)
        assert await notes(scheduler) == [f"{gone} NAME."]
        back = "2 work items and 1 event wait for a, from before it was removed."
        assert await notes(scheduler, ["a.wake"]) == [back]
        with pytest.raises(
            AgentNotFound, match="2 work items and 1 event wait for it still: wakeful agent move a NAME"
        ):
            await scheduler.agents.get("a")


@pytest.mark.parametrize(
    ("left", "words"),
    [
        (Left(1, 0), "1 work item waits"),
        (Left(0, 1), "1 event waits"),
        (Left(2, 0), "2 work items wait"),
        (Left(1, 2), "1 work item and 2 events wait"),
    ],
)
def test_what_waits_is_counted_in_words(left, words):
    assert left.in_words() == words


@pytest.mark.promise("D10")
@virtual
async def test_items_of_agents_that_are_gone_are_listed_and_moved(scene, agents):
    async with agents.scheduler_with({**WORKER, **OTHER}) as scheduler:
        moved = (await add(scheduler, "one", external_id="T-1"))["id"]
        await add(scheduler, "two")
        twin = (await add(scheduler, "three", "b", external_id="T-1"))["id"]
        await scheduler.agents.apply(OTHER)
        orphans = {"one": ("a", "ready", True), "two": ("a", "ready", True)}
        assert await listed(scheduler, orphaned=True) == await listed(scheduler, agent="a") == orphans
        assert (await scheduler.read(lambda tx: get_item(tx, moved)))["orphaned"] is True
        with pytest.raises(ScheduleTriggerError, match=f"b already has an item with the id 'T-1': {twin}"):
            await scheduler.transact(lambda tx, _: move_item(tx, moved, "b"))
        with pytest.raises(AgentNotFound):
            await scheduler.transact(lambda tx, _: move_item(tx, moved, "a"))
        with pytest.raises(WorkNotFound):
            await scheduler.transact(lambda tx, _: move_item(tx, "wrk_0000000000000", "b"))
        with pytest.raises(AgentNotFound):
            await listed(scheduler, agent="nobody")
        two = (await items(scheduler))["two"]["id"]
        found = await scheduler.transact(lambda tx, _: move_item(tx, two, "b"))
        assert (found["agent"], found["orphaned"], found["status"]) == ("b", False, "ready")
        await scheduler.start()
        await scene.sleep("25m")
        assert (await items(scheduler))["two"]["status"] == "done"
        assert await listed(scheduler, orphaned=True) == {"one": ("a", "ready", True)}
        await scheduler.stop()


@pytest.mark.promise("D10", "A4")
@virtual
async def test_all_that_waits_is_moved_to_a_renamed_agent_which_is_woken_for_its_events(scene, agents):
    async with agents.scheduler_with(WORKER) as scheduler:
        await add(scheduler, "one", external_id="T-1")
        await add(scheduler, "two", external_id="T-2")
        await scheduler.agents.add_event("a", "The door is open.")
        await scheduler.agents.apply(OTHER)
        await add(scheduler, "two again", "b", external_id="T-2")
        done = await scheduler.transact(lambda tx, context: move_all(tx, context, "a", "b"))
        assert done == ("a", "b", 1, 1, 1)
        assert await listed(scheduler, orphaned=True) == {"two": ("a", "ready", True)}
        for old, new in (("nobody", "b"), ("a", "nobody")):
            with pytest.raises(AgentNotFound):
                await scheduler.transact(lambda tx, context, old=old, new=new: move_all(tx, context, old, new))
        await scheduler.start()
        await scene.sleep("1m")
        assert ["The door is open." in prompt for prompt in agents.prompts] == [True]
        await scene.sleep("25m")
        assert (await listed(scheduler))["one"] == ("b", "done", False)
        await scheduler.stop()


@pytest.mark.promise("D10")
@virtual
async def test_an_item_that_is_worked_on_is_not_moved(scene, agents):
    async def hang(turn):
        await asyncio.Event().wait()

    agents.act = hang
    async with agents.scheduler_with({**WORKER, **OTHER}) as scheduler:
        item = (await add(scheduler, "one"))["id"]
        await scheduler.start()
        await scene.until(at(minutes=10, seconds=1))
        with pytest.raises(ScheduleTriggerError, match=r"is being worked on by run_.*: cancel that run to move it"):
            await scheduler.transact(lambda tx, _: move_item(tx, item, "b"))
        assert (await scheduler.transact(lambda tx, context: move_all(tx, context, "a", "b"))).items == 0
        await scheduler.stop(wait_for_jobs=False)


@pytest.mark.promise("D10")
@virtual
async def test_an_item_of_a_source_is_moved_only_to_an_agent_with_that_source(scene, agents, tmp_path):
    inbox = {"source": "directory", "path": str(tmp_path / "inbox")}
    (tmp_path / "inbox" / "new").mkdir(parents=True)
    (tmp_path / "inbox" / "new" / "roof.md").write_text("It leaks.")

    async def hang(turn):
        await asyncio.Event().wait()

    agents.act = hang
    plan = {"a": agent(work=inbox, schedules=NEXT), "b": agent(work=WORK, schedules=NEXT)}
    async with agents.scheduler_with(plan) as scheduler:
        await scheduler.start()
        await scene.until(at(minutes=10, seconds=1))
        assert len(agents.turns) == 1
        await scene.crash(scheduler)
    agents.act = lambda turn: "Done."
    async with agents.scheduler() as scheduler:
        await scheduler.agents.apply({"b": plan["b"], "c": agent(work=inbox, schedules=NEXT)})
        item = (await items(scheduler))["roof.md"]["id"]
        await scheduler.start()
        await scene.sleep("1m")
        with pytest.raises(ScheduleTriggerError, match=r"comes from directory:.*, and b has no schedule that takes"):
            await scheduler.transact(lambda tx, _: move_item(tx, item, "b"))
        moved = [await scheduler.transact(lambda tx, context, to=to: move_all(tx, context, "a", to)) for to in "bc"]
        assert [(one.items, one.left) for one in moved] == [(0, 1), (1, 0)]
        await scene.sleep("15m")
        assert (await items(scheduler))["roof.md"]["status"] == "done"
        assert (tmp_path / "inbox" / "done" / "roof.md").exists()
        await scheduler.stop()


@pytest.mark.promise("D10", "A4")
@virtual
async def test_what_a_node_of_an_earlier_version_added_is_worked_on_and_heard(scene, agents):
    async with agents.scheduler_with(WORKER) as scheduler:
        await add(scheduler, "one", external_id="T-1")
        await scheduler.agents.add_event("a", "The door is open.", wake=True)

        def forget(tx, _):
            for sql in ("UPDATE agent_work SET agent = NULL", "UPDATE agent_events SET agent = NULL"):
                tx.of(AgentTables)._session.execute(sql)

        await scheduler.transact(forget)
        await add(scheduler, "two", external_id="T-2")
        await scheduler.start()
        await scene.sleep("25m")
        assert {title: one["status"] for title, one in (await items(scheduler)).items()} == {
            "one": "done",
            "two": "done",
        }
        assert "The door is open." in agents.prompts[0]
        await scheduler.stop()


@pytest.mark.promise("D10")
@virtual
async def test_what_a_node_of_an_earlier_version_added_a_second_time_is_worked_on_once(scene, agents):
    async with agents.scheduler_with(WORKER) as scheduler:
        await add(scheduler, "one", external_id="T-1")
        await scheduler.agents.apply({})
        await scheduler.agents.apply(WORKER)  # which it knows under another job

        def add_unnamed(tx, context):
            job, session = tx.jobs.by_name("a.wake")[0], tx.of(AgentTables)._session
            again = WorkItem(context.new_id(), None, "again", None, "T-1", 0, "ready", None, 0, tx.now, None)
            session.insert_many("agent_work", (*WorkItem._fields, "job_id"), [(*again, job.id)])

        await scheduler.transact(add_unnamed)
        await scheduler.start()
        await scene.sleep("25m")
        assert (len(agents.turns), await listed(scheduler)) == (1, {"one": ("a", "done", False)})
        await scheduler.stop()


@pytest.mark.promise("A4")
@virtual
async def test_events_are_moved_to_an_agent_that_is_stopped_and_heard_when_it_goes_on(scene, agents):
    async with agents.scheduler_with({**WORKER, **OTHER}) as scheduler:
        await scheduler.agents.add_event("a", "The door is open.")
        await scheduler.transact(lambda tx, context: disable_job(tx, context, "b.wake"))
        done = await scheduler.transact(lambda tx, context: move_all(tx, context, "a", "b"))
        assert (done.events, agents.turns) == (1, [])
        await scheduler.start()
        await scheduler.resume_job("b.wake")
        await scene.sleep("1m")
        assert ["The door is open." in prompt for prompt in agents.prompts] == [True]
        await scheduler.stop()
