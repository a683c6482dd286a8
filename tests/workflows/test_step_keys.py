"""Keys: events with the same one are worked on one at a time and in order, others beside them."""

from __future__ import annotations

import asyncio
import sys

import pytest

from tests.workflows.mailroom import virtual
from wakeful import Interval, Scheduler, Workflow
from wakeful.testing import WorkflowTest


class Counter:
    """Counts how many runs go on at a time, in all and of each key."""

    def __init__(self):
        self.now, self.most, self.done = [], 0, []
        self.most_of_key = 0

    async def work(self, key, number, seconds):
        self.now.append(key)
        self.most = max(self.most, len(self.now))
        self.most_of_key = max(self.most_of_key, self.now.count(key))
        await asyncio.sleep(seconds)
        self.now.remove(key)
        self.done.append((key, number))


def keyed(counter, **options):
    workflow = Workflow("shop")
    settings = {"key": lambda event: event.payload["k"], "concurrency": 4, "on_failure": "park", "retry": ["30s"]}

    @workflow.on("orders", **{**settings, **options})
    async def ship(ctx, event):
        if event.payload.get("bad"):
            raise ValueError("bad")
        await ctx.step("work", counter.work, event.payload["k"], event.payload["n"], event.payload.get("s", 10))

    return workflow


def of(counter, key):
    return [number for one, number in counter.done if one == key]


@pytest.mark.promise("X32")
def test_different_keys_go_beside_each_other_and_each_key_keeps_its_order():
    counter = Counter()
    with WorkflowTest(keyed(counter)) as test:
        for number in range(24):
            test.publish("orders", {"k": number % 6, "n": number})
        test.advance("2m")
        assert (counter.most, counter.most_of_key) == (4, 1)
        assert all(of(counter, key) == list(range(key, 24, 6)) for key in range(6))
        assert len(counter.done) == 24
        assert {run["handler"] for run in test.runs()} == {"ship"}
        assert [one["name"] for one in test.workflow()["handlers"]] == ["ship"]


@pytest.mark.promise("X32")
def test_an_event_that_fails_holds_up_its_key_alone_until_it_is_parked():
    counter = Counter()
    with WorkflowTest(keyed(counter)) as test:
        test.publish("orders", {"k": "a", "n": 1, "bad": True}, message_id="bad")
        test.publish("orders", {"k": "a", "n": 2})
        test.publish("orders", {"k": "b", "n": 3})
        test.advance("15s")
        assert counter.done == [("b", 3)]
        test.advance("1m")
        assert counter.done == [("b", 3), ("a", 2)]
        assert [event["message_id"] for event in test.parked()] == ["bad"]


@pytest.mark.promise("X32")
@pytest.mark.parametrize("way", ["replayed", "skipped"])
def test_a_place_that_failed_is_not_called_failing_once_its_event_is_dealt_with(way):
    counter, mended = Counter(), []

    def act(number):
        if number == 2 and not mended:
            raise ValueError("bad")

    workflow = keyed(counter)

    @workflow.on("bills", concurrency=3, on_failure="park")
    async def pay(ctx, event):
        await ctx.step("wait", counter.work, "bill", event.payload, 10)
        await ctx.step("act", act, event.payload)

    with WorkflowTest(workflow) as test:

        def sentence():
            return test._runner.run(test._scheduler.get_verdict()).sentence

        for number in range(3):
            bad = test.publish("bills", number)
        test.advance("1m")
        assert "1 event of shop is parked" in sentence()
        assert "shop.pay.3 failed 50s ago and has not succeeded since" in sentence()
        if way == "skipped":
            test.skip(bad)
        else:
            mended.append(True)
            test.replay(bad)
        test.advance("1m")
        assert [event["status"] for event in test.events("bills")][2] == {"replayed": "consumed"}.get(way, way)
        assert sentence().startswith("Nothing will start by time")


def test_a_replayed_event_waits_for_the_one_with_its_key_that_is_worked_on():
    counter = Counter()
    with WorkflowTest(keyed(counter, retry=[])) as test:
        test.publish("orders", {"k": "a", "n": 1, "bad": True}, message_id="bad")
        test.publish("orders", {"k": "a", "n": 2, "s": 240})
        test.replay("bad")
        test.advance("3m")
        assert [event["status"] for event in test.events("orders")] == ["reserved", "reserved"]
        assert test.parked() == []
        test.advance("6m")
        assert [event["status"] for event in test.events("orders")] == ["parked", "consumed"]


