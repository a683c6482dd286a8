"""Who takes back whose: agents their own, within what they may have; a program what it applied."""

from __future__ import annotations

from functools import partial

import pytest

from tests.kernel.scene import virtual
from tests.kernel.test_undo import ANN, last_action, standing
from wakeful import After, CannotUndo, Every
from wakeful.errors import QuotaReached
from wakeful.kernel.actions import authorized
from wakeful.kernel.actions.selections import JobSelection, pause_many
from wakeful.kernel.context import Rights
from wakeful.store.owners import Owned


@pytest.mark.promise("X27")
@virtual
async def test_an_agent_takes_back_only_what_it_did_to_its_own_jobs(scene):
    fox = Rights("fox", Owned("fox"))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("hers", Every("1h"), owner="fox")
        await scheduler.add_job("other", Every("1h"))
        done = await scheduler.transact(partial(pause_many, many=JobSelection()), rights=ANN)
        with pytest.raises(CannotUndo, match="nothing is left of it that you may undo"):  # and nothing of other jobs
            await scheduler.server_side.undo(done.action, fox)
        assert [job.status for job in await scheduler.list_jobs()] == ["paused", "paused"]
        await scheduler.server_side.undo(done.action, ANN)
        await scene.sleep(1)
        done = await scheduler.transact(partial(pause_many, many=JobSelection()), rights=fox)
        undone = await scheduler.server_side.undo(done.action, fox)
        assert (undone.restored, undone.kept) == (["hers"], {})
        with pytest.raises(CannotUndo, match="was undone already, by fox"):
            await scheduler.server_side.undo(done.action, fox)
        assert [job.status for job in await scheduler.list_jobs()] == ["idle", "idle"]


@pytest.mark.promise("X27")
@virtual
async def test_a_removal_is_not_taken_back_beyond_what_its_owner_may_have(scene):
    fox = Rights("fox", Owned("fox"), max_jobs=1)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("one", Every("1h"), owner="fox")
        removed = await scheduler.transact(partial(authorized.remove_job, ref="one"), rights=fox)
        await scheduler.add_job("two", Every("1h"), owner="fox")
        with pytest.raises(QuotaReached, match="fox has 1 job, and may have no more"):
            await scheduler.server_side.undo(removed, fox)
        assert [job.name for job in await scheduler.list_jobs()] == ["two"]


@pytest.mark.promise("X27")
@virtual
async def test_a_job_that_a_program_switched_off_is_switched_on_again(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.update_job("a", enabled=False, timeout="5m")
        assert (await last_action(scheduler)).what == "disable"
        assert (await scheduler.undo()).restored == ["a"]
        job = await scheduler.get_job("a")
        assert (job.status, job.options) == ("idle", {"timeout": "5m"})
        await scheduler.update_job("a", timeout="6m")
        assert len(await scheduler.list_actions()) == 1, "an edit is no such action"


@pytest.mark.promise("X27")
@virtual
async def test_what_a_program_removed_and_switched_off_with_its_agents_comes_back(scene):
    def agents(*names, on=True):
        beats = {"heartbeat": {"every": "1h", "enabled": on}}
        return {name: {"runner": {"start": ["true"]}, **(beats if name == "fox" else {})} for name in names}

    async with scene.scheduler() as scheduler:
        await scheduler.agents.apply(agents("fox", "owl"))
        before = [(job.name, standing(job)) for job in await scheduler.list_jobs()]
        assert await scheduler.list_actions() == []
        await scene.sleep(1)
        await scheduler.agents.apply(agents("fox"))
        assert [job.name for job in await scheduler.list_jobs()] == ["fox.heartbeat", "fox.wake"]
        assert (await scheduler.undo()).restored == ["owl.wake"]
        assert [(job.name, standing(job)) for job in await scheduler.list_jobs()] == before
        await scene.sleep(1)
        await scheduler.agents.pause("fox")
        action = await last_action(scheduler)
        assert (action.what, action.changed, action.via) == ("pause", 2, "code")
        await scheduler.resume_job("fox.wake")
        undone = await scheduler.undo(action.id)
        assert undone.restored == ["fox.heartbeat"]
        assert undone.kept == {"fox.wake": "fox.wake was resumed since, by here: left as it is"}


@pytest.mark.promise("X27")
@virtual
async def test_an_agent_takes_a_removal_back_only_where_it_could_add_the_job(scene):
    fox = Rights("fox", Owned("fox"))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("x", Every("1h"), owner="fox")
        removed = await scheduler.transact(partial(authorized.remove_job, ref="x"), rights=fox)
        await scheduler.add_job("y", After("x"))
        with pytest.raises(CannotUndo, match="Another owner's jobs start after 'x'"):
            await scheduler.server_side.undo(removed, fox)
        assert [job.name for job in await scheduler.list_jobs()] == ["y"]
