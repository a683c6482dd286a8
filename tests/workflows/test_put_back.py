"""A workflow, or one handler of it, with an unfinished run is taken out of the code and put back."""

from __future__ import annotations

import asyncio

import pytest

from tests.workflows.mailroom import UNKNOWN, fails, publish, virtual
from tests.workflows.test_removed_handlers import begin, shown, without_append
from wakeful import ApprovalNeeded, NotFound, ScheduleTriggerError, TransientError, ids
from wakeful.domains.workflows import views
from wakeful.domains.workflows.deploying import remove_workflow

ASKS, BUSY, LOST = ApprovalNeeded("May I?"), TransientError("busy"), ConnectionError("lost")


async def take_out(scheduler, part):
    if part == "workflow":
        await scheduler.transact(lambda tx, context: remove_workflow(tx, context, "mailroom"))
    else:
        await scheduler.add_workflow(without_append([]))


def no_consumer(room):
    """The same workflow without any consumer of mails."""
    workflow = room.workflow()
    del workflow.handlers["append"]
    return workflow


@pytest.mark.promise("K8", "K10", "K11")
@pytest.mark.parametrize("part", ["workflow", "handler"])
@pytest.mark.parametrize(("phase", "error"), [("prepare", BUSY), ("mutate", BUSY), ("mutate", LOST), ("next", BUSY)])
@virtual
async def test_what_is_put_back_goes_on_and_changes_nothing_twice(room, part, phase, error):
    async with room.open() as scheduler:
        room.verdict = UNKNOWN
        if error is LOST:  # after the change was made
            room.after = {phase: fails(error)}
        await begin(room, scheduler, {} if error is LOST else {phase: fails(error, 99)})
        if part == "workflow":
            await take_out(scheduler, part)
        else:
            await scheduler.add_workflow(no_consumer(room))
        await room.sleep("11m")
        room.act, room.verdict = {}, None
        await scheduler.add_workflow(room.workflow())
        await room.sleep("11m")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})
        await publish(scheduler, "b")
        await room.sleep("1m")
        assert (room.ledger, await room.events(scheduler)) == (["a", "b"], {"a": "consumed", "b": "consumed"})
        found = await shown(scheduler)
        assert (found["status"], found["paused"], found["issue"]) == ("idle", False, None)
        assert not await scheduler.list_alerts()


@pytest.mark.promise("K10", "K12")
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_a_question_that_was_removed_is_asked_again_and_nobody_has_paused_anything(room, part):
    async with room.open() as scheduler:
        await begin(room, scheduler, {"mutate": fails(ASKS, 2)})
        assert (await shown(scheduler))["issue"]["kind"] == "approval"
        if part == "workflow":
            await take_out(scheduler, part)
        else:
            await scheduler.add_workflow(no_consumer(room))
        assert await room.events(scheduler) == {"a": "pending"}
        await scheduler.add_workflow(room.workflow())
        await room.sleep("1m")
        found = await shown(scheduler)
        assert (found["paused"], found["issue"]["kind"], room.ledger) == (False, "approval", [])
        await room.act_on(scheduler, "approve", found["issue"]["run"], who="Ada")
        await room.sleep("1m")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})


@pytest.mark.promise("K12", "K16")
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_a_run_that_asks_once_its_handler_is_gone_leaves_no_question_behind(room, part, back):
    gate = asyncio.Event()

    async def ask(ctx):
        await gate.wait()
        if ctx.approved_by is None:
            raise ASKS

    async with room.open() as scheduler:
        await begin(room, scheduler, {"mutate": ask})
        if part == "workflow":
            await take_out(scheduler, part)
        else:
            await scheduler.add_workflow(no_consumer(room))
        if back:
            await scheduler.add_workflow(room.workflow())
        gate.set()
        await room.sleep("1m")
        if not back:
            assert (await scheduler.list_alerts(), await room.events(scheduler)) == ([], {"a": "pending"})
            await scheduler.add_workflow(room.workflow())
            await room.sleep("1m")
        found = await shown(scheduler)
        assert (found["paused"], found["issue"]["kind"], len(await scheduler.list_alerts())) == (False, "approval", 1)
        await room.act_on(scheduler, "approve", found["issue"]["run"], who="Ada")
        await room.sleep("1m")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})


@pytest.mark.promise("K9", "K10")
@pytest.mark.parametrize("part", ["workflow", "handler"])
@pytest.mark.parametrize("ends", ["commits", "fails", "dies"])
@virtual
async def test_a_run_that_goes_on_while_its_handler_is_taken_out_and_put_back_is_the_only_one(room, part, ends):
    gate = asyncio.Event()

    async def wait(ctx):
        if not gate.is_set():
            await gate.wait()
            if ends == "fails":
                raise TransientError("busy")

    async with room.open() as scheduler:
        await begin(room, scheduler, {"next": wait})
        if part == "workflow":
            await take_out(scheduler, part)
        else:
            await scheduler.add_workflow(no_consumer(room))
        await scheduler.add_workflow(room.workflow())
        await room.sleep("10s")
        gate.set()
        if ends == "dies":
            active = (await room.attempts(scheduler))[-1]
            await scheduler.cancel_run(ids.run_text(active.id))
        await room.sleep("11m")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})
        assert await room.events(scheduler, "rows") == {"a": "pending"}
        assert (await shown(scheduler))["issue"] is None


