"""Whatever happens to its process, its code and its people, a handler does each step of each event once, key by key."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.stepped import Stepped
from tests.simulation.world import live
from wakeful.domains.workflows import adding
from wakeful.domains.workflows.steps import deploying, ending, taking
from wakeful.domains.workflows.steps.tables import StepRow, Tasks

FIRST, SEEDS, GROUPS = 70_000, 12, 3


@pytest.mark.promise("X32")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fault_makes_a_handler_with_steps_lose_or_repeat_a_step(group: int) -> None:
    done = deaths = helped = 0
    for seed in range(FIRST + group, FIRST + SEEDS, GROUPS):
        world = live(seed, steps=50, kind=Stepped)
        done, deaths, helped = done + len(world.done), deaths + world.deaths, helped + world.helped
    assert done > 50
    assert deaths > 2
    assert helped > 5


def test_a_cut_off_step_that_is_not_doubted_is_found(monkeypatch) -> None:
    def trust(tasks: Tasks, event_id: int, *_: object) -> list[StepRow]:
        sql = "DELETE FROM workflow_steps WHERE event_id = ? AND status = 'running'"
        tasks._session.execute(sql, (event_id,))
        return tasks.steps(event_id)

    monkeypatch.setattr(Tasks, "doubt_steps", trust)
    with pytest.raises(Broken, match="X32"):
        _live_all()


def test_a_key_whose_turn_is_lost_is_found(monkeypatch) -> None:
    monkeypatch.setattr(ending, "promote", lambda *_: None)
    monkeypatch.setattr(taking, "promote", lambda *_: None)
    monkeypatch.setattr("wakeful.domains.workflows.steps.recording.promote", lambda *_: None)
    with pytest.raises(Broken, match="nobody has it"):
        _live_all()


@pytest.mark.parametrize("seed", [200_017, 200_071, 200_090, 200_166])
def test_worlds_that_once_broke_are_whole(seed: int) -> None:
    live(seed, steps=60, kind=Stepped)


def test_a_deploy_that_the_store_refused_and_that_stays_on_the_node_is_found(monkeypatch) -> None:
    monkeypatch.setattr(adding, "_put_back", lambda *_: None)
    with pytest.raises(Broken, match="is still reserved"):
        live(200_017, steps=60, kind=Stepped)


def test_a_turn_that_a_deploy_forgets_is_found(monkeypatch) -> None:
    monkeypatch.setattr(deploying, "promote", lambda *_: None)
    with pytest.raises(Broken, match="nobody has it"):
        live(200_166, steps=60, kind=Stepped)


def _live_all() -> None:
    for seed in range(FIRST, FIRST + SEEDS):
        live(seed, steps=50, kind=Stepped)
