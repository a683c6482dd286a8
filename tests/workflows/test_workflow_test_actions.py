"""`WorkflowTest`: what people do, and what it refuses as production does."""

from __future__ import annotations

import asyncio

import pytest

from wakeful import (
    ApprovalNeeded,
    Interval,
    InvalidJob,
    NotFound,
    Prepared,
    SchedulerError,
    ScheduleTriggerError,
    TransientError,
    Workflow,
)
from wakeful.testing import WorkflowTest


def booking(ledger, price=lambda payload: payload["price"]):
    """A workflow that books orders by their price, and fails for one without."""
    workflow = Workflow("orders")
    book = workflow.consumer("book", subscribes=["new"], publishes=["booked"])

    @book.prepare
    async def prepare(ctx, state):
        found = await ctx.peek("new", limit=1)
        return Prepared({"new": [event.id for event in found]}, [price(event.payload) for event in found])

    @book.mutate
    async def mutate(ctx, prepared):
        ledger.extend(prepared.data)

    return workflow


@pytest.mark.promise("X12")
def test_a_person_rejects_pauses_and_resumes():
    ledger = []
    with WorkflowTest(booking(ledger)) as test:
        test.fail_in("mutate", ApprovalNeeded("Book?"))
        test.publish("new", {"price": 1})
        test.reject(note="too dear")
        assert test.workflow()["paused"]
        assert "too dear" in test.workflow()["issue"]["message"]
        assert ledger == []
        assert [event["status"] for event in test.events("new")] == ["pending"]
        test.resume()
        assert ledger == [1]
        test.pause(note="holidays")
        test.publish("new", {"price": 2})
        test.advance("1d")
        assert ledger == [1]
        test.resume()
        assert ledger == [1, 2]
        actions = [(one["who"], one["action"]) for one in reversed(test.workflow()["actions"])]
        assert [what for who, what in actions if who == "test"] == [
            "published", "rejected", "resumed", "paused", "published", "resumed",
        ]  # fmt: skip


@pytest.mark.promise("X12")
def test_an_event_that_breaks_its_consumer_is_skipped_by_the_message_id_that_publish_returned():
    ledger = []
    with WorkflowTest(booking(ledger)) as test:
        poison = test.publish("new", {})
        good = test.publish("new", {"price": 3})
        assert test.workflow()["issue"]["kind"] == "logic"
        test.skip(poison, reason="it has no price")
        test.resume()
        assert ledger == [3]
        assert [(event["status"], event["reason"]) for event in test.events("new")] == [
            ("skipped", "it has no price"),
            ("consumed", None),
        ]
        with pytest.raises(ScheduleTriggerError, match="is consumed already"):
            test.skip(good)
        with pytest.raises(NotFound, match=r"orders has no event 'nothing'"):
            test.skip("nothing")
        [_, booked] = test.events("new")
        with pytest.raises(ScheduleTriggerError, match="is consumed already"):
            test.skip(booked["id"])


@pytest.mark.promise("X12")
def test_a_redeployed_version_goes_on_where_the_old_code_failed_and_can_be_made_to_fail_too():
    ledger = []
    with WorkflowTest(booking(ledger)) as test:
        test.publish("new", {})
        assert test.workflow()["issue"]["kind"] == "logic"
        test.redeploy(booking(ledger, price=lambda payload: payload.get("price", 0)))
        assert ledger == [0]
        assert test.workflow()["issue"] is None
        assert len({version["version"] for version in test.workflow()["versions"]}) == 2
        test.fail_in("mutate", TransientError("busy"))
        test.publish("new", {"price": 5})
        assert ledger == [0]
        test.advance("1m")
        assert ledger == [0, 5]


def other(name="orders"):
    """A workflow with one producer and no consumer."""
    workflow = Workflow(name)

    @workflow.producer(Interval("1h"))
    async def poll(ctx, state): ...

    return workflow


def test_a_redeployed_version_is_one_of_the_same_workflow_and_its_functions_are_the_new_ones():
    with WorkflowTest(booking([])) as test:
        with pytest.raises(SchedulerError, match="This test is of orders: make another one for bills"):
            test.redeploy(other("bills"))
        test.redeploy(other())
        assert [one["name"] for one in test.workflow()["handlers"]] == ["poll"]
        with pytest.raises(SchedulerError, match=r"orders has no function 'mutate'\. It has: producer, poll"):
            test.fail_in("mutate", ValueError())


