"""Crowded lanes: whatever happened, equal jobs get equal shares and all get a turn; what breaks that is found."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.shares import Even, Pressed, Sharing
from tests.simulation.world import PICKY, live
from wakeful.kernel.engine import claim
from wakeful.kernel.engine.admission import Admission
from wakeful.kernel.engine.lines import Lines, turn_of
from wakeful.store.lanes import Lanes

pytestmark = pytest.mark.promise("X31")

SEEDS = range(12)
PICKY_SEEDS = range(PICKY, PICKY + 12)  # kinds refuse some starts
GROUPS = 4


def _breaks(seeds: range, steps: int = 8, kind: type[Sharing] = Sharing) -> str:
    for seed in seeds:
        try:
            live(seed, steps, kind)
        except Broken as broken:
            return f"{seed}: {broken}"
    return ""


@pytest.mark.parametrize("seeds", [SEEDS, PICKY_SEEDS], ids=["willing", "picky"])
@pytest.mark.parametrize("group", range(GROUPS))
def test_equal_jobs_have_equal_shares_and_who_needs_several_lanes_gets_its_turn(seeds: range, group: int) -> None:
    assert _breaks(seeds[group::GROUPS], steps=10) == ""


@pytest.mark.parametrize("group", range(GROUPS))
def test_equal_jobs_that_become_due_together_have_equal_shares(group: int) -> None:
    assert _breaks(SEEDS[group::GROUPS], kind=Even) == ""


@pytest.mark.parametrize("group", range(GROUPS))
def test_who_waits_for_a_lane_for_ever_keeps_nobody_from_another(group: int) -> None:
    assert _breaks(SEEDS[group::GROUPS], kind=Pressed) == ""


def test_it_finds_a_place_that_is_reserved_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lanes, "_hopeful", lambda *_: ("1 = 1", []))
    assert "never started" in _breaks(SEEDS, kind=Pressed)


def test_it_finds_a_job_that_always_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "by_turn", lambda pair: turn_of(pair[1]))
    monkeypatch.setattr(Admission, "_turn", lambda _self, state: turn_of(state))
    assert "unequal shares" in _breaks(SEEDS, kind=Even)


def test_it_finds_a_place_that_is_taken_from_the_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Lines, "has_room", lambda self, lane, _turn: self.free(lane) > 0)
    assert "X31" in _breaks(SEEDS)


def test_it_finds_a_job_that_needs_several_lanes_and_reserves_none(monkeypatch: pytest.MonkeyPatch) -> None:
    wait = Lines.wait
    monkeypatch.setattr(Lines, "wait", lambda self, turn, lane, _before: wait(self, turn, lane, ()))
    monkeypatch.setattr(Lines, "reserve", lambda _self, _job_id, _lanes: None)
    assert "never started" in _breaks(SEEDS)
