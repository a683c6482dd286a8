"""Whatever happens to its process, its code and its people, a workflow changes the outside once for each message."""

from __future__ import annotations

import pytest

from tests.simulation.flows import Flowing
from tests.simulation.invariants import Broken
from tests.simulation.world import live
from wakeful.domains.workflows import hooks, phases

FIRST, SEEDS, GROUPS = 40_000, 12, 3


@pytest.mark.promise("K4", "K6", "K7", "K9", "K10", "K11", "K13", "K14")
def test_a_world_with_a_workflow_is_lived_through() -> None:
    assert live(FIRST, steps=40, kind=Flowing).ledger


@pytest.mark.promise("K4", "K6", "K7", "K9", "K10", "K11", "K13", "K14")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fault_makes_a_workflow_lose_or_repeat_a_message(group: int) -> None:
    added = deaths = helped = 0
    for seed in range(FIRST + group, FIRST + SEEDS, GROUPS):
        world = live(seed, steps=60, kind=Flowing)
        added, deaths, helped = added + len(world.ledger), deaths + world.deaths, helped + world.helped
    assert added > 50
    assert deaths > 2
    assert helped > 5


def _never_uncertain(phase: str, mutation: str, failure: str) -> str:
    return "prepare" if mutation == "in_flight" else phases.where_to_begin(phase, mutation, failure)


def test_a_rule_that_mutates_again_is_found(monkeypatch) -> None:
    monkeypatch.setattr(hooks, "where_to_begin", _never_uncertain)
    with pytest.raises(Broken, match="K10"):
        _live_all()


def _live_all() -> None:
    for seed in range(FIRST, FIRST + SEEDS):
        live(seed, steps=60, kind=Flowing)
