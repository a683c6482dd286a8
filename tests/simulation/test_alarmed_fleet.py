"""Messages and incidents of several nodes: every message is accounted for, whichever node fails."""

from __future__ import annotations

import pytest

from tests.simulation.alarmed_fleet import AlarmedFleet
from tests.simulation.fleet import live_together
from tests.simulation.invariants import Broken
from wakeful.domains.delivery import outbox

SEEDS = range(40_000, 40_002)
STEPS = 25


@pytest.mark.promise("A8", "X5")
@pytest.mark.parametrize("seed", SEEDS)
def test_no_fault_of_any_node_loses_a_message_or_leaves_an_incident_without_its_own(seed: int) -> None:
    fleet = live_together(seed, STEPS, world=AlarmedFleet)
    assert fleet.phone.taken


def test_it_finds_messages_that_nothing_sends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox, "arm", lambda *_: None)
    with pytest.raises(Broken, match=r"A8: message \d+ is still pending"):
        live_together(SEEDS[0], STEPS, world=AlarmedFleet)
