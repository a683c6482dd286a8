"""What an undo brings back and what it leaves, what a run's token opens, and which question is answered."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.delivery.targets import Target, stored
from tests.kernel.scene import failing, virtual
from wakeful import ApprovalNeeded, Every, Manual, ScheduleTriggerError, ids
from wakeful.errors import NotAllowed
from wakeful.kernel.actions import authorized, run_tokens
from wakeful.kernel.context import Rights
from wakeful.kernel.kinds import Kind

ADA = Rights("ada", admin_kinds=True, via="cli")
BEN = Rights("ben", via="api")


@pytest.mark.promise("X27")
@virtual
async def test_a_job_that_only_admins_may_write_is_brought_back_by_an_admin_alone(scene):
    async with scene.scheduler("power", kinds=[Kind("power", admin_only=True)]) as scheduler:
        await scheduler.add_job("a", Every("1h"), kind="power")
        removed = await scheduler.transact(partial(authorized.remove_job, ref="a"), rights=ADA)
        with pytest.raises(NotAllowed, match="Only an admin may write jobs of kind power"):
            await scheduler.server_side.undo(removed, BEN)
        assert await scheduler.list_jobs() == []
        await scheduler.server_side.undo(removed, ADA)
        assert [job.name for job in await scheduler.list_jobs()] == ["a"]


@pytest.mark.promise("X27")
@virtual
async def test_a_start_that_ran_and_was_cancelled_since_does_not_come_again_with_an_undo(scene):
    go_on = asyncio.Event()
    scene.act = lambda run: go_on.wait() if run.job == "busy" else scene.sleep("1h")
    async with scene.scheduler() as scheduler:
        for name in ("busy", "a"):
            await scheduler.add_job(name, Manual(), lanes={"l": 1})
        await scheduler.start()
        await scheduler.run_job("busy")
        await scene.sleep(1)
        waiting = await scheduler.run_job("a")
        await scene.sleep(1)
        await scheduler.pause_job("a")
        go_on.set()
        await scene.sleep(5)
        assert [run.job for run in scene.runs] == ["busy", "a"]
        await scheduler.cancel_run(waiting)
        await scene.sleep(5)
        await scheduler.undo()
        await scene.sleep("2h")
        assert len(scene.runs) == 2


@pytest.mark.promise("X27")
@virtual
async def test_a_start_that_a_person_tried_again_since_does_not_come_again_with_an_undo(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), retry=3)
        await scheduler.start()
        await scheduler.run_job("a")
        await scene.sleep(1)
        scene.act = None
        await scheduler.pause_job("a")
        ended = (await scheduler.get_run_log("a"))[0]
        assert ended.outcome == "cancelled"
        await scheduler.retry_run(ended.id)
        await scheduler.undo()
        await scene.sleep("2h")
        outcomes = [run.outcome for run in await scheduler.get_run_log("a")]
        assert outcomes == ["success", "cancelled", "error"]


@pytest.mark.promise("X17")
@virtual
async def test_the_end_of_a_hold_sends_what_a_restore_held(scene):
    target = Target(scene)
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("phone", target)
        await scheduler.start()
        await scheduler.server_side.hold_all("restored", ADA, messages=True)
        await scheduler.deliver("hello", to="phone")

        def restore(tx, _):
            from wakeful.domains.delivery.outbox import hold_pending

            return hold_pending(tx)

        assert await scheduler.transact(restore) == 1
        await scene.sleep("1h")
        assert target.texts == []
        await scheduler.server_side.release_all(ADA)
        await scene.sleep(5)
        assert target.texts == ["hello"]
        assert [item["status"] for item in await stored(scheduler)] == ["sent"]
        await scheduler.stop()


async def ask(_):
    raise ApprovalNeeded("May I?")


@pytest.mark.promise("X8")
@virtual
async def test_a_question_of_a_run_that_its_job_has_no_more_is_not_answered(scene):
    scene.act = ask
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        run = await scheduler.run_job("a")
        await scene.sleep(1)

        def lose(tx, _):
            state = tx.jobs.by_name("a")[1]
            tx.jobs.save([state._replace(run_id=None)])

        await scheduler.transact(lose)
        with pytest.raises(ScheduleTriggerError, match="does not wait for approval"):
            await scheduler.approve_run(run, by="ana")


@pytest.mark.promise("X18")
@pytest.mark.parametrize(("owner", "name"), [(None, None), ("fox", "fox")])
@virtual
async def test_the_token_of_a_run_opens_what_the_jobs_owner_may_and_nothing_without_one(scene, owner, name):
    scene.act = lambda run: scene.sleep("1h")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), owner=owner)
        await scheduler.start()
        number = ids.decode(await scheduler.run_job("a"))[1]
        await scene.sleep(1)
        token = await scheduler.transact(lambda tx, _: run_tokens.run_token(tx, number))
        found = await scheduler.read(lambda tx: run_tokens.find(tx, token))
        assert (None if found is None else found.name) == name


@pytest.mark.promise("X22")
@virtual
async def test_a_lane_that_becomes_wider_says_how_many_may_start(scene):
    async with scene.scheduler() as scheduler:
        sizes = {"narrow": 1, "wide": 5}
        for job, size in sizes.items():
            await scheduler.add_job(job, Manual(), lanes={"l": size})

        def leave(tx, _):
            tx.lanes.add({"l": 2})
            return tx.lanes.leave([tx.jobs.by_name("narrow")[0].id])

        assert await scheduler.transact(leave) == {"l": 3}
