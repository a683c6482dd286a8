"""Steps: what a handler does outside is recorded one by one, and each is done once."""

from __future__ import annotations

import asyncio
import itertools
import sys

import pytest

from wakeful import Applied, NotApplied, TransientError, Unknown, Workflow
from wakeful.errors import ScheduleTriggerError
from wakeful.testing import WorkflowTest


class Shop:
    """A workflow that buys a label and sends a mail, and a ledger of what happened outside."""

    def __init__(self, **options):
        self.ledger = []
        self.options = {"retry": ["10s", "1m"], "on_failure": "park", **options}
        self.reconcile = None
        self.errors = {}

    def do(self, what, value):
        if self.errors.get((what, value)):
            raise self.errors[what, value].pop(0)
        self.ledger.append((what, value))
        return f"{what}-{value}"

    def workflow(self):
        workflow = Workflow("shop")

        @workflow.on("orders", **self.options)
        async def ship(ctx, event):
            label = await ctx.step("label", self.do, "label", event.payload, reconcile=self.reconcile)
            await ctx.step("mail", self.do, "mail", label)
            await ctx.publish("shipped", {"label": label}, message_id=event.message_id)

        return workflow

    def __enter__(self):
        self.test = WorkflowTest(self.workflow())
        return self

    def __exit__(self, *_):
        self.test.close()

    def statuses(self, topic="orders"):
        return {event["message_id"]: event["status"] for event in self.test.events(topic)}

    def steps(self):
        return [(step["name"], step["status"], step["attempts"]) for step in self.test.runs()[-1]["steps"]]


BOTH = [("label", 1), ("mail", "label-1")]


@pytest.mark.promise("X32")
def test_each_step_is_done_once_and_what_is_published_is_visible_at_the_end():
    with Shop() as shop:
        shop.test.publish("orders", 1, message_id="a")
        assert shop.ledger == BOTH
        assert shop.statuses() == {"a": "consumed"}
        assert [event["payload"] for event in shop.test.events("shipped")] == [{"label": "label-1"}]
        [run] = [run for run in shop.test.runs() if run["steps"]]
        assert [
            (step["name"], step["status"], step["attempts"], step["value"], step["error"]) for step in run["steps"]
        ] == [("label", "done", 1, "label-1", None), ("mail", "done", 1, "mail-label-1", None)]
        assert (run["workflow_status"], run["outcome"], run["handler"]) == ("committed", "success", "ship")


@pytest.mark.promise("X32")
def test_a_step_that_is_done_is_not_repeated_when_a_later_one_fails():
    with Shop() as shop:
        shop.errors["mail", "label-1"] = [ConnectionError("away"), ValueError("wrong")]
        shop.test.publish("orders", 1, message_id="a")
        assert shop.ledger == [("label", 1)]
        assert shop.statuses() == {"a": "reserved"}
        assert shop.steps() == [("label", "done", 1), ("mail", "failed", 1)]
        assert shop.test.events("shipped") == []
        shop.test.advance("11s")
        assert shop.ledger == [("label", 1)]
        shop.test.advance("1m")
        assert shop.ledger == BOTH
        assert shop.statuses() == {"a": "consumed"}
        assert shop.steps() == [("label", "done", 1), ("mail", "done", 3)]


@pytest.mark.promise("X32")
def test_an_event_that_keeps_failing_is_parked_with_its_error_and_the_others_go_on():
    with Shop() as shop:
        shop.errors["mail", "label-1"] = [ValueError("no such address")] * 9
        for name, order in (("a", 1), ("b", 2), ("c", 3)):
            shop.test.publish("orders", order, message_id=name)
        assert shop.statuses() == {"a": "reserved", "b": "pending", "c": "pending"}, "in order, while it may succeed"
        shop.test.advance("2m")
        assert shop.statuses() == {"a": "parked", "b": "consumed", "c": "consumed"}
        [parked] = shop.test.parked()
        assert (parked["error"], parked["tries"]) == ("mail: no such address", 3)
        assert parked["run"] == next(run["id"] for run in shop.test.runs() if run["workflow_status"] == "failed:logic")
        found = shop.test.workflow()
        assert (found["status"], found["parked"], found["issue"]["kind"]) == ("needs_attention", 1, "parked")
        assert "1 event of shop is parked" in found["issue"]["message"]


@pytest.mark.promise("X32")
def test_one_alert_counts_the_parked_events_and_ends_with_the_last_one():
    with Shop(retry=[]) as shop:
        test, alerts = shop.test, lambda: shop.test._runner.run(shop.test._scheduler.list_alerts())
        for number in (1, 2, 3):
            shop.errors["label", number] = [ValueError("wrong")]
            test.publish("orders", number, message_id=str(number))
        [alert] = alerts()
        assert (alert.kind, alert.message.partition(".")[0]) == ("parked", "3 events of shop are parked")
        test.skip("1")
        test.replay("2")
        assert len(alerts()) == 1
        test.replay()
        assert alerts() == []
        assert shop.statuses() == {"1": "skipped", "2": "consumed", "3": "consumed"}
        assert shop.ledger == [("label", 2), ("mail", "label-2"), ("label", 3), ("mail", "label-3")]


