"""Agents that write to each other: what follows from outside text is marked, and the worlds find where it is not."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.relays import Relays
from tests.simulation.world import live
from wakeful.domains.agents import finishing, handler, hops
from wakeful.domains.agents.waking import WakeEvent

FIRST, STEPS = 70_000, 60

pytestmark = pytest.mark.promise("X30")


def _breaks(seeds: int = 6) -> str:
    """The first broken promise these worlds find, or nothing."""
    for seed in range(FIRST, FIRST + seeds):
        try:
            live(seed, STEPS, Relays)
        except Broken as broken:
            return f"{seed}: {broken}"
    return ""


@pytest.mark.parametrize("seed", range(FIRST, FIRST + 4))
def test_whatever_follows_from_text_from_outside_is_marked_whoever_dies_on_the_way(seed: int) -> None:
    world = live(seed, STEPS, Relays)
    assert isinstance(world, Relays)
    assert set(world.relayed.values()) == {True, False}
    assert {number in world.fed for number, _ in world.turns} == {True, False}


def test_it_finds_a_run_that_launders_what_it_was_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hops, "is_fed", lambda _tx, _run: False)
    assert "X30:" in _breaks()


def test_it_finds_marks_that_are_lost_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WakeEvent, "is_data", property(lambda event: event.outside == 1))
    assert "unmarked" in _breaks()


def test_it_finds_a_run_with_all_rights_that_goes_on_with_such_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(handler, "is_fed", lambda _tx, _run: False)
    monkeypatch.setattr(finishing, "is_fed", lambda _tx, _run: False)
    assert "had all rights" in _breaks()
