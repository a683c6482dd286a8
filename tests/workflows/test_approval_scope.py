"""An answer counts for what was asked: in that phase, by that code, about those events as they were."""

from __future__ import annotations

import pytest

from wakeful import ApprovalNeeded, Interval, Prepared, TransientError, Workflow
from wakeful.testing import WorkflowTest

BUSY = TransientError("busy")


class Shop:
    """Pays bills and tells customers; what is asked is asked unless it was approved."""

    def __init__(self, *asks_in):
        self.asks_in = asks_in
        self.done = []  # (what, who approved it)
        self.errors = []  # what mutate raises first

    def ask(self, ctx, phase, question):
        if phase in self.asks_in and ctx.approved_by is None:
            raise ApprovalNeeded(question)

    def workflow(self, verb="Pay", *, pays=True):
        workflow = Workflow("shop")
        workflow.version = f"{verb}-{pays}"
        pay = workflow.consumer("pay", subscribes=["limits", "bills"])

        @pay.prepare
        async def prepare(ctx, state):
            limits = await ctx.peek("limits")
            if limits:
                self.ask(ctx, "first", f"{verb} all up to {limits[0].payload}?")
            bills = await ctx.peek("bills", limit=1)
            if not bills:
                return Prepared()
            self.ask(ctx, "prepare", f"{verb} {bills[0].payload}?")
            return Prepared({"bills": [bills[0].id]}, bills[0].message_id)

        if pays:

            @pay.mutate
            async def mutate(ctx, prepared):
                self.ask(ctx, "mutate", f"{verb} {prepared.data}?")
                if self.errors:
                    raise self.errors.pop()
                self.done.append((f"{verb} {prepared.data}", ctx.approved_by))

        @pay.next
        async def following(ctx, prepared, result):
            if prepared.data is not None:
                self.ask(ctx, "next", f"Tell of {prepared.data}?")
                self.done.append((f"Tell of {prepared.data}", ctx.approved_by))

        return workflow


def question(test):
    issue = test.workflow()["issue"]
    return None if issue is None else issue["message"].removeprefix("Waiting for your approval: ")


@pytest.mark.promise("K10", "X8")
@pytest.mark.parametrize("asks_in", ["prepare", "mutate"])
def test_who_approved_a_change_is_asked_by_itself_what_follows_it(asks_in):
    shop = Shop(asks_in, "next")
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10, message_id="a")
        test.approve()
        assert shop.done == [("Pay a", "test")]
        assert question(test) == "Tell of a?"
        test.approve()
        assert shop.done == [("Pay a", "test"), ("Tell of a", "test")]
        assert question(test) is None


@pytest.mark.promise("K10", "X8")
def test_who_approved_what_follows_has_not_approved_a_change_that_a_new_version_makes():
    shop = Shop("mutate", "next")
    with WorkflowTest(shop.workflow("Note", pays=False)) as test:
        test.publish("bills", 10, message_id="a")
        assert question(test) == "Tell of a?"
        test.redeploy(shop.workflow("Pay"))
        test.approve()
        assert (shop.done, question(test)) == ([], "Pay a?")


@pytest.mark.promise("K10", "X8")
@pytest.mark.parametrize("asks_in", ["prepare", "mutate"])
def test_what_an_earlier_version_asked_is_asked_again_by_the_new_one(asks_in):
    shop = Shop(asks_in)
    with WorkflowTest(shop.workflow("Pay")) as test:
        test.publish("bills", "a", message_id="a")
        assert question(test) == "Pay a?"
        test.redeploy(shop.workflow("Donate"))
        test.approve()
        assert (shop.done, question(test)) == ([], "Donate a?")
        test.approve()
        assert shop.done == [("Donate a", "test"), ("Tell of a", None)]


@pytest.mark.promise("K10", "X8")
def test_an_approved_event_whose_payload_is_replaced_before_the_next_try_is_asked_about_again():
    shop = Shop("prepare")
    shop.errors.append(BUSY)
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10, message_id="a")
        test.approve()
        test.publish("bills", 1_000_000, message_id="a")
        test.advance("1m")
        assert (shop.done, question(test)) == ([], "Pay 1000000?")
        shop.errors.append(BUSY)
        test.approve()
        test.advance("1m")
        assert shop.done == [("Pay a", "test"), ("Tell of a", None)]


