"""What transactions of workflows keep: from which status events move, when a start is moved, whose answer counts."""

from __future__ import annotations

import asyncio
import json

import pytest

from tests.workflows.mailroom import break_checkpoints, fails, publish, virtual
from tests.workflows.test_corrections import Hook, fixes, opened, wrong
from wakeful import ScheduleTriggerError, TransientError, ids
from wakeful.domains.workflows.arming import EVENT, LockedJobs, arm, arm_forgotten, set_alarm
from wakeful.domains.workflows.deploying import deploy, plan_deployment
from wakeful.domains.workflows.fixes.deciding import WorkflowCode, next_step
from wakeful.domains.workflows.hooks import ended
from wakeful.domains.workflows.tables import WorkflowRun, WorkflowVerbs
from wakeful.domains.workflows.topics.tables import EventRow, Topics
from wakeful.kernel.rules.outcome import Result
from wakeful.store.records import RunRow


@pytest.mark.promise("K6", "K10")
@virtual
async def test_events_move_only_from_the_status_they_are_in(room):
    async with room.open() as scheduler:

        def work(tx, _):
            topics = tx.of(Topics)
            names = enumerate(("a", "b", "c"), 1)
            events = [EventRow(n, "mailroom", "mail", name, n, "{}", "pending", tx.now) for n, name in names]
            topics.add(events, [])
            topics.reserve([1, 2], 7)
            assert topics.release(8, tx.now) == 0
            assert topics.skip([1], tx.now) == 0
            assert not topics.replace_payload(1, '{"n": 2}', 9)
            topics.consume(7, now=tx.now)
            assert topics.release(7, tx.now) == 0
            assert topics.hand_over(7, 8) == 0
            assert not topics.replace_payload(1, '{"n": 2}', 9)
            assert topics.skip([1], tx.now) == 0
            assert topics.skip([3], tx.now) == 1
            return [topics.get(number).status for number in (1, 2, 3)]

        assert await scheduler.transact(work) == ["consumed", "consumed", "skipped"]