@pytest.mark.promise("X32")
def test_a_replayed_event_goes_on_with_its_steps_or_starts_over():
    with Shop(retry=[]) as shop:
        shop.errors["mail", "label-1"] = [ValueError("wrong")] * 2
        shop.test.publish("orders", 1, message_id="a")
        shop.test.replay("a")
        assert shop.statuses() == {"a": "parked"}
        assert shop.test.parked()[0]["tries"] == 1, "counted anew"
        assert shop.ledger == [("label", 1)]
        shop.test.replay("a", start_over=True)
        assert shop.ledger == [("label", 1), *BOTH]
        assert shop.statuses() == {"a": "consumed"}
        with pytest.raises(ScheduleTriggerError, match="is consumed, and only a parked event can start over"):
            shop.test.replay(shop.test.events("orders")[0]["id"], start_over=True)  # another person was quicker
        assert shop.ledger == [("label", 1), *BOTH]


@pytest.mark.promise("X32")
def test_without_park_the_workflow_stops_at_the_event_and_goes_on_with_it():
    with Shop(on_failure="stop") as shop:
        shop.errors["mail", "label-1"] = [ValueError("wrong")] * 4
        shop.test.publish("orders", 1, message_id="a")
        shop.test.publish("orders", 2, message_id="b")
        shop.test.advance("1h")
        found = shop.test.workflow()
        assert (found["status"], found["issue"]["kind"]) == ("needs_attention", "logic")
        assert shop.statuses() == {"a": "reserved", "b": "pending"}
        shop.test.resume()
        assert shop.test.workflow()["issue"]["kind"] == "logic", "it failed once more"
        shop.test.resume()
        assert shop.ledger == [*BOTH, ("label", 2), ("mail", "label-2")]
        assert shop.statuses() == {"a": "consumed", "b": "consumed"}
        assert shop.test.workflow()["issue"] is None


def test_without_retry_only_what_may_pass_is_tried_again():
    with Shop(retry=None) as shop:
        shop.errors["label", 1] = [ConnectionError("away")] * 3
        shop.errors["label", 2] = [ValueError("wrong")]
        shop.test.publish("orders", 1, message_id="a")
        shop.test.publish("orders", 2, message_id="b")
        shop.test.advance("2m")
        assert shop.statuses() == {"a": "consumed", "b": "parked"}
        shop.errors["label", 3] = [TransientError("busy")] * 9
        shop.test.publish("orders", 3, message_id="c")
        shop.test.advance("1h")
        assert shop.statuses()["c"] == "parked"
        assert shop.test.parked()[-1]["tries"] == 5


def test_a_step_that_calls_exit_has_failed_like_one_that_raises_an_error():
    workflow, calls = Workflow("shop"), []

    def pay(amount):
        calls.append(amount)
        if len(calls) == 1:
            sys.exit(1)

    @workflow.on("orders", retry=["10s"], on_failure="park")
    async def ship(ctx, event):
        await ctx.step("pay", pay, event.payload)

    with WorkflowTest(workflow) as test:
        test.publish("orders", 17)
        assert test.runs()[-1]["steps"][0]["status"] == "failed"
        test.advance("1m")
        assert calls == [17, 17]
        assert test.events("orders")[0]["status"] == "consumed"


@pytest.mark.promise("X32")
@pytest.mark.parametrize("after_commit", [True, False], ids=["after", "before"])
@pytest.mark.parametrize("step", ["label", "mail", "ship"])
def test_after_a_crash_nothing_that_is_on_record_is_done_again(step, after_commit):
    shop = Shop()
    shop.reconcile = lambda _, value: Applied(f"label-{value}") if ("label", value) in shop.ledger else NotApplied
    with shop:
        shop.test.crash_in(step, after_commit=after_commit)
        shop.test.publish("orders", 1, message_id="a")
        shop.test.advance("5m")
        if step == "mail" and not after_commit:
            assert shop.statuses() == {"a": "parked"}, "it has no reconcile"
            assert "wakeful workflow settle shop run_" in shop.test.parked()[0]["error"]
            shop.test.settle("happened", "mail-label-1")
        assert shop.ledger == BOTH
        assert shop.statuses() == {"a": "consumed"}
        assert shop.statuses("shipped") == {"a": "pending"}


