"""Worlds in which people are asked; and the mistake that held what they had approved is found."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from tests.simulation.asking import Asking
from tests.simulation.invariants import Broken
from tests.simulation.world import live
from wakeful.kernel.engine import claim
from wakeful.store.interface import Transaction
from wakeful.store.records import JobDef, RunRow

SEEDS = range(24)
GROUPS = 4


@pytest.mark.promise("X8")
@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_approved_begins_whatever_else_its_job_asks(group: int) -> None:
    answered = 0
    for seed in SEEDS[group::GROUPS]:
        answered += live(seed, 60, Asking).answered
    assert answered > 5


def _live_all() -> None:
    for seed in SEEDS:
        live(seed, 60, Asking)


@pytest.mark.promise("X8")
def test_it_finds_an_approved_start_that_waits_behind_the_next_question(monkeypatch: pytest.MonkeyPatch) -> None:
    def by_age(
        _tx: Transaction, _job: JobDef, runs: Sequence[RunRow], *, slot_due: bool
    ) -> tuple[Sequence[RunRow], bool]:
        del slot_due
        return sorted(runs, key=lambda run: (run.due_at, run.id)), False

    monkeypatch.setattr(claim, "in_order", by_age)
    with pytest.raises(Broken, match="X8"):
        _live_all()
