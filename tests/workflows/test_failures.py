"""What follows a failure of a handler: another try, a person, or a new version."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.workflows.mailroom import fails, virtual
from tests.workflows.test_runs import publish
from wakeful import (
    Applied,
    ApprovalNeeded,
    LogicError,
    Prepared,
    TransientError,
    Workflow,
    ids,
)
from wakeful.domains.workflows import actions, views
from wakeful.domains.workflows.files import mark_broken
from wakeful.domains.workflows.loading import CannotLoad, FileRef
from wakeful.errors import JobNotFound


@pytest.mark.promise("K8", "K10", "K12", "K13")
@pytest.mark.parametrize("phase", ["prepare", "mutate", "next"])
@virtual
async def test_a_transient_failure_backs_off_and_is_tried_again_as_a_linked_run(room, phase):
    room.mails = ["a"]
    room.act[phase] = fails(TransientError("busy"), times=2)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("8s")
        assert (await room.row(scheduler)).issue == "transient"
        assert (await room.attempts(scheduler))[-1].status == "paused:transient"
        await room.sleep("15s")
        row = await room.row(scheduler)
        assert row.issue == "transient"
        assert row.failures == 2
        await room.sleep("2m")
        assert room.ledger == ["a"]
        assert (await room.row(scheduler)).issue is None
        attempts = await room.attempts(scheduler)
        tried = [one for one in attempts if one.status != "committed"]
        assert [one.status for one in tried] == ["paused:transient"] * 2
        assert [one.retry_of for one in attempts if one.retry_of] == [one.id for one in tried]
        assert (await scheduler.get_job("mailroom.append")).consecutive_errors == 0
        assert set((await room.events(scheduler)).values()) == {"consumed"}


@pytest.mark.parametrize("phase", ["prepare", "mutate", "next"])
@virtual
async def test_the_trace_of_a_run_is_the_authors_code_and_the_error_alone(room, phase):
    room.mails = ["a"]
    room.act[phase] = fails(ValueError("wrong"), times=1)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        failed = next(run for run in await scheduler.get_run_log("mailroom.append") if run.trace is not None)
        assert failed.trace.count("Traceback") == 1
        assert "mailroom.py" in failed.trace
        assert "running.py" not in failed.trace


@virtual
async def test_explain_gives_the_reason_of_a_refused_start_once(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.transact(lambda tx, context: actions.pause(tx, context, "mailroom", who="Ada"))
        await room.sleep("1h")
        said = str(await scheduler.explain("mailroom.poll"))
        assert said.count("(its workflow is paused)") == 1
        with pytest.raises(JobNotFound, match=r"Did you mean one of mailroom\.append, mailroom\.poll\?"):
            await scheduler.explain("mailroom")


@pytest.mark.promise("K12", "K13", "K16")
@virtual
async def test_five_transient_failures_in_a_row_need_attention_and_are_over_by_themselves(room):
    room.act["poll"] = fails(TransientError("busy"), times=6)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("2m")
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        assert (shown["status"], shown["issue"]["kind"]) == ("idle", "transient")
        assert await scheduler.list_alerts() == []
        await room.sleep("1m")
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        assert (shown["status"], shown["issue"]["kind"]) == ("needs_attention", "transient")
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]
        await room.sleep("20m")
        assert (await room.row(scheduler)).issue is None
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("K12")
@pytest.mark.parametrize("reserve", [["evt"], {"mail": None}, {"mail": "evt"}, {"mail": [None]}, {7: []}, None])
@virtual
async def test_a_reservation_that_makes_no_sense_is_a_mistake_of_the_author(room, reserve):
    workflow = Workflow("mailroom")

    @workflow.consumer("append", subscribes=["mail"]).prepare
    async def prepare(ctx, state):
        return Prepared(reserve)

    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1s")
        row = await room.row(scheduler)
        assert (row.issue, (await room.attempts(scheduler))[-1].status) == ("logic", "failed:logic")


@pytest.mark.promise("K11", "K12")
@virtual
async def test_a_reconcile_that_answers_what_cannot_be_stored_has_not_answered(room):
    room.mails, room.verdict = ["a"], Applied({1, 2})
    room.after["mutate"] = fails(RuntimeError("cut"))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1h")
        assert (await room.row(scheduler)).issue == "reconciliation"
        assert room.phases().count("reconcile") == 5
        assert room.ledger == ["a"]


@pytest.mark.promise("K10")
@virtual
async def test_after_the_mutation_only_what_follows_is_done_again(room):
    room.mails = ["a"]
    errors = fails(LogicError("wrong"))

    async def wrong(ctx):
        if room.ledger:
            await errors(ctx)

    room.act["next"] = wrong
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        failed = (await room.attempts(scheduler))[-1]
        assert (failed.phase, failed.status, failed.mutation) == ("emitting", "failed:logic", "applied")
        assert await room.events(scheduler) == {"a": "reserved"}
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]
        await room.sleep("1h")
        assert room.phases().count("poll") == 1, "one stuck handler stops its workflow"
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert room.ledger == ["a"]
        again = next(one for one in await room.attempts(scheduler) if one.retry_of == failed.id)
        assert (again.phase, again.begins, again.result) == ("committed", "emit", failed.result)
        assert await room.events(scheduler) == {"a": "consumed"}
        assert room.phases().count("poll") == 2, "what was due meanwhile is run once"
        await room.sleep("2m")
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("K12", "X5")
@virtual
async def test_a_handler_that_fails_again_and_again_is_one_incident(room):
    room.act["prepare"] = fails(LogicError("wrong"), times=9)
    async with room.open() as scheduler:
        await scheduler.start()
        for _ in range(4):
            await room.sleep("1m")
            assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]
            await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert (await scheduler.get_job("mailroom.append")).consecutive_errors == 5
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]


@pytest.mark.promise("K11", "K12")
@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError("gone")])
@pytest.mark.parametrize(("phase", "status"), [("prepare", "failed:logic"), ("mutate", "paused:reconciliation")])
@virtual
async def test_a_handler_that_exits_or_cancels_itself_has_failed_as_with_any_error(room, error, phase, status):
    room.mails, room.reconciles = ["a"], False
    room.act[phase] = fails(error)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("5m")
        failed = (await room.attempts(scheduler))[-1]
        assert failed.status == status
        assert type(error).__name__ in failed.error
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]


@pytest.mark.promise("K6", "K12")
@virtual
async def test_what_a_producer_finds_outside_may_have_any_title_and_no_key_that_a_store_refuses(room):
    async def found(ctx):
        await ctx.register_input("imap", "mail", "a", title="a \0 title \ud800 of anything")
        await ctx.publish("mail", message_id="\N{SNOWMAN}" * 300)

    async def too_long(ctx):
        await ctx.publish("mail", message_id="\N{SNOWMAN}" * 400)

    room.act["poll"] = found
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert await room.events(scheduler) == {"\N{SNOWMAN}" * 300: "consumed"}
        room.act["poll"] = too_long
        await room.sleep("5m")
        row = await room.row(scheduler)
        assert row.issue == "logic"
        assert row.issue_message.startswith("message_id is a text of 1 to 1000 bytes")


@pytest.mark.parametrize("ends", ["commits", "fails"])
@virtual
async def test_a_file_that_breaks_during_a_run_stops_its_workflow_however_the_run_ends(room, ends):
    room.mails = ["a"]

    async def break_file(ctx):
        ref = FileRef(Path("mailroom.py"), "workflow")
        await scheduler.transact(lambda tx, context: mark_broken(tx, context, CannotLoad(ref, "SyntaxError")))
        if ends == "fails":
            raise TransientError("busy")

    room.act["mutate"] = break_file
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1h")
        assert (await room.row(scheduler)).issue == "load"
        assert room.ledger == (["a"] if ends == "commits" else [])


@pytest.mark.promise("K10", "K12")
@virtual
async def test_a_new_version_retries_what_the_old_one_got_wrong(room):
    room.mails = ["a"]
    room.act["prepare"] = fails(ValueError("a mistake"))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1h")
        failed = (await room.attempts(scheduler))[-1]
        assert (failed.status, room.ledger) == ("failed:logic", [])
        corrected = room.workflow()
        corrected.version = "corrected"
        await scheduler.add_workflow(corrected)
        await room.sleep("10s")
        assert room.ledger == ["a"]
        again = next(one for one in await room.attempts(scheduler) if one.retry_of == failed.id)
        assert (again.status, again.version) == ("committed", "corrected")
        assert (await room.row(scheduler)).issue is None


async def ask_a_person(ctx):
    if ctx.approved_by is None:
        raise ApprovalNeeded("Add a row?")


@pytest.mark.promise("K12", "X8")
@pytest.mark.parametrize("verdict", ["approve", "reject"])
@virtual
async def test_approval_waits_for_a_person_and_resumes_at_the_stored_phase(room, verdict):
    room.mails = ["a"]
    room.act["mutate"] = ask_a_person
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("2h")
        row = await room.row(scheduler)
        assert (row.issue, row.issue_message) == ("approval", "Add a row?")
        assert room.phases().count("poll") == 1
        waiting = (await room.attempts(scheduler))[-1]
        assert (waiting.phase, waiting.status, waiting.mutation) == ("mutating", "paused:approval", "none")
    async with room.open() as scheduler:
        await scheduler.start()
        room.calls.clear()
        run = ids.run_text(waiting.id)
        await room.act_on(scheduler, verdict, run, who="Ada")
        await room.sleep("10s")
        row = await room.row(scheduler)
        if verdict == "approve":
            assert room.phases()[:2] == ["mutate", "next"], "prepare is not asked again"
            assert (room.ledger, row.issue, row.paused) == (["a"], None, 0)
        else:
            assert (room.ledger, row.issue, row.paused) == ([], None, 1)
            assert await room.events(scheduler) == {"a": "pending"}
            room.act.clear()
            await room.act_on(scheduler, "resume", who="Ada")
            await room.sleep("10s")
            assert room.ledger == ["a"]
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("K12", "K16")
@virtual
async def test_a_workflow_that_is_paused_after_an_approval_says_so_and_asks_nothing(room):
    room.mails = ["a"]
    room.act["mutate"] = ask_a_person
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        run = ids.run_text((await room.row(scheduler)).issue_run)
        await room.act_on(scheduler, "pause", who="Ada", note="holiday")
        await room.act_on(scheduler, "approve", run, who="Ada")
        issue = (await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom")))["issue"]
        assert (issue["kind"], issue["actions"]) == ("paused", ["resume"])
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert room.ledger == ["a"]


@pytest.mark.promise("K12", "X8")
@pytest.mark.parametrize("meanwhile", ["an event comes", "it is resumed"])
@virtual
async def test_what_was_approved_goes_on_at_once_whatever_came_while_it_waited(room, meanwhile):
    room.mails, room.batch = ["a"], 1
    room.act["mutate"] = ask_a_person
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        run = ids.run_text((await room.row(scheduler)).issue_run)
        if meanwhile == "an event comes":
            await publish(scheduler, "b")
        else:
            await room.act_on(scheduler, "resume", who="Ada")
        again = await room.act_on(scheduler, "approve", run, who="Ada")
        await room.sleep("10s")
        assert (await scheduler.get_run(again)).outcome == "success"
        assert room.ledger == ["a"], "the approval is of one change only"
        asks = (await room.row(scheduler)).issue
        assert asks == ("approval" if meanwhile == "an event comes" else None)
