"""Two nodes asked at once: a request with a key is done by one of them, and a question is answered once."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.service.real_time import Watch, real
from tests.store.postgres_server import postgres_url
from wakeful import ApprovalNeeded, Every, JobExists, Manual, NewJob, Scheduler, ScheduleTriggerError
from wakeful.kernel.actions.authorized import create_job, put_job
from wakeful.kernel.actions.idempotency import IdempotentRequest, Replayed, run_idempotent
from wakeful.kernel.context import Rights
from wakeful.surfaces.api.event_feed import Feed

RIGHTS = Rights("ana")


@pytest.fixture
def url():
    return postgres_url()


@real
async def test_of_two_nodes_with_one_key_one_does_the_work_and_the_other_repeats_its_answer(url):
    def once(number):
        return IdempotentRequest("ana", f"key-{number}", "make a job", "hash", lambda job: job.id)

    async def make(scheduler, number):
        try:
            draft = scheduler.host.draft(NewJob(f"job-{number}", Every("2h")), "api")
            job = await scheduler.transact(
                lambda tx, context: run_idempotent(tx, once(number), lambda: create_job(tx, context, draft)),
                rights=RIGHTS,
            )
        except Replayed as replayed:
            return "again", replayed.answer
        return "done", job.id

    async with Scheduler(url, node="one") as one, Scheduler(url, node="two") as two:
        for number in range(40):
            answers = await asyncio.gather(make(one, number), make(two, number), make(two, number))
            assert sorted(how for how, _ in answers) == ["again", "again", "done"]
            assert len({job for _, job in answers}) == 1
        assert len(await one.list_jobs()) == 40


@pytest.mark.promise("X8")
@real
async def test_of_two_answers_to_one_question_one_counts(url):
    async def ask(run):
        if run.approved_by is None:
            raise ApprovalNeeded("Sure?")
        return run.approved_by

    def node(name):
        made = Scheduler(url, node=name)
        made.on_job_due("ask", ask)
        return made

    async def answer(verb, run, by):
        try:
            await verb(run, by=by)
        except ScheduleTriggerError:
            return None
        return by

    async with node("one") as one, node("two") as two:
        watch = Watch(one)
        await one.add_jobs([NewJob(f"job-{n}", Manual(), kind="ask") for n in range(20)])
        await one.start()
        runs = [await one.run_job(f"job-{n}") for n in range(20)]
        await watch.until(lambda events: sum(event.type == "approval_needed" for event in events) == 20, 20)
        for run in runs:
            said = await asyncio.gather(answer(one.approve_run, run, "ana"), answer(two.reject_run, run, "ben"))
            (winner,) = [by for by in said if by is not None]
            found = await two.get_run(run)
            assert (found.status, found.approvals[-1]["by"]) == ("done", winner)
            assert found.outcome == ("deferred" if winner == "ana" else "cancelled")
        await one.stop()


@real
async def test_of_two_who_want_one_name_one_gets_it(url):
    async def make(scheduler, number):
        try:
            draft = scheduler.host.draft(NewJob(f"job-{number}", Every("2h")), "api")
            await scheduler.transact(lambda tx, context: create_job(tx, context, draft), rights=RIGHTS)
        except JobExists:
            return "taken"
        return "made"

    async def put(scheduler, number):
        draft = scheduler.host.draft(NewJob(f"put-{number}", Every("2h")), "api")
        changed = await scheduler.transact(lambda tx, context: put_job(tx, context, draft), rights=RIGHTS)
        return changed.created

    async with Scheduler(url, node="one") as one, Scheduler(url, node="two") as two:
        for number in range(30):
            assert sorted(await asyncio.gather(make(one, number), make(two, number))) == ["made", "taken"]
            assert sorted(await asyncio.gather(put(one, number), put(two, number))) == [False, True]


@real
async def test_events_of_another_node_come_to_those_who_read_here_in_their_order(url):
    async with Scheduler(url, node="one") as one, Scheduler(url, node="two") as two:
        feed = Feed(one, asyncio.Event())
        _, newest = await feed.range()
        seen = []
        with feed.open():
            for number in range(10):
                await (one, two)[number % 2].add_job(f"job-{number}", Every("2h"))
            async with asyncio.timeout(120):
                while len(seen) < 10:
                    turn = feed.turn
                    groups, _ = await feed.after(newest, {"job"})
                    frames = [frame for group in groups for frame in group.frames()]
                    seen += [json.loads(frame.partition("data: ")[2])["data"]["job"] for frame in frames]
                    newest = groups[-1].id if groups else newest
                    if not groups:
                        await feed.changed(turn, 5)
        assert seen == [f"job-{number}" for number in range(10)]
