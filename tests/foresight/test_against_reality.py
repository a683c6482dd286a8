"""A simulation says what then happens: the same fleets, simulated and really run."""

from __future__ import annotations

import pytest

from tests.foresight.fleets import START
from tests.foresight.reality import Fleet, as_lived, interrupted, lived, random_fleet, stored
from wakeful import Every, NewJob
from wakeful.foresight.simulating import simulate


@pytest.mark.promise("X4")
@pytest.mark.parametrize("seed", range(16))
def test_a_simulated_fleet_runs_slot_by_slot_as_it_then_does(sqlite_scene, seed):
    check_fleet(sqlite_scene, random_fleet(seed))


@pytest.mark.promise("X4")
@pytest.mark.parametrize("seed", [1, 2, 4])
def test_a_simulation_of_a_store_on_postgresql_is_what_then_happens(postgres_scene, seed):
    check_fleet(postgres_scene, random_fleet(seed))


@pytest.mark.promise("X4")
@pytest.mark.parametrize("seed", [1, 3, 4, 7, 9])
def test_a_fleet_that_is_simulated_midway_goes_on_as_it_then_does(sqlite_scene, seed):
    fleet, snapshot, rest = interrupted(sqlite_scene, random_fleet(seed), 5 * 3_600_000 + 61_000)
    runs = []
    simulate(snapshot, fleet.question, fleet.setup, on_run=runs.append)
    assert as_lived(runs) == rest


@pytest.mark.promise("X4")
def test_a_run_in_progress_has_in_a_simulation_what_is_left_of_its_time_limit(sqlite_scene):
    fleet = Fleet(START, 0.1, [NewJob("job", Every("5h"), kind="job", timeout="10m")], {"job": 3_600_000}, {}, [], None)
    later, snapshot, rest = interrupted(sqlite_scene, fleet, 5 * 3_600_000 + 61_000)
    runs = []
    simulate(snapshot, later.question, later.setup, on_run=runs.append)
    assert as_lived(runs) == rest
    assert [(one.outcome, one.ended_at - one.started_at) for one in runs[:1]] == [("timeout", 600_000)]


@pytest.mark.promise("X4")
def test_a_run_that_was_approved_is_not_asked_about_again_where_it_goes_on(sqlite_scene):
    fleet = Fleet(START, 0.1, [NewJob("job", Every("3h"), kind="job", approval=True)], {"job": 5_400_000}, {}, [], None)

    async def approve(scheduler):
        [asked] = await scheduler.get_run_log("job")
        await scheduler.approve_run(asked.id, by="ada")

    later, snapshot, rest = interrupted(sqlite_scene, fleet, 4 * 3_600_000, (12_600_000, approve))
    runs = []
    simulate(snapshot, later.question, later.setup, on_run=runs.append)
    assert as_lived(runs) == rest
    assert rest[0][4] == "success"


def check_fleet(scene, fleet):
    snapshot, runs = stored(scene, fleet), []
    simulate(snapshot, fleet.question, fleet.setup, on_run=runs.append)
    assert as_lived(runs) == lived(scene, fleet)
