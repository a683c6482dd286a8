"""The drills of `make chaos`, each in a short form."""

from __future__ import annotations

import pytest

from tests.chaos import agents, full_disk, partition, poison, pooled
from tests.chaos.cluster import ClusterDrill
from tests.chaos.cluster import Scenario as ClusterScenario
from tests.chaos.killing import Drill, Scenario


@pytest.mark.promise("H4", "H9", "H11", "H12", "X14")
@pytest.mark.parametrize("seed", [1, 14, 16])
def test_a_dozen_kills_lose_nothing_and_double_nothing(tmp_path, seed):
    verdict = Drill(tmp_path, Scenario(seed, kills=12)).run()
    assert verdict.clean, "\n".join(verdict.lines())


@pytest.mark.promise("X2", "X13", "H9")
def test_a_cluster_with_a_killed_and_a_frozen_node_loses_nothing_and_settles_nothing_twice(tmp_path):
    scenario = ClusterScenario(seed=3, nodes=2, jobs=100, span_s=10, max_running=16, short=True)
    verdict = ClusterDrill(tmp_path, scenario).run()
    assert verdict.clean, "\n".join(verdict.lines())


@pytest.mark.promise("X2")
def test_a_node_that_is_cut_off_records_nothing_and_comes_back_by_itself():
    assert partition.drill() == []


@pytest.mark.promise("X2")
def test_a_cluster_behind_a_pooler_in_transaction_mode_works_as_without_and_answers_every_read(tmp_path):
    assert pooled.drill(tmp_path, seed=3, nodes=2, jobs=100, span_s=10) == []


@pytest.mark.promise("X14")
def test_a_job_that_takes_its_process_down_is_found_and_the_others_are_done(tmp_path):
    assert poison.drill(tmp_path) == []


@pytest.mark.promise("A4", "D10")
def test_agents_of_a_server_that_is_killed_again_and_again_lose_nothing_and_leave_nothing(tmp_path):
    assert agents.drill(tmp_path, seed=3, kills=6) == []


@pytest.mark.promise("D14")
def test_files_that_cannot_grow_delay_work_and_lose_none(tmp_path):
    assert full_disk.drill_by_limit(tmp_path) == []


@pytest.mark.promise("D14")
def test_a_full_disk_delays_work_and_loses_none(tmp_path):
    wrong = full_disk.drill_by_mount(tmp_path)
    assert wrong == [] or wrong[0].startswith("no small disk here")
