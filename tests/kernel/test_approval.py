"""Approvals: a run that asks waits for a person, for days and across restarts, and goes on or ends as they say."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel.asking import asking, deploy
from tests.kernel.scene import at, virtual
from wakeful import After, ApprovalNeeded, Defer, Manual, Once, RunNotFound, ScheduleTriggerError

pytestmark = pytest.mark.promise("X8")


@virtual
async def test_an_approved_run_goes_on_and_knows_who_approved(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, payload={"to": "prod"})
        assert run.approvals[0]["question"] == "Deploy to production?"
        again = await scheduler.approve_run(run.id, by="ana", note="after lunch")
        await scene.sleep("1s")
        asked, done = await scheduler.get_run(run.id), await scheduler.get_run(again)
        assert (asked.outcome, asked.approvals[0]["verdict"], asked.approvals[0]["by"]) == (
            "deferred",
            "approved",
            "ana",
        )
        assert (done.outcome, done.reason, done.retry_of, done.attempt, done.slot) == (
            "success",
            "approval",
            run.id,
            2,
            at(1),
        )
        assert done.output == {"by": "ana", "note": "after lunch", "payload": {"to": "prod"}}
        job = await scheduler.get_job("a")
        assert (job.status, job.next_run_at, job.consecutive_errors) == ("idle", at(2), 0)


@virtual
async def test_a_rejected_run_is_cancelled_and_the_next_slot_comes_as_usual(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, retry=3, max_errors=1)
        await scheduler.reject_run(run.id, by="ben", note="not today")
        await scene.sleep("5m")
        ended = await scheduler.get_run(run.id)
        assert (ended.outcome, ended.error) == ("cancelled", "rejected by ben: not today")
        assert len(scene.runs) == 1
        job = await scheduler.get_job("a")
        assert (job.status, job.consecutive_errors, job.next_run_at) == ("idle", 0, at(2))
        await scene.until(at(2, 0, 5))
        assert len(scene.runs) == 2


@virtual
async def test_a_question_waits_for_days_and_survives_restarts(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, Once(at(1)))
        await scene.sleep("2d")
    for _ in range(2):
        async with scene.scheduler() as scheduler:
            await scheduler.start()
            await scene.sleep("1d")
            assert (await scheduler.get_run(run.id)).status == "waiting"
            await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        again = await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("1s")
        assert (await scheduler.get_run(again)).outcome == "success"
        assert len(scene.runs) == 2


@virtual
async def test_a_waiting_question_holds_no_lane_and_no_limit(scene):
    async with scene.scheduler(max_running=1) as scheduler:
        run = await asking(scene, scheduler, lanes={"gpu": 1}, timeout="1m")
        await scheduler.add_job("b", Manual(), lanes={"gpu": 1}, kind="job")
        scene.act = None
        await scheduler.run_job("b")
        await scene.sleep("3h")
        assert [seen.job for seen in scene.runs] == ["a", "b"]
        assert (await scheduler.get_run(run.id)).status == "waiting"


@virtual
async def test_a_question_is_answered_once(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        await scheduler.approve_run(run.id, by="ana")
        for answer in (scheduler.approve_run, scheduler.reject_run):
            with pytest.raises(ScheduleTriggerError, match="already approved by ana"):
                await answer(run.id, by="ben")
        await scene.sleep("1s")
        assert len(scene.runs) == 2


@virtual
async def test_only_what_asks_can_be_answered(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("b", Manual())
        done = await scheduler.run_job("b")
        with pytest.raises(ScheduleTriggerError, match="does not wait for approval"):
            await scheduler.approve_run(done, by="ana")
        with pytest.raises(RunNotFound):
            await scheduler.reject_run("run_zzz", by="ana")
        run = await asking(scene, scheduler)
        with pytest.raises(ScheduleTriggerError, match="approve or reject it"):
            await scheduler.complete_run(run.id, "done")


@virtual
async def test_what_was_asked_about_is_what_runs_whatever_was_edited_meanwhile(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, payload={"version": 1})
        await scheduler.update_job("a", payload={"version": 2})
        again = await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("1s")
        assert (await scheduler.get_run(again)).output["payload"] == {"version": 1}


@virtual
async def test_a_job_of_another_kind_by_now_cannot_be_approved(scene):
    async with scene.scheduler("job", "other") as scheduler:
        run = await asking(scene, scheduler)
        await scheduler.update_job("a", kind="other")
        with pytest.raises(ScheduleTriggerError, match="another kind"):
            await scheduler.approve_run(run.id, by="ana")
        await scheduler.reject_run(run.id, by="ana")


@virtual
async def test_a_paused_job_still_does_what_was_approved_and_a_disabled_one_refuses(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        await scheduler.update_job("a", enabled=False)
        with pytest.raises(ScheduleTriggerError, match="disabled"):
            await scheduler.approve_run(run.id, by="ana")
        await scheduler.resume_job("a")
        await scheduler.pause_job("a")
        again = await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("1s")
        assert (await scheduler.get_run(again)).outcome == "success"
        assert (await scheduler.get_job("a")).status == "paused"


@virtual
async def test_slots_that_pass_while_it_waits_do_not_push_the_approved_one_aside(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, overlap="queue")
        await scene.until(at(5, 30))
        again = await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("1m")
        assert (await scheduler.get_run(again)).slot == at(1)
        assert (await scheduler.get_run(again)).outcome == "success"
        assert scene.runs[-1].slot == at(5)


@virtual
async def test_a_crash_after_the_approval_does_not_ask_again(scene):
    async def act(run):
        if run.approved_by is None:
            raise ApprovalNeeded("Sure?")
        if run.reason == "approval":
            await scene.sleep("1h")  # and the process dies in it
        return run.approved_by

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("1m")
        await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        latest = (await scheduler.get_run_log("a"))[0]
        assert (latest.reason, latest.outcome, latest.output, latest.attempt) == ("recovery", "success", "ana", 3)


@virtual
async def test_an_approval_given_while_no_server_runs_starts_with_the_next_one(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
    async with scene.scheduler() as scheduler:
        again = await scheduler.approve_run(run.id, by="ana")
    async with scene.scheduler() as scheduler:
        assert (await scheduler.get_run(again)).status == "queued"
        await scheduler.start()
        await scene.sleep("1s")
        assert (await scheduler.get_run(again)).outcome == "success"


@virtual
async def test_a_job_can_ask_before_every_start(scene):
    async def act(run):
        return run.approved_by

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, approval=True)
        assert scene.runs == []
        assert run.approvals[0]["question"] == "Run a?"
        again = await scheduler.approve_run(run.id, by="ana")
        await scene.until(at(2, 0, 5))
        assert [seen.id for seen in scene.runs] == [again]
        asked = (await scheduler.get_run_log("a"))[0]
        assert (asked.status, asked.slot, asked.approvals[0]["verdict"]) == ("waiting", at(2), None)


@virtual
async def test_a_retry_is_not_asked_again_but_what_a_person_starts_again_is(scene):
    async def act(run):
        raise RuntimeError("broken")

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, Once(at(1)), approval=True, retry={"delays": ["30s", "30s"], "on": "any"})
        await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("10m")
        retries = [("retry", "ana")] * 2
        assert [(seen.reason, seen.approved_by) for seen in scene.runs] == [("approval", "ana"), *retries]
        await scheduler.resume_job("a")  # a one-shot that failed is tried once more
        await scene.sleep("1s")
        again = (await scheduler.get_run_log("a"))[0]
        assert (again.reason, again.phase, again.status) == ("manual", "approval", "waiting")


@virtual
async def test_several_questions_are_asked_one_after_the_other(scene):
    async def act(run):
        answered = {entry["question"] for entry in run.approvals if entry["verdict"] == "approved"}
        for question in ("Staging?", "Production?"):
            if question not in answered:
                raise ApprovalNeeded(question)
        return run.approved_by

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        second = await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("1s")
        third = await scheduler.approve_run(second, by="ben")
        await scene.sleep("1s")
        done = await scheduler.get_run(third)
        assert (done.outcome, done.output, [entry["by"] for entry in done.approvals]) == (
            "success",
            "ben",
            ["ana", "ben"],
        )


@virtual
async def test_a_question_may_have_a_deadline(scene):
    async def act(run):
        raise ApprovalNeeded("Sure?", until=at(1, 30))

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        await scene.until(at(1, 31))
        ended = await scheduler.get_run(run.id)
        assert (ended.outcome, ended.error) == ("cancelled", "it was not approved before its deadline")
        assert (await scheduler.get_job("a")).consecutive_errors == 0


@pytest.mark.promise("X9")
@virtual
async def test_being_approved_uses_no_retry(scene):
    async def act(run):
        if run.approved_by is None:
            raise ApprovalNeeded
        raise OSError("disk full")

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, retry=["1m", "5m"])
        await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("30m")
        began = [found.started_at for found in reversed(await scheduler.get_run_log("a"))]
        assert began[2:] == [began[1] + timedelta(minutes=1), began[2] + timedelta(minutes=5)]
        assert (await scheduler.get_job("a")).consecutive_errors == 1


@virtual
async def test_an_approved_run_that_failed_and_is_retried_by_a_person_asks_again(scene):
    async def act(run):
        await deploy(run)
        raise RuntimeError("broken")

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, Once(at(1)))
        failed = await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("1s")
        assert (await scheduler.get_run(failed)).outcome == "error"
        again = await scheduler.retry_run(failed)
        await scene.sleep("1s")
        assert ((await scheduler.get_run(again)).phase, scene.runs[-1].approved_by) == ("approval", None)


@virtual
async def test_an_approved_start_does_not_wait_behind_a_start_that_asks_next(scene):
    async def act(run):
        return run.approved_by

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("first", Manual())
        await scheduler.add_job("a", After("first"), approval=True)
        await scheduler.start()
        for _ in range(2):
            await scheduler.run_job("first")
            await scene.sleep("5s")
        queued, asked = await scheduler.get_run_log("a")
        assert (queued.status, asked.status) == ("queued", "waiting")
        approved = await scheduler.approve_run(asked.id, by="ana")
        await scene.sleep("5s")
        assert (await scheduler.get_run(approved)).outcome == "success"
        later = await scheduler.get_run(queued.id)
        assert (later.status, later.phase) == ("waiting", "approval")  # and asks only now


@pytest.mark.parametrize("option", [True, False])
@virtual
async def test_what_was_approved_is_recovered_before_another_start_asks(scene, option):
    async def act(run):
        if run.job != "a":
            return None
        if run.approved_by is None:
            raise ApprovalNeeded("Sure?")
        if run.reason == "approval":
            await scene.sleep("1h")  # and the process dies in it
        return run.approved_by

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("first", Manual())
        await scheduler.add_job("a", After("first"), approval=option)
        await scheduler.start()
        for _ in range(2):
            await scheduler.run_job("first")
            await scene.sleep("5s")
        asked = (await scheduler.get_run_log("a"))[1]
        await scheduler.approve_run(asked.id, by="ana")
        await scene.sleep("5s")
        await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        found = {run.reason: run for run in await scheduler.get_run_log("a")}
        assert found["recovery"].output == "ana"


@pytest.mark.parametrize("how", ["fails", "defers"])
@virtual
async def test_further_attempts_at_what_was_approved_come_before_another_question(scene, how):
    async def act(run):
        if run.job == "a" and run.reason == "approval":
            if how == "defers":
                raise Defer(at(0, 10))
            raise OSError("no network")
        return run.approved_by

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("first", Manual())
        await scheduler.add_job("a", After("first"), approval=True, retry=["10m"])
        await scheduler.start()
        for _ in range(2):
            await scheduler.run_job("first")
            await scene.sleep("5s")
        queued, asked = await scheduler.get_run_log("a")
        await scheduler.approve_run(asked.id, by="ana")
        await scene.sleep("5m")
        assert (await scheduler.get_run(queued.id)).status == "queued"
        await scene.sleep("6m")
        outputs = [run.output for run in await scheduler.get_run_log("a")]
        assert "ana" in outputs
        assert (await scheduler.get_run(queued.id)).phase == "approval"


@virtual
async def test_a_slot_does_not_ask_while_an_approved_start_is_put_off(scene):
    async def act(run):
        if run.reason == "approval":
            raise Defer(at(2, 31))
        return run.approved_by

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler, approval=True)
        await scheduler.approve_run(run.id, by="ana")
        await scene.until(at(2, 30))
        assert (await scheduler.get_job("a")).status == "idle"
        assert "and waits: what was approved before goes first." in str(await scheduler.explain("a"))
        await scene.until(at(2, 32))
        assert scene.runs[-1].approved_by == "ana"
        await scene.until(at(2, 40))
        latest = (await scheduler.get_run_log("a"))[0]
        assert (latest.slot, latest.phase) == (at(2), "approval")
