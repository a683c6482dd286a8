"""What a workflow keeps while it fails, is answered, deployed and pruned."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import Mailroom, fails, virtual
from tests.workflows.test_corrections import Hook, fixes, opened, wrong
from wakeful import ApprovalNeeded, ScheduleTriggerError, TransientError, ids
from wakeful.domains.workflows import checkpoints
from wakeful.domains.workflows.arming import EVENT, look_at_pending
from wakeful.domains.workflows.failures import classify
from wakeful.domains.workflows.fixes.deciding import Ask, WorkflowCode, decide, next_step
from wakeful.domains.workflows.hooks import merge_waiting
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.timing import MAX_FIXES
from wakeful.domains.workflows.topics.tables import EventRow, InputRow, Topics
from wakeful.store.records import RunRow
from wakeful.testing import run as run_virtual


@pytest.mark.promise("K12")
@virtual
async def test_a_mistake_of_the_author_is_no_transient_failure_and_is_not_counted_as_one(room):
    room.mails = ["a"]
    room.act["prepare"] = fails(ValueError("wrong"))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        row = await room.row(scheduler)
        assert (row.issue, row.failures) == ("logic", 0)


@pytest.mark.promise("K12")
@virtual
async def test_a_handler_that_takes_too_long_is_tried_again(room):
    room.act["poll"] = lambda ctx: room.sleep("1h")
    async with room.open(poll={"timeout": "2s"}) as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        assert (await room.row(scheduler)).issue == "transient"
    assert classify(TimeoutError(), "timeout") == "transient"
    assert classify(TimeoutError(), "timeout_in_mutate") == "reconciliation"


@pytest.mark.promise("K16")
@virtual
async def test_a_commit_is_on_the_event_bus(room):
    heard = []
    async with room.open() as scheduler:
        scheduler.events.subscribe(heard.append, "workflow")
        await scheduler.start()
        await room.sleep("5s")
        attempts = [*await room.attempts(scheduler, "poll"), *await room.attempts(scheduler)]
        committed = [event.data for event in heard if event.type == "committed"]
        assert sorted(one["run"] for one in committed) == sorted(ids.run_text(one.id) for one in attempts)


@pytest.mark.promise("K12")
@virtual
async def test_after_a_commit_a_handler_is_blamed_for_no_earlier_crash(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        blamed = {"crashes": 4, "blamed": 4}
        await scheduler.transact(lambda tx, _: tx.of(WorkflowVerbs).change_handler("mailroom", "append", **blamed))
        room.mails = ["a"]
        await room.sleep("6m")
        handler = await room.handler(scheduler)
        assert (room.ledger, handler.crashes, handler.blamed) == (["a"], 0, 0)


@pytest.mark.promise("K8")
@virtual
async def test_a_phase_is_never_stored_after_a_later_one(room):
    room.mails, said = ["a"], []
    async with room.open() as scheduler:

        async def go_back(_):
            attempt = (await room.attempts(scheduler))[-1]
            if attempt.phase == "mutated":
                with pytest.raises(RuntimeError, match="cannot go from mutated to mutating"):
                    await scheduler.transact(lambda tx, _: checkpoints.in_flight(tx, attempt))
                said.append(attempt.id)

        room.act["next"] = go_back
        await scheduler.start()
        await room.sleep("5s")
        assert (len(said), room.ledger) == (1, ["a"])


@pytest.mark.promise("K2")
@virtual
async def test_of_two_starts_that_wait_the_retry_stays_and_is_due_when_the_first_was(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        await scheduler.stop()

        def work(tx, context):
            job, state = tx.jobs.by_name("mailroom.append")
            retry = RunRow.queued(context.new_id(), job, "retry", tx.now + 60_000)
            event = RunRow.queued(context.new_id(), job, EVENT, tx.now + 10_000)
            tx.runs.add([retry, event])
            tx.jobs.save([state._replace(queued=2)])
            merge_waiting(tx, context, job)
            left = [(one.id == retry.id, one.due_at - tx.now) for one in tx.runs.open(job.id)]
            return left, tx.jobs.states([job.id])[job.id].queued

        assert await scheduler.transact(work) == ([(True, 10_000)], 1)


@pytest.mark.promise("K12")
@virtual
async def test_an_answer_ends_the_alert_before_the_run_that_goes_on_has_ended(room):
    acts = [TransientError("busy")] * 5 + [ApprovalNeeded("may I?")]

    async def act(_):
        if acts:
            raise acts.pop(0)
        await room.sleep("1m")

    room.act["poll"] = act
    async with room.open(poll={"timeout": "10m"}) as scheduler:
        await scheduler.start()
        while acts:
            await room.sleep("10s")
        assert "workflow" in [alert.kind for alert in await scheduler.list_alerts()]
        asking = (await room.attempts(scheduler, "poll"))[-1]
        await room.act_on(scheduler, "approve", ids.run_text(asking.id), who="Ada")
        await room.sleep("2s")
        assert (await room.row(scheduler)).issue == "transient", "the run goes on, and has not ended"
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("K12")
@virtual
async def test_what_a_rejected_run_looked_at_is_looked_at_again(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        assert (await room.handler(scheduler)).seen > 0
        room.mails.append("b")
        room.act["prepare"] = fails(ApprovalNeeded("may I?"))
        await room.sleep("6m")
        asking = (await room.attempts(scheduler))[-1]
        await room.act_on(scheduler, "reject", ids.run_text(asking.id), who="Ada")
        handler = await room.handler(scheduler)
        assert (handler.open_run, handler.seen) == (None, 0)
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("5s")
        assert room.ledger == ["a", "b"]


@pytest.mark.promise("K1")
@virtual
async def test_new_code_makes_no_handler_look_again_while_a_run_of_it_is_open(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        room.mails.append("b")
        room.act["prepare"] = fails(ApprovalNeeded("may I?"))
        await room.sleep("6m")
        before = await room.handler(scheduler)
        await scheduler.transact(lambda tx, context: look_at_pending(tx, context, "mailroom"))
        assert before.open_run is not None
        assert before.seen > 0
        assert await room.handler(scheduler) == before


@pytest.mark.promise("K11")
@virtual
async def test_a_mutation_is_not_settled_by_a_person_while_reconcile_is_asked(room):
    room.mails = ["a"]
    room.after["mutate"] = fails(RuntimeError("cut"))
    room.act["reconcile"] = lambda ctx: room.sleep("20s")
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        assert room.phases()[-1] == "reconcile"
        active = (await room.attempts(scheduler))[-1]
        with pytest.raises(ScheduleTriggerError, match="just finding out by itself"):
            await room.act_on(scheduler, "settle", ids.run_text(active.id), "did_not_happen", who="Ada")
        await room.sleep("30s")
        assert room.ledger == ["a"]
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K11")
@virtual
async def test_what_became_of_a_mutation_that_a_person_cancelled_is_asked_at_once(room):
    room.mails = ["a"]
    room.after["mutate"] = lambda ctx: room.sleep("1m")
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        assert room.phases()[-1] == "mutate"
        [active] = await scheduler.get_run_log("mailroom.append", 1)
        await scheduler.cancel_run(active.id)
        await room.sleep("5s")
        assert "reconcile" in room.phases()
        assert room.ledger == ["a"]


@pytest.mark.promise("K12")
@virtual
async def test_after_three_corrections_none_is_asked_for(room):
    room.mails = ["a"]
    wrong(room, "prepare")
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        code = WorkflowCode((await room.row(scheduler)).version, {})

        def step(tx, context, fixes):
            tx.of(WorkflowVerbs).change_handler("mailroom", "append", fixes=fixes)
            return next_step(tx, context, "mailroom", code)

        assert await scheduler.transact(lambda tx, context: step(tx, context, MAX_FIXES)) is None
        asked = await scheduler.transact(lambda tx, context: step(tx, context, MAX_FIXES - 1))
        assert isinstance(asked, Ask)
        assert asked.request.attempt == MAX_FIXES


@pytest.mark.promise("K12")
@virtual
async def test_a_correction_is_decided_once(room):
    room.mails = ["a"]
    wrong(room, "prepare", times=1)
    async with opened(room, Hook(room), apply=False) as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        (fix,) = await fixes(scheduler)

        def refuse(tx, _):
            decide(tx, "mailroom", fix, accepted=False, who="Ada")

        await scheduler.transact(refuse)
        with pytest.raises(ScheduleTriggerError, match="is refused: there is nothing to decide"):
            await scheduler.transact(lambda tx, _: decide(tx, "mailroom", fix, accepted=True, who="Ben"))
        assert [(one.status, one.who) for one in await fixes(scheduler)] == [("refused", "Ada")]


@pytest.mark.promise("K6", "K16")
@virtual
async def test_events_of_a_run_in_progress_and_inputs_of_events_that_are_kept_are_not_pruned(room):
    async with room.open() as scheduler:

        def work(tx, _):
            topics, table = tx.of(Topics), tx.of(WorkflowVerbs)
            event = EventRow(5, "mailroom", "mail", "a", 1, "{}", "consumed", 10, run_id=7, settled_at=20)
            topics.add_inputs([InputRow(3, "mailroom", "imap", "mail", "a", None, 10)])
            topics.add([event], [(5, 3)])
            table.change_handler("mailroom", "append", open_run=7)
            kept = topics.prune(tx.now, 9), topics.prune_inputs(4, 9)
            table.change_handler("mailroom", "append", open_run=None)
            return kept, (topics.prune(20, 9), topics.prune(tx.now, 9)), topics.prune_inputs(4, 9)

        await scheduler.start()
        await room.sleep("1s")
        await scheduler.stop()
        assert await scheduler.transact(work) == ((0, 0), (0, 1), 1)


@pytest.mark.promise("K1")
@virtual
async def test_a_handler_with_other_topics_looks_at_once_and_one_with_the_same_does_not(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5s")
        before = room.phases().count("prepare")
        same = room.workflow()
        same.version = "same topics"
        await scheduler.add_workflow(same)
        await room.sleep("5s")
        assert room.phases().count("prepare") == before
        other = room.workflow(append={"subscribes": ["mail", "letters"]})
        other.version = "other topics"
        await scheduler.add_workflow(other)
        await room.sleep("5s")
        assert room.phases().count("prepare") == before + 1


@pytest.mark.promise("K1")
def test_where_one_process_owns_the_store_the_code_it_starts_with_is_what_runs(sqlite_scene):
    room = Mailroom(sqlite_scene)

    async def life(version):
        scheduler = room.scene.scheduler()
        workflow = room.workflow()
        workflow.version = version
        scheduler.add_workflow(workflow)
        async with scheduler:
            await scheduler.start()
            await room.sleep("5s")
            return (await room.row(scheduler)).version

    async def main():
        return [await life(version) for version in ("old", "new", "old")]

    assert run_virtual(main(), room.scene.clock) == ["old", "new", "old"]
