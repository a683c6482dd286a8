"""Steps: what a person is asked about them, what a handler catches, and steps alongside each other."""

from __future__ import annotations

import asyncio
import itertools
import threading

import pytest

from wakeful import ApprovalNeeded, Prepared, StepFailed, Workflow
from wakeful.domains.workflows.steps.context import MAX_VALUE
from wakeful.testing import WorkflowTest


@pytest.mark.parametrize(("timeout", "why"), [("soon", "Missing number"), (-1, "Negative"), (float("nan"), "nan")])
def test_a_time_limit_that_is_none_is_refused_with_the_name_of_its_step(timeout, why):
    workflow, done = Workflow("shop"), []

    @workflow.on("orders", on_failure="park")
    async def ship(ctx, event):
        await ctx.step("pay", done.append, 1, timeout=timeout)

    with WorkflowTest(workflow) as test:
        test.publish("orders")
        [parked] = test.parked()
        assert parked["error"].startswith("timeout of the step 'pay': ")
        assert why in parked["error"]
        assert done == []


def test_a_result_that_is_too_large_is_not_kept_and_a_person_says_what_became_of_the_step():
    workflow, done = Workflow("shop"), []

    @workflow.on("orders", on_failure="park")
    async def ship(ctx, event):
        await ctx.step("page", lambda: done.append("page") or "x" * (MAX_VALUE - 2))
        await ctx.step("book", lambda: done.append("book") or "x" * (MAX_VALUE - 1))

    with WorkflowTest(workflow) as test:
        test.publish("orders")
        [parked] = test.parked()
        assert "'book' returns has 16,777,217 bytes of JSON, and may have 16,777,216: return a ref" in parked["error"]
        assert [(step["name"], step["status"]) for step in test.runs()[-1]["steps"]] == [
            ("page", "done"),
            ("book", "uncertain"),
        ]
        test.settle("happened")
        assert done == ["page", "book"]
        assert [event["status"] for event in test.events("orders")] == ["consumed"]


def test_the_question_whether_a_step_happened_is_one_sentence_without_another_inside():
    """Beside it are the commands that settle it; whoever reads of the event alone has the command with it."""

    paid = []
    workflow = Workflow("shop")

    @workflow.on("orders")
    async def ship(ctx, event):
        await ctx.step("pay", paid.append, event.payload)

    with WorkflowTest(workflow) as test:
        test.crash_in("pay", after_commit=False)
        test.publish("orders")
        test.advance("1m")
        words = "It is not known whether the step 'pay' happened (Crash)."
        assert test.workflow()["issue"]["message"] == f"{words} Look, and settle it."
        [event] = test.events("orders")
        assert event["error"].startswith(f"{words} Settle it: wakeful workflow settle shop run_")


def test_a_name_is_used_once_in_a_run():
    workflow = Workflow("shop")
    done = []

    @workflow.on("orders", on_failure="park", retry=["1s"])
    async def ship(ctx, event):
        await ctx.step("label", done.append, 1)
        await ctx.step("label", done.append, 2)

    with WorkflowTest(workflow) as test:
        test.publish("orders", 1, message_id="a")
        test.advance("1m")
        assert done == [1]
        [parked] = test.parked()
        assert parked["error"].startswith("ship has two steps called 'label': the name of a step is used once in a run")
        assert parked["tries"] == 1, "it would be the same again"


