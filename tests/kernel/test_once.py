"""Requests with a key: the work and its answer are stored together, or neither is."""

from __future__ import annotations

from functools import partial

import pytest

from tests.kernel.scene import virtual
from wakeful import Every, NewJob
from wakeful.kernel.actions.authorized import create_job
from wakeful.kernel.actions.idempotency import IdempotentRequest, KeyReused, Replayed, run_idempotent
from wakeful.kernel.actions.selections import JobSelection, pause_many, resume_many
from wakeful.kernel.context import Rights

RIGHTS = Rights("ana")
MANY = 1_200


def once(key="k", body="hash", render=lambda job: f"made {job.name}, revision {job.revision}"):
    return IdempotentRequest("ana", key, "make a job", body, render)


async def create(scheduler, name, request):
    draft = scheduler.host.draft(NewJob(name, Every("2h")), "api")
    return await scheduler.transact(
        lambda tx, context: run_idempotent(tx, request, lambda: create_job(tx, context, draft)), rights=RIGHTS
    )


@virtual
async def test_what_was_done_is_answered_from_the_record_also_after_a_restart(scene):
    async with scene.scheduler() as scheduler:
        await create(scheduler, "a", once())
    async with scene.scheduler() as scheduler:
        with pytest.raises(Replayed) as replayed:
            await create(scheduler, "a", once())
        assert replayed.value.answer == "made a, revision 1"
        with pytest.raises(KeyReused):
            await create(scheduler, "b", once(body="other"))


@virtual
async def test_work_whose_answer_cannot_be_kept_is_not_done(scene):
    def broken(job):
        raise RuntimeError("no answer")

    async with scene.scheduler() as scheduler:
        with pytest.raises(RuntimeError):
            await create(scheduler, "a", once(render=broken))
        assert await scheduler.get_job("a") is None
        job = await create(scheduler, "a", once())
        assert job.name == "a", "and its key is free"


@virtual
async def test_answers_are_kept_for_a_day_and_then_swept_up(scene):
    async def kept(scheduler):
        return await scheduler.read(lambda tx: tx.access.answer("ana", "k"))

    async with scene.scheduler() as scheduler:
        await create(scheduler, "a", once())
        await scene.sleep("23h")
        with pytest.raises(Replayed):
            await create(scheduler, "a", once())
        await scene.sleep("2h")
        assert await kept(scheduler) is not None, "it is not swept yet"
        again = await create(scheduler, "b", once())
        assert again.name == "b", "but it is forgotten already"
        await scheduler.start()
        await scene.sleep("25h")
        assert await kept(scheduler) is None


@virtual
async def test_very_many_at_once_are_reported_as_a_number(scene):
    heard = []
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(f"job-{number}", Every("2h")) for number in range(MANY)])
        scheduler.subscribe(lambda event: heard.append((event.type, event.data)), "job")
        done = await scheduler.transact(partial(pause_many, many=JobSelection(), note="holiday"), rights=RIGHTS)
        assert len(done.changed) == MANY
        assert heard == [("paused_many", {"count": MANY})]
        assert len((await scheduler.transact(partial(resume_many, many=JobSelection()), rights=RIGHTS)).changed) == MANY
        assert heard[1:] == [("resumed_many", {"count": MANY})]
        assert {job.status for job in await scheduler.list_jobs()} == {"idle"}
