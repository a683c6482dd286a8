"""Mistakes about slots, retries, pauses and deadlines, made on purpose: the worlds find each of them."""

from __future__ import annotations

from typing import ClassVar

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.world import World, live
from wakeful import Every, Trigger
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions import pausing
from wakeful.kernel.engine import claim, clock_watch, ending, sweep
from wakeful.kernel.engine.claim import Claim
from wakeful.kernel.rules import settle

pytestmark = pytest.mark.long


class Stepped(World):
    """Jobs that run often, little history, and a clock that is set again and again."""

    grids = ("1m", "1m", "7m")
    crons = ("* * * * *",)
    weights: ClassVar[dict[str, int]] = {"_pass_time": 30, "_add": 10, "_step_clock": 12, "_edit": 1}


class Failing(World):
    """Jobs that fail or take too long, with retries, an end and every overlap; and people who pause them."""

    kinds = (("flaky", 30), ("slow", 10))
    weights: ClassVar[dict[str, int]] = {"_pass_time": 40, "_add": 15, "_pause": 10, "_resume": 10, "_kill": 10}

    def _trigger(self) -> Trigger:
        return Every("7m", max_runs=self.rng.choice((None, None, 1, 2)))

    def _options(self) -> dict[str, object]:
        overlap = self.rng.choice(("queue", "cancel_other"))
        return {"timeout": "1h", "overlap": overlap, "retry": ["6m", "6m"], "max_errors": 0}


def _breaks(kind: type[World], seeds: range = range(20)) -> str:
    """The first broken promise these worlds find, or nothing."""
    for seed in seeds:
        try:
            live(seed, 60, kind)
        except Broken as broken:
            return f"{seed}: {broken}"
    return ""


@pytest.mark.parametrize("kind", [Stepped, Failing])
def test_such_worlds_alone_break_nothing(kind: type[World]) -> None:
    assert _breaks(kind, range(6)) == ""


@pytest.mark.promise("H2")
def test_it_finds_a_slot_that_is_forgotten_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "was_run", lambda tx, job_id, _trigger, slot: tx.runs.has_slot(job_id, slot))
    assert "ran the slot" in _breaks(Stepped)


@pytest.mark.promise("X9")
def test_it_finds_a_job_that_runs_more_often_than_max_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "used_up", lambda _trigger, _state: False)
    assert "max_runs" in _breaks(Failing)


@pytest.mark.promise("H4", "X9")
def test_it_finds_a_retry_that_is_made_beside_a_newer_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    overtaken = Claim._overtaken

    def only_later_ones(self, job, state, run, *, slot_due):
        return overtaken(self, job, state, run, slot_due=slot_due and run.due_at > (state.next_at or 0))

    monkeypatch.setattr(Claim, "_overtaken", only_later_ones)
    assert "a new slot had come" in _breaks(Failing)


@pytest.mark.promise("H8")
def test_it_finds_a_start_that_outlives_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    overtaken = Claim._overtaken

    def though_paused(self, job, state, run, *, slot_due):
        return None if state.paused else overtaken(self, job, state, run, slot_due=slot_due)

    monkeypatch.setattr(pausing, "_without_pending", lambda _tx, _context, pair, _why, keep=(): pair[1])
    monkeypatch.setattr(Claim, "_overtaken", though_paused)
    assert "is paused" in _breaks(Failing, range(80))


@pytest.mark.promise("H2")
def test_it_finds_a_waiting_run_that_a_step_of_the_clock_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_watch, "move_deadlines", lambda _tx, _forward_ms: None)
    assert "too early" in _breaks(Stepped, range(120))


@pytest.mark.promise("X25")
@pytest.mark.parametrize("place", [claim, ending, pausing, job_actions])
def test_it_finds_slots_that_pass_without_a_record(monkeypatch: pytest.MonkeyPatch, place: object) -> None:
    monkeypatch.setattr(place, "keep_passed", lambda _tx, _passes: None)
    assert "no record" in _breaks(World, range(60))


@pytest.mark.promise("X25")
def test_it_finds_slots_that_are_forgotten_with_their_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweep, "keep_slots", lambda _tx, _runs: None)
    assert "no record" in _breaks(World, range(60))


@pytest.mark.promise("X25")
def test_it_finds_a_slot_that_is_counted_under_the_wrong_trigger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wakeful.kernel.rules.reigns.Reigns.trigger_at", lambda self, _slot: self._triggers[-1])
    assert "X25" in _breaks(Stepped, range(40)) + _breaks(World, range(60))
