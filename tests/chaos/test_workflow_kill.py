"""A few kills of nodes with a workflow; `make chaos` has many."""

from __future__ import annotations

import pytest

from tests.chaos.workflow_kill import StepsDrill, one_node, two_nodes


@pytest.mark.promise("K9", "K10", "K11", "K14")
@pytest.mark.parametrize("drill", [one_node, two_nodes])
def test_killed_nodes_add_each_message_exactly_once(tmp_path, drill):
    counted = drill(tmp_path, kills=5, seed=7)
    assert counted.wrong() == [], counted.line()
    assert counted.crashed > 0, "no kill hit a run: the test proved nothing"


@pytest.mark.promise("X32")
@pytest.mark.parametrize("drill", [one_node, two_nodes])
def test_killed_nodes_do_each_step_exactly_once_and_keep_the_order_of_each_key(tmp_path, drill):
    counted = drill(tmp_path, kills=5, seed=11, kind=StepsDrill)
    assert counted.wrong() == [], counted.line()
    assert counted.crashed > 0, "no kill hit a run: the test proved nothing"
