"""`WorkflowTest`, for authors: failures and crashes in each function, in virtual time."""

from __future__ import annotations

import pytest

from wakeful import Applied, ApprovalNeeded, Interval, NotApplied, Prepared, SchedulerError, TransientError, Workflow
from wakeful.testing import WorkflowTest


def orders(ledger):
    workflow = Workflow("orders")

    @workflow.producer(Interval("1h"), publishes=["new"])
    async def poll(ctx, state):
        await ctx.publish("new", message_id="1", payload=1)
        return {"polled": state.get("polled", 0) + 1}

    book = workflow.consumer("book", subscribes=["new"], publishes=["booked"])

    @book.prepare
    async def prepare(ctx, state):
        found = await ctx.peek("new")
        return Prepared({"new": [event.id for event in found]}, [event.message_id for event in found])

    @book.mutate
    async def mutate(ctx, prepared):
        ledger.extend(prepared.data)

    @book.reconcile
    async def reconcile(ctx, prepared):
        return Applied() if set(prepared.data) <= set(ledger) else NotApplied()

    @book.next
    async def next_(ctx, prepared, result):
        if result.status == "applied":
            await ctx.publish("booked", message_id="+".join(prepared.data))

    return workflow


@pytest.mark.promise("X12")
@pytest.mark.parametrize("after_commit", [True, False])
@pytest.mark.parametrize("phase", ["prepare", "mutate", "next", "producer", "poll"])
def test_a_crash_in_any_function_is_survived(phase, after_commit):
    ledger = []
    workflow = orders(ledger)
    with WorkflowTest(workflow) as test:
        test.crash_in(phase, after_commit=after_commit)
        test.publish("new", message_id="2")
        test.advance("2h")
        was_done = after_commit and phase in ("next", "producer", "poll")  # its commit is stored: it has succeeded
        cut_off = [run for run in test.runs() if run["workflow_status"] == "crashed" or run["outcome"] == "error"]
        assert (cut_off == []) == was_done
        assert sorted(ledger) == ["1", "2"]
        assert {event["status"] for event in test.events("new")} == {"consumed"}
        assert test.workflow()["issue"] is None
    assert workflow.handlers["poll"].run.__name__ == "poll"


@pytest.mark.promise("X12")
def test_failures_are_tried_again_and_days_pass_at_once():
    ledger = []
    with WorkflowTest(orders(ledger)) as test:
        test.fail_in("mutate", TransientError("busy"), times=2)
        test.publish("new", message_id="2")
        assert test.workflow()["issue"]["kind"] == "transient"
        test.advance("1d")
        assert sorted(ledger) == ["1", "2"]
        assert test.state("poll")["polled"] in (24, 25)
        assert [run["workflow_status"] for run in test.runs()].count("paused:transient") == 2


@pytest.mark.promise("X12")
def test_people_answer_in_tests_too():
    ledger = []
    with WorkflowTest(orders(ledger)) as test:
        test.fail_in("mutate", ApprovalNeeded("Book?"))
        test.publish("new", message_id="2")
        assert test.workflow()["status"] == "needs_attention"
        test.approve()
        assert "2" in ledger


@pytest.mark.promise("X12")
@pytest.mark.parametrize("happened", [True, False])
def test_a_crash_after_the_answer_of_reconcile_is_stored_is_survived(happened):
    ledger = []
    with WorkflowTest(orders(ledger)) as test:
        if happened:
            test.crash_in("mutate", after_commit=False)
        else:
            test.fail_in("mutate", ConnectionError("before it changed anything"))
        test.crash_in("reconcile", after_commit=True)
        test.publish("new", message_id="2")
        test.advance("2h")
        ends = [run["workflow_status"] for run in test.runs()] if happened else [run["outcome"] for run in test.runs()]
        assert ends.count("crashed" if happened else "error") == 2
        assert sorted(ledger) == ["1", "2"]
        assert {event["status"] for event in test.events("new")} == {"consumed"}


@pytest.mark.promise("X12")
def test_names_that_the_workflow_does_not_have_are_refused():
    with WorkflowTest(orders([])) as test:
        for act in (lambda: test.fail_in("mutation", ValueError()), lambda: test.crash_in("mutation")):
            with pytest.raises(SchedulerError, match=r"has no function 'mutation'\. It has: prepare, mutate"):
                act()
        with pytest.raises(SchedulerError, match=r"has no handler 'nothing'\. It has: book, poll"):
            test.state("nothing")
