"""A short kill loop for every test run; `make chaos` is the long one."""

from __future__ import annotations

import pytest

from tests.chaos.killing import Drill, Scenario


@pytest.mark.promise("H9", "H11", "H12", "X14")
def test_a_server_killed_again_and_again_loses_nothing_and_does_nothing_twice(tmp_path):
    verdict = Drill(tmp_path, Scenario(seed=7, kills=4, longest_life_s=1.5, per_second=10, cancels=False)).run()
    assert verdict.clean, "\n".join(verdict.lines())
    assert verdict.facts["crashed"] > 0, "no kill hit a run: the test proved nothing"
