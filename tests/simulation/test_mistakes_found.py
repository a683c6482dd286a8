"""Mistakes about slots, retries, pauses and deadlines, made on purpose: the worlds find each of them."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.world import World, live
from wakeful import Every, Trigger
from wakeful.kernel.actions import jobs as job_actions
from wakeful.kernel.actions import pausing
from wakeful.kernel.engine import claim, ending, stretches
from wakeful.kernel.loop import clock_watch, sweep
from wakeful.kernel.rules import ledger, settle
from wakeful.kernel.rules.policy import trigger_of
from wakeful.kernel.rules.trigger_history import members_of
from wakeful.store.stretches import Stretch
from wakeful.store.troubles import Troubles


class Stepped(World):
    """Jobs that run often, little history, runs that are deferred for days, and a clock that is set again and again."""

    grids = ("1m", "1m", "7m")
    kinds = (("good", 30), ("slow", 15), ("flaky", 15), ("crasher", 2), ("chatty", 30), ("rare", 5), ("deaf", 8))
    laters = (5, 900, 86_400, 3 * 86_400, 12 * 86_400)
    crons = ("* * * * *",)
    weights: ClassVar[dict[str, int]] = {"_pass_time": 30, "_add": 10, "_step_clock": 12, "_edit": 1}


class Edited(Stepped):
    """The same, with little history, where people give jobs other times again and again."""

    grids = ("3m", "4m", "7m")
    weights: ClassVar[dict[str, int]] = {"_pass_time": 40, "_add": 4, "_step_clock": 10, "_edit": 20}

    def __init__(self, seed: int, folder: Path) -> None:
        super().__init__(seed, folder)
        self.history = 3

    def _trigger(self) -> Trigger:
        return Every(self.rng.choice(self.grids))

    def _options(self) -> dict[str, object]:
        return {"timeout": "1h"}


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


@pytest.mark.parametrize("kind", [Stepped, Failing, Edited])
def test_such_worlds_alone_break_nothing(kind: type[World]) -> None:
    assert _breaks(kind, range(6)) == ""


@pytest.mark.promise("H2")
def test_it_finds_a_slot_that_is_forgotten_with_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claim, "was_started", lambda tx, job, _state, slot: tx.runs.has_slot(job.id, slot))
    assert "ran the slot" in _breaks(Stepped)


@pytest.mark.promise("X9")
def test_it_finds_a_job_that_runs_more_often_than_max_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settle, "used_up", lambda _trigger, _state: False)
    assert "max_runs" in _breaks(Failing)


@pytest.mark.promise("H4", "X9")
def test_it_finds_a_retry_that_is_made_beside_a_newer_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    overtaken = claim.overtaken

    def only_later_ones(options, state, run, now, *, slot_due, before):
        is_later = slot_due and run.due_at > (state.next_at or 0)
        return overtaken(options, state, run, now, slot_due=is_later, before=before)

    monkeypatch.setattr(claim, "overtaken", only_later_ones)
    assert "a new slot had come" in _breaks(Failing)


@pytest.mark.promise("H8")
def test_it_finds_a_start_that_outlives_a_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    overtaken = claim.overtaken

    def though_paused(options, state, run, now, **more):
        return None if state.paused else overtaken(options, state, run, now, **more)

    monkeypatch.setattr(pausing, "_without_pending", lambda _tx, _context, pair, _why, keep=(): pair[1])
    monkeypatch.setattr(claim, "overtaken", though_paused)
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
    monkeypatch.setattr(
        "wakeful.kernel.rules.trigger_history.TriggerHistory.trigger_at", lambda self, _slot: self._triggers[-1]
    )
    assert "X25" in _breaks(Stepped, range(40)) + _breaks(World, range(60))


def _all_on_the_grid(stretch: Stretch, trigger: str) -> list[int] | None:
    """As if every stretch without a pattern had nothing but its trigger's slots."""
    found = members_of(stretch, trigger)
    known = trigger_of(trigger)
    off = (
        stretch.pattern is None and stretch.slots > 1 and known.next_slot(stretch.first_slot - 1) != stretch.first_slot
    )
    return None if off else found


@pytest.mark.promise("X25")
def test_it_finds_slots_of_another_trigger_that_are_joined_to_those_of_the_grid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(stretches, "_on_grid", lambda *_: True)
    monkeypatch.setattr(ledger, "members_of", _all_on_the_grid)
    assert "have no record" in _breaks(Edited)


@pytest.mark.promise("X26")
def test_it_finds_a_verdict_that_knows_nothing_of_what_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Troubles, "failing", lambda *_: [])
    assert "X26: the rows show failing" in _breaks(Failing)