@pytest.mark.promise("X32")
def test_a_step_asks_before_it_is_done_and_the_answer_is_about_that_step_alone():
    workflow = Workflow("shop")
    paid, amounts = [], {"a": 100, "b": 7}

    @workflow.on("bills", on_failure="park")
    async def pay(ctx, event):
        amount = amounts[event.message_id]
        await ctx.step("pay", paid.append, amount, approve=f"Pay {amount}?" if amount > 50 else None)
        await ctx.step("thank", paid.append, "thanks", approve=amount > 50)

    with WorkflowTest(workflow) as test:
        test.publish("bills", {"to": "Ada"}, message_id="a")
        assert paid == []
        issue = test.workflow()["issue"]
        assert (issue["kind"], issue["message"]) == ("approval", "Waiting for your approval: Pay 100?")
        assert (issue["change"]["data"]["payload"], list(issue["change"]["reserve"])) == ({"to": "Ada"}, ["bills"])
        amounts["a"] = 200
        test.approve()
        assert test.workflow()["issue"]["message"].endswith("Pay 200?"), "another amount is another question"
        test.approve()
        assert paid == [200]
        assert test.workflow()["issue"]["message"].endswith("May pay do thank?")
        test.reject("enough")
        assert [(one["message_id"], one["error"]) for one in test.parked()] == [("a", "rejected by test: enough")]
        test.publish("bills", message_id="b")
        assert paid == [200, 7, "thanks"]


def test_a_handler_may_ask_for_itself():
    workflow = Workflow("shop")
    done = []

    @workflow.on("bills")
    async def pay(ctx, event):
        await ctx.step("look", done.append, "looked")
        if ctx.approved_by is None:
            raise ApprovalNeeded("Go on?")
        await ctx.step("pay", done.append, ctx.approved_by)

    with WorkflowTest(workflow) as test:
        test.publish("bills")
        assert done == ["looked"]
        test.approve()
        assert done == ["looked", "test"]


@pytest.mark.promise("X32")
@pytest.mark.parametrize("crash", [None, "undo flight", "tell"])
def test_a_failure_that_is_caught_stays_so_and_what_follows_it_is_done_once(crash):
    workflow = Workflow("trips")
    done = []

    def book(what):
        done.append(what)
        if what == "hotel":
            raise ValueError("no room")
        return what

    @workflow.on("trips", retry=["10s"])
    async def travel(ctx, event):
        await ctx.step("flight", book, "flight")
        try:
            await ctx.step("hotel", book, "hotel")
        except StepFailed as failed:
            await ctx.step("undo flight", book, f"undo: {failed}")
            await ctx.step("tell", book, f"told: {failed.step} {failed.error_type}")

    with WorkflowTest(workflow) as test:
        if crash is not None:
            test.crash_in(crash)
        test.publish("trips", message_id="a")
        test.advance("5m")
        assert done == ["flight", "hotel", "undo: no room", "told: hotel ValueError"]
        assert [event["status"] for event in test.events("trips")] == ["consumed"]


def test_steps_beside_each_other_are_each_recorded():
    workflow = Workflow("fan")
    done, failing = [], [2]

    def send(number):
        if number in failing:
            failing.remove(number)
            raise ConnectionError("away")
        done.append(number)
        return number * number

    @workflow.on("all")
    async def out(ctx, event):
        found = await asyncio.gather(*(ctx.step(f"send-{number}", send, number) for number in range(4)))
        done.append(sum(found))

    with WorkflowTest(workflow) as test:
        test.publish("all")
        assert done == [0, 1, 3]
        test.advance("11s")
        assert done == [0, 1, 3, 2, 14]


