"""What a person does by mistake can be undone for ten minutes, and what was changed since is not overwritten."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import ActionNotFound, After, ApprovalNeeded, CannotUndo, Every, Once
from wakeful.kernel.actions.selections import JobSelection, pause_many, resume_many
from wakeful.kernel.context import Rights
from wakeful.kernel.loop.config import Retention
from wakeful.kernel.rules.policy import add_note

ANN = Rights("ann", admin_kinds=True, via="api")
BEN = Rights("ben", admin_kinds=True, via="api")


def standing(job):
    """What of a job must be as it was."""
    same = ("status", "enabled", "next_run_at", "notes", "consecutive_errors", "last_error", "options", "missed")
    return {name: getattr(job, name) for name in same}


async def last_action(scheduler):
    return (await scheduler.list_actions())[0]


@pytest.mark.promise("X27")
@virtual
async def test_a_pause_is_taken_back_with_its_note_and_the_next_time_is_the_one_it_had(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", jitter=10))
        before = standing(await scheduler.get_job("a"))
        await scheduler.pause_job("a", "by mistake")
        assert (await scheduler.get_job("a")).status == "paused"
        done = await scheduler.undo()
        assert (done.what, done.restored, done.kept) == ("pause", ["a"], {})
        assert standing(await scheduler.get_job("a")) == before
        action = await last_action(scheduler)
        assert (action.what, action.actor, action.via, action.name, action.changed) == ("pause", "here", "code", "a", 1)
        assert (action.undone_by, action.undo_until) == ("here", None)


@pytest.mark.promise("X27")
@virtual
async def test_a_slot_that_passed_meanwhile_is_run_once_the_pause_is_undone(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(0, 58))
        await scheduler.pause_job("a")
        await scene.until(at(1, 5))
        assert scene.runs == []
        await scheduler.undo()
        await scene.sleep(1)
        assert scene.slots == [at(1)]
        await scene.until(at(2, 1))
        assert scene.slots == [at(1), at(2)]


@pytest.mark.promise("X27")
@pytest.mark.parametrize("trigger", [Every("1h", max_runs=1), Once(at(1))], ids=lambda trigger: trigger.type)
@virtual
async def test_a_job_that_came_to_its_end_while_it_was_paused_is_over_once_the_pause_is_undone(scene, trigger):
    scene.act = lambda _: scene.sleep(300)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await scene.until(at(1, 1))
        await scheduler.pause_job("a")
        await scene.until(at(1, 6))
        await scheduler.undo()
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled, job.over) == ("done", False, True)


@pytest.mark.promise("X27")
@virtual
async def test_a_resume_is_taken_back_with_the_errors_and_the_alerts_it_forgot(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.until(at(1, 1))
        before, (alert,) = standing(await scheduler.get_job("a")), await scheduler.list_alerts()
        assert (before["status"], alert.kind) == ("disabled", "disabled")
        await scheduler.resume_job("a")
        assert (await scheduler.get_job("a")).status == "idle"
        assert await scheduler.list_alerts() == []
        await scheduler.undo()
        assert standing(await scheduler.get_job("a")) == before
        assert [(found.id, found.closed_at) for found in await scheduler.list_alerts()] == [(alert.id, None)]
        await scene.until(at(3))
        assert len(scene.runs) == 1


@pytest.mark.promise("X27")
@virtual
async def test_a_job_that_was_disabled_by_its_errors_since_is_left_as_it_is(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.until(at(0, 58))
        await scheduler.pause_job("a")
        await scheduler.resume_job("a")
        scene.act = failing()
        await scene.until(at(1, 1))
        with pytest.raises(CannotUndo, match="a was disabled since: left as it is"):
            await scheduler.undo()
        assert (await scheduler.get_job("a")).status == "disabled"


@pytest.mark.promise("X27")
@virtual
async def test_errors_of_runs_since_stay_when_the_resume_before_them_is_undone(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(2, 55))
        assert (await scheduler.get_job("a")).consecutive_errors == 2
        await scheduler.pause_job("a")
        await scheduler.resume_job("a")
        await scene.until(at(3, 1))
        await scheduler.undo()
        job = await scheduler.get_job("a")
        assert (job.status, job.consecutive_errors) == ("paused", 1)


@pytest.mark.promise("X27")
@virtual
async def test_a_start_that_a_resume_asked_for_is_taken_back_with_it(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)), retry=0)
        await scheduler.start()
        await scene.until(at(1, 1))
        await scheduler.stop()
        await scheduler.resume_job("a")
        assert [run.status for run in await scheduler.get_run_log("a")] == ["queued", "done"]
        await scheduler.undo()
        assert [run.outcome for run in await scheduler.get_run_log("a")] == ["cancelled", "error"]
        await scheduler.start()
        await scene.sleep(60)
        assert len(scene.runs) == 1


@pytest.mark.promise("X27")
@virtual
async def test_a_retry_that_a_pause_ended_is_queued_again(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1d"), retry=3)
        await scheduler.start()
        await scheduler.run_job("a")
        await scene.sleep(1)
        scene.act = None
        await scheduler.pause_job("a")
        await scene.sleep(1)
        assert (await scheduler.get_run_log("a"))[0].outcome == "cancelled"
        await scheduler.undo()
        await scene.sleep(600)
        assert (await scheduler.get_run_log("a"))[0].outcome == "success"


@pytest.mark.promise("X27")
@virtual
async def test_a_removed_job_is_restored_with_its_id_its_history_its_chains_and_its_lanes(scene):
    async with scene.scheduler() as scheduler:
        job_id = await scheduler.add_job("a", Every("1h"), lanes={"gpu": 1})
        after = await scheduler.add_job("b", After("a"))
        await scheduler.start()
        await scene.until(at(1, 1))
        before, runs = standing(await scheduler.get_job("a")), await scheduler.get_run_log("a")
        for name in ("b", "a"):
            await scheduler.remove_job(name)
        assert await scheduler.list_jobs() == []
        assert (await scheduler.undo()).restored == ["a"]
        assert (await scheduler.undo()).restored == ["b"]
        assert [job.id for job in await scheduler.list_jobs()] == [job_id, after]
        assert standing(await scheduler.get_job("a")) == before
        assert [run.id for run in await scheduler.get_run_log("a")] == [run.id for run in runs]
        assert (await scheduler.read(lambda tx: tx.lanes.loads(["gpu"])))["gpu"].size == 1
        await scene.until(at(2, 1))
        assert [run.job for run in scene.runs] == ["a", "b", "a", "b"]


@pytest.mark.promise("X27")
@virtual
async def test_a_removal_is_not_taken_back_over_another_job_of_that_name(scene):
    async with scene.scheduler() as scheduler:
        old = await scheduler.add_job("a", Every("1h"))
        await scheduler.remove_job("a")
        new = await scheduler.add_job("a", Every("2h"))
        with pytest.raises(CannotUndo, match="another job is named a by now"):
            await scheduler.undo()
        assert [job.id for job in await scheduler.list_jobs()] == [new]
        await scheduler.update_job("a", name="c")
        assert (await scheduler.undo()).restored == ["a"]
        assert (await scheduler.get_job("a")).id == old


@pytest.mark.promise("X27")
@virtual
async def test_an_action_on_more_jobs_than_one_transaction_takes_is_undone_as_a_whole(scene, monkeypatch):
    monkeypatch.setattr("wakeful.kernel.actions.undoing.TOGETHER", 2)
    async with scene.scheduler() as scheduler:
        for number in range(5):
            await scheduler.add_job(f"job-{number}", Every("1h"))
        paused = await scheduler.transact(partial(pause_many, many=JobSelection()), rights=ANN)
        assert len((await scheduler.server_side.undo(paused.action, ANN)).restored) == 5
        assert {job.status for job in await scheduler.list_jobs()} == {"idle"}


@pytest.mark.promise("X27")
@virtual
async def test_actions_are_undone_one_after_the_other_from_the_last_on(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.pause_job("a")
        await scheduler.resume_job("a")
        for what, status in (("resume", "paused"), ("pause", "idle")):
            assert (await scheduler.undo()).what == what
            assert (await scheduler.get_job("a")).status == status


@pytest.mark.promise("X27")
@virtual
async def test_an_acknowledgement_is_taken_back(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.until(at(1, 1))
        (alert,) = await scheduler.list_alerts()
        await scheduler.ack_alert(alert.id)
        await scheduler.ack_alert(alert.id)  # twice is as good as once
        assert (await scheduler.undo()).restored == [alert.id]
        assert [found.acked_at for found in await scheduler.list_alerts()] == [None]
        await scheduler.ack_alert(alert.id)
        await scheduler.resume_job("a")
        acked = (await scheduler.list_actions())[1]
        with pytest.raises(CannotUndo, match="is over, or was acknowledged again since"):
            await scheduler.undo(acked.id)


@pytest.mark.promise("X27")
@virtual
async def test_many_are_one_action_and_later_changes_are_kept(scene):
    async with scene.scheduler() as scheduler:
        for name in "abcd":
            await scheduler.add_job(name, Every("1h"))
        await scheduler.pause_job("d")
        done = await scheduler.transact(partial(pause_many, many=JobSelection()), rights=ANN)
        assert done.changed == ["a", "b", "c"]
        await scheduler.transact(partial(resume_many, many=JobSelection(refs=("a",))), rights=BEN)
        await scheduler.transact(partial(pause_many, many=JobSelection(refs=("a",)), note="mine"), rights=BEN)
        await scheduler.update_job("b", enabled=False)
        undone = await scheduler.server_side.undo(done.action, BEN)
        assert undone.restored == ["c"]
        assert undone.kept == {
            "a": "a was paused since, by ben: left as it is",
            "b": "b was disabled since, by here: left as it is",
        }
        assert [job.status for job in await scheduler.list_jobs()] == ["paused", "paused", "idle", "paused"]
        assert (await scheduler.get_job("a")).notes == ["paused: mine"]
        with pytest.raises(CannotUndo, match="a was paused since, by ben"):
            await scheduler.server_side.undo(done.action, BEN)


@pytest.mark.promise("X27")
@virtual
async def test_an_edit_since_stays_when_the_pause_before_it_is_undone(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.pause_job("a")
        await scheduler.update_job("a", trigger=Every("6h"))
        await scheduler.undo()
        job = await scheduler.get_job("a")
        assert (job.status, job.schedule, job.next_run_at) == ("idle", "every 6 hours", at(6))


@pytest.mark.promise("X27")
@virtual
async def test_an_action_can_be_undone_once_and_for_ten_minutes(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.pause_job("a")
        await scheduler.pause_job("a")  # changed nothing: no action
        (action,) = await scheduler.list_actions()
        await scene.sleep(600)
        await scheduler.undo(action.id)
        with pytest.raises(CannotUndo, match="was undone already, by here"):
            await scheduler.undo(action.id)
        with pytest.raises(ActionNotFound, match="did nothing in the last 10 minutes"):
            await scheduler.undo()
        await scheduler.remove_job("a")
        action = await last_action(scheduler)
        await scene.sleep(601)
        with pytest.raises(CannotUndo, match=r"was 10 minutes ago, and an action can be undone for 10"):
            await scheduler.undo(action.id)
        for unknown in ("act_0000000000000", "nonsense", "act_0"):
            with pytest.raises(ActionNotFound):
                await scheduler.undo(unknown)


@pytest.mark.promise("X27")
@virtual
async def test_an_action_survives_a_crash_and_is_undone_by_another_process(scene):
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_job("a", Every("1h"))
    await scheduler.start()
    await scheduler.pause_job("a")
    action = await last_action(scheduler)
    await scene.crash(scheduler)
    await scene.sleep(60)
    async with scene.scheduler() as other:
        await other.start()
        await other.undo(action.id)
        await scene.until(at(1, 1))
        assert scene.slots == [at(1)]


@pytest.mark.promise("X27")
@virtual
async def test_of_two_nodes_that_undo_the_same_at_once_one_does(scene):
    async with scene.scheduler() as one, scene.scheduler() as other:
        await one.add_job("a", Every("1h"))
        await one.start()
        await one.remove_job("a")
        action = await last_action(other)
        done = await asyncio.gather(one.undo(action.id), other.undo(action.id), return_exceptions=True)
        assert sorted(type(each).__name__ for each in done) == ["CannotUndo", "Undone"]
        await scene.until(at(1, 1))
        assert scene.slots == [at(1)]


@pytest.mark.promise("X27")
@virtual
async def test_a_question_that_a_removal_ended_stays_ended(scene):
    async def ask(run):
        raise ApprovalNeeded("Really?")

    scene.act = ask
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 1))
        await scheduler.remove_job("a")
        await scheduler.undo()
        job = await scheduler.get_job("a")
        assert (job.status, job.next_run_at) == ("idle", at(2))
        assert (await scheduler.get_run_log("a"))[0].outcome == "cancelled"


@pytest.mark.promise("X27")
@virtual
async def test_a_note_that_was_written_since_stays_when_a_pause_is_undone(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.pause_job("a", "by mistake")

        def annotate(tx, _):
            state = tx.jobs.by_name("a")[1]
            tx.jobs.save([state._replace(notes=add_note(state.notes, "copies the photos"))])

        await scheduler.transact(annotate)
        await scheduler.undo()
        job = await scheduler.get_job("a")
        assert (job.status, "copies the photos" in str(job.notes)) == ("idle", True)


@virtual
async def test_actions_leave_with_the_rest_of_the_history(scene):
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.pause_job("a")
        await scheduler.start()
        await scene.sleep(23 * 3600)
        assert len(await scheduler.list_actions()) == 1
        await scene.sleep(3 * 3600)
        assert await scheduler.list_actions() == []
