"""Random failures, crashes and people against a plain model: what was published is in the ledger, once each."""

from __future__ import annotations

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful import Applied, ApprovalNeeded, Interval, NotApplied, Prepared, TransientError, Workflow
from wakeful.testing import WorkflowTest

PHASES = st.sampled_from(["prepare", "mutate", "next", "reconcile", "poll"])
FAILURES = st.sampled_from([TransientError("busy"), ApprovalNeeded("May I?"), ValueError("wrong")])
STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 5)),
    st.tuples(st.just("fail"), PHASES, FAILURES),
    st.tuples(st.just("crash"), PHASES, st.booleans()),
    st.tuples(st.just("advance"), st.sampled_from(["1s", "40s", "10m", "2h"])),
    st.tuples(st.just("people")),
)


class Shape(NamedTuple):
    """A random workflow: consumers in a row, the first of which changes something outside."""

    consumers: int  # each publishes what the next consumes
    batch: int
    reconciles: bool
    remembers: bool  # whether `next` keeps a state


SHAPES = st.builds(Shape, st.integers(1, 3), st.sampled_from([1, 2, 100]), st.booleans(), st.booleans())


def made(ledger, shape):
    """A workflow of that shape."""
    workflow = Workflow("random")

    @workflow.producer(Interval("1h"), publishes=["topic-0"])
    async def poll(ctx, state):
        await ctx.publish("topic-0", message_id="1")
        return {"polled": state.get("polled", 0) + 1}

    for number in range(shape.consumers):
        add_consumer(workflow, number, shape, ledger if not number else None)
    return workflow


def add_consumer(workflow, number, shape, ledger):
    source, target = f"topic-{number}", f"topic-{number + 1}"
    consumer = workflow.consumer(f"consumer-{number}", subscribes=[source], publishes=[target])

    @consumer.prepare
    async def prepare(ctx, state):
        found = await ctx.peek(source, limit=shape.batch)
        return Prepared({source: [event.id for event in found]}, [event.message_id for event in found])

    if ledger is not None:

        @consumer.mutate
        async def mutate(ctx, prepared):
            ledger.extend(prepared.data)

    if ledger is not None and shape.reconciles:

        @consumer.reconcile
        async def reconcile(ctx, prepared):
            return Applied() if set(prepared.data) <= set(ledger) else NotApplied()

    @consumer.next
    async def next_(ctx, prepared, result):
        if prepared.data:
            await ctx.publish(target, message_id="+".join(prepared.data))
        return {"last": prepared.data} if shape.remembers else None


def help_out(test, ledger):
    """What a person does about whatever waits for one; False when nothing does."""
    issue = test.workflow()["issue"]
    if issue is None or issue["kind"] == "transient":
        return False
    if issue["kind"] == "approval":
        test.approve()
    elif issue["kind"] == "reconciliation":
        test.advance("1h")  # reconcile finds out by itself
        issue = test.workflow()["issue"]
        if issue is not None and issue["kind"] == "reconciliation":
            reserved = {event["message_id"] for event in test.events("topic-0") if event["status"] == "reserved"}
            test.settle("happened" if reserved <= set(ledger) else "did_not_happen")
    else:
        test.resume()
    return True


@pytest.mark.long
@pytest.mark.promise("K9", "K10", "K11", "K12")
@settings(max_examples=60, deadline=None)
@given(SHAPES, st.lists(STEPS, max_size=12))
def test_whatever_fails_every_message_is_worked_on_once(shape, steps):
    ledger, published = [], {"1"}
    with WorkflowTest(made(ledger, shape)) as test:
        for name, *rest in steps:
            if name == "publish":
                published.add(test.publish("topic-0", message_id=f"m{rest[0]}"))
            elif name == "fail":
                test.fail_in(*rest)
            elif name == "crash":
                test.crash_in(rest[0], after_commit=rest[1])
            elif name == "advance":
                test.advance(*rest)
            else:
                help_out(test, ledger)
            assert len(ledger) == len(set(ledger)), "mutated twice"
        for _ in range(60):
            test.advance("2h")
            if not help_out(test, ledger) and test.workflow()["issue"] is None:
                break
        test.advance("3h")
        while help_out(test, ledger):
            test.advance("3h")
        assert sorted(ledger) == sorted(published)
        assert {event["message_id"]: event["status"] for event in test.events("topic-0")} == dict.fromkeys(
            published, "consumed"
        )
        last = f"topic-{shape.consumers}"
        booked = [name for event in test.events(last) for name in event["message_id"].split("+")]
        assert sorted(booked) == sorted(published)
