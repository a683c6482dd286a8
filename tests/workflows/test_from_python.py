"""`scheduler.workflows`: what programs see and do, through the same actions as people."""

from __future__ import annotations

import inspect

import pytest

import wakeful
from tests.workflows.mailroom import fails, virtual
from wakeful import ApprovalNeeded, Context, InvalidJob, NotFound, Prepared, RunNotFound, ScheduleTriggerError, Workflow
from wakeful.domains.workflows.deploying import remove_workflow
from wakeful.domains.workflows.handler_context import HandlerContext
from wakeful.domains.workflows.operating import Operating
from wakeful.domains.workflows.plain_functions import PlainContext
from wakeful.scheduler.workflows import Workflows


@pytest.mark.promise("K16")
@virtual
async def test_a_program_publishes_pauses_and_resumes(room):
    async with room.open() as scheduler:
        workflows = scheduler.workflows
        await scheduler.start()
        await room.sleep("1m")
        assert [one["name"] for one in await workflows.list()] == ["mailroom"]
        shown = await workflows.pause("mailroom", note="holidays")
        assert (shown["paused"], shown["issue"]["message"]) == (
            True,
            (await workflows.get("mailroom"))["issue"]["message"],
        )
        event = await workflows.publish("mailroom", "mail", {"subject": "Hello"}, message_id=7)
        assert (event["message_id"], event["status"], event["payload"]) == ("7", "pending", {"subject": "Hello"})
        again = await workflows.publish("mailroom", "mail", payload={"subject": "Bye"}, message_id="7")
        assert (again["id"], again["payload"]) == (event["id"], {"subject": "Bye"})
        assert (await workflows.resume("mailroom"))["paused"] is False
        await room.sleep("1m")
        assert room.ledger == ["7"]
        assert [one["status"] for one in await workflows.events("mailroom", "mail", status="consumed")] == ["consumed"]
        assert (await workflows.runs("mailroom"))[0]["workflow_status"] == "committed"
        done = [(one["who"], one["action"]) for one in reversed((await workflows.get("mailroom"))["actions"])]
        me = scheduler.host.origin().actor
        assert done == [(me, "paused"), (me, "published"), (me, "replaced"), (me, "resumed")]


