"""What authors and people get wrong: it is refused in a sentence, and changes nothing else."""

from __future__ import annotations

import contextlib

import pytest

from tests.workflows.mailroom import fails, virtual
from tests.workflows.test_operating import did
from tests.workflows.test_runs import publish
from wakeful import ApprovalNeeded, Interval, Prepared, ScheduleTriggerError, TransientError, Workflow, ids
from wakeful.domains.workflows import hooks, input_actions, views
from wakeful.domains.workflows.handler_context import HandlerContext
from wakeful.domains.workflows.topics.tables import InputRow, Topics
from wakeful.errors import InvalidJob, NotFound, StoreUnreachable
from wakeful.testing import WorkflowTest


def producing(act, **settings):
    """A workflow whose producer does that, and catches what it raises."""
    workflow = Workflow("flow")

    @workflow.producer(Interval("1h"), **settings)
    async def poll(ctx, state):
        with contextlib.suppress(Exception):
            await act(ctx)

    return workflow


def failed(workflow):
    """(status, error) of the first run."""
    with WorkflowTest(workflow) as test:
        test.advance("1s")
        [run] = test.runs()
        assert not test.events("mail")
        return run["workflow_status"], run["error"]


@pytest.mark.promise("K15")
@pytest.mark.parametrize("topic", ["Mail box", "mail\n", 5, ["mail"], None, ""])
def test_a_topic_that_is_no_name_is_refused_where_publishes_is_left_out(topic):
    status, error = failed(producing(lambda ctx: ctx.publish(topic, message_id="1")))
    assert status == "failed:logic"
    assert error.startswith("The name of a topic has 1 to 64 small letters")


@pytest.mark.promise("K16")
@pytest.mark.parametrize("given", ["inp_1frc87n80sngk", "evt_1frc87n80sngk", "mail", 5])
def test_an_input_that_the_workflow_does_not_have_causes_nothing(given):
    workflow = producing(lambda ctx: ctx.publish("mail", message_id="1", input=given))
    assert failed(workflow) == (
        "failed:logic",
        f"input is what register_input returned, or the input of an event, not {given!r}.",
    )


def test_a_consumer_that_publishes_for_the_input_of_each_event_asks_for_them_at_once(monkeypatch):
    workflow, asked, counting = Workflow("flow"), [], [False]

    @workflow.producer(Interval("1h"))
    async def poll(ctx, state):
        for name in "abcdef":
            await ctx.publish("mail", message_id=name, input=await ctx.register_input("imap", "mail", name))

    sort = workflow.consumer("sort", subscribes=["mail"])

    @sort.prepare
    async def prepare(ctx, state):
        found = await ctx.peek("mail")
        return Prepared({"mail": [event.id for event in found]}, {event.message_id: event.input for event in found})

    @sort.next
    async def next_(ctx, prepared, result):
        counting[0] = bool(prepared.data)
        for name, cause in prepared.data.items():
            await ctx.publish("sorted", message_id=name, input=cause)
        counting[0] = False

    look = HandlerContext._read

    async def counted(self, work):
        asked.extend([work] if counting[0] else [])
        return await look(self, work)

    monkeypatch.setattr(HandlerContext, "_read", counted)
    with WorkflowTest(workflow) as test:
        test.advance("1m")
        events = test.events("sorted")
        assert sorted(event["message_id"] for event in events) == list("abcdef")
        assert len({event["input"] for event in events}) == 6
    assert len(asked) == 1


@pytest.mark.promise("K12")
@pytest.mark.parametrize("limit", [None, "10", -1, 2.5, True])
def test_a_limit_that_is_no_number_of_events_fails_the_run_also_when_it_is_caught(limit):
    workflow = Workflow("flow")
    reader = workflow.consumer("reader", subscribes=["mail"])

    @reader.prepare
    async def prepare(ctx, state):
        with contextlib.suppress(Exception):
            await ctx.peek("mail", limit=limit)
        return Prepared()

    status, error = failed(workflow)
    assert (status, error) == ("failed:logic", f"The limit of peek is a whole number of events, not {limit!r}.")


@pytest.mark.promise("K12")
@virtual
async def test_a_store_that_is_away_for_a_moment_stops_no_workflow(room, monkeypatch):
    """Neither where a handler peeks nor where it registers an input, and whether or not the handler catches it."""
    room.mails = ["a"]
    async with room.open() as scheduler:
        for verb in ("find_input", "pending"):
            monkeypatch.setattr(Topics, verb, away(verb, monkeypatch))
        await scheduler.start()
        await room.sleep("10m")
        assert room.ledger == ["a"]
        assert (await room.row(scheduler)).issue is None
        runs = [*await room.attempts(scheduler), *await room.attempts(scheduler, "poll")]
        assert [one.status for one in runs if one.error] == ["crashed", "crashed"]


