"""Random failures, crashes, versions and people against a plain model: each message is in the ledger once."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.workflows.random_life import Life, Shape
from wakeful import ApprovalNeeded, TransientError

PHASES = st.sampled_from(["prepare", "mutate", "next", "reconcile", "poll"])
FAILURES = st.sampled_from([TransientError("busy"), ApprovalNeeded("May I?"), ValueError("wrong")])
STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 5)),
    st.tuples(st.just("fail"), PHASES, FAILURES, st.sampled_from([1, 1, 15])),
    st.tuples(st.just("crash"), PHASES, st.booleans()),
    st.tuples(st.just("advance"), st.sampled_from(["1s", "40s", "10m", "2h"])),
    st.tuples(st.just("slow"), st.integers(1, 2)),
    st.tuples(st.just("deploy"), st.booleans()),
    st.tuples(st.just("people"), st.sampled_from([True, True, False])),
)
SHAPES = st.builds(
    Shape, st.integers(1, 3), st.sampled_from([1, 2, 100]), st.booleans(), st.booleans(),
    st.sampled_from(["", "", "prepare", "mutate"]), st.booleans(), st.booleans(), st.booleans(),
)  # fmt: skip


def step(life, name, *rest):
    if name == "publish":
        life.publish(f"m{rest[0]}")
    elif name == "fail":
        phase, error, times = rest
        if not (life.shape.asks and isinstance(error, ApprovalNeeded)):  # it asks for itself
            life.errors.setdefault(phase, []).extend([error] * times)
    elif name == "crash":
        if life.has(rest[0]):
            life.test.crash_in(rest[0], after_commit=rest[1])
    elif name == "advance":
        life.test.advance(*rest)
    elif name == "slow":
        life.slow = rest[0]
    elif name == "deploy":
        life.deploy(whole=rest[0])
    else:
        life.help_out(agrees=rest[0])
    life.check()


def settle(life):
    """Nothing more goes wrong, and a person helps until nothing waits for one."""
    life.deploy(whole=True)
    if life.version % 2:
        life.deploy(whole=True)
    for _ in range(90):
        life.test.advance("2h")
        life.check()
        if not life.help_out() and life.test.workflow()["issue"] is None:
            break
    life.test.advance("3h")
    life.check()


@pytest.mark.promise("K4", "K7", "K9", "K10", "K11", "K12", "K16", "X8")
@settings(max_examples=25, deadline=None)
@given(SHAPES, st.lists(STEPS, max_size=12))
def test_whatever_fails_every_message_is_worked_on_once(shape, steps):
    life = Life(shape)
    with life.test as test:
        for name, *rest in steps:
            step(life, name, *rest)
        settle(life)
        assert sorted(life.outside.ledger) == sorted(life.published)
        assert {event["message_id"]: event["status"] for event in test.events("topic-0")} == dict.fromkeys(
            life.published, "consumed"
        )
        last = f"topic-{shape.consumers}"
        booked = [name for event in test.events(last) for name in event["message_id"].split("+")]
        assert sorted(booked) == sorted(life.published)
