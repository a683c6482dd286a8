"""The patterns of the guide hold with more events than one look at a topic returns."""

from __future__ import annotations

import types
from datetime import timedelta

import pytest

from tests.test_guides import programs
from wakeful import Interval
from wakeful.testing import WorkflowTest


def pattern(name, **published):
    """The workflow of a pattern, as a test of its author would see it; with a producer of that much, at once."""
    [program] = [code for code, _ in programs("workflows.md") if f'Workflow("{name}")' in code]
    module = types.ModuleType(name)
    exec(compile(program.partition("\nwith WorkflowTest")[0], name, "exec"), module.__dict__)  # noqa: S102 - our guide

    @module.workflow.producer(Interval("7d"), publishes=list(published))
    async def flood(ctx, state):
        for topic, payloads in published.items():
            for number, payload in enumerate(payloads):
                await ctx.publish(topic, message_id=number, payload=payload)

    return module


@pytest.mark.promise("K17")
def test_a_paid_order_is_shipped_behind_hundreds_that_are_not_and_payments_that_have_no_order():
    orders = [{"order": number} for number in range(250)]
    payments = [{"order": number} for number in (*range(1000, 1250), 249)]
    module = pattern("correlation", orders=orders, payments=payments)
    with WorkflowTest(module.workflow) as test:
        assert module.shipped == [249]
        test.publish("payments", {"order": 120})
        assert module.shipped == [249, 120]


@pytest.mark.promise("K17")
def test_a_digest_of_more_than_a_thousand_is_one_digest():
    module = pattern("digest", news=range(1100))
    with WorkflowTest(module.workflow) as test:
        test.advance("20h")
        assert module.sent == [("01 09:00", 1100)]


@pytest.mark.promise("K17")
def test_batches_are_full_and_the_rest_is_sent_in_time():
    module = pattern("batch", photos=range(250))
    with WorkflowTest(module.workflow) as test:
        test.advance("30m")
        assert module.batches == [3] * 83
        test.advance("31m")
        assert module.batches == [*[3] * 83, 1]


@pytest.mark.promise("K17")
def test_everything_within_a_time_window_is_worked_on_at_its_end():
    module = pattern("window", carts=range(250))
    with WorkflowTest(module.workflow) as test:
        test.advance(timedelta(minutes=59))
        assert module.reminded == []
        test.advance("2m")
        assert module.reminded == list(range(250))


@pytest.mark.promise("K17")
def test_first_in_first_out_takes_each_in_its_order():
    module = pattern("fifo", tasks=range(120))
    with WorkflowTest(module.workflow) as test:
        test.advance("1s")
        assert module.done == list(range(120))
