"""What people see of a question, and questions that end without an answer."""

from __future__ import annotations

import pytest

from tests.kernel.asking import asking
from tests.kernel.scene import virtual
from wakeful import ApprovalNeeded, InvalidJob, Manual, ScheduleTriggerError

pytestmark = pytest.mark.promise("X8")


@virtual
async def test_a_run_whose_job_is_removed_before_it_asks_is_cancelled(scene):
    async def ask_later(run):
        await scene.sleep("1m")
        raise ApprovalNeeded("Deploy to production?")

    scene.act = ask_later
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        run = await scheduler.run_job("a")
        await scene.sleep("1s")
        await scheduler.remove_job("a")
        await scene.sleep("2m")
        ended = await scheduler.get_run(run)
        assert (ended.outcome, ended.error) == ("cancelled", "the job was removed")
        assert await scheduler.list_alerts() == []


@virtual
async def test_a_removed_job_asks_no_person(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        await scheduler.remove_job("a")
        assert (await scheduler.get_run(run.id)).outcome == "cancelled"
        with pytest.raises(ScheduleTriggerError):
            await scheduler.approve_run(run.id, by="ana")
        await scene.sleep("3h")
        assert len(scene.runs) == 1


@virtual
async def test_questions_and_answers_are_reported_on_the_event_bus(scene):
    heard = []
    async with scene.scheduler() as scheduler:
        scheduler.subscribe(lambda event: heard.append((event.type, event.data)), "run")
        run = await asking(scene, scheduler)
        await scheduler.reject_run(run.id, by="ben", note="no")
        about = {"run": run.id, "job_id": run.job_id, "job": "a"}
        assert ("approval_needed", {**about, "question": "Deploy to production?"}) in heard
        assert ("rejected", {**about, "by": "ben", "note": "no"}) in heard


@virtual
async def test_explain_says_who_is_waited_for_and_who_decided(scene):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        assert "waits for approval" in str(await scheduler.explain("a"))
        assert "there is no answer yet" in str(await scheduler.explain(run.id))
        again = await scheduler.approve_run(run.id, by="ana", note="fine")
        assert "ana approved it" in str(await scheduler.explain(run.id))
        assert "because a person approved it" in str(await scheduler.explain(again))


@virtual
async def test_questions_and_notes_are_bounded_and_storable(scene):
    async def act(run):
        raise ApprovalNeeded("\0\ud800" + "x" * 100_000)

    scene.act = act
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        assert len(run.approvals[0]["question"]) < 3_000
        await scheduler.reject_run(run.id, by="b\0en", note="\udfff" + "y" * 100_000)
        ended = await scheduler.get_run(run.id)
        assert len(ended.error) < 5_000
        ended.error.encode()
        with pytest.raises(InvalidJob):
            await scheduler.update_job("a", approval="yes")


async def _approved(scheduler, run):
    await scheduler.approve_run(run.id, by="ana")


async def _rejected(scheduler, run):
    await scheduler.reject_run(run.id, by="ana")


async def _cancelled(scheduler, run):
    await scheduler.cancel_run(run.id)


async def _removed(scheduler, run):
    await scheduler.remove_job("a")


@pytest.mark.parametrize("way", [_approved, _rejected, _cancelled, _removed], ids=lambda way: way.__name__)
@virtual
async def test_the_alert_about_a_question_is_open_until_there_is_an_answer_or_nothing_left_to_answer(scene, way):
    async with scene.scheduler() as scheduler:
        run = await asking(scene, scheduler)
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["approval"]
        await way(scheduler, run)
        await scene.sleep("1s")
        assert await scheduler.list_alerts() == []
