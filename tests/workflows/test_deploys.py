"""What a deploy, a restart and a resumed job do to handlers: which of them look at once, and with which limits."""

from __future__ import annotations

import asyncio

import pytest

from tests.workflows.mailroom import publish, virtual
from wakeful import Applied, Prepared, Unknown, Workflow
from wakeful.domains.workflows.loading import load_file, read_ref
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.errors import StoreFull
from wakeful.testing import WorkflowTest


async def waiting(room, scheduler):
    """An event that the consumer has looked at and left."""
    await scheduler.start()
    await room.sleep("10s")
    room.batch = 0
    await publish(scheduler, "a")
    await room.sleep("1m")
    assert await room.events(scheduler) == {"a": "pending"}
    room.calls.clear()


@pytest.mark.promise("K14")
@virtual
async def test_after_a_restart_a_consumer_looks_once_at_events_it_had_left(room):
    async with room.open() as scheduler:
        await waiting(room, scheduler)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.phases() == ["prepare", "next"]
        room.batch = 1
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})
    room.calls.clear()
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.phases() == [], "nothing is pending: a restart is no deploy"


@pytest.mark.promise("K1")
@virtual
async def test_a_new_version_looks_at_once_at_events_that_the_last_one_left(room):
    async with room.open() as scheduler:
        await waiting(room, scheduler)
        changed = room.workflow()
        changed.version = "takes them"
        room.batch = 1
        await scheduler.add_workflow(changed)
        await room.sleep("1s")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})


async def add_in_vain(scheduler, workflow, *, stored=False):
    """Add it while the disk is full; `stored`: the answer alone is lost."""
    transact = scheduler.transact

    async def fails(work, **options):
        if stored:
            await transact(work, **options)
        raise StoreFull("the disk is full")

    scheduler.transact = fails
    with pytest.raises(StoreFull):
        await scheduler.add_workflow(workflow)
    scheduler.transact = transact


@pytest.mark.promise("K1")
@virtual
async def test_a_deploy_that_the_store_refused_leaves_the_version_before_at_work(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        changed = room.workflow()
        changed.version = "not stored"
        await add_in_vain(scheduler, changed)
        deployed = (await room.row(scheduler)).version
        await publish(scheduler, "a")
        await room.sleep("1m")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})
        await scheduler.stop()
        await scheduler.start()
        assert (await room.row(scheduler)).version == deployed != "not stored"
        await scheduler.add_workflow(changed)
        assert (await room.row(scheduler)).version == "not stored"


