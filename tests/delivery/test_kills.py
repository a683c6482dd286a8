"""kill -9 between storing, sending and acknowledging, on real processes: nothing is lost, and a double says so."""

from __future__ import annotations

import pytest

from tests.chaos.messages import STEPS, kill_at


@pytest.mark.promise("A8")
@pytest.mark.parametrize("step", STEPS)
def test_a_message_survives_a_kill_at_every_step(tmp_path, step):
    _, wrong = kill_at(step, tmp_path)
    assert wrong == []
