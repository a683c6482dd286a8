"""Agents that schedule themselves, in worlds that go wrong: their bounds hold, and the worlds find if they do not."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.planners import Planners
from tests.simulation.world import live
from wakeful.domains.agents.self_scheduling import requesting

FIRST, STEPS = 80_000, 60

pytestmark = pytest.mark.promise("X6")


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 3))
def test_the_bounds_of_agents_hold_whoever_dies_and_whatever_people_do(seed: int) -> None:
    world = live(seed, STEPS, Planners)
    assert isinstance(world, Planners)
    assert world.accepted > 5
    assert world.refused > 5


@pytest.mark.parametrize("rule", ["check_schedule_quota", "refuse_edited", "within"])
def test_it_finds_a_bound_that_does_not_hold(monkeypatch: pytest.MonkeyPatch, rule: str) -> None:
    monkeypatch.setattr(requesting, rule, lambda *given: given[0])
    with pytest.raises(Broken, match="X6:"):
        _live_all(range(FIRST, FIRST + 8))


def _live_all(seeds: range) -> None:
    for seed in seeds:
        live(seed, STEPS, Planners)
