"""Worlds of jobs that take their time, share a lane and replace their own runs; and mistakes that only these find."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.people import LANES
from tests.simulation.world import World, live
from wakeful import Every, Trigger
from wakeful.kernel.actions import runs as run_actions
from wakeful.kernel.engine import claim, rearming, recovery
from wakeful.kernel.rules.passing import MERGED
from wakeful.kernel.rules.pending import BY_TIME
from wakeful.store.jobs import Jobs
from wakeful.store.runs import Runs

SEEDS = range(16)
GROUPS = 4
STUBBORN = (46, 54)  # what is tried again by hand is seldom cut off just before a slot


class Busy(World):
    """A run is in progress at most moments: while jobs are changed, the clock is set and the process dies."""

    follows_merges = True

    kinds = (("slow", 20), ("flaky", 20), ("good", 5))
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 40, "_add": 12, "_pause": 6, "_resume": 6, "_edit": 8, "_run_now": 12, "_kill": 4,
        "_step_clock": 3,
    }  # fmt: skip

    def _trigger(self) -> Trigger:
        return Every(self.rng.choice(("1m", "2m", "7m", "1h")))

    def _options(self) -> dict[str, object]:
        rng = self.rng
        options: dict[str, object] = {"timeout": "1h", "max_errors": rng.choice((0, 5)), "backoff": ["1s"]}
        options["overlap"] = rng.choice(("skip", "queue", "cancel_other", "cancel_other"))
        options["retry"] = {"delays": rng.choice((["10s"], ["50s", "50s"])), "on": "any"}
        if rng.random() < 0.6:
            options["lanes"] = {"press": LANES["press"]}
        return options


class Stubborn(Busy):
    """People try runs again by hand, and the process dies while these run."""

    weights: ClassVar[dict[str, int]] = {"_pass_time": 30, "_add": 8, "_retry": 16, "_kill": 12}

    def _options(self) -> dict[str, object]:
        return {**super()._options(), "overlap": "skip", "retry": None}


class Unforgiving(Busy):
    """Jobs that catch nothing up, whose slots lie apart: none of them is ever covered by another's run."""

    kinds = (("slow", 20), ("good", 10))
    weights: ClassVar[dict[str, int]] = {
        "_pass_time": 40, "_add": 10, "_run_now": 3, "_kill": 10, "_restart": 6, "_pause": 3, "_resume": 3,
    }  # fmt: skip

    def _trigger(self) -> Trigger:
        return Every(self.rng.choice(("7m", "20m", "1h")))

    def _options(self) -> dict[str, object]:
        return {"timeout": "1h", "max_errors": 0, "catch_up": "skip"}

    def _needs(self) -> dict[str, object]:
        return {}

    def _look(self) -> None:
        super()._look()
        sql = "SELECT j.name FROM stretches s JOIN jobs j ON j.id = s.job_id WHERE s.fate = 'merged'"
        if (found := self._watch().execute(sql).fetchone()) is not None:
            raise Broken(
                f"X25: a slot of {found['name']} is called merged, and no run covers what it does not catch up"
            )


def _breaks(seeds: range | tuple[int, ...], kind: type[World] = Busy) -> str:
    """The first broken promise these worlds find, or nothing."""
    for seed in seeds:
        try:
            live(seed, 40, kind)
        except Broken as broken:
            return f"{seed}: {broken}"
    return ""


@pytest.mark.promise("H4", "X14")
def test_what_people_try_again_and_a_crash_cuts_off_takes_no_slot() -> None:
    assert _breaks(STUBBORN, Stubborn) == ""


@pytest.mark.promise("H2", "H4", "H7", "C7", "X31")
@pytest.mark.parametrize("group", range(GROUPS))
def test_whatever_happens_jobs_start_and_runs_end_as_is_promised(group: int) -> None:
    for seed in SEEDS[group::GROUPS]:
        live(seed, 40, Busy)


@pytest.mark.promise("X25", "X9")
def test_where_nothing_is_caught_up_nothing_is_called_merged() -> None:
    for seed in (1, 2, 3, 4, 9, 12):
        live(seed, 40, Unforgiving)


def _set_back_only_armed_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    """As it first was: only alarms are brought into the new time, and a run in progress keeps its job's old slot."""
    ahead_of = Jobs.ahead_of
    monkeypatch.setattr(
        Jobs,
        "ahead_of",
        lambda self, now, *more: [pair for pair in ahead_of(self, now, *more) if (pair[1].due_at or 0) > now],
    )
    monkeypatch.setattr(
        rearming,
        "_in_progress",
        lambda tx, _context, _job, state, step: state._replace(
            due_at=max(tx.now, (state.due_at or tx.now) - step.of(state.run_id))
        ),
    )


@pytest.mark.promise("H2", "X31")
def test_it_finds_a_job_that_is_silent_until_the_old_time_returns(monkeypatch: pytest.MonkeyPatch) -> None:
    _set_back_only_armed_jobs(monkeypatch)
    assert "X31" in _breaks(SEEDS)


@pytest.mark.promise("C7")
def test_it_finds_a_run_that_is_ended_for_a_slot_of_a_job_that_was_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        claim, "look_at_active", lambda _tx, _context, _job, state, **_: (state._replace(due_at=None), True)
    )
    assert "C7" in _breaks(SEEDS)


@pytest.mark.promise("H4", "X14")
def test_it_finds_a_slot_that_the_recovery_of_a_start_by_hand_swallows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "covers_slots", lambda run, _before: run.reason in ("recovery", *BY_TIME))
    assert "H4" in _breaks((75, 89, 94))  # a start by hand is seldom cut off just before a slot


@pytest.mark.promise("H4", "X14")
def test_it_finds_a_slot_that_the_recovery_of_what_was_tried_again_by_hand_swallows(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Runs, "recovered", lambda _self, run: run)
    assert "H4" in _breaks(STUBBORN, Stubborn)


@pytest.mark.promise("H7")
def test_it_finds_a_failure_that_is_forgotten_with_its_retry(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (claim, run_actions):
        monkeypatch.setattr(place, "count_dropped", lambda _tx, _context, _job, state, _run: state)
    assert "H7" in _breaks(SEEDS)


@pytest.mark.promise("X25")
def test_it_finds_slots_that_are_called_merged_into_a_run_that_does_not_cover_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recovery, "_fate_of_passed", lambda *_: MERGED)
    assert "X25: a slot of" in _breaks(range(1, 4), Unforgiving)
