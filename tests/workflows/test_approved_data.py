"""An approval is of one change: what was reserved and prepared when it was asked for, and nothing else."""

from __future__ import annotations

import pytest

from wakeful import ApprovalNeeded, NotApplied, Prepared, TransientError, Workflow
from wakeful.testing import WorkflowTest


class Shop:
    """Pays the newest bill, and asks first: in the phase that is given."""

    def __init__(self, asks_in):
        self.paid = []  # (amount, who approved it)
        self.errors = []  # what mutate raises, before it pays
        self.asked = []
        self.asks_in = asks_in
        self.price = 1

    def ask(self, ctx, question):
        if ctx.approved_by is None:
            self.asked.append(question)
            raise ApprovalNeeded(question)

    def workflow(self):
        workflow = Workflow("shop")
        pay = workflow.consumer("pay", subscribes=["bills"])

        @pay.prepare
        async def prepare(ctx, state):
            bills = await ctx.peek("bills")
            if not bills:
                return Prepared()
            amount = bills[-1].payload * self.price
            if self.asks_in == "prepare":
                self.ask(ctx, f"Pay {amount}?")
            return Prepared({"bills": [bills[-1].id]}, amount)

        @pay.mutate
        async def mutate(ctx, prepared):
            if self.asks_in == "mutate":
                self.ask(ctx, f"Pay {prepared.data}?")
            if self.errors:
                raise self.errors.pop()
            self.paid.append((prepared.data, ctx.approved_by))

        @pay.reconcile
        async def reconcile(ctx, prepared):
            return NotApplied()

        return workflow


@pytest.mark.promise("K10", "X8")
@pytest.mark.parametrize("asks_in", ["prepare", "mutate"])
def test_an_approval_does_not_cover_what_a_later_attempt_prepares(asks_in):
    shop = Shop(asks_in)
    shop.errors.append(TransientError("busy"))
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10)
        test.approve()
        test.publish("bills", 1_000_000)
        test.advance("1m")
        assert shop.paid == []
        assert shop.asked == ["Pay 10?", "Pay 1000000?"]
        assert test.workflow()["issue"]["kind"] == "approval"
        test.approve()
        test.advance("1m")
        assert shop.paid == [(1_000_000, "test")]
        assert shop.asked == ["Pay 10?", "Pay 1000000?", "Pay 10?"]


@pytest.mark.promise("K10", "X8")
@pytest.mark.parametrize("asks_in", ["prepare", "mutate"])
def test_an_approval_holds_for_an_attempt_that_prepares_the_same(asks_in):
    shop = Shop(asks_in)
    shop.errors += [TransientError("busy"), TransientError("busy")]
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10)
        test.approve()
        test.advance("5m")
        assert (shop.paid, shop.asked) == ([(10, "test")], ["Pay 10?"])


@pytest.mark.promise("K10", "X8")
@pytest.mark.parametrize("asks_in", ["prepare", "mutate"])
def test_what_is_approved_is_done_although_more_came_while_the_question_was_open(asks_in):
    shop = Shop(asks_in)
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10)
        test.publish("bills", 1_000_000)
        test.approve()
        assert shop.paid == [(10, "test")]
        assert shop.asked == ["Pay 10?", "Pay 1000000?"]
        assert test.workflow()["issue"]["kind"] == "approval"


@pytest.mark.promise("K10", "X8")
def test_an_event_that_changed_while_prepare_asked_about_it_is_asked_about_again():
    shop = Shop("prepare")
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10, message_id="1")
        test.publish("bills", 1_000_000, message_id="1")
        test.approve()
        assert (shop.paid, shop.asked) == ([], ["Pay 10?", "Pay 1000000?"])


@pytest.mark.promise("K10", "X8")
def test_data_from_elsewhere_that_changed_between_two_attempts_is_asked_about_again():
    shop = Shop("prepare")
    shop.errors.append(TransientError("busy"))
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10)
        test.approve()
        shop.price = 100
        test.advance("1m")
        assert (shop.paid, shop.asked) == ([], ["Pay 10?", "Pay 1000?"])
        test.approve()
        assert shop.paid == [(1_000, "test")]


@pytest.mark.promise("K10", "K11", "X8")
@pytest.mark.parametrize("asks_in", ["prepare", "mutate"])
@pytest.mark.parametrize("happens", ["crash", "error"])
def test_an_approved_change_that_did_not_happen_is_not_asked_about_again(asks_in, happens):
    shop = Shop(asks_in)
    with WorkflowTest(shop.workflow()) as test:
        test.publish("bills", 10)
        if happens == "crash":
            test.crash_in("mutate", after_commit=False)
        else:
            test.fail_in("mutate", ConnectionError("reset"))
        test.approve()
        test.advance("5m")
        assert shop.paid[-1] == (10, "test")
        assert shop.asked == ["Pay 10?"]
        assert test.workflow()["issue"] is None
