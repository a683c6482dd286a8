"""Mistakes about slots, retries, pauses and deadlines, made on purpose: the worlds find each of them."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.world import live
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.engine import claim, clock_watch
from wakeful.kernel.engine.claim import Claim
from wakeful.kernel.rules import settle


def _breaks(seeds: range) -> str:
    """The first broken promise these worlds find, or nothing."""
    for seed in seeds:
        try:
            live(seed, steps=60)
        except Broken as broken:
            return f"{seed}: {broken}"
    return ""


@pytest.mark.promise("H2")
def test_it_finds_a_slot_that_is_forgotten_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "was_run", lambda tx, job, slot: tx.runs.has_slot(job.id, slot))
    assert "ran the slot" in _breaks(range(77, 78))


@pytest.mark.promise("X9")
def test_it_finds_a_job_that_runs_more_often_than_max_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "used_up", lambda _trigger, _state: False)
    assert "max_runs" in _breaks(range(242, 243))


@pytest.mark.promise("H4", "X9")
def test_it_finds_a_retry_that_is_made_beside_a_newer_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    overtaken = Claim._overtaken

    def only_later_ones(self, job, state, run, *, slot_due):
        return overtaken(self, job, state, run, slot_due=slot_due and run.due_at > (state.next_at or 0))

    monkeypatch.setattr(Claim, "_overtaken", only_later_ones)
    assert "a new slot had come" in _breaks(range(13, 14))


@pytest.mark.promise("H8")
def test_it_finds_a_start_that_outlives_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(job_actions, "_without_pending", lambda _tx, _context, pair, _why, keep=(): pair[1])
    assert "is paused" in _breaks(range(374, 375))


@pytest.mark.promise("H2")
def test_it_finds_a_waiting_run_that_a_step_of_the_clock_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock_watch, "move_deadlines", lambda _tx, _forward_ms: None)
    assert "too early" in _breaks(range(75, 76))
