"""Whatever happens, agents hear everything once, no item is worked on twice at once, and sessions go on."""

from __future__ import annotations

import re

import pytest

from tests.simulation.agency import Agency
from tests.simulation.agents import Employer, Quiet
from tests.simulation.fleet import live_together
from tests.simulation.inbound import Doorkeeper
from tests.simulation.invariants import Broken
from tests.simulation.world import live
from wakeful.domains.agents import kept_session, wakes, work
from wakeful.domains.agents.tables import AgentTables
from wakeful.kernel.rules import pending

FIRST, SEEDS, GROUPS = 40_000, 8, 4


@pytest.mark.promise("A4", "D10")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fault_loses_an_event_or_an_item_or_has_one_worked_on_twice_at_once(group: int) -> None:
    turns = deaths = events = items = 0
    for seed in range(FIRST + group, FIRST + SEEDS, GROUPS):
        world = live(seed, steps=80, kind=Employer)
        turns += len(world.turns)
        deaths += world.deaths
        events += len(world.events)
        items += len(world.items)
    assert turns > 20
    assert min(deaths, events, items) > 2


@pytest.mark.promise("A4", "D10", "X2")
def test_nodes_that_die_freeze_and_are_taken_over_from_lose_nothing_of_agents() -> None:
    world = live_together(FIRST, steps=40, world=Agency)
    assert isinstance(world, Agency)
    assert len(world.turns) + len(world.events) + len(world.items) > 3


def _breaks(seeds: int = 12, kind: type[Employer] = Employer) -> str:
    """The first broken promise these worlds find, or nothing."""
    for seed in range(FIRST, FIRST + seeds):
        try:
            live(seed, 80, kind)
        except Broken as broken:
            return str(broken)
    return ""


def test_it_finds_events_that_a_failed_run_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentTables, "give_back", lambda _self, _run_id: 0)
    assert "is given to a run that is over" in _breaks()


def test_it_finds_events_that_go_with_a_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wakes, "HEARD", ("success", "noop", "error", "crashed"))
    assert "is gone, and no run that ended well has heard it" in _breaks()


def test_it_finds_events_that_are_heard_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentTables, "hear", AgentTables.give_back)
    assert "was heard, and waits again" in _breaks()


def test_it_finds_a_wake_that_goes_with_a_failed_run(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _breaks(6, Quiet) == ""
    monkeypatch.setattr(wakes, "_try_again", lambda *_: None)
    assert "was left with a wake and is not heard" in _breaks(40, Quiet)


def test_it_finds_an_item_that_a_run_keeps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "after", lambda item, *_, **__: item)
    assert "is claimed by a run that is over" in _breaks()


def test_it_finds_an_item_that_is_not_claimed(monkeypatch: pytest.MonkeyPatch) -> None:
    save = AgentTables.save_item

    def but_not_claims(self: AgentTables, item: work.WorkItem) -> None:
        if item.status != "claimed":
            save(self, item)

    monkeypatch.setattr(AgentTables, "save_item", but_not_claims)
    found = _breaks()
    assert "at once" in found or re.search(r"is ready, and [1-9]\d* runs did it", found)


def test_it_finds_an_item_that_is_done_though_its_run_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work, "after", lambda item, *_, **__: item._replace(status="done"))
    assert "is done, and 0 runs did it" in _breaks()


def test_it_finds_a_session_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_session, "session_name", lambda _job, payload, _chat=None: payload["agent"])
    assert "which is another's" in _breaks()


def test_it_finds_a_session_that_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AgentTables, "keep_session", lambda _self, _kept: None)
    assert "goes on in None" in _breaks()


@pytest.mark.promise("D4")
def test_what_others_ask_for_is_run_once_or_waits_and_is_never_gone() -> None:
    world = live(FIRST + 3, steps=60, kind=Doorkeeper)
    assert isinstance(world, Doorkeeper)
    assert len(world.accepted) > 3
    assert world.deaths


def test_it_finds_a_request_that_a_pause_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pending, "FROM_OUTSIDE", ())
    assert "was accepted and dropped" in _breaks(8, Doorkeeper)
