"""What handlers may do, and what becomes of a change that was cut off."""

from __future__ import annotations

import itertools

import pytest

from tests.kernel.scene import at
from tests.workflows.mailroom import break_checkpoints, fails, virtual
from wakeful import (
    InvalidJob,
    LogicError,
    ScheduleTriggerError,
    ids,
)
from wakeful.errors import StoreRefused


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
    async with room.open() as scheduler:
        break_checkpoints(monkeypatch, KeyError("ours"), "committed")
        await scheduler.start()
        await room.sleep("1m")
        assert (await room.row(scheduler)).issue == "internal"
        assert len(await scheduler.list_alerts()) == 1
        monkeypatch.undo()
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1s")
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K12")
@virtual
async def test_what_the_store_refuses_stops_the_workflow_and_is_not_tried_for_ever(room, monkeypatch):
    async with room.open() as scheduler:
        break_checkpoints(monkeypatch, StoreRefused("the store does not take this"), "committed")
        await scheduler.start()
        await room.sleep("1m")
        row = await room.row(scheduler)
        assert (row.issue, row.issue_message) == ("internal", "the store does not take this")
        assert room.phases() == ["prepare", "next"]


@pytest.mark.promise("K12", "K13")
@virtual
async def test_a_run_whose_failure_cannot_be_stored_backs_off_and_a_person_hears_of_it(room, monkeypatch):
    async with room.open() as scheduler:
        break_checkpoints(monkeypatch, KeyError("ours"), "committed", "failed")
        await scheduler.start()
        await room.sleep("5m")
        assert room.phases() == ["prepare", "next"] * 5
        assert {alert.kind for alert in await scheduler.list_alerts()} == {"workflow"}
        monkeypatch.undo()
        await room.sleep("10m")
        assert (await room.row(scheduler)).issue is None
        assert await scheduler.list_alerts() == []
