"""Whatever happens at night and in the morning: a message's text arrived, or its row says otherwise."""

from __future__ import annotations

import pytest

from tests.simulation.invariants import Broken
from tests.simulation.nights import Nightly
from tests.simulation.world import live
from wakeful.domains.delivery import digests, texts
from wakeful.domains.delivery.tables import DeliveryRow, Outbox
from wakeful.domains.delivery.texts import DigestEntry, DigestPart

FIRST, SEEDS, GROUPS, STEPS = 60_000, 12, 6, 60


@pytest.mark.promise("A8", "X19")
@pytest.mark.parametrize("group", range(GROUPS))
def test_what_is_sent_arrived_whole_and_nothing_is_held_for_ever(group: int) -> None:
    arrived = 0
    for seed in range(FIRST + group, FIRST + SEEDS, GROUPS):
        arrived += len(live(seed, STEPS, Nightly).phone.texts)
    assert arrived > 5


@pytest.mark.promise("A8", "X19")
def test_it_finds_a_digest_that_leaves_out_what_does_not_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def first_part(entries: list[DigestEntry]) -> list[DigestPart]:
        return [texts.digest(entries)[0]._replace(entries=len(entries))]

    monkeypatch.setattr(digests, "digest", first_part)
    with pytest.raises(Broken, match="is sent, and its text did not arrive"):
        live(60_003, STEPS, Nightly)


@pytest.mark.promise("X19")
def test_it_finds_a_digest_that_is_put_into_another(monkeypatch: pytest.MonkeyPatch) -> None:
    held = Outbox.held

    def disguised(outbox: Outbox, connector: str, limit: int) -> list[DeliveryRow]:
        return [row._replace(kind="output") for row in held(outbox, connector, limit)]

    monkeypatch.setattr(Outbox, "held", disguised)
    with pytest.raises(Broken, match="waits in a digest that is sent"):
        live(60_007, STEPS, Nightly)