@pytest.mark.promise("K10", "X8")
def test_an_event_that_was_replaced_after_the_question_and_is_read_after_it_is_not_approved():
    shop = Shop("first")
    with WorkflowTest(shop.workflow()) as test:
        test.pause()
        test.publish("bills", 10, message_id="a")
        test.publish("limits", 50)
        test.resume()
        assert question(test) == "Pay all up to 50?"
        test.publish("bills", 1_000_000, message_id="a")
        test.approve()
        assert (shop.done, question(test)) == ([], "Pay all up to 50?")
        test.approve()
        assert shop.done == [("Pay a", "test"), ("Tell of a", None)]


@pytest.mark.promise("K10", "X8")
def test_a_second_question_of_prepare_is_not_answered_with_the_first():
    shop = Shop("first", "prepare")
    with WorkflowTest(shop.workflow()) as test:
        test.pause()
        test.publish("bills", 10, message_id="a")
        test.publish("limits", 50)
        test.resume()
        assert question(test) == "Pay all up to 50?"
        test.approve()
        assert (shop.done, question(test)) == ([], "Pay 10?")
        test.approve()
        assert shop.done == [("Pay a", "test"), ("Tell of a", None)]


@pytest.mark.promise("K10", "X8")
def test_events_that_prepare_had_not_looked_for_when_it_asked_are_not_approved():
    wants_extras, paid = [], []
    workflow = Workflow("shop")
    pay = workflow.consumer("pay", subscribes=["bills", "extras"])

    @pay.prepare
    async def prepare(ctx, state):
        bills = await ctx.peek("bills")
        extras = await ctx.peek("extras") if wants_extras else []
        chosen = [one.message_id for one in [*bills, *extras]]
        if bills and ctx.approved_by is None:
            raise ApprovalNeeded(f"Pay {', '.join(chosen)}?")
        return Prepared({"bills": [one.id for one in bills], "extras": [one.id for one in extras]}, chosen)

    @pay.mutate
    async def mutate(ctx, prepared):
        paid.extend(prepared.data)

    with WorkflowTest(workflow) as test:
        test.publish("extras", message_id="b")
        test.publish("bills", message_id="a")
        assert question(test) == "Pay a?"
        wants_extras.append(True)
        test.approve()
        assert (paid, question(test)) == ([], "Pay a, b?")
        test.approve()
        assert paid == ["a", "b"]


@pytest.mark.promise("K10", "X8")
def test_an_approval_of_a_producer_is_of_its_next_call_alone():
    rows, done, errors = [10], [], [BUSY]
    workflow = Workflow("imports")

    @workflow.producer(Interval("1h"))
    async def poll(ctx, state):
        if ctx.approved_by is None:
            raise ApprovalNeeded(f"Import {rows[0]} rows?")
        if errors:
            raise errors.pop()
        done.append((rows[0], ctx.approved_by))

    with WorkflowTest(workflow) as test:
        test.approve()
        rows[0] = 1_000_000
        test.advance("1m")
        assert (done, question(test)) == ([], "Import 1000000 rows?")
        test.approve()
        assert done == [(1_000_000, "test")]


@pytest.mark.promise("K10", "K12", "X8")
def test_who_rejects_what_follows_a_change_ends_it_and_the_workflow_goes_on_with_the_next_event():
    shop = Shop("next")
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10, message_id="a")
        test.publish("bills", 20, message_id="b")
        assert question(test) == "Tell of a?"
        test.reject("no")
        assert [event["status"] for event in test.events("bills")] == ["consumed", "pending"]
        undone = "rejected by test: no; 1 event is consumed: the change was made, and what follows it was not done"
        assert undone in test.workflow()["issue"]["message"]
        [done] = [one for one in test.workflow()["actions"] if one["action"] == "gave_up"]
        assert (done["who"], done["detail"].partition(": ")[2]) == ("test", undone)
        test.resume()
        assert question(test) == "Tell of b?"
        test.approve()
        assert shop.done == [("Pay a", None), ("Pay b", None), ("Tell of b", "test")]
        assert [event["status"] for event in test.events("bills")] == ["consumed", "consumed"]