@pytest.mark.promise("X32")
@pytest.mark.parametrize("on_failure", ["stop", "park"])
@pytest.mark.parametrize("verdict", ["happened", "did_not_happen", "skip"])
def test_a_person_says_what_became_of_a_step_that_was_cut_off(on_failure, verdict):
    with Shop(on_failure=on_failure) as shop:
        shop.test.crash_in("label", after_commit=False)
        shop.test.publish("orders", 1, message_id="a")
        shop.test.publish("orders", 2, message_id="b")
        shop.test.advance("5m")
        issue = shop.test.workflow()["issue"]
        assert issue["kind"] == ("reconciliation" if on_failure == "stop" else "parked")
        assert shop.statuses()["b"] == ("pending" if on_failure == "stop" else "consumed")
        [label] = next(run["steps"] for run in shop.test.runs() if run["id"] == issue["run"])
        assert (label["status"], label["attempts"]) == ("uncertain", 1)
        shop.test.settle(verdict, "label-1" if verdict == "happened" else None)
        assert shop.ledger.count(("label", 1)) == (2 if verdict == "did_not_happen" else 1)
        mails = {value for what, value in shop.ledger if what == "mail"}
        assert mails == {"label-2", None if verdict == "skip" else "label-1"}
        assert shop.statuses() == {"a": "consumed", "b": "consumed"}
        assert shop.test.workflow()["issue"] is None


@pytest.mark.promise("X32")
def test_reconcile_is_asked_again_later_and_then_a_person_is():
    shop, asked = Shop(), []

    def unknown(*_):
        asked.append(shop.test.now)
        return Unknown

    shop.reconcile = unknown
    with shop:
        shop.test.crash_in("label", after_commit=False)
        shop.test.publish("orders", 1, message_id="a")
        shop.test.advance("10m")
        assert [round((b - a).total_seconds()) for a, b in itertools.pairwise(asked)] == [10, 20, 40, 80]
        assert shop.statuses() == {"a": "parked"}
        shop.test.settle("did_not_happen")
        assert shop.ledger == [("label", 1), *BOTH]


def test_a_step_over_its_time_may_have_happened_and_its_thread_is_waited_for():
    shop = Shop()
    slow = [True]

    async def label(value):
        shop.ledger.append(("label", value))
        await asyncio.sleep(60 if slow.pop() else 0)
        return f"label-{value}"

    workflow = Workflow("shop")

    @workflow.on("orders", on_failure="park")
    async def ship(ctx, event):
        await ctx.step("label", label, event.payload, timeout="30s", reconcile=lambda value: Applied(f"late-{value}"))

    with WorkflowTest(workflow) as test:
        test.publish("orders", 1, message_id="a")
        test.advance("29s")
        assert [event["status"] for event in test.events("orders")] == ["reserved"]
        test.advance("5s")
        [step] = test.runs()[-1]["steps"]
        assert (step["status"], step["value"]) == ("done", "late-1")
        assert [event["status"] for event in test.events("orders")] == ["consumed"]
        assert shop.ledger == [("label", 1)]


def test_a_step_that_was_cut_off_says_why_and_a_settled_one_has_no_error():
    async def work(seconds):
        await asyncio.sleep(seconds)

    workflow = Workflow("shop")

    @workflow.on("orders", on_failure="park", timeout="5m")
    async def ship(ctx, event):
        await asyncio.gather(
            ctx.step("late", work, 60, timeout="30s"), ctx.step("beside", work, 20), return_exceptions=True
        )
        await ctx.step("last", work, 600, timeout="10m")

    with WorkflowTest(workflow) as test:

        def shown():
            return [(step["name"], step["status"], step["error"]) for step in test.runs()[-1]["steps"]]

        test.publish("orders")
        test.advance("1m")
        assert shown() == [("late", "uncertain", "it took longer than 30s"), ("beside", "done", None)]
        test.settle("happened")
        test.advance("1m")
        assert shown() == [("late", "done", None), ("beside", "done", None), ("last", "running", None)]
        test.advance("5m")
        assert shown()[2] == ("last", "uncertain", "it was cancelled before it had ended")
        assert test.parked()[0]["error"].startswith("It is not known whether the step 'last' happened")


@pytest.mark.promise("X32")
@pytest.mark.parametrize("on_failure", ["stop", "park"])
def test_of_several_steps_that_were_cut_off_the_answer_is_about_the_one_that_was_asked_about(on_failure):
    async def work():
        await asyncio.sleep(100)

    workflow = Workflow("shop")

    @workflow.on("orders", on_failure=on_failure)
    async def ship(ctx, event):
        await asyncio.gather(ctx.step("long", work, timeout="60s"), ctx.step("short", work, timeout="30s"))

    with WorkflowTest(workflow) as test:
        test.publish("orders")
        test.advance("5m")
        for name, why in (("long", "it took longer than 1m"), ("short", "it took longer than 30s")):
            asked = f"It is not known whether the step '{name}' happened ({why})"
            assert asked in test.workflow()["issue"]["message"]
            assert asked in test.events("orders")[0]["error"]
            test.settle("skip")
            statuses = {step["name"]: step["status"] for step in test.runs()[-1]["steps"]}
            assert statuses == {"long": "done", "short": "done" if name == "short" else "uncertain"}
        test.advance("1m")
        assert [event["status"] for event in test.events("orders")] == ["consumed"]