@pytest.mark.promise("K2")
@virtual
async def test_a_trigger_moves_the_start_that_waits_forward_and_never_back(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        job_id = (await room.handler(scheduler)).job_id

        def due(tx, context, seconds):
            arm(tx, context, job_id, tx.now + seconds * 1000, EVENT)
            return [(run.due_at - tx.now) // 1000 for run in tx.runs.open(job_id)]

        for seconds, expected in ((60, 60), (30, 30), (90, 30)):
            assert await scheduler.transact(lambda tx, context, s=seconds: due(tx, context, s)) == [expected]


@pytest.mark.promise("K12")
@virtual
async def test_new_code_without_the_handler_that_failed_settles_its_issue(room):
    room.mails = ["a"]
    room.act["prepare"] = fails(TransientError("busy"), 99)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        assert (await room.row(scheduler)).issue_handler == "append"
        changed = room.workflow()
        changed.handlers.pop("append")
        changed.version = "without"
        wanted = plan_deployment(scheduler, changed, "code", forced=True)
        assert await scheduler.transact(lambda tx, context: deploy(tx, context, wanted))
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K11")
@virtual
async def test_a_reconcile_that_hangs_is_given_thirty_seconds(room):
    room.mails = ["a"]
    room.after["mutate"] = fails(RuntimeError("cut"))
    room.act["reconcile"] = lambda ctx: room.sleep("1h")
    async with room.open(append={"timeout": "10m"}) as scheduler:
        await scheduler.start()
        await room.sleep("35s")
        said = (await room.row(scheduler)).issue_message.splitlines()[0]
        assert said == "mutate failed: cut; reconcile failed: reconcile took longer than 30s"


@pytest.mark.promise("K12")
@virtual
async def test_who_resumes_gives_the_hook_three_tries_again(room):
    room.mails, hook = ["a"], Hook(room, [None, None])
    wrong(room, "prepare")
    async with opened(room, hook, apply=True) as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert [request.attempt for request in hook.requests] == [1, 1]


@pytest.mark.promise("K12")
@virtual
async def test_a_correction_is_asked_for_once_and_an_answer_that_comes_too_late_is_left(room):
    room.mails, answer, asked = ["a"], asyncio.Event(), []
    wrong(room, "prepare", times=1)

    async def slow(request):
        asked.append(request)
        await answer.wait()
        late = room.workflow()
        late.version = "late"
        return late

    async with opened(room, slow, apply=True) as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        code = WorkflowCode((await room.row(scheduler)).version, {})
        assert await scheduler.transact(lambda tx, context: next_step(tx, context, "mailroom", code)) is None
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        answer.set()
        await room.sleep("1m")
        assert (len(asked), room.ledger) == (1, ["a"])
        assert [fix.status for fix in await fixes(scheduler)] == ["lapsed"]
        assert (await room.row(scheduler)).version == code.version


@pytest.mark.promise("K10")
@virtual
async def test_what_a_failed_attempt_reserved_is_pending_while_it_waits_to_be_tried_again(room):
    room.mails = ["a"]
    room.act["mutate"] = fails(TransientError("busy"))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        assert (await room.row(scheduler)).issue == "transient"
        assert await room.events(scheduler) == {"a": "pending"}


@pytest.mark.promise("K12")
@virtual
async def test_who_resumes_a_workflow_that_waits_does_not_wait(room):
    room.mails = ["a"]
    room.act["prepare"] = fails(TransientError("busy"), 4)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("75s")  # it waits for 80 seconds after its fourth failure
        assert room.ledger == []
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert room.ledger == ["a"]


@pytest.mark.promise("K3")
@virtual
async def test_a_workflow_that_drains_is_not_run_by_hand(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        await scheduler.transact(lambda tx, _: tx.of(WorkflowVerbs).change("mailroom", tx.now, draining=1))
        with pytest.raises(ScheduleTriggerError, match="mailroom is draining: resume it first"):
            await room.act_on(scheduler, "run_now", who="Ada")


@pytest.mark.promise("K10")
@virtual
async def test_a_run_that_a_person_cancels_comes_again_half_a_minute_later(room):
    room.mails = ["a"]
    room.act["prepare"] = lambda ctx: room.sleep("1h")
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        (active,) = [one for one in await room.attempts(scheduler) if one.status == "active"]
        await scheduler.cancel_run(ids.run_text(active.id))
        await room.sleep("20s")
        assert room.phases().count("prepare") == 1
        await room.sleep("15s")
        assert room.phases().count("prepare") == 2


@pytest.mark.promise("K5")
@virtual
async def test_a_start_that_is_called_off_leaves_nothing_waiting(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        job_id = (await room.handler(scheduler)).job_id

        def work(tx, context):
            jobs = LockedJobs(tx, "mailroom")
            set_alarm(tx, context, jobs, job_id, at=tx.now + 60_000, reason=EVENT)
            set_alarm(tx, context, jobs, job_id, at=None, reason=EVENT)
            return tx.runs.open(job_id), tx.jobs.states([job_id])[job_id].queued

        assert await scheduler.transact(work) == ([], 0)


@pytest.mark.promise("K14")
@virtual
async def test_a_handler_with_a_run_to_continue_is_armed_when_nothing_else_does(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        await scheduler.stop()
        handler, attempt = await room.handler(scheduler), (await room.attempts(scheduler))[-1]

        def forget(tx, context):
            tx.of(WorkflowVerbs).change_handler("mailroom", "append", open_run=attempt.id)
            arm_forgotten(tx, context)
            return [run.due_at <= tx.now for run in tx.runs.open(handler.job_id)]

        assert await scheduler.transact(forget) == [True]


@pytest.mark.promise("K4")
@virtual
async def test_an_event_that_comes_after_prepare_looked_is_not_lost_though_nothing_was_reserved(room):
    async with room.open() as scheduler:
        left = ["a"]

        async def publish_late(_):
            if left:
                await publish(scheduler, left.pop())

        room.after["prepare"] = publish_late
        await scheduler.start()
        await room.sleep("5s")
        assert room.ledger == ["a"]


@pytest.mark.promise("K6")
@virtual
async def test_a_message_that_is_published_again_has_its_new_payload_while_it_is_pending(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        await room.act_on(scheduler, "pause", who="Ada")
        for payload in ({"n": 1}, {"n": 2}):
            await publish(scheduler, "a", payload)
        (event,) = await scheduler.read(lambda tx: tx.of(Topics).matching("mailroom", "mail", None, None, 9))
        assert (json.loads(event.payload), event.status) == ({"n": 2}, "pending")


@pytest.mark.promise("K16")
@virtual
async def test_what_a_consumer_publishes_is_caused_by_what_it_consumed(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")

        def causes(tx):
            topics = tx.of(Topics)
            found = {topic: topics.matching("mailroom", topic, None, None, 9) for topic in ("mail", "rows")}
            return {topic: topics.inputs_of([one.id for one in rows]).values() for topic, rows in found.items()}

        found = await scheduler.read(causes)
        assert list(found["mail"]) == list(found["rows"]) != []


@pytest.mark.promise("K12")
@virtual
async def test_new_code_settles_a_mistake_of_ours(room, monkeypatch):
    async with room.open() as scheduler:
        break_checkpoints(monkeypatch, KeyError("ours"), "committed")
        await scheduler.start()
        await room.sleep("5s")
        assert (await room.row(scheduler)).issue == "internal"
        monkeypatch.undo()
        changed = room.workflow()
        changed.version = "corrected"
        await scheduler.add_workflow(changed)
        await room.sleep("5s")
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K11", "K12")
@virtual
async def test_a_call_that_fails_in_mutate_leaves_it_uncertain_whatever_it_raised(room):
    room.mails = ["a"]

    async def away():
        raise ConnectionError("no route")

    async def call(ctx):
        await ctx.call(away)

    room.after["mutate"] = call
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        assert room.ledger == ["a"], "it was made once, and reconcile says that it happened"
        assert room.phases().count("reconcile") == 1


@pytest.mark.promise("K10")
@virtual
async def test_what_a_run_that_was_cut_off_reserved_is_pending_at_once(room):
    async with room.open() as scheduler:

        def cut(tx, context):
            run = RunRow.queued(context.new_id(), tx.jobs.by_name("mailroom.append")[0], "event", tx.now)
            handler = tx.of(WorkflowVerbs).handler("mailroom", "append")
            fresh = WorkflowRun(
                run.id, handler.job_id, "mailroom", "append", "consumer", None, "v", "prepared", "active", "none",
                "prepare", 0, created_at=tx.now, updated_at=tx.now,
            )  # fmt: skip
            tx.of(WorkflowVerbs).add_run(fresh)
            tx.of(Topics).add([EventRow(5, "mailroom", "mail", "z", 99, "{}", "pending", tx.now)], [])
            tx.of(Topics).reserve([5], run.id)
            ended(tx, context, tx.jobs.by_name("mailroom.append")[0], run, Result("crashed"))
            return tx.of(Topics).get(5).status

        await scheduler.start()
        await room.sleep("1s")
        await scheduler.stop()
        assert await scheduler.transact(cut) == "pending"