@pytest.mark.promise("K1")
@virtual
async def test_a_first_deploy_that_the_store_refused_leaves_nothing_behind(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await add_in_vain(scheduler, paying("1", [], None))
        await scheduler.stop()
        await scheduler.start()
        assert "payments" not in {row.name for row in await scheduler.read(lambda tx: tx.of(WorkflowVerbs).all())}


@pytest.mark.promise("K1")
@virtual
async def test_a_deploy_whose_answer_was_lost_is_at_work_all_the_same(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        changed = room.workflow()
        changed.version = "stored"
        await add_in_vain(scheduler, changed, stored=True)
        assert (await room.row(scheduler)).version == "stored"
        await publish(scheduler, "a")
        await room.sleep("1m")
        assert room.ledger == ["a"]


def paying(version, asked, answer):
    """A workflow whose change fails in a way that leaves open whether it was made."""
    workflow = Workflow("payments")
    workflow.version = version
    pay = workflow.consumer("pay", subscribes=["bills"])

    @pay.prepare
    async def prepare(ctx, state):
        return Prepared({"bills": [bill.id for bill in await ctx.peek("bills")]})

    @pay.mutate
    async def mutate(ctx, prepared):
        raise ValueError("the answer was not understood")

    if answer is not None:

        @pay.reconcile
        async def reconcile(ctx, prepared):
            asked.append(version)
            return answer()

    return workflow


@pytest.mark.promise("K11")
@pytest.mark.parametrize("before", [Unknown, None])
def test_a_new_version_is_asked_about_a_change_that_waits_for_a_person(before):
    asked = []
    with WorkflowTest(paying("1", asked, before)) as test:
        test.publish("bills")
        test.advance("10m")
        assert asked == (["1"] * 5 if before else [])
        assert test.workflow()["issue"]["kind"] == "reconciliation"
        test.redeploy(paying("2", asked, Unknown))
        test.advance("10m")
        assert asked.count("2") == 5
        assert test.workflow()["issue"]["kind"] == "reconciliation"
        test.redeploy(paying("3", asked, Applied))
        test.advance("1m")
        assert asked[-2:] == ["2", "3"]
        assert (test.workflow()["issue"], [one["status"] for one in test.events("bills")]) == (None, ["consumed"])


@pytest.mark.promise("K11")
def test_a_new_version_without_reconcile_leaves_the_question_to_the_person():
    with WorkflowTest(paying("1", [], None)) as test:
        test.publish("bills")
        run = test.workflow()["issue"]["run"]
        test.redeploy(paying("2", [], None))
        test.advance("10m")
        assert (test.workflow()["issue"]["kind"], test.workflow()["issue"]["run"]) == ("reconciliation", run)
        test.settle("happened")
        assert [one["status"] for one in test.events("bills")] == ["consumed"]


@pytest.mark.promise("K14")
@virtual
async def test_a_paused_workflow_looks_at_them_when_it_is_resumed(room):
    async with room.open() as scheduler:
        await waiting(room, scheduler)
        await room.act_on(scheduler, "pause", who="Ada")
    room.batch = 1
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.phases() == []
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert room.ledger == ["a"]


@pytest.mark.promise("K4")
@virtual
async def test_an_event_that_came_while_the_handlers_job_was_paused_is_taken_as_soon_as_it_is_resumed(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        await scheduler.pause_job("mailroom.append")
        await publish(scheduler, "a")
        await room.sleep("10s")
        assert room.ledger == []
        await scheduler.resume_job("mailroom.append")
        await room.sleep("1s")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})
        await scheduler.pause_job("mailroom.append")
        await scheduler.resume_job("mailroom.append")
        await room.sleep("10s")
        assert room.phases().count("prepare") == 2, "there was nothing more to do"


@pytest.mark.promise("K4")
@virtual
async def test_a_handler_whose_job_is_paused_in_the_middle_of_its_events_goes_on_with_the_rest_once_it_is_resumed(room):
    room.batch = 1
    async with room.open() as scheduler:

        async def pause_once(ctx):
            room.act.clear()
            await scheduler.pause_job("mailroom.append")

        room.act["mutate"] = pause_once
        await scheduler.start()
        for name in ("a", "b", "c"):
            await publish(scheduler, name)
        await room.sleep("1h")
        assert room.ledger == ["a"]
        await scheduler.resume_job("mailroom.append")
        await room.sleep("1s")
        assert room.ledger == ["a", "b", "c"]
        looked = room.phases().count("prepare")
        await room.sleep("1h")
        assert room.phases().count("prepare") == looked, "there was nothing more to do"


@pytest.mark.promise("K5")
@virtual
async def test_a_wake_time_survives_that_the_handlers_job_is_paused_and_resumed(room):
    async with room.open() as scheduler:
        room.wake_at = room.now.replace(hour=1, minute=0, second=0)
        await scheduler.start()
        await room.sleep("10s")
        room.wake_at = None
        await scheduler.pause_job("mailroom.append")
        await scheduler.resume_job("mailroom.append")
        room.calls.clear()
        await room.until(room.now.replace(hour=1, minute=0, second=0))
        await room.sleep("1s")
        assert room.phases().count("prepare") == 1


@pytest.mark.promise("K1", "H10")
@virtual
async def test_a_changed_time_limit_is_deployed_and_counts(room):
    async def work_long(ctx):
        await room.sleep("40m")

    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        room.act["next"] = work_long
        await scheduler.add_workflow(room.workflow(append={"timeout": "1h"}))
        await publish(scheduler, "a")
        await room.sleep("50m")
        [done] = [one for one in await room.attempts(scheduler) if one.reserved]
        assert done.status == "committed"
        assert (await room.handler(scheduler)).timeout == 3_600_000


def test_a_time_limit_that_a_file_takes_from_elsewhere_is_part_of_its_version(tmp_path, monkeypatch):
    (tmp_path / "flow.py").write_text(
        "import os\n"
        "from wakeful import Interval, Workflow\n"
        "workflow = Workflow('flow')\n"
        "@workflow.producer(Interval('1h'), timeout=os.environ['LIMIT'])\n"
        "async def poll(ctx, state): ...\n"
    )
    found = set()
    for limit in ("5m", "1h", "5m"):
        monkeypatch.setenv("LIMIT", limit)
        found.add(load_file(read_ref("flow.py", tmp_path)).version)
    assert len(found) == 2


@virtual
async def test_a_workflow_may_be_called_as_jobs_of_agents_are(room):
    workflow = Workflow("wake")
    heartbeat = workflow.consumer("heard", subscribes=["heartbeat"])

    @heartbeat.prepare
    async def prepare(ctx, state):
        heard.append(ctx.now)

    heard = []
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1s")
        assert len(heard) == 1


@pytest.mark.promise("K1", "K4")
@virtual
async def test_a_version_that_is_deployed_during_a_run_looks_at_what_that_run_leaves(room):
    gate = asyncio.Event()

    async def wait(ctx):
        await gate.wait()

    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        room.batch, room.after = 0, {"prepare": wait}
        await publish(scheduler, "a")
        await room.sleep("1s")
        changed = room.workflow()
        changed.version = "takes them"
        await scheduler.add_workflow(changed)
        room.batch = 1
        gate.set()
        await room.sleep("10s")
        assert (room.ledger, await room.events(scheduler)) == (["a"], {"a": "consumed"})
