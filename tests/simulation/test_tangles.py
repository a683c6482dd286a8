"""Workflows that are hard to bear: their events, their words and the world outside agree at every step."""

from __future__ import annotations

import pytest

from tests.simulation.tangles import ALL, Tangled
from tests.simulation.world import live

FIRST, SEEDS = 50_000, 6
FOUND = (200_001,)  # a thread of a workflow that was removed while it worked, put back and restarted
KEPT = ("K4", "K6", "K7", "K9", "K10", "K11", "K12", "K13", "K14", "K16", "X8", "X14")


@pytest.mark.promise(*KEPT)
@pytest.mark.parametrize("plot", range(len(ALL)), ids=[plot.name for plot in ALL])
def test_a_workflow_that_is_hard_to_bear_is_lived_with(plot: int) -> None:
    assert live(FIRST + plot, steps=25, kind=Tangled).outside.calls


@pytest.mark.promise(*KEPT)
@pytest.mark.parametrize("plot", range(len(ALL)), ids=[plot.name for plot in ALL])
def test_whatever_happens_a_workflow_keeps_its_word(plot: int) -> None:
    worlds = [live(FIRST + plot + len(ALL) * number, steps=60, kind=Tangled) for number in range(1, SEEDS)]
    assert sum(len(world.outside.ledger) for world in worlds) > 20
    assert sum(world.deaths for world in worlds) > 3
    assert sum(world.helped for world in worlds) > 3


@pytest.mark.promise("K7", "K10", "K11")
@pytest.mark.parametrize("seed", FOUND)
def test_a_world_that_once_broke_a_promise_keeps_it(seed: int) -> None:
    assert live(seed, steps=60, kind=Tangled).outside.calls
