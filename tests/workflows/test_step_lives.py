"""Random failures, crashes, keys, versions and people against a plain model: every step of every event is done once."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wakeful import Applied, NotApplied, TransientError, Workflow
from wakeful.testing import WorkflowTest

NAMES = ("label", "mail", "book")


class Shape(NamedTuple):
    """A random workflow with steps."""

    steps: int
    keys: int
    places: int
    reconciles: bool
    on_failure: str
    retry: tuple[str, ...] | None
    asks: bool  # whether the last step needs an approval


class Life:
    """One workflow of a shape, its mishaps, the person who helps, and what happened outside."""

    def __init__(self, shape: Shape) -> None:
        self.shape, self.version, self.extra = shape, 1, False
        self.ledger: list[tuple[str, str]] = []
        self.published: list[tuple[str, int]] = []
        self.troubled: set[str] = set()  # events that failed or were cut off: later ones may overtake them once parked
        self.errors: dict[str, list[Exception]] = {}
        self.at_work: list[int] = []
        self.broken: list[str] = []
        self.test = WorkflowTest(self.made())

    # -- the workflow --------------------------------------------------------------------------------------------------

    def made(self) -> Workflow:
        workflow, shape, extra = Workflow("random"), self.shape, self.extra
        workflow.version = f"{self.version}"

        @workflow.on(
            "orders", key=lambda event: event.payload, concurrency=shape.places, retry=shape.retry,
            on_failure=shape.on_failure, publishes=["shipped"],
        )  # fmt: skip
        async def ship(ctx: Any, event: Any) -> None:
            self._enter(event)
            try:
                for number, name in enumerate(NAMES[: shape.steps]):
                    asks = "Go on?" if shape.asks and number == shape.steps - 1 else None
                    reconcile = self._look if shape.reconciles else None
                    await ctx.step(name, self._do, name, event.message_id, reconcile=reconcile, approve=asks)
                if extra:
                    await ctx.step("extra", self._do, "extra", event.message_id, reconcile=self._look)
                await ctx.publish("shipped", message_id=event.message_id)
            except BaseException:
                self.troubled.add(event.message_id)
                raise
            finally:
                self.at_work.remove(event.payload)

        return workflow

    def _enter(self, event: Any) -> None:
        if event.payload in self.at_work:
            self.broken.append(f"two runs of the key {event.payload}")
        self.at_work.append(event.payload)

    async def _do(self, name: str, order: str) -> str:
        if self.errors.get(name):
            raise self.errors[name].pop(0)
        if (name, order) in self.ledger:
            self.broken.append(f"{name} of {order} is done twice")
        self.ledger.append((name, order))
        return f"{name} {order}"

    async def _look(self, name: str, order: str) -> Any:
        return Applied(f"{name} {order}") if (name, order) in self.ledger else NotApplied

    # -- people --------------------------------------------------------------------------------------------------------

    def publish(self, number: int) -> None:
        name = f"m{len(self.published)}"
        self.published.append((name, number % self.shape.keys))
        self.test.publish("orders", number % self.shape.keys, message_id=name)

    def deploy(self, *, extra: bool) -> None:
        self.version, self.extra = self.version + 1, self.extra or extra
        self.test.redeploy(self.made())

    def help_out(self) -> bool:
        """What a person does about what waits for one; False when nothing does."""
        issue = self.test.workflow()["issue"]
        if issue is None:
            return False
        run = next((one for one in self.test.runs() if one["id"] == issue["run"]), None)
        doubtful = [one["name"] for one in run["steps"] if one["status"] == "uncertain"] if run is not None else []
        if issue["kind"] == "approval":
            self.test.approve()
        elif doubtful and run is not None:
            order = run["title"].split()[1]
            self.test.settle("happened" if (doubtful[0], order) in self.ledger else "did_not_happen")
        elif issue["kind"] == "parked":
            self.test.replay()
        else:
            self.test.resume()
        return True

    # -- looking -------------------------------------------------------------------------------------------------------

    def check(self) -> None:
        assert not self.broken, self.broken[0]
        by_key: dict[int, list[str]] = {}
        keys = dict(self.published)
        for name, order in self.ledger:
            if name == NAMES[0] and order not in self.troubled:
                by_key.setdefault(keys[order], []).append(order)
        for orders in by_key.values():
            assert orders == sorted(orders, key=lambda order: int(order[1:])), "the order of a key"


STEPS = st.one_of(
    st.tuples(st.just("publish"), st.integers(0, 5)),
    st.tuples(st.just("publish"), st.integers(0, 5)),
    st.tuples(
        st.just("fail"), st.sampled_from(NAMES), st.sampled_from([TransientError("busy"), ValueError("wrong")]),
        st.sampled_from([1, 1, 3, 12]),
    ),
    st.tuples(st.just("crash"), st.sampled_from([*NAMES, "ship"]), st.booleans()),
    st.tuples(st.just("advance"), st.sampled_from(["1s", "40s", "10m"])),
    st.tuples(st.just("deploy"), st.booleans()),
    st.tuples(st.just("people")),
)  # fmt: skip
SHAPES = st.builds(
    Shape, st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.sampled_from(["stop", "park"]),
    st.sampled_from([None, (), ("10s", "1m")]), st.booleans(),
)  # fmt: skip


def step(life, name, *rest):
    if name == "publish":
        life.publish(rest[0])
    elif name == "fail":
        phase, error, times = rest
        life.errors.setdefault(phase, []).extend([error] * times)
    elif name == "crash":
        if rest[0] in (*NAMES[: life.shape.steps], "ship"):
            life.test.crash_in(rest[0], after_commit=rest[1])
    elif name == "advance":
        life.test.advance(rest[0])
    elif name == "deploy":
        life.deploy(extra=rest[0])
    else:
        life.help_out()
    life.check()


@pytest.mark.promise("X32")
@settings(max_examples=40, deadline=None)
@given(SHAPES, st.lists(STEPS, max_size=14))
def test_whatever_fails_every_step_of_every_event_is_done_once(shape, steps):
    life = Life(shape)
    with life.test as test:
        for name, *rest in steps:
            step(life, name, *rest)
        life.errors.clear()
        for _ in range(90):
            test.advance("2h")
            life.check()
            if not life.help_out():
                break
        orders = [name for name, _ in life.published]
        done = [pair for pair in life.ledger if pair[0] != "extra"]
        assert sorted(done) == sorted((name, order) for order in orders for name in NAMES[: shape.steps])
        assert len(set(life.ledger)) == len(life.ledger)
        assert {one["message_id"]: one["status"] for one in test.events("orders")} == dict.fromkeys(orders, "consumed")
        assert {one["message_id"] for one in test.events("shipped")} == set(orders)
        found = test.workflow()
        assert (found["issue"], found["parked"], found["retrying"]) == (None, 0, 0)
