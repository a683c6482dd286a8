"""A refusal of the other side asks a person to restore access. The answer approves no change."""

from __future__ import annotations

import pytest

from wakeful import ApprovalNeeded, Interval, NotApplied, Prepared, Workflow
from wakeful.testing import WorkflowTest


class Bank:
    """Refuses the first call that is made to it."""

    def __init__(self):
        self.calls = 0
        self.paid = []  # (amount, who approved it)

    async def rate(self):
        self.calls += 1
        if self.calls == 1:
            raise PermissionError("the token has expired")
        return 1

    def paying(self, refused_in):
        workflow = Workflow("shop")
        pay = workflow.consumer("pay", subscribes=["bills"])

        @pay.prepare
        async def prepare(ctx, state):
            bills = await ctx.peek("bills", limit=1)
            if not bills:
                return Prepared()
            if refused_in == "prepare":
                await ctx.call(self.rate)
                self.ask(ctx, bills[0].payload)
            return Prepared({"bills": [bills[0].id]}, bills[0].payload)

        @pay.mutate
        async def mutate(ctx, prepared):
            if refused_in == "mutate":
                if self.calls:
                    self.ask(ctx, prepared.data)
                await ctx.call(self.rate)
            self.paid.append((prepared.data, ctx.approved_by))

        @pay.reconcile
        async def reconcile(ctx, prepared):
            return NotApplied()

        return workflow

    def ask(self, ctx, amount):
        if ctx.approved_by is None:
            raise ApprovalNeeded(f"Pay {amount}?")


@pytest.mark.promise("K10", "K12", "X8")
@pytest.mark.parametrize("refused_in", ["prepare", "mutate"])
def test_who_restores_refused_access_has_not_approved_the_change_that_follows(refused_in):
    bank = Bank()
    with WorkflowTest(bank.paying(refused_in)) as test:
        test.publish("bills", 1_000_000)
        message = test.workflow()["issue"]["message"]
        assert "the token has expired" in message
        assert message.endswith("(access was refused: restore it, then approve)")
        test.approve()
        assert bank.paid == []
        assert test.workflow()["issue"]["message"] == "Waiting for your approval: Pay 1000000?"
        test.approve()
        assert bank.paid == [(1_000_000, "test")]


@pytest.mark.promise("K10", "K12", "X8")
def test_who_restores_the_refused_access_of_a_producer_has_not_approved_what_it_imports():
    bank = Bank()
    workflow = Workflow("imports")

    @workflow.producer(Interval("1h"))
    async def poll(ctx, state):
        await ctx.call(bank.rate)
        bank.ask(ctx, 1_000_000)
        bank.paid.append((1_000_000, ctx.approved_by))

    with WorkflowTest(workflow) as test:
        test.approve()
        assert bank.paid == []
        assert test.workflow()["issue"]["message"] == "Waiting for your approval: Pay 1000000?"
        test.approve()
        assert bank.paid == [(1_000_000, "test")]
