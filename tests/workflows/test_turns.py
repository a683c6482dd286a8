"""Whose turn it is among the handlers of a workflow, and when those who always find something rest."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.workflows.mailroom import virtual
from wakeful import Interval, Prepared, TransientError, Workflow
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand
from wakeful.domains.workflows.turns.order import by_number
from wakeful.domains.workflows.turns.rounds import fed_again, goes_round
from wakeful.domains.workflows.turns.tables import Worked
from wakeful.testing import WorkflowTest


async def publish(scheduler, topic, message_id="1", payload=None):
    given = ByHand(topic, message_id, payload)
    return await scheduler.transact(lambda tx, context: publish_by_hand(tx, context, "mailroom", given, who="Ada"))


def consumer(workflow, topic, started, *, limit=1, before=None, chosen=lambda event: True):
    """A consumer of the topic, under its name, that notes when it starts."""
    made = workflow.consumer(topic, subscribes=[topic])

    @made.prepare
    async def prepare(ctx, state):
        found = [event for event in await ctx.peek(topic, limit=limit) if chosen(event)]
        if found:
            started.append(topic)
        if before is not None:
            await before(topic)
        return Prepared({topic: [event.id for event in found]})


@pytest.mark.promise("K7")
@pytest.mark.parametrize("apart", ["0s", "1s"])
@pytest.mark.parametrize("order", ["xy", "yx"])
@virtual
async def test_after_a_resume_the_consumer_of_the_older_event_goes_first(room, order, apart):
    started, workflow = [], Workflow("mailroom")
    for topic in "xy":
        consumer(workflow, topic, started)
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await room.act_on(scheduler, "pause", who="Ada")
        for topic in order:
            await publish(scheduler, topic)
            if apart != "0s":
                await room.sleep(apart)
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert started == list(order)


@pytest.mark.promise("K7")
@pytest.mark.parametrize("apart", ["0s", "1s"])
@virtual
async def test_what_a_consumer_left_is_older_than_what_came_for_another_meanwhile(room, apart):
    started, workflow = [], Workflow("mailroom")

    async def take_time(topic):
        await room.sleep("10s")

    for topic in ("a", "b"):
        consumer(workflow, topic, started, before=take_time)
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        for topic, message_id in (("b", "1"), ("b", "2"), ("a", "1"), ("b", "3")):
            await publish(scheduler, topic, message_id)
            if apart != "0s":
                await room.sleep(apart)
        await room.sleep("2m")
        assert started == ["b", "b", "a", "b"]


@pytest.mark.promise("K7")
@virtual
async def test_an_event_that_its_consumer_declined_before_does_not_put_it_first(room):
    started, ready, workflow = [], [], Workflow("mailroom")

    async def take_time(topic):
        if topic == "c":
            await room.sleep("10s")

    for topic in "abc":
        consumer(workflow, topic, started, limit=9, before=take_time, chosen=lambda event: event.topic != "b" or ready)
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await publish(scheduler, "b", "old")
        await room.sleep("1m")
        ready.append(True)
        for topic in "cab":
            await publish(scheduler, topic, "new")
            await room.sleep("1s")
        await room.sleep("1m")
        assert started == ["c", "a", "b"]


@pytest.mark.promise("K7")
def test_a_consumer_that_leaves_an_old_event_and_has_steady_work_starves_no_other():
    workflow, done = Workflow("flow"), []
    orders = workflow.consumer("orders", subscribes=["orders"])
    consumer(workflow, "mails", done)

    @orders.prepare
    async def prepare(ctx, state):
        paid = await ctx.peek("orders", limit=1, where={"paid": True})
        return Prepared({"orders": [order.id for order in paid]})

    @orders.mutate
    async def mutate(ctx, prepared):
        done.append("orders")
        await asyncio.sleep(2)  # of virtual time

    with WorkflowTest(workflow) as test:
        test.publish("orders", {"paid": False})
        test.advance("1h")
        test.publish("orders", {"paid": True})
        test.publish("mails")
        for _ in range(5):
            test.publish("orders", {"paid": True})
            test.advance("1s")
        assert done[:3] == ["orders", "mails", "orders"]


@pytest.mark.promise("K7")
def test_of_two_events_the_older_goes_first_though_the_clock_was_set_back_between_them():
    workflow, started = Workflow("flow"), []
    for topic in "ab":
        consumer(workflow, topic, started)
    with WorkflowTest(workflow) as test:
        test.advance("2h")
        test.pause()
        test.publish("b")
        test.clock.step(timedelta(hours=-1))
        test.advance("1s")
        test.publish("a")
        test.resume()
        assert started == ["b", "a"]


def test_times_of_events_go_up_with_their_numbers():
    assert by_number({"a": (50, 1), "b": (10, 2), "c": (20, 3)}) == {"a": (10, 1), "b": (10, 2), "c": (20, 3)}


@pytest.mark.promise("K7", "K13")
@virtual
async def test_what_waited_for_a_stuck_handler_starts_in_the_order_of_its_events(room):
    started, workflow, broken = [], Workflow("mailroom"), [True]

    async def fail_once(topic):
        if topic == "z" and broken and started:
            broken.clear()
            raise TransientError("not now")

    for topic in "xyz":
        consumer(workflow, topic, started, before=fail_once)
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        for topic in "zyx":
            await publish(scheduler, topic)
            await room.sleep("1s")
        await room.sleep("1m")
        assert started == ["z", "z", "y", "x"]


@pytest.mark.promise("K7", "K14")
@pytest.mark.parametrize("order", ["xy", "yx"])
@virtual
async def test_after_a_restart_the_consumer_of_the_older_event_goes_first(room, order):
    started = []
    for first in (True, False):
        workflow = Workflow("mailroom")
        for topic in "xy":
            consumer(workflow, topic, started)
        scheduler = room.scene.scheduler()
        scheduler.add_workflow(workflow)
        async with scheduler:
            await scheduler.start()
            await room.sleep("1m")
            await scheduler.stop()
            for topic in order if first else ():
                await publish(scheduler, topic)
    assert started == list(order)


@pytest.mark.promise("K7")
@virtual
async def test_a_consumer_whose_job_is_paused_keeps_no_other_waiting(room):
    started, workflow = [], Workflow("mailroom")
    for topic in "xy":
        consumer(workflow, topic, started)
    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    async with scheduler:
        await scheduler.start()
        await room.sleep("1m")
        await publish(scheduler, "x")
        await scheduler.pause_job("mailroom.x")
        started.clear()
        await publish(scheduler, "x", "2")
        await publish(scheduler, "y")
        await room.sleep("1s")
        assert started == ["y"]


# -- rounds -----------------------------------------------------------------------------------------------------------


def feeding_each_other(polls, rounds, *, limit=100, says=True):
    """Two consumers that publish for each other for ever, and a producer."""
    workflow = Workflow("flow")

    @workflow.producer(Interval("10s"), publishes=["found"])
    async def poll(ctx, state):
        polls.append(ctx.now)

    for mine, other in (("ping", "pong"), ("pong", "ping")):
        made = workflow.consumer(mine, subscribes=[mine], publishes=[other] if says else None)

        @made.prepare
        async def prepare(ctx, state, mine=mine):
            found = await ctx.peek(mine, limit=limit)
            return Prepared({mine: [event.id for event in found]}, len(found))

        @made.next
        async def next_(ctx, prepared, result, other=other):
            if prepared.data:
                rounds.append(ctx.now)
                await ctx.publish(other, message_id=f"m{len(rounds)}")

    return workflow


@pytest.mark.promise("K4", "K7")
def test_two_consumers_that_feed_each_other_rest_and_starve_no_producer():
    polls, rounds = [], []
    with WorkflowTest(feeding_each_other(polls, rounds)) as test:
        test.publish("ping")
        test.advance("65s")
        assert len(polls) >= 6, "a poll every ten seconds"
        assert 200 <= len(rounds) <= 310, "a hundred rounds in 30 seconds"
        notes = [run["notes"] for run in test.runs() if run["notes"]]
        assert notes[0] == ["its workflow rests for 30 s after 100 rounds that worked on nothing but their own events"]


@pytest.mark.promise("K4")
def test_consumers_that_feed_each_other_rest_also_if_several_events_go_round():
    polls, rounds = [], []
    with WorkflowTest(feeding_each_other(polls, rounds, limit=1, says=False)) as test:
        test.pause()
        for _ in range(5):
            test.publish("ping")
        test.resume()
        test.advance("5s")
        assert len(rounds) == 200, "the first hundred took what a person had published"


LOOP = {"urls"}


@pytest.mark.promise("K4")
@pytest.mark.parametrize(
    ("worked", "rests"),
    [
        (Worked(0, {"urls": 99}, {"urls": 99}), True),
        (Worked(0, {"urls": 50, "pages": 49}, {"urls": 50, "pages": 50}), True),
        (Worked(0, {}, {"urls": 99}), True),
        (Worked(0, {}, {}), True),
        (Worked(1, {"urls": 99}, {"urls": 99}), False),
        (Worked(0, {"urls": 99}, {"urls": 98, "pages": 99}), False),
        (Worked(0, {"pages": 99}, {"files": 99}), False),
    ],
)
def test_rounds_rest_that_make_as_many_events_as_they_consume_and_consume_no_new_ones(worked, rests):
    assert goes_round(worked, LOOP) is rests


def test_events_are_fed_again_on_a_way_back_to_their_topic_only():
    leads = {"in": {"a"}, "a": {"b", "out"}, "b": {"a"}, "out": {"log"}, "self": {"self"}}
    assert fed_again(leads) == {"a", "b", "self"}


@pytest.mark.promise("K4")
def test_a_consumer_that_feeds_itself_rests_also_if_it_consumes_nothing():
    workflow, rounds = Workflow("flow"), []
    made = workflow.consumer("loop", subscribes=["loop"], publishes=["loop"])

    @made.prepare
    async def prepare(ctx, state):
        return Prepared()

    @made.next
    async def next_(ctx, prepared, result):
        rounds.append(ctx.now)
        await ctx.publish("loop", message_id=len(rounds))

    with WorkflowTest(workflow) as test:
        test.advance("10s")
        assert len(rounds) == 100
        test.advance("30s")
        assert len(rounds) == 200


@pytest.mark.promise("K4", "K17")
def test_first_in_first_out_one_at_a_time_is_not_slowed_down():
    workflow, done = Workflow("flow"), []
    first = workflow.consumer("first", subscribes=["tasks"], publishes=["more"])
    second = workflow.consumer("second", subscribes=["more"], publishes=["last"])
    third = workflow.consumer("third", subscribes=["last"])
    for made, topic, to in ((first, "tasks", "more"), (second, "more", "last"), (third, "last", None)):

        @made.prepare
        async def prepare(ctx, state, topic=topic):
            found = await ctx.peek(topic, limit=1)
            return Prepared({topic: [event.id for event in found]}, [event.message_id for event in found])

        @made.next
        async def next_(ctx, prepared, result, to=to):
            for name in prepared.data:
                if to is None:
                    done.append(name)
                else:
                    await ctx.publish(to, message_id=name)

    @workflow.producer(Interval("1h"), publishes=["tasks"])
    async def poll(ctx, state):
        for number in range(50 if not state else 0):
            await ctx.publish("tasks", message_id=f"m{number}")
        return {"done": True}

    with WorkflowTest(workflow) as test:
        test.advance("1s")
        assert done == [f"m{number}" for number in range(50)]


@pytest.mark.promise("K4", "K7")
def test_a_producer_has_its_turn_after_a_hundred_rounds_of_a_long_backlog():
    workflow, order = Workflow("flow"), []
    work = workflow.consumer("work", subscribes=["tasks"])

    @workflow.producer(Interval("10s"), publishes=["tasks"])
    async def poll(ctx, state):
        order.append("poll")
        for number in range(0 if state else 210):
            await ctx.publish("tasks", message_id=number)
        return {"done": True}

    @work.prepare
    async def prepare(ctx, state):
        found = await ctx.peek("tasks", limit=1)
        return Prepared({"tasks": [event.id for event in found]})

    @work.mutate
    async def mutate(ctx, prepared):
        order.append("work")
        await asyncio.sleep(1)  # of virtual time

    with WorkflowTest(workflow) as test:
        test.advance("6m")
        turns = [number for number, one in enumerate(order) if one == "poll"]
        assert turns[:3] == [0, 101, 202], "one of them after a hundred rounds"
        assert order.count("work") == 210
