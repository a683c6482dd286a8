"""How the handlers of a workflow run: when, one at a time, with what they leave behind."""

from __future__ import annotations

import itertools
from datetime import timedelta
from pathlib import Path

import pytest

from tests.kernel.scene import at
from tests.workflows.mailroom import fails, virtual
from wakeful import (
    Applied,
    ApprovalNeeded,
    InvalidJob,
    LogicError,
    Prepared,
    ScheduleTriggerError,
    TransientError,
    Workflow,
    ids,
)
from wakeful.workflows import hooks, views
from wakeful.workflows.files import mark_broken
from wakeful.workflows.input_actions import ByHand, publish_by_hand
from wakeful.workflows.loading import CannotLoad, FileRef


async def publish(scheduler, message_id, payload=None):
    given = ByHand("mail", message_id, payload)
    return await scheduler.transact(lambda tx, context: publish_by_hand(tx, context, "mailroom", given, who="Ada"))


@pytest.mark.promise("K1", "K7", "K9")
@virtual
async def test_what_a_producer_finds_is_consumed_once_and_the_next_time_is_stored(room):
    room.mails = ["a", "b"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.phases() == ["prepare", "next", "poll", "prepare", "mutate", "next"]
        assert room.ledger == ["a", "b"]
        assert await room.events(scheduler) == {"a": "consumed", "b": "consumed"}
        assert await room.events(scheduler, "rows") == {"a+b": "pending"}
        assert (await room.handler(scheduler)).state == '{"status":"applied"}'
        assert (await scheduler.get_job("mailroom.poll")).next_run_at == at(minutes=5)
        assert (await scheduler.get_job("mailroom.append")).next_run_at is None
        room.mails.append("c")
        await room.sleep("5m")
        assert room.ledger == ["a", "b", "c"]
        phases = {(one.phase, one.status) for one in await room.attempts(scheduler)}
        assert phases == {("committed", "committed")}


@pytest.mark.promise("K1")
@virtual
async def test_a_restart_is_no_deploy_and_a_new_version_keeps_what_is_stored(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
    room.calls.clear()
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert room.calls == []
    async with room.open(append={"timeout": "7m"}) as scheduler:
        changed = room.scene.scheduler()
        workflow = room.workflow()
        workflow.version = "another"
        async with changed:
            changed.add_workflow(workflow)
            await changed.start()
            await room.sleep("1s")
            assert (await room.row(changed)).version == "another"
            assert (await room.handler(changed, "poll")).state == '{"known":1}'
            assert await room.events(changed) == {"a": "consumed"}
            assert room.ledger == ["a"]


@pytest.mark.promise("K2", "K4", "K13")
@virtual
async def test_triggers_during_a_run_are_queued_once_and_no_event_is_lost(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.calls.clear()

        async def slow(ctx):
            if not room.ledger:
                await room.sleep("4m50s")  # the producer is due meanwhile

        room.act["mutate"] = slow
        await publish(scheduler, "a")
        await room.sleep("1s")
        for name in "bcd":
            await publish(scheduler, name)
        waiting = [run for run in await scheduler.get_run_log("mailroom.append") if run.status == "queued"]
        assert len(waiting) == 1
        await room.sleep("4m")
        room.calls.clear()
        await room.sleep("1m")
        assert room.ledger == ["a", "b", "c", "d"]
        assert room.phases()[:4] == ["next", "prepare", "mutate", "next"], "consumers go before producers"
        assert room.phases().count("poll") == 1
        assert set((await room.events(scheduler)).values()) == {"consumed"}


@pytest.mark.promise("K7")
@pytest.mark.parametrize("first", ["x", "y"])
@virtual
async def test_the_consumer_whose_oldest_event_has_waited_longest_goes_first(room, first):
    started, busy = [], []
    workflow = Workflow("mailroom")

    def consume(topic):
        consumer = workflow.consumer(topic, subscribes=[topic])

        @consumer.prepare
        async def prepare(ctx, state):
            started.append(topic)
            busy.append(topic)
            assert busy == [topic], "one run at a time"
            found = await ctx.peek(topic, limit=1)
            await room.sleep("10s")
            busy.remove(topic)
            return Prepared({topic: [event.id for event in found]})

    for topic in ("mail", "x", "y"):
        consume(topic)
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await publish(scheduler, "busy")
        await room.sleep("1s")
        started.clear()
        for topic in (first, "y" if first == "x" else "x"):
            given = ByHand(topic, "1", None)
            await scheduler.transact(
                lambda tx, context, given=given: publish_by_hand(tx, context, "mailroom", given, who="A")
            )
            await room.sleep("1s")
        await room.sleep("1m")
        assert started[:2] == [first, "y" if first == "x" else "x"]


@pytest.mark.promise("K4", "K14")
@virtual
async def test_an_event_is_not_lost_when_its_handler_is_paused_and_resumed(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await scheduler.pause_job("mailroom.append")
        await publish(scheduler, "a")
        await room.sleep("10m")
        assert room.ledger == []
        await scheduler.resume_job("mailroom.append")
        await room.sleep("2m")
        assert room.ledger == ["a"]


@pytest.mark.promise("K3")
@virtual
async def test_run_now_queues_the_producers_and_is_refused_while_something_runs(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.calls.clear()
        room.act["poll"] = lambda ctx: room.sleep("10s")
        started = await room.act_on(scheduler, "run_now", who="Ada")
        assert len(started) == 1
        await room.sleep("1s")
        with pytest.raises(ScheduleTriggerError, match="is running"):
            await room.act_on(scheduler, "run_now", who="Ada")
        await room.sleep("20s")
        assert room.phases() == ["poll"], "consumers run through events alone"
        assert (await scheduler.get_job("mailroom.poll")).next_run_at == at(minutes=6, seconds=10)
        await room.act_on(scheduler, "pause", who="Ada", note="holiday")
        with pytest.raises(ScheduleTriggerError, match="is paused"):
            await room.act_on(scheduler, "run_now", who="Ada")


@pytest.mark.promise("K4", "K5")
@virtual
async def test_an_empty_reservation_waits_for_an_event_or_its_wake_time(room):
    room.batch = 0
    async with room.open() as scheduler:
        await scheduler.start()
        room.wake_at = room.now + timedelta(hours=1)
        await publish(scheduler, "a")
        await room.sleep("1m")
        first = room.phases().count("prepare")
        assert (await room.handler(scheduler)).wake_at == int(at(hours=1).timestamp() * 1000)
        await room.sleep("50m")
        assert room.phases().count("prepare") == first
        room.wake_at = None
        await room.sleep("10m")
        assert room.phases().count("prepare") == first + 1
        assert [when for when, phase in room.calls if phase == "prepare"][-1] == at(hours=1)
        assert (await room.handler(scheduler)).wake_at is None, "leaving it out clears the old one"
        await room.sleep("2h")
        assert room.phases().count("prepare") == first + 1
        await publish(scheduler, "b")
        await room.sleep("1s")
        assert room.phases().count("prepare") == first + 2


@pytest.mark.promise("K6")
@virtual
async def test_publishing_is_idempotent_by_message_id_also_when_the_event_is_pruned(room):
    room.batch = 0
    async with room.open() as scheduler:
        await scheduler.start()
        first = await publish(scheduler, "a", {"n": 1})
        again = await publish(scheduler, "a", {"n": 2})
        assert (first.new, again.new, again.event_id) == (True, False, first.event_id)
        assert await room.events(scheduler) == {"a": "pending"}
        room.batch = 10
        await publish(scheduler, "b")
        await room.sleep("1s")
        assert (await publish(scheduler, "a", {"n": 3})).new is False
        later = room.clock.now() + 1
        assert await scheduler.transact(lambda tx, _: hooks.prune(tx, later, 100)) == 2
        assert await room.events(scheduler) == {}
        assert (await publish(scheduler, "a")).new is False
        await room.sleep("1m")
        assert sorted(room.ledger) == ["a", "b"]


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


@pytest.mark.promise("K12", "K13", "K16")
@virtual
async def test_five_transient_failures_in_a_row_need_attention_and_are_over_by_themselves(room):
    room.act["poll"] = fails(TransientError("busy"), times=6)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("2m")
        shown = await scheduler.look(lambda tx: views.workflow_view(tx, "mailroom"))
        assert (shown["status"], shown["issue"]["kind"]) == ("idle", "transient")
        assert await scheduler.list_alerts() == []
        await room.sleep("1m")
        shown = await scheduler.look(lambda tx: views.workflow_view(tx, "mailroom"))
        assert (shown["status"], shown["issue"]["kind"]) == ("needs_attention", "transient")
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["workflow"]
        await room.sleep("20m")
        assert (await room.row(scheduler)).issue is None
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("K12")
@pytest.mark.parametrize("reserve", [["evt"], {"mail": None}, {"mail": "evt"}, {7: []}, None])
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
        assert (failed.phase, failed.status, failed.mutation) == ("mutated", "failed:logic", "applied")
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


@pytest.mark.promise("K12", "X8")
@pytest.mark.parametrize("verdict", ["approve", "reject"])
@virtual
async def test_approval_waits_for_a_person_and_resumes_at_the_stored_phase(room, verdict):
    room.mails = ["a"]

    async def ask(ctx):
        if ctx.approved_by is None:
            raise ApprovalNeeded("Add a row?")

    room.act["mutate"] = ask
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

    async def ask(ctx):
        if ctx.approved_by is None:
            raise ApprovalNeeded("Add a row?")

    room.act["mutate"] = ask
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        run = ids.run_text((await room.row(scheduler)).issue_run)
        await room.act_on(scheduler, "pause", who="Ada", note="holiday")
        await room.act_on(scheduler, "approve", run, who="Ada")
        issue = (await scheduler.look(lambda tx: views.workflow_view(tx, "mailroom")))["issue"]
        assert (issue["kind"], issue["actions"]) == ("paused", ["resume"])
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert room.ledger == ["a"]


@pytest.mark.promise("K15")
@pytest.mark.parametrize(
    ("phase", "wrong"),
    [
        ("poll", lambda ctx: ctx.peek("mail")),
        ("prepare", lambda ctx: ctx.publish("rows", message_id="x")),
        ("prepare", lambda ctx: ctx.peek("rows")),
        ("next", lambda ctx: ctx.peek("mail")),
        ("next", lambda ctx: ctx.call(print)),
        ("next", lambda ctx: ctx.publish("mail", message_id="x")),
        ("poll", lambda ctx: ctx.publish("mail", message_id="x", payload={1, 2})),
    ],
)
@virtual
async def test_a_phase_may_do_only_what_belongs_to_it_even_when_the_refusal_is_swallowed(room, phase, wrong):
    async def swallow(ctx):
        try:
            await wrong(ctx)
        except LogicError:
            ctx.log.debug("swallowed")

    room.act[phase] = swallow
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        row = await room.row(scheduler)
        assert (row.issue, row.issue_handler) == ("logic", "poll" if phase == "poll" else "append")


@pytest.mark.promise("K12", "K15")
@virtual
async def test_a_failed_call_decides_even_when_the_handler_swallows_it(room):
    room.mails = ["a"]
    left = [1]

    async def gone():
        if left.pop() if left else 0:
            raise ConnectionError("no route")

    async def swallow(ctx):
        try:
            await ctx.call(gone)
        except ConnectionError:
            ctx.log.debug("swallowed")

    room.act["prepare"] = swallow
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("8s")
        assert (await room.row(scheduler)).issue == "transient"
        await room.sleep("1m")
        assert room.ledger == ["a"]


@pytest.mark.promise("K15")
@virtual
async def test_mutate_makes_one_change_and_a_second_call_is_not_made(room):
    room.mails, made = ["a"], []

    async def twice(ctx):
        for number in (1, 2):
            await ctx.call(made.append, number)

    room.after["mutate"] = twice
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("10s")
        assert made == [1]
        assert room.ledger == ["a"], "reconcile finds that it happened"
        assert set((await room.events(scheduler)).values()) == {"consumed"}


@pytest.mark.promise("K11")
@pytest.mark.parametrize(
    ("verdict", "ledger", "status"),
    [("happened", ["a"], "applied"), ("did_not_happen", ["a", "a"], "applied"), ("skip", ["a"], "skipped")],
)
@virtual
async def test_an_uncertain_mutation_without_reconcile_waits_for_a_person(room, verdict, ledger, status):
    room.mails, room.reconciles = ["a"], False
    room.after["mutate"] = fails(RuntimeError("cut"))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("3h")
        assert room.ledger == ["a"]
        row = await room.row(scheduler)
        assert row.issue == "reconciliation"
        uncertain = (await room.attempts(scheduler))[-1]
        assert (uncertain.status, uncertain.mutation) == ("paused:reconciliation", "in_flight")
        assert await room.events(scheduler) == {"a": "reserved"}
        run = ids.run_text(uncertain.id)
        with pytest.raises(InvalidJob, match="verdict"):
            await room.act_on(scheduler, "settle", run, "perhaps", who="Ada")
        await room.act_on(scheduler, "settle", run, verdict, who="Ada", result={"rows": 7})
        with pytest.raises(ScheduleTriggerError, match="settled before"):
            await room.act_on(scheduler, "settle", run, verdict, who="Ada")
        await room.sleep("10s")
        assert room.ledger == ledger
        assert await room.events(scheduler) == {"a": "consumed"}
        assert (await room.handler(scheduler)).state == f'{{"status":"{status}"}}'
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K11")
@virtual
async def test_reconcile_is_asked_five_times_and_then_a_person(room):
    from tests.workflows.mailroom import UNKNOWN

    room.mails, room.verdict = ["a"], UNKNOWN
    room.after["mutate"] = fails(RuntimeError("cut"))
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1h")
        asked = [(when - at()).total_seconds() for when, phase in room.calls if phase == "reconcile"]
        assert [round(later - before) for before, later in itertools.pairwise(asked)] == [10, 20, 40, 80]
        assert len(await scheduler.list_alerts()) == 1
        run = ids.run_text((await room.attempts(scheduler))[-1].id)
        await room.act_on(scheduler, "settle", run, "happened", who="Ada")
        await room.sleep("1m")
        assert room.ledger == ["a"]
        assert await room.events(scheduler) == {"a": "consumed"}


@pytest.mark.promise("K11")
@virtual
async def test_a_mutation_that_takes_too_long_is_uncertain_and_not_made_again(room):
    room.mails = ["a"]
    room.after["mutate"] = lambda ctx: room.sleep("1h")
    async with room.open(append={"timeout": "1m"}) as scheduler:
        await scheduler.start()
        await room.sleep("2m")
        assert room.ledger == ["a"]
        assert room.phases().count("reconcile") == 1
        assert await room.events(scheduler) == {"a": "consumed"}


@pytest.mark.promise("K12")
@virtual
async def test_a_mistake_of_ours_stops_the_workflow_with_an_alert(room, monkeypatch):
    from wakeful.workflows import checkpoints

    def broken(*_):
        raise KeyError("ours")

    async with room.open() as scheduler:
        monkeypatch.setattr(checkpoints, "committed", broken)
        await scheduler.start()
        await room.sleep("1m")
        assert (await room.row(scheduler)).issue == "internal"
        assert len(await scheduler.list_alerts()) == 1
        monkeypatch.undo()
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K4")
@virtual
async def test_a_consumer_that_always_finds_more_to_do_yields(room):
    room.batch = 1
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        for number in range(150):
            await publish(scheduler, str(number))
        room.calls.clear()
        await room.sleep("10s")
        assert len(room.ledger) == 100
        await room.sleep("30s")
        assert len(room.ledger) == 150
