"""Random failures, crashes and people against a plain model: what was published is in the ledger, once each."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workflows.test_workflow_test import orders
from wakeful import ApprovalNeeded, TransientError
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


def help_out(test):
    """What a person does about whatever waits for one; False when nothing does."""
    issue = test.workflow()["issue"]
    if issue is None or issue["kind"] == "transient":
        return False
    if issue["kind"] == "approval":
        test.approve()
    elif issue["kind"] == "reconciliation":
        test.advance("1h")  # reconcile finds out by itself
    else:
        test.resume()
    return True


@pytest.mark.long
@pytest.mark.promise("K9", "K10", "K11", "K12")
@settings(max_examples=40, deadline=None)
@given(st.lists(STEPS, max_size=12))
def test_whatever_fails_every_message_is_worked_on_once(steps):
    ledger, published = [], {"1"}
    with WorkflowTest(orders(ledger)) as test:
        for name, *rest in steps:
            if name == "publish":
                published.add(test.publish("new", message_id=f"m{rest[0]}"))
            elif name == "fail":
                test.fail_in(*rest)
            elif name == "crash":
                test.crash_in(rest[0], after_commit=rest[1])
            elif name == "advance":
                test.advance(*rest)
            else:
                help_out(test)
            assert len(ledger) == len(set(ledger)), "mutated twice"
        for _ in range(60):
            test.advance("2h")
            if not help_out(test) and test.workflow()["issue"] is None:
                break
        test.advance("3h")
        while help_out(test):
            test.advance("3h")
        assert sorted(ledger) == sorted(published)
        assert {event["message_id"]: event["status"] for event in test.events("new")} == dict.fromkeys(
            published, "consumed"
        )
        booked = [name for event in test.events("booked") for name in event["message_id"].split("+")]
        assert sorted(booked) == sorted(published)