@pytest.mark.promise("K3", "K16")
@pytest.mark.parametrize("back", [False, True])
@virtual
async def test_a_run_whose_handler_was_taken_out_is_shown_and_no_producer_is_run_by_hand_beside_it(room, back):
    async with room.open() as scheduler:
        await begin(room, scheduler, {"mutate": lambda _: room.sleep("3m")})
        await scheduler.add_workflow(no_consumer(room))
        if back:
            await scheduler.add_workflow(room.workflow())
        assert (await shown(scheduler))["status"] == "running"
        with pytest.raises(ScheduleTriggerError, match=r"mailroom\.append is running: wait until it has ended"):
            await scheduler.workflows.run("mailroom")
        await room.sleep("5m")
        assert (await shown(scheduler))["status"] == "idle"
        assert await scheduler.workflows.run("mailroom")


@pytest.mark.promise("K11", "K16")
@pytest.mark.parametrize(
    ("verdict", "status", "ledger"),
    [("happened", "reserved", []), ("did_not_happen", "pending", ["a"]), ("skip", "reserved", [])],
)
@virtual
async def test_a_removed_workflow_with_an_open_question_is_shown_and_settled(room, verdict, status, ledger):
    room.reconciles = False
    async with room.open() as scheduler:
        await begin(room, scheduler, {"mutate": fails(LOST)})
        await take_out(scheduler, "workflow")
        await room.sleep("11m")
        found = await shown(scheduler)
        assert (found["removed"], found["status"], found["handlers"]) == (True, "needs_attention", [])
        assert found["issue"]["actions"] == ["settle"]
        listed = await scheduler.read(lambda tx: views.workflow_views(tx, scheduler.host.seen))
        assert [one["name"] for one in listed] == ["mailroom"]
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]
        with pytest.raises(NotFound):
            await room.act_on(scheduler, "pause", who="Ada")
        await room.act_on(scheduler, "settle", found["issue"]["run"], verdict, who="Ada")
        assert await room.events(scheduler) == {"a": status}
        assert not await scheduler.list_alerts()
        with pytest.raises(NotFound):  # there is nothing more to say about it
            await shown(scheduler)
        await scheduler.add_workflow(room.workflow())
        await room.sleep("1m")
        assert (room.ledger, await room.events(scheduler)) == (ledger, {"a": "consumed"})
        assert (await shown(scheduler))["issue"] is None


@pytest.mark.promise("K11")
@virtual
async def test_a_workflow_removed_while_its_change_is_in_flight_asks_once_that_has_ended(room):
    gate = asyncio.Event()

    async def lose(ctx):
        await gate.wait()
        raise LOST

    async with room.open() as scheduler:
        await begin(room, scheduler, {"mutate": lose})
        await take_out(scheduler, "workflow")
        assert not await scheduler.list_alerts()
        gate.set()
        await room.sleep("1m")
        found = await shown(scheduler)
        assert (found["issue"]["kind"], [alert.kind for alert in await scheduler.list_alerts()]) == (
            "reconciliation",
            ["workflow"],
        )
        await room.act_on(scheduler, "settle", found["issue"]["run"], "happened", who="Ada")
        room.act = {}
        await scheduler.add_workflow(room.workflow())
        with pytest.raises(ScheduleTriggerError, match="settled"):
            await room.act_on(scheduler, "settle", found["issue"]["run"], "happened", who="Ada")


@pytest.mark.promise("K11")
@virtual
async def test_a_question_about_a_workflow_that_is_put_back_is_settled_as_any_other(room):
    room.reconciles = False
    async with room.open() as scheduler:
        await begin(room, scheduler, {"mutate": fails(LOST)})
        await take_out(scheduler, "workflow")
        await scheduler.add_workflow(room.workflow())
        await room.sleep("11m")
        found = await shown(scheduler)
        assert (found["removed"], found["issue"]["kind"]) == (False, "reconciliation")
        waiting = await scheduler.read(lambda tx: [run.id for run in tx.runs.all_open() if run.status == "waiting"])
        assert [ids.run_text(run) for run in waiting] == [found["issue"]["run"]]
        await room.act_on(scheduler, "settle", found["issue"]["run"], "did_not_happen", who="Ada")
        await room.sleep("1m")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})


@pytest.mark.promise("K10")
@virtual
async def test_a_removed_workflow_that_comes_back_without_a_handler_settles_what_that_had_begun(room):
    async with room.open() as scheduler:
        await begin(room, scheduler, {"next": fails(BUSY, 99)})
        await take_out(scheduler, "workflow")
        assert await room.events(scheduler) == {"a": "reserved"}
        await scheduler.add_workflow(no_consumer(room))
        await room.sleep("1m")
        assert await room.events(scheduler) == {"a": "consumed"}
        attempt = (await room.attempts(scheduler))[-1]
        assert attempt.status == "given_up"
        assert (await room.handler(scheduler)).open_run is None


@pytest.mark.promise("K16")
@virtual
async def test_a_person_removes_a_workflow_and_is_told_what_is_left_to_settle(room):
    room.reconciles = False
    async with room.open() as scheduler:
        await begin(room, scheduler, {"mutate": fails(LOST)})
        asked = (await shown(scheduler))["issue"]["run"]
        assert await room.act_on(scheduler, "remove", who="Ada", note="moved") == [asked]
        found = await shown(scheduler)
        done = [(one["who"], one["action"], one["detail"]) for one in found["actions"]]
        assert (found["removed"], done[0]) == (True, ("Ada", "removed", "moved"))
        await scheduler.workflows.settle("mailroom", asked, "happened")
        with pytest.raises(NotFound):
            await scheduler.workflows.remove("mailroom")
