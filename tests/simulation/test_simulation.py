"""Hundreds of worlds in every test run; a seed that ever failed is kept here."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.world import live
from wakeful.kernel import claim, turn
from wakeful.store.jobs import Jobs

SEEDS = range(240)
GROUPS = 12


@pytest.mark.promise("H2", "H9", "H11", "H12", "X14")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fault_at_any_moment_loses_doubles_or_strands_a_run(group: int) -> None:
    starts = deaths = 0
    for seed in SEEDS[group::GROUPS]:
        world = live(seed, steps=40)
        starts += world.starts
        deaths += world.deaths
    assert starts > 100
    assert deaths > 5


@pytest.mark.parametrize("seed", [3, 71])
def test_a_seed_replays_exactly(seed: int) -> None:
    first, second = live(seed, steps=40), live(seed, steps=40)
    assert first.steps == second.steps
    assert first.trace.digest() == second.trace.digest()


KEPT = {
    35: "a job added while a turn was being committed was not noticed",
    38: "the same, seen through a run asked for by hand",
    197: "a one-shot whose queued retry was cancelled stayed enabled with no future",
}


@pytest.mark.promise("H5")
@pytest.mark.parametrize("seed", sorted(KEPT))
def test_a_seed_that_once_failed_stays_mended(seed: int) -> None:
    live(seed, steps=40)
    live(seed, steps=60)


def _breaks(seeds: range = range(40)) -> str:
    """The first broken promise the worlds find, or nothing."""
    for seed in seeds:
        try:
            live(seed, steps=40)
        except Broken as broken:
            return str(broken)
    return ""


def test_it_finds_a_lane_that_is_not_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turn, "free_lanes", lambda tx, runs: None)
    assert "lane" in _breaks()


def test_it_finds_a_parked_job_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    def forget(self: Jobs, parked: str, now: int, limit: int) -> int:
        sql = "UPDATE job_state SET parked = NULL WHERE parked = ?"
        return self._session.execute(sql, (parked,))

    monkeypatch.setattr(Jobs, "unpark", forget)
    assert "nothing will ever start" in _breaks()


def test_it_finds_a_slot_that_is_run_twice_after_the_clock_went_back(monkeypatch: pytest.MonkeyPatch) -> None:
    original = claim.Claim._start_slot

    def unchecked(self: claim.Claim, job: object, state: object) -> None:
        """Settle nothing on record: start the same run twice, as an engine without admission would."""
        original(self, job, state)  # type: ignore[arg-type]
        if len(self.claimed) == 1:
            self.claimed.append(self.claimed[0])

    monkeypatch.setattr(claim.Claim, "_start_slot", unchecked)
    assert "twice" in _breaks()
