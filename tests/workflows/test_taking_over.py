"""A node that lost its run: another one has taken over, and nothing the first still does is stored."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.workflows.mailroom import virtual
from wakeful import Scheduler
from wakeful.domains.workflows.registry import WorkflowRegistry
from wakeful.kernel.engine.recovery import crash_all

POINTS = ["prepare", "mutate", "next"]


async def take_over(room, scheduler):
    """What another node does with the runs of a silent one."""

    def work(tx, context):
        mine = [run for run in tx.runs.all_open() if run.status == "active"]
        crash_all(tx, context._replace(id=context.new_id()), mine)

    await scheduler.transact(work)


@pytest.mark.promise("K9", "K10", "K11")
@pytest.mark.parametrize("phase", POINTS)
@virtual
async def test_a_node_that_lost_its_run_cannot_checkpoint_it(room, phase):
    room.mails, taken = ["a"], []

    async def lose(ctx):
        if "poll" in room.phases() and not taken:
            taken.append(ctx.run_id)
            await take_over(room, scheduler)
            await room.sleep("20s")  # the new owner may begin meanwhile

    room.after[phase] = lose
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1h")
        assert taken
        assert room.ledger == ["a"]
        assert await room.events(scheduler) == {"a": "consumed"}
        assert await room.events(scheduler, "rows") == {"a": "pending"}
        attempts = await room.attempts(scheduler)
        lost = next(one for one in attempts if one.status == "crashed")
        assert lost.phase == {"prepare": "preparing", "mutate": "mutating", "next": "mutated"}[phase]
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K11")
@virtual
async def test_a_silent_node_may_still_be_at_work_so_nothing_is_reconciled_before_its_time_is_over(room):
    room.mails, taken = ["a"], []
    if room.url.startswith("sqlite"):
        return  # one process at a time: what another left is over
    other = Scheduler(room.url, clock=room.clock, node="there", seed=99, tuning=room.tuning)

    async def lose(ctx):
        if not taken:
            taken.append(ctx.now)
            await other.transact(lambda tx, context: crash_all(tx, context, tx.runs.all_open()))
            await room.sleep("2m")

    room.after["mutate"] = lose
    async with room.open() as scheduler, other:
        await scheduler.start()
        await other.start()
        await room.sleep("1h")
        [asked] = [when for when, phase in room.calls if phase == "reconcile"]
        assert asked - taken[0] >= timedelta(minutes=5)
        assert room.ledger == ["a"]
        assert await room.events(scheduler) == {"a": "consumed"}


@pytest.mark.promise("K7")
@virtual
async def test_a_node_with_older_code_does_not_deploy_it_and_leaves_the_workflow_alone(room):
    if room.url.startswith("sqlite"):
        return  # one node at a time
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        newer = Scheduler(room.url, clock=room.clock, node="there", seed=99, tuning=room.tuning)
        workflow = room.workflow()
        workflow.version = "newer"
        newer.add_workflow(workflow)
        async with newer:
            await newer.start()
            await room.sleep("1s")
            assert (await room.row(newer)).version == "newer"
            assert await scheduler.list_alerts() == []
            await newer.stop()
            room.calls.clear()
            await room.sleep("10m")
            assert room.calls == [], "the older node refuses it"
            assert {alert.kind for alert in await scheduler.list_alerts()} == {"no_handler"}
            await scheduler.stop()
            await newer.start()
            await room.sleep("30s")
            assert room.calls != []
            assert await newer.list_alerts() == []
        room.calls.clear()
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10m")
        assert (await room.row(scheduler)).version == "newer"
        assert room.calls == []


def test_a_node_with_other_code_knows_how_long_no_node_has_run_a_job():
    registry = WorkflowRegistry()
    assert registry.refused_since(7, 1_000, last_run_at=500) == 1_000
    assert registry.refused_since(7, 20_000, last_run_at=500) == 1_000
    assert registry.refused_since(7, 40_000, last_run_at=30_000) == 40_000, "another node has run it meanwhile"
    assert registry.refused_since(7, 90_000, last_run_at=30_000) == 90_000, "it was not due meanwhile"
    assert registry.refused_since(8, 90_000, last_run_at=None) == 90_000


def test_nothing_is_kept_of_jobs_that_were_refused_long_ago():
    registry = WorkflowRegistry()
    for job_id in range(1_000):
        registry.refused_since(job_id, job_id * 1_000, last_run_at=None)
    assert len(registry._refused) <= 32
