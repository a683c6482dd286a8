"""What `explain` says about handlers of workflows and their runs; what a person may start by hand."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import fails, virtual
from tests.workflows.test_runs import publish
from wakeful import Interval, Prepared, ScheduleTriggerError, TransientError, Unknown, Workflow, ids
from wakeful.domains.workflows import views
from wakeful.domains.workflows.topics.tables import EventRow, Topics
from wakeful.testing import WorkflowTest


async def said(scheduler, ref):
    return str(await scheduler.explain(ref))


@pytest.mark.promise("K16")
@virtual
async def test_a_consumer_is_said_to_run_for_events_and_at_its_wake_time(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        consumer = "It is a consumer of the workflow mailroom: it runs when an event comes into mail"
        about = await said(scheduler, "mailroom.append")
        assert about.startswith("mailroom.append runs when an event arrives.\n")
        assert f"{consumer}." in about
        assert "ask" not in about, "no person asks for it"
        job = await scheduler.get_job("mailroom.append")
        assert job.schedule == job.to_dict()["schedule"] == "when an event arrives"
        assert (await scheduler.get_job("mailroom.poll")).schedule == "5 minutes after the last run ends"
        room.wake_at = "2099-01-01T00:00:00Z"
        await publish(scheduler, "a")
        await room.sleep("1m")
        assert f"{consumer}, and at " in await said(scheduler, "mailroom.append")
        [_, run] = await room.attempts(scheduler)
        about = await said(scheduler, ids.run_text(run.id))
        assert "Its phase is committed, its status in the workflow committed." in about
        assert "It reserved 1 event." in about
        assert "Note: wake_at 2099-01-01T00:00:00Z was moved to" in about


@virtual
async def test_a_thousand_pending_events_are_counted_and_more_are_said_to_be_more(room):
    async with room.open(append={"subscribes": ["mail", "more"]}) as scheduler:

        def add(tx, first, count, topic):
            numbers = range(first, first + count)
            rows = [EventRow(n, "mailroom", topic, str(n), n, "{}", "pending", tx.now) for n in numbers]
            tx.of(Topics).add(rows, [])

        await scheduler.start()
        await room.act_on(scheduler, "pause", who="Ada")
        await scheduler.transact(lambda tx, _: add(tx, 1, 600, "mail"))
        await scheduler.transact(lambda tx, _: add(tx, 601, 400, "more"))
        about = await said(scheduler, "mailroom.append")
        assert "1,000 events are pending." in about
        assert "More than" not in about
        await scheduler.transact(lambda tx, _: add(tx, 1001, 200, "more"))
        assert "More than 1,000 events are pending." in await said(scheduler, "mailroom.append")


@pytest.mark.promise("K3")
@pytest.mark.promise("K16")
@virtual
async def test_what_a_pause_keeps_from_running_is_not_said_to_run_and_not_started_by_hand(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await room.act_on(scheduler, "pause", who="Ada")
        await publish(scheduler, "a")
        why = "its workflow is paused: this waits until it is resumed (wakeful workflow resume mailroom)."
        about = await said(scheduler, "mailroom.poll")
        assert why in about
        assert "It will run next at" not in about
        assert why in await said(scheduler, "mailroom.append")
        assert "1 event is pending." in await said(scheduler, "mailroom.append")
        await room.sleep("1m")
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        assert shown["handlers"][0]["next_run_at"] is None, "when it is resumed is not known"
        for name in ("mailroom.poll", "mailroom.append"):
            with pytest.raises(ScheduleTriggerError, match="cannot start: its workflow is paused"):
                await scheduler.run_job(name)
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert room.ledger == ["a"]
        assert await scheduler.run_job("mailroom.poll")


@pytest.mark.promise("K13")
@pytest.mark.promise("K16")
@virtual
async def test_an_issue_is_the_reason_that_nothing_of_the_workflow_starts(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["prepare"] = fails(TransientError("busy"))
        await publish(scheduler, "a")
        await room.sleep("1s")
        assert "its workflow tries again at" in await said(scheduler, "mailroom.poll")
        room.act["prepare"] = fails(ValueError("no subject"))
        await room.sleep("1m")
        blocked = "its workflow cannot continue: The code of append failed: no subject. Correct it and apply, or resume"
        assert blocked in await said(scheduler, "mailroom.poll")
        with pytest.raises(ScheduleTriggerError, match="stopped until a person resolves what is wrong"):
            await scheduler.run_job("mailroom.poll")


@pytest.mark.promise("K11")
@pytest.mark.promise("K16")
@virtual
async def test_people_see_why_a_change_is_uncertain_and_how_to_settle_it(room):
    room.reconciles = False
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["mutate"] = lambda _: room.sleep("1h")
        await publish(scheduler, "a")
        await room.sleep("1s")
        [*_, run] = await room.attempts(scheduler)
        await scheduler.cancel_run(ids.run_text(run.id))
        await room.sleep("1m")
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        words = "It is not known whether the last change happened (cancelled). Look, and settle it."
        assert shown["issue"]["message"] == words
        asked = shown["issue"]["run"]
        about = await said(scheduler, asked)
        assert f"To settle it: wakeful workflow settle mailroom {asked} happened (or did_not_happen, or skip)." in about
        assert 'Data: {"names": ["a"]}.' in about
        assert "Events: 1 of mail." in about
        assert shown["issue"]["change"]["data"] == {"names": ["a"]}


@pytest.mark.promise("K16")
@virtual
async def test_people_see_what_a_change_returned_when_what_follows_fails(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["next"] = fails(ValueError("wrong"), times=9)
        await publish(scheduler, "a")
        await room.sleep("1s")
        [*_, run] = await room.attempts(scheduler)
        shown = await scheduler.read(lambda tx: views.run_view(tx, run))
        assert (shown["prepared"]["data"], shown["result"]) == ({"names": ["a"]}, {"rows": 1})
        assert 'Result: {"rows": 1}.' in await said(scheduler, ids.run_text(run.id))


def was_consumer(ledger):
    workflow = Workflow("flow")
    work = workflow.consumer("work", subscribes=["mail"])

    @work.prepare
    async def prepare(ctx, state):
        return Prepared({"mail": [one.id for one in await ctx.peek("mail")]})

    @work.mutate
    async def mutate(ctx, prepared):
        ledger.append("mutate")
        raise RuntimeError("cut off")

    @work.reconcile
    async def reconcile(ctx, prepared):
        return Unknown()

    return workflow


def is_producer(ledger):
    workflow = Workflow("flow")

    @workflow.producer(Interval("1h"), name="work", publishes=["mail"])
    async def work(ctx, state):
        ledger.append("produce")

    return workflow


@pytest.mark.promise("K10")
@pytest.mark.promise("K11")
@pytest.mark.parametrize(("verdict", "status"), [("happened", "consumed"), ("did_not_happen", "pending")])
def test_a_consumer_that_becomes_a_producer_leaves_no_uncertain_change_behind(verdict, status):
    ledger = []
    with WorkflowTest(was_consumer(ledger)) as test:
        test.publish("mail", message_id="1")
        test._runner.run(deployed(test, is_producer(ledger)))
        test.advance("1m")
        assert test.workflow()["issue"]["kind"] == "reconciliation"
        assert ledger == ["mutate"], "nothing more runs"
        test.settle(verdict)
        test.advance("2h")
        assert [one["status"] for one in test.events("mail")] == [status]
        assert ledger[1:] == ["produce"] * len(ledger[1:])
        assert len(ledger) > 1
        assert test.workflow()["issue"] is None


async def deployed(test, workflow):
    await test._scheduler.add_workflow(workflow)


@pytest.mark.promise("X8")
@virtual
async def test_yes_or_no_is_no_answer_to_whether_a_change_happened(room):
    room.reconciles = False
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["mutate"] = fails(ValueError("cut off"))
        await publish(scheduler, "a")
        await room.sleep("1m")
        [*_, run] = await room.attempts(scheduler)
        asked = ids.run_text(run.id)
        for answer in ("approve", "reject"):
            with pytest.raises(ScheduleTriggerError, match=f"wakeful workflow settle mailroom {asked} happened"):
                await room.act_on(scheduler, answer, asked, who="Ada")
        assert "It cannot continue: It is not known whether the last change happened" in await said(
            scheduler, "mailroom.append"
        )


@pytest.mark.promise("K16")
@virtual
async def test_what_was_done_is_still_shown_after_many_looks_that_found_nothing(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("6h")
        assert len(await room.attempts(scheduler, "poll")) > 60
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        assert [one["text"] for one in shown["recent"]] == ["Add 1 rows"]
        assert shown["handlers"][0]["last_run"]["title"] == "Add 1 rows"