def test_without_a_key_as_many_events_are_worked_on_as_may_be():
    counter = Counter()
    with WorkflowTest(keyed(counter, key=None)) as test:
        for number in range(9):
            test.publish("orders", {"k": "same", "n": number})
        test.advance("1m")
        assert counter.most == 4
        assert sorted(of(counter, "same")) == list(range(9))


@pytest.mark.promise("X32")
def test_one_event_at_a_time_is_worked_on_where_nothing_else_is_said():
    counter = Counter()
    workflow = Workflow("shop")

    @workflow.producer(Interval("1h"), publishes=[])
    async def poll(ctx, state):
        await ctx.call(counter.work, "poll", 0, 10)

    @workflow.on("orders")
    async def ship(ctx, event):
        await ctx.step("work", counter.work, "ship", event.payload, 10)

    with WorkflowTest(workflow) as test:
        for number in range(4):
            test.publish("orders", number)
        test.advance("2m")
        assert counter.most == 1
        assert of(counter, "ship") == [0, 1, 2, 3]


def test_an_event_whose_key_cannot_be_made_is_parked_and_holds_up_nothing():
    counter = Counter()
    with WorkflowTest(keyed(counter)) as test:
        test.publish("orders", {"n": 1}, message_id="keyless")
        test.publish("orders", {"k": "a", "n": 2})
        test.advance("2m")
        assert counter.done == [("a", 2)]
        assert [(one["message_id"], one["error"]) for one in test.parked()] == [("keyless", "KeyError: 'k'")]


def test_a_key_function_that_ends_the_process_holds_up_nothing():
    workflow, done = Workflow("shop"), []

    def key(event):
        return sys.exit(3) if event.payload == 1 else event.payload

    @workflow.on("orders", key=key, concurrency=2, on_failure="park")
    async def ship(ctx, event):
        await ctx.step("ship", done.append, event.payload)

    with WorkflowTest(workflow) as test:
        test.publish("orders", 1)
        test.publish("orders", 2)
        test.advance("2m")
        assert done == [2]
        assert [one["error"] for one in test.parked()] == ["the function of the key raised SystemExit(3)"]


def test_a_payload_that_is_replaced_before_its_turn_counts_with_its_own_key():
    counter = Counter()
    with WorkflowTest(keyed(counter)) as test:
        test.publish("orders", {"k": "a", "n": 1, "s": 240})
        test.publish("orders", {"k": "a", "n": 2}, message_id="second")
        test.publish("orders", {"k": "b", "n": 3}, message_id="second")
        test.advance("11m")
        test.publish("orders", {"k": "b", "n": 4})
        test.advance("1m")
        assert counter.done == [("a", 1), ("b", 3), ("b", 4)]


@pytest.mark.parametrize("places", [1, 3])
def test_other_keys_and_other_numbers_of_places_may_be_deployed_at_any_time(places):
    counter = Counter()
    with WorkflowTest(keyed(counter)) as test:
        for number in range(12):
            test.publish("orders", {"k": number % 6, "n": number, "s": 60})
        test.advance("10s")
        test.redeploy(keyed(counter, key=lambda event: event.payload["n"] % 2, concurrency=places))
        test.advance("30m")
        assert sorted(number for _, number in counter.done) == list(range(12))
        assert {event["status"] for event in test.events("orders")} == {"consumed"}


def test_a_skipped_event_lets_the_next_one_with_its_key_have_its_turn():
    counter = Counter()
    with WorkflowTest(keyed(counter, retry=["1d"])) as test:
        test.publish("orders", {"k": "a", "n": 1, "bad": True}, message_id="bad")
        test.publish("orders", {"k": "a", "n": 2}, message_id="queued")
        test.publish("orders", {"k": "a", "n": 3})
        test.skip("queued")
        test.skip("bad")
        test.advance("1m")
        assert counter.done == [("a", 3)]
        assert [event["status"] for event in test.events("orders")] == ["skipped", "skipped", "consumed"]


@pytest.mark.promise("X32")
@virtual
async def test_two_nodes_share_the_keys(room):
    counter = Counter()
    first = room.scene.scheduler()
    nodes = [first]
    if not room.url.startswith("sqlite"):
        nodes.append(Scheduler(room.url, clock=room.clock, node="there", seed=99, tuning=room.tuning))
    for node in nodes:
        await node.open()
        node.add_workflow(keyed(counter, concurrency=8))
        await node.start()
    for number in range(60):
        await first.workflows.publish("shop", "orders", {"k": number % 5, "n": number}, message_id=str(number))
    await room.sleep("10m")
    assert counter.most == 5
    assert counter.most_of_key == 1
    assert all(of(counter, key) == list(range(key, 60, 5)) for key in range(5))
    for node in nodes:
        await node.close()
