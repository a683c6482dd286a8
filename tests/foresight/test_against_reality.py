"""A simulation says what then happens: the same fleets, simulated and really run."""

from __future__ import annotations

import pytest

from tests.foresight.reality import as_lived, lived, random_fleet, stored
from wakeful.foresight.simulating import simulate


@pytest.mark.promise("X4")
@pytest.mark.parametrize("seed", range(16))
def test_a_simulated_fleet_runs_slot_by_slot_as_it_then_does(sqlite_scene, seed):
    check_fleet(sqlite_scene, random_fleet(seed))


@pytest.mark.promise("X4")
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_simulation_of_a_store_on_postgresql_is_what_then_happens(postgres_scene, seed):
    check_fleet(postgres_scene, random_fleet(seed))


def check_fleet(scene, fleet):
    snapshot, runs = stored(scene, fleet), []
    simulate(snapshot, fleet.question, fleet.setup, on_run=runs.append)
    assert as_lived(runs) == lived(scene, fleet)