@pytest.mark.promise("X32")
@pytest.mark.parametrize("way", ["gather", "task group"])
def test_a_step_that_fails_does_not_cut_off_those_beside_it(way):
    workflow = Workflow("fan")
    done, failing = [], ["busy"]

    async def send(number, seconds):
        await asyncio.sleep(seconds)
        if number == 2 and failing:
            raise ConnectionError(failing.pop())
        done.append(number)

    @workflow.on("all", on_failure="park")
    async def out(ctx, event):
        steps = [ctx.step(f"send-{number}", send, number, 30 // number) for number in (1, 2, 3)]
        if way == "gather":
            await asyncio.gather(*steps)
        else:
            async with asyncio.TaskGroup() as group:
                for step in steps:
                    group.create_task(step)

    with WorkflowTest(workflow) as test:
        test.publish("all")
        test.advance("31s")
        assert [(one["name"], one["status"]) for one in test.runs()[-1]["steps"]] == [
            ("send-1", "done"), ("send-2", "failed"), ("send-3", "done"),
        ]  # fmt: skip
        test.advance("1m")
        assert done == [3, 1, 2]
        assert [event["status"] for event in test.events("all")] == ["consumed"]


@pytest.mark.promise("X32")
def test_the_time_limit_of_the_function_ends_the_steps_that_it_left_behind():
    workflow = Workflow("fan")
    done = []

    async def send(number):
        await asyncio.sleep(100)
        done.append(number)

    async def fail():
        raise ValueError("wrong")

    @workflow.on("all", on_failure="park", timeout="30s", retry=[])
    async def out(ctx, event):
        await asyncio.gather(ctx.step("slow", send, 1), ctx.step("fail", fail))

    with WorkflowTest(workflow) as test:
        test.publish("all")
        test.advance("10m")
        assert done == []
        assert [event["status"] for event in test.events("all")] == ["parked"]
        assert {one["name"]: one["status"] for one in test.runs()[-1]["steps"]} == {
            "slow": "uncertain", "fail": "failed",
        }  # fmt: skip


class Client:
    """What an attempt makes anew, and JSON does not have."""


@pytest.mark.promise("X32")
@pytest.mark.parametrize("given", [Client, lambda: {1: "a", "b": Client()}, lambda: {"a", "b", b"c"}, lambda: print])
def test_an_answer_counts_for_whatever_the_step_is_given(given):
    workflow = Workflow("shop")
    paid = []

    @workflow.on("bills", on_failure="park")
    async def pay(ctx, event):
        made = [given() for _ in range(3)]
        await ctx.step("pay", lambda _, amount: paid.append(amount), made[-1], 5, approve="Pay?")

    with WorkflowTest(workflow) as test:
        test.publish("bills")
        assert test.workflow()["issue"]["kind"] == "approval"
        test.approve()
        assert paid == [5]
        assert test.workflow()["issue"] is None


def test_the_steps_of_a_run_are_not_looked_through_at_each_of_them():
    compared = itertools.count()

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __eq__(self, other):
            next(compared)
            return str.__eq__(self, other)

    workflow = Workflow("shop")

    @workflow.on("orders")
    async def ship(ctx, event):
        for number in range(100):
            await ctx.step(Name(f"step-{number}"), str, number)

    with WorkflowTest(workflow) as test:
        test.publish("orders")
        assert len(test.runs()[-1]["steps"]) == 100
        assert next(compared) < 1_000


def test_plain_functions_have_steps_without_await():
    workflow = Workflow("plain")
    done = []

    @workflow.on("orders")
    def ship(ctx, event):
        label = ctx.step("label", lambda order: f"label-{order}", event.payload)
        done.append(ctx.step("mail", lambda text: (text, threading.current_thread().name), label))

    with WorkflowTest(workflow) as test:
        test.publish("orders", 1)
        assert [value[0] for value in done] == ["label-1"]
        assert [step["status"] for step in test.runs()[-1]["steps"]] == ["done", "done"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"concurrency": 0}, "concurrency is a whole number from 1 to 100"),
        ({"retry": "10s"}, "retry is a list"),
        ({"on_failure": "ignore"}, "on_failure is 'stop' or 'park'"),
        ({"key": "customer"}, "key is a function of an event"),
        ({"key": asyncio.sleep}, "key is a plain function, without async"),
        ({"publishes": ["no.such.topic"]}, "The name of a topic"),
    ],
)
def test_what_cannot_be_meant_is_refused_where_it_is_written(options, said):
    with pytest.raises(Exception, match=said):
        Workflow("shop").on("orders", name="ship", **options)(lambda ctx, event: None)


def test_a_topic_with_steps_has_one_handler():
    workflow = Workflow("shop")

    @workflow.on("orders")
    async def ship(ctx, event): ...

    other = workflow.consumer("count", subscribes=["orders"])

    @other.prepare
    async def prepare(ctx, state):
        return Prepared()

    with pytest.raises(Exception, match="ship and count both work on orders"):
        WorkflowTest(workflow)
