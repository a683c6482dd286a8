"""Crowded lanes: whatever happened, equal jobs get equal shares and all get a turn; what breaks that is found."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.shares import Sharing
from tests.simulation.world import PICKY, live
from wakeful.kernel.engine.lines import Lines

pytestmark = pytest.mark.promise("X31")

SEEDS = range(12)
PICKY_SEEDS = range(PICKY, PICKY + 12)  # kinds refuse some starts
GROUPS = 4


def _breaks(seeds: range, steps: int = 8) -> str:
    for seed in seeds:
        try:
            live(seed, steps, Sharing)
        except Broken as broken:
            return f"{seed}: {broken}"
    return ""


@pytest.mark.parametrize("seeds", [SEEDS, PICKY_SEEDS], ids=["willing", "picky"])
@pytest.mark.parametrize("group", range(GROUPS))
def test_equal_jobs_have_equal_shares_and_who_needs_several_lanes_gets_its_turn(seeds: range, group: int) -> None:
    assert _breaks(seeds[group::GROUPS], steps=10) == ""


def test_it_finds_a_place_that_is_taken_from_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lines, "has_room", lambda self, lane, _turn: self.free(lane) > 0)
    assert "X31" in _breaks(SEEDS)


def test_it_finds_a_job_that_needs_several_lanes_and_reserves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Lines.wait
    monkeypatch.setattr(Lines, "wait", lambda self, turn, lane, _before: wait(self, turn, lane, ()))
    monkeypatch.setattr(Lines, "reserve", lambda _self, _job_id, _lanes: None)
    assert "never started" in _breaks(SEEDS)