def away(verb, monkeypatch):
    """The verb, which fails once."""
    whole = getattr(Topics, verb)

    def fails_once(*_):
        monkeypatch.setattr(Topics, verb, whole)
        raise StoreUnreachable("The database does not answer.")

    return fails_once


async def act(scheduler, what, ref, reason="it is broken"):
    return await scheduler.transact(
        lambda tx, context: what(tx, context, "mailroom", ref, reason=reason, who="Ada"),
    )


async def shown(scheduler, ref):
    number = ids.decode(ref)[1]
    return (await scheduler.read(lambda tx: views.event_views(tx, [tx.of(Topics).get(number)])))[0]


async def listed(scheduler, status=None):
    found = await scheduler.read(lambda tx: tx.of(Topics).matching("mailroom", "mail", status, None, 99))
    return [ids.encode("evt", one.id) for one in reversed(found)]


@pytest.mark.promise("K6")
@pytest.mark.promise("K16")
@virtual
async def test_an_event_without_an_input_that_breaks_its_consumer_is_skipped_with_a_reason(room):
    async def breaks(ctx):
        if any(mail.message_id == "poison" for mail in await ctx.peek("mail")):
            raise ValueError("no subject")

    room.act["prepare"] = breaks
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await publish(scheduler, "poison")
        await publish(scheduler, "good")
        await room.sleep("1m")
        assert (await room.row(scheduler)).issue == "logic"
        poison, good = await listed(scheduler)
        with pytest.raises(InvalidJob, match="Say why"):
            await act(scheduler, input_actions.skip, poison, " ")
        with pytest.raises(NotFound, match="has no event"):
            await act(scheduler, input_actions.skip, "evt_nothing")
        assert await act(scheduler, input_actions.skip, poison) == 1
        with pytest.raises(ScheduleTriggerError, match="is skipped already: nothing more happens to it"):
            await act(scheduler, input_actions.skip, poison)
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert room.ledger == ["good"]
        assert (await shown(scheduler, poison))["status"] == "skipped"
        assert (await shown(scheduler, poison))["reason"] == "it is broken"
        assert (await shown(scheduler, good))["reason"] is None
        assert ("Ada", "skipped", f"{poison}: it is broken") in await did(scheduler)
        with pytest.raises(ScheduleTriggerError, match="is consumed already"):
            await act(scheduler, input_actions.skip, good)
        made = await act(scheduler, input_actions.replay_event, poison)
        assert (await shown(scheduler, made))["status"] == "pending", "the way back"


