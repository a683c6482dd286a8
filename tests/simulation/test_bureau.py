"""Agents that leave and come back, keep hours and budgets, and share a session: the worlds hold, and find mistakes."""

from __future__ import annotations

import pytest

from tests.simulation.bureau import HOURS, Archive, Bureau, Evening, Heartless
from tests.simulation.invariants import Broken
from tests.simulation.world import live
from wakeful.domains.agents import compiling, session_lanes, tables, wakes, work
from wakeful.domains.agents.belongings import moving
from wakeful.domains.agents.budgets import spending
from wakeful.domains.agents.budgets.rules import Charge
from wakeful.domains.agents.tables import AgentTables

FIRST, STEPS, FEW = 60_000, 80, 6


def _breaks(seeds: int = 12, kind: type[Bureau] = Bureau) -> str:
    """The first broken promise these worlds find, or nothing."""
    for seed in range(FIRST, FIRST + seeds):
        try:
            live(seed, FEW if kind in (Archive, Evening) else STEPS, kind)
        except Broken as broken:
            return f"{seed}: {broken}"
    return ""


@pytest.mark.promise("A2", "A4", "C4", "D10", "X7", "X14")
@pytest.mark.parametrize("seed", range(FIRST, FIRST + 6))
def test_whoever_leaves_and_comes_back_what_was_asked_of_agents_is_done_in_their_hours_and_paid_for(seed: int) -> None:
    world = live(seed, STEPS, Bureau)
    assert isinstance(world, Bureau)
    assert len(world.turns) > 10


@pytest.mark.promise("A2")
def test_it_finds_a_heartbeat_outside_its_hours(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _breaks(1, Evening) == ""
    monkeypatch.setattr("wakeful.domains.agents.hours.opening_of", lambda _tx, _agent: None)
    assert "A2:" in _breaks(kind=Evening)


@pytest.mark.promise("A2")
def test_it_finds_hours_that_are_kept_in_another_zone(monkeypatch: pytest.MonkeyPatch) -> None:
    hours = compiling._hours
    monkeypatch.setattr(compiling, "_hours", lambda beat: hours({**beat, "active_hours": {**HOURS, "timezone": "UTC"}}))
    assert "A2:" in _breaks(kind=Evening)


@pytest.mark.promise("C4")
def test_it_finds_a_session_that_is_deleted_before_its_next_use(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _breaks(1, Archive) == ""
    monkeypatch.setattr(tables, "_UNUSED", "1 = 1")
    assert "goes on in None" in _breaks(kind=Archive)


@pytest.mark.promise("C4")
def test_it_finds_two_runs_in_one_session(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_lanes, "lanes_of_agent", lambda *_: ())
    monkeypatch.setattr("wakeful.domains.agents.compiling.SESSIONS", ("persistent", "ephemeral", "desk"))
    assert "C4:" in _breaks()


@pytest.mark.promise("D10")
def test_it_finds_items_that_are_lost_with_their_agent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentTables, "next_item", lambda *_: None)
    assert "D10:" in _breaks(2)


@pytest.mark.promise("A4")
def test_it_finds_events_that_nobody_hears_when_their_agent_is_back(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _breaks(2, Heartless) == ""
    monkeypatch.setattr(moving, "wake_returned", lambda *_: None)
    monkeypatch.setattr(wakes, "resumed", lambda *_: None)
    assert "A4:" in _breaks(kind=Heartless)


@pytest.mark.promise("A4")
def test_it_finds_events_that_nobody_hears_when_their_agent_is_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakes, "resumed", lambda *_: None)
    assert "A4:" in _breaks(kind=Heartless)


@pytest.mark.promise("X14")
def test_it_finds_an_item_that_fails_because_its_server_died(monkeypatch: pytest.MonkeyPatch) -> None:
    after = work.after

    def counting_deaths(item: work.WorkItem, outcome: str, error: str | None, **known: bool) -> work.WorkItem:
        return after(item, "error" if outcome == "crashed" else outcome, error, **known)

    monkeypatch.setattr(work, "after", counting_deaths)
    assert "X14:" in _breaks(120)


@pytest.mark.promise("X7")
def test_it_finds_a_run_that_is_not_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spending, "charge", lambda *_: Charge())
    assert "X7:" in _breaks(2)
