"""Jobs that are over: they are done, may be run by hand, come back with a new time, and leave with their history."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Every, Manual, Once, Retention
from wakeful.errors import ScheduleTriggerError


async def statuses(scheduler):
    return {job.name: job.status for job in await scheduler.list_jobs()}


@pytest.mark.promise("H13")
@virtual
async def test_what_is_over_is_done_and_what_a_person_stopped_or_did_not_succeed_is_disabled(scene):
    async def act(run):
        if run.job == "failed":
            raise ValueError("no such file")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("once", Once(at(1)))
        await scheduler.add_job("failed", Once(at(1)))
        await scheduler.add_job("thrice", Every("1h", max_runs=3))
        await scheduler.add_job("until", Every("1h", until=at(4)))
        await scheduler.add_job("off", Once(at(days=9)))
        await scheduler.add_job("manual", Manual())
        await scheduler.start()
        await scheduler.update_job("off", enabled=False)
        await scene.until(at(9))
        done = dict.fromkeys(("once", "thrice", "until"), "done")
        assert await statuses(scheduler) == {**done, "failed": "disabled", "off": "disabled", "manual": "idle"}
        assert {job.name for job in await scheduler.list_jobs(status="done")} == set(done)
        assert (await scheduler.get_summary()).jobs == {"idle": 1, "done": 3, "disabled": 2}
        assert "done" in " ".join((await scheduler.explain("once")).sentences)


@pytest.mark.promise("H13")
@virtual
async def test_a_job_that_is_over_may_be_run_by_hand_and_is_then_as_its_last_run_left_it(scene):
    async def act(run):
        raise ValueError("no such file")

    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(2))
        scene.act = act
        await scheduler.run_job("a")
        await scene.sleep("1m")
        assert await statuses(scheduler) == {"a": "disabled"}
        scene.act = None
        await scheduler.run_job("a")
        await scene.sleep("1m")
        assert (await statuses(scheduler), len(scene.runs)) == ({"a": "done"}, 3)
        assert await scheduler.list_alerts() == []
        await scheduler.update_job("a", enabled=False)
        assert await statuses(scheduler) == {"a": "disabled"}
        with pytest.raises(ScheduleTriggerError, match="resume it first"):
            await scheduler.run_job("a")


@pytest.mark.promise("H13")
@virtual
async def test_a_new_time_revives_a_job_that_is_over_but_not_one_that_a_person_disabled(scene):
    async with scene.scheduler() as scheduler:
        for name in ("a", "off", "both"):
            await scheduler.add_job(name, Once(at(1)))
        await scheduler.start()
        await scene.until(at(2))
        await scheduler.update_job("off", enabled=False)
        for name in ("a", "off"):
            await scheduler.update_job(name, trigger=Once(at(3)))
        await scheduler.update_job("both", trigger=Once(at(3)), enabled=False)
        assert await statuses(scheduler) == {"a": "idle", "off": "disabled", "both": "disabled"}
        await scene.until(at(4))
        assert [(run.job, run.slot) for run in scene.runs[3:]] == [("a", at(3))]
        assert (await statuses(scheduler))["a"] == "done"


@pytest.mark.promise("X11")
@virtual
async def test_a_one_shot_that_is_over_leaves_with_its_history_unless_it_would_be_added_again(scene):
    async def act(run):
        if run.job == "failed":
            raise ValueError("no such file")

    scene.act = act
    async with scene.scheduler(retention=Retention(days=3)) as scheduler:
        scheduler.job(Once(at(1)), name="declared")(scene.handle)
        await scheduler.add_job("done", Once(at(1)))
        await scheduler.add_job("failed", Once(at(1)))
        await scheduler.add_job("late", Once(at(days=-1)), catch_up="skip")
        await scheduler.add_job("owned", Once(at(1)), source="file")
        await scheduler.add_job("again", Once(at(1)))
        await scheduler.add_job("off", Once(at(days=90)))
        await scheduler.start()
        await scheduler.run_job("off")
        await scene.until(at(2))
        await scheduler.update_job("off", enabled=False)
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["failed"]
        await scene.until(at(days=2))
        assert len(await statuses(scheduler)) == 7
        await scheduler.run_job("again")
        await scene.until(at(days=4))
        kept = {"declared": "done", "owned": "done", "off": "disabled"}
        assert await statuses(scheduler) == {**kept, "again": "done"}
        assert await scheduler.list_alerts() == [], "what is gone needs no person"
        await scene.until(at(days=6))
        assert await statuses(scheduler) == kept


@virtual
async def test_a_job_whose_run_waits_for_a_person_is_waiting_and_says_how_to_answer(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual(), approval=True)
        await scheduler.add_job("b", Manual())
        await scheduler.start()
        run = await scheduler.run_job("a")
        await scene.sleep("1s")
        assert await statuses(scheduler) == {"a": "waiting", "b": "idle"}
        assert [job.name for job in await scheduler.list_jobs(status="waiting")] == ["a"]
        assert await scheduler.list_jobs(status="running") == []
        summary = await scheduler.get_summary()
        assert (summary.jobs, summary.open_approvals) == ({"idle": 1, "waiting": 1}, 1)
        with pytest.raises(ScheduleTriggerError, match=f"waits for approval.*wakeful approve {run}") as refused:
            await scheduler.run_job("a")
        assert refused.value.context["reason"] == "approval"
        await scheduler.approve_run(run, by="ana")
        await scene.sleep("1s")
        assert (await statuses(scheduler), len(scene.runs)) == ({"a": "idle", "b": "idle"}, 1)


@pytest.mark.promise("H8", "H13")
@pytest.mark.parametrize("trigger", [Once(at(1)), Every("1h", max_runs=1)], ids=lambda trigger: trigger.type)
@virtual
async def test_a_job_that_is_paused_during_its_last_run_is_over_when_that_succeeds(scene, trigger):
    async def act(run):
        await scene.sleep("10m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await scene.until(at(1, 5))
        await scheduler.pause_job("a", note="wait a moment")
        await scene.until(at(1, 30))
        job = await scheduler.get_job("a")
        assert (job.over, await statuses(scheduler)) == (True, {"a": "done"})
        assert not any("paused" in note for note in job.notes)


@pytest.mark.promise("H8", "H13")
@virtual
async def test_a_one_shot_that_is_paused_and_then_fails_waits_to_be_resumed(scene):
    async def act(run):
        await scene.sleep("10m")
        if len(scene.runs) == 1:
            raise RuntimeError("no")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(1, 5))
        await scheduler.pause_job("a")
        await scene.until(at(1, 30))
        assert await statuses(scheduler) == {"a": "paused"}
        await scheduler.resume_job("a")
        await scene.until(at(2))
        assert await statuses(scheduler) == {"a": "done"}