@pytest.mark.promise("K16")
@virtual
async def test_an_event_in_use_is_not_skipped_and_an_input_is_skipped_with_its_last_event(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["mutate"] = lambda _: room.sleep("10s")
        await publish(scheduler, "busy")
        await room.sleep("1s")
        [busy] = await listed(scheduler)
        with pytest.raises(ScheduleTriggerError, match="is being worked on"):
            await act(scheduler, input_actions.skip, busy)
        await room.sleep("1m")
        await room.act_on(scheduler, "pause", who="Ada")
        first, second = await scheduler.transact(caused)
        await act(scheduler, input_actions.skip, first)
        assert await input_status(scheduler) == ("pending", None)
        await act(scheduler, input_actions.skip, second, "both are")
        assert await input_status(scheduler) == ("skipped", "both are")


def caused(tx, context):
    """Two events of one input."""
    row = InputRow(context.new_id(), "mailroom", "imap", "mail", "7", None, tx.now)
    messages = [input_actions.NewEvent("mail", name, "{}", (row.id,)) for name in ("x~1", "x~2")]
    return [ids.encode("evt", one.event_id) for one in publish_all(tx, context, messages, row)]


def publish_all(tx, context, messages, row):
    return input_actions.publish(tx, context, "mailroom", messages, inputs=[row])


async def input_status(scheduler):
    [row] = await scheduler.read(lambda tx: tx.of(Topics).inputs("mailroom", None, None, 9))
    found = await scheduler.read(lambda tx: views.input_view(tx, row))
    return found["status"], found["reason"]


@pytest.mark.promise("K16")
@virtual
async def test_rerunning_an_input_publishes_each_of_its_messages_and_nothing_that_was_made_from_them(room):
    room.mails = ["x~1", "x~2"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        first, second = await scheduler.read(lambda tx: tx.of(Topics).inputs("mailroom", None, None, 9))
        [rows] = await scheduler.read(lambda tx: tx.of(Topics).matching("mailroom", "rows", None, None, 9))
        await scheduler.transact(lambda tx, _: tx.of(Topics).skip([rows.id], tx.now, "tidy"))
        await act(scheduler, input_actions.replay_event, ids.encode("evt", rows.id))
        for _ in range(2):
            [again] = await scheduler.read(lambda tx: tx.of(Topics).matching("mailroom", "rows", "pending", None, 9))
            await scheduler.transact(lambda tx, _, one=again: tx.of(Topics).skip([one.id], tx.now, "tidy"))
            made = await act(scheduler, input_actions.rerun_input, ids.encode("inp", first.id))
            assert [(await shown(scheduler, one))["topic"] for one in made] == ["mail"]
            await room.sleep("1m")
        assert [name.partition("~")[2][:1] for name in room.ledger] == ["1", "2", "2", "2"]
        assert second.external_id == "x~1"


@pytest.mark.promise("K16")
@virtual
async def test_an_input_with_very_many_events_is_pending_while_one_of_them_is_and_skipped_as_a_whole(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await room.act_on(scheduler, "pause", who="Ada")

        def many(tx, context):
            row = InputRow(context.new_id(), "mailroom", "imap", "mail", "7", None, tx.now)
            messages = [input_actions.NewEvent("mail", str(n), "{}", (row.id,)) for n in range(1_200)]
            made = publish_all(tx, context, messages, row)
            tx.of(Topics).skip([one.event_id for one in made[:150]], tx.now)
            return ids.encode("inp", row.id)

        ref = await scheduler.transact(many)
        assert await input_status(scheduler) == ("pending", None)
        assert await act(scheduler, input_actions.skip, ref) == 1_050
        assert await input_status(scheduler) == ("skipped", "it is broken")


@pytest.mark.promise("K16")
@virtual
async def test_an_event_that_no_handler_subscribes_to_keeps_no_input_pending_and_does_not_stay_for_ever(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert await room.events(scheduler, "rows") == {"a": "pending"}
        assert await input_status(scheduler) == ("done", None)
        shown = await scheduler.read(lambda tx: views.workflow_view(tx, "mailroom"))
        assert shown["pending_inputs"] == 0
        for status, count in (("pending", 0), ("done", 1)):
            found = await scheduler.read(lambda tx, one=status: tx.of(Topics).inputs("mailroom", one, None, 9))
            assert len(found) == count
        [row] = await scheduler.read(lambda tx: tx.of(Topics).inputs("mailroom", None, None, 9))
        assert len(await act(scheduler, input_actions.rerun_input, ids.encode("inp", row.id))) == 1
        await room.sleep("1m")
        assert await scheduler.transact(lambda tx, _: hooks.prune(tx, tx.now, 99)) > 0
        assert await room.events(scheduler, "rows") == {}


@pytest.mark.promise("K4")
@virtual
async def test_a_consumer_that_is_deployed_later_finds_what_was_published_before(room):
    room.mails = ["a"]
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.act["prepare"] = lambda _: room.sleep("1h")
        await scheduler.add_workflow(room.workflow(append={"subscribes": ["mail", "rows"]}))
        await room.sleep("1m")
        assert await input_status(scheduler) == ("pending", None)
        await scheduler.transact(lambda tx, _: hooks.prune(tx, tx.now, 99))
        assert await room.events(scheduler, "rows") == {"a": "pending"}


def only_polling(room):
    """The workflow without its consumer."""
    workflow = room.workflow()
    del workflow.handlers["append"]
    return workflow


@pytest.mark.promise("K16")
@virtual
async def test_what_a_consumer_left_pending_keeps_no_input_pending_once_the_consumer_is_removed(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        room.mails = ["a"]
        room.act["prepare"] = fails(TransientError("busy"), 99)
        await room.sleep("5m")
        assert await input_status(scheduler) == ("pending", None)
        await scheduler.add_workflow(only_polling(room))
        assert await room.events(scheduler) == {"a": "pending"}
        assert await input_status(scheduler) == ("done", None)
        assert await scheduler.transact(lambda tx, _: hooks.prune(tx, tx.now + 1, 99)) > 0
        assert await room.events(scheduler) == {}


@pytest.mark.promise("K16")
@virtual
async def test_what_a_removed_consumer_had_reserved_keeps_no_input_pending_and_a_later_one_finds_it(room):
    room.mails = ["a"]
    room.act["mutate"] = fails(ApprovalNeeded("May I?"), 99)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        assert await room.events(scheduler) == {"a": "reserved"}
        await scheduler.add_workflow(only_polling(room))
        assert await room.events(scheduler) == {"a": "pending"}
        assert await input_status(scheduler) == ("done", None)
        room.act["prepare"] = lambda _: room.sleep("1h")
        await scheduler.add_workflow(room.workflow(append={"subscribes": ["rows", "mail"]}))
        assert await input_status(scheduler) == ("pending", None)


@pytest.mark.promise("K6")
@virtual
async def test_what_is_on_record_of_publishing_by_hand_is_what_happened(room):
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await room.act_on(scheduler, "pause", who="Ada")
        await publish(scheduler, "a", 1)
        await publish(scheduler, "a", 2)
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        await publish(scheduler, "a", 3)
        assert [(what, detail) for _, what, detail in await did(scheduler)] == [
            ("paused", None),
            ("published", "mail a"),
            ("replaced", "mail a"),
            ("resumed", None),
        ]