@pytest.mark.promise("X12")
def test_a_workflow_that_cannot_be_deployed_cannot_be_tested():
    workflow = Workflow("orders")
    book = workflow.consumer("book", subscribes=["new"])

    @book.prepare
    def prepare(ctx):
        return Prepared()

    with pytest.raises(InvalidJob, match=r"book\.prepare"):
        WorkflowTest(workflow)
    with pytest.raises(InvalidJob, match=r"has no handlers"):
        WorkflowTest(Workflow("empty"))
    with pytest.raises(InvalidJob, match=r"A workflow is made with Workflow\(name\), not 5"):
        WorkflowTest(5)

    async def waits(ctx, prepared):
        yield prepared

    def gives(ctx, prepared):
        yield prepared

    for function in (waits, gives):
        wrong = booking([])
        wrong.handlers["book"].on_mutate = function
        with pytest.raises(InvalidJob, match=r"book\.mutate has a `yield`, so that a call of it does nothing"):
            WorkflowTest(wrong)
    with WorkflowTest(other()) as test, pytest.raises(InvalidJob, match=r"book\.prepare"):
        test.redeploy(workflow)


@pytest.mark.promise("X12")
@pytest.mark.parametrize("given", ["", "x" * 1001, b"a", 2.5, True])
def test_a_message_id_that_production_refuses_is_refused(given):
    with WorkflowTest(booking([])) as test:
        with pytest.raises(InvalidJob, match="A message id is a text of 1 to 1000 bytes"):
            test.publish("new", message_id=given)
        assert test.publish("new", {"price": 1}, message_id=7) == "7"


def test_a_failure_that_can_never_be_raised_is_refused():
    with WorkflowTest(booking([])) as test:
        with pytest.raises(SchedulerError, match=r"has no function 'reconcile'\. It has: prepare, mutate, book"):
            test.crash_in("reconcile")
        with pytest.raises(SchedulerError, match=r"fail_in raises an exception, not 'busy'"):
            test.fail_in("mutate", "busy")
        with pytest.raises(SchedulerError, match=r"times is at least 1, not 0"):
            test.fail_in("mutate", ValueError(), times=0)


@pytest.mark.promise("X12")
def test_producers_are_run_by_hand_and_handlers_see_the_configuration():
    workflow, seen = Workflow("orders"), []

    @workflow.producer(Interval("1h"))
    async def poll(ctx, state):
        seen.append(ctx.config["account"])

    with WorkflowTest(workflow, config={"account": "main"}) as test:
        test.run()
        assert seen == ["main", "main"]
        test.pause()
        with pytest.raises(ScheduleTriggerError, match="orders is paused"):
            test.run()
    assert workflow.config == {}


@pytest.mark.promise("X12")
def test_a_mutation_in_a_thread_is_made_at_once():
    workflow, ledger = booking([]), []
    book = workflow.handlers["book"]

    def pay(price):
        if price < 0:
            raise ConnectionError("the bank is away")
        ledger.append(price)
        return price

    async def mutate(ctx, prepared):
        return await ctx.call(asyncio.to_thread, pay, prepared.data[0])

    book.on_mutate = mutate
    with WorkflowTest(workflow) as test:
        test.publish("new", {"price": 5})
        assert ledger == [5]
        assert test.runs()[-1]["workflow_status"] == "committed"
        test.publish("new", {"price": -1})
        assert "the bank is away" in test.workflow()["issue"]["message"]


@pytest.mark.promise("X12")
def test_the_functions_of_a_correction_can_be_made_to_fail_too():
    ledger = []
    broken, fixed = booking(ledger), booking(ledger, price=lambda payload: payload.get("price", 0))
    fixed.version = "fixed"
    broken.auto_fix, broken.auto_fix_apply = lambda request: fixed, True
    with WorkflowTest(broken) as test:
        test.fail_in("mutate", TransientError("busy"), times=2)
        test.publish("new", {})
        assert "busy" in test.workflow()["issue"]["message"]
        assert ledger == []
        test.advance("1m")
        assert ledger == [0]
        assert test.workflow()["version"] == "fixed"