@pytest.mark.promise("K16")
@virtual
async def test_what_a_program_paused_can_be_undone_like_what_a_person_paused(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.workflows.pause("mailroom")
        [action] = [one for one in await scheduler.list_actions() if one.what == "pause_workflow"]
        await scheduler.undo(action.id)
        assert (await scheduler.workflows.get("mailroom"))["paused"] is False
        await scheduler.workflows.drain("mailroom")
        await room.sleep("1m")
        assert (await scheduler.workflows.get("mailroom"))["paused"] is True


@pytest.mark.promise("K12")
@virtual
async def test_a_program_approves_and_rejects(room):
    room.act["mutate"] = fails(ApprovalNeeded("May I?"), 2)
    async with room.open() as scheduler:
        workflows = scheduler.workflows
        await scheduler.start()
        await room.sleep("1m")
        for answer in ("reject", "approve"):
            await workflows.publish("mailroom", "mail", message_id=answer)
            await room.sleep("1m")
            run = (await workflows.get("mailroom"))["issue"]["run"]
            await getattr(workflows, answer)("mailroom", run, note="so be it")
            await room.sleep("1m")
            if answer == "reject":
                assert room.ledger == []
                await workflows.skip("mailroom", (await workflows.events("mailroom"))[0]["id"], "rejected")
                await workflows.resume("mailroom")
        assert room.ledger == ["approve"]
        with pytest.raises(ScheduleTriggerError):
            await workflows.approve("mailroom", run)


@pytest.mark.promise("K11")
@virtual
async def test_a_program_settles_an_uncertain_mutation(room):
    room.act["mutate"], room.reconciles = fails(ValueError("cut off")), False
    async with room.open() as scheduler:
        workflows = scheduler.workflows
        await scheduler.start()
        await room.sleep("1m")
        await workflows.publish("mailroom", "mail", message_id="a")
        await room.sleep("1h")
        issue = (await workflows.get("mailroom"))["issue"]
        assert issue["kind"] == "reconciliation"
        with pytest.raises(InvalidJob, match="A verdict is one of"):
            await workflows.settle("mailroom", issue["run"], "perhaps")
        await workflows.settle("mailroom", issue["run"], "happened", result={"row": 3}, note="seen it")
        assert (await workflows.get("mailroom"))["status"] != "needs_attention"
        await room.sleep("1m")
        assert [one["status"] for one in await workflows.events("mailroom", "mail")] == ["consumed"]
        with pytest.raises(ScheduleTriggerError, match="has no mutation to settle"):
            await workflows.settle("mailroom", issue["run"], "happened")


@pytest.mark.promise("K11")
@virtual
async def test_a_program_settles_what_a_removed_workflow_left_open(room):
    room.act["mutate"], room.reconciles = fails(ValueError("cut off")), False
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.workflows.publish("mailroom", "mail", message_id="a")
        await room.sleep("1m")
        await scheduler.transact(lambda tx, context: remove_workflow(tx, context, "mailroom"))
        issue = (await scheduler.workflows.get("mailroom"))["issue"]
        assert [one["status"] for one in await scheduler.workflows.events("mailroom")] == ["reserved"]
        await scheduler.workflows.settle("mailroom", issue["run"], "happened")
        with pytest.raises(NotFound, match="The workflow mailroom was removed"):
            await scheduler.workflows.get("mailroom")


@pytest.mark.promise("K16")
@virtual
async def test_a_program_runs_producers_and_works_on_inputs_and_events_once_more(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        workflows = scheduler.workflows
        await scheduler.start()
        await room.sleep("1m")
        assert len(await workflows.run("mailroom")) == 1
        await room.sleep("1m")
        [item] = await workflows.inputs("mailroom", status="done")
        assert len(await workflows.rerun("mailroom", item["id"], "once more")) == 1
        await room.sleep("1m")
        [first] = [one for one in await workflows.events("mailroom", "mail") if one["message_id"] == "a"]
        await workflows.replay("mailroom", first["id"], "and again")
        await room.sleep("1m")
        assert len(room.ledger) == 3


@virtual
async def test_what_is_not_there_or_makes_no_sense_is_refused(room):
    async with room.open() as scheduler:
        workflows = scheduler.workflows
        await scheduler.start()
        await room.sleep("1m")
        for call in (workflows.get, workflows.pause, workflows.resume, workflows.run, workflows.runs, workflows.inputs):
            with pytest.raises(NotFound, match="There is no workflow 'nothing'"):
                await call("nothing")
        with pytest.raises(RunNotFound):
            await workflows.approve("mailroom", "run_nothing")
        with pytest.raises(NotFound, match="has no topic 'post'"):
            await workflows.publish("mailroom", "post", message_id="1")
        with pytest.raises(InvalidJob, match="A message id is a text of 1 to 1000 bytes"):
            await workflows.publish("mailroom", "mail", message_id="")
        with pytest.raises(InvalidJob, match="status is one of pending, done, skipped, not 'open'"):
            await workflows.inputs("mailroom", status="open")
        with pytest.raises(InvalidJob, match="limit is a whole number of at least 1, not 0"):
            await workflows.events("mailroom", limit=0)


@virtual
async def test_a_workflow_that_is_stored_when_the_scheduler_starts_is_not_there_before(room):
    async with room.open() as scheduler:
        for act in (
            scheduler.workflows.get("mailroom"),
            scheduler.workflows.pause("mailroom"),
            scheduler.workflows.publish("mailroom", "mail", message_id="1"),
        ):
            with pytest.raises(NotFound, match="mailroom is stored when the scheduler starts"):
                await act
        with pytest.raises(InvalidJob, match=r"A workflow is named by a text, such as 'invoices', not <Workflow"):
            await scheduler.workflows.pause(room.workflow())
        await scheduler.start()
        assert (await scheduler.workflows.pause("mailroom"))["paused"]
        with pytest.raises(NotFound, match="mailroom has no event"):
            await scheduler.workflows.skip("mailroom", "evt_nothing", "gone")


def test_the_description_of_the_workflows_of_a_scheduler_is_what_they_are():
    described = {name: inspect.signature(call) for name, call in vars(Workflows).items() if name[0] != "_"}
    actual = {name: inspect.signature(call) for name, call in vars(Operating).items() if name[0] != "_"}
    assert {name: list(one.parameters) for name, one in described.items()} == {
        name: list(one.parameters) for name, one in actual.items()
    }


def test_the_type_of_ctx_is_what_ctx_is():
    public = {name for name in dir(Context) if name[0] != "_"} | set(Context.__annotations__)
    for name in ("peek", "publish", "register_input", "call", "step"):
        described = inspect.signature(getattr(Context, name))
        assert described == inspect.signature(getattr(HandlerContext, name)), name
        assert described == inspect.signature(getattr(PlainContext, name)), name
    assert public == {
        "state", "config", "approved_by", "run_id", "log", "now", "peek", "publish", "register_input", "call", "step",
    }  # fmt: skip
    assert wakeful.workflows.Context is wakeful.Context


def test_a_script_adds_a_workflow_and_works_with_it_without_await(tmp_path):
    workflow, seen = Workflow("flow"), []
    sort = workflow.consumer("sort", subscribes=["mail"])

    @sort.prepare
    async def prepare(ctx, state):
        found = await ctx.peek("mail")
        return Prepared({"mail": [one.id for one in found]}, [one.payload for one in found])

    @sort.next
    async def next_(ctx, prepared, result):
        seen.extend(prepared.data)

    with wakeful.sync.Scheduler(f"sqlite:///{tmp_path}/wakeful.db") as scheduler:
        scheduler.add_workflow(workflow)
        scheduler.start()
        assert scheduler.workflows.pause("flow", note="later")["paused"]
        event = scheduler.workflows.publish("flow", "mail", "hello", message_id="1")
        assert scheduler.workflows.events("flow", status="pending") == [event]
        assert [one["name"] for one in scheduler.workflows.list()] == ["flow"]
        assert "await" not in scheduler.workflows.publish.__doc__
    assert seen == []


def test_a_function_that_was_registered_as_a_producer_stays_what_it_is():
    async def poll(ctx, state):
        return state

    assert Workflow("mails").producer(wakeful.Interval("1h"))(poll) is poll
