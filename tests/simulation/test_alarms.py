"""Whatever happens, every message is accounted for, and every incident has its own."""

from __future__ import annotations

import sqlite3

import pytest

from tests.simulation.alarms import Alarmed, check_announced, check_outbox
from tests.simulation.invariants import Broken
from tests.simulation.world import live

MADE: list[sqlite3.Connection] = []  # by a test, to be closed at its end
FIRST, SEEDS, GROUPS = 30_000, 24, 12


@pytest.mark.promise("A8", "X5")
@pytest.mark.parametrize("group", range(GROUPS))
def test_no_fault_loses_a_message_or_leaves_an_incident_without_its_own(group: int) -> None:
    sent = deaths = 0
    for seed in range(FIRST + group, FIRST + SEEDS, GROUPS):
        world = live(seed, steps=80, kind=Alarmed)
        sent += len(world.phone.taken)
        deaths += world.deaths
    assert sent > 5
    assert deaths > 0


@pytest.fixture(autouse=True)
def _closed():
    yield
    while MADE:
        MADE.pop().close()


def store(*, deliveries=(), alerts=()):
    connection = sqlite3.connect(":memory:")
    MADE.append(connection)
    connection.row_factory = sqlite3.Row
    connection.executescript(
        "CREATE TABLE deliveries (id, status, open, dedupe); CREATE TABLE jobs (id, kind);"
        "CREATE TABLE alerts (id, kind, job_id, opened_at, last_at, closed_at, key AS (kind || ':' || job_id));"
    )
    connection.executemany("INSERT INTO deliveries VALUES (?, ?, ?, ?)", deliveries)
    connection.executemany("INSERT INTO alerts VALUES (?, ?, ?, ?, ?, ?)", alerts)
    return connection


OPENED = (1, "sent", 0, "alert:7:opened")
OVER = (2, "sent", 0, "alert:7:closed")


@pytest.mark.parametrize(
    ("deliveries", "alerts"),
    [
        ([], [(7, "failing", 1, 5, 5, None)]),
        ([OPENED], []),
        ([OPENED], [(7, "failing", 1, 5, 5, 9)]),
        ([OPENED, OVER, OVER], [(7, "failing", 1, 5, 5, 9)]),
    ],
)
def test_an_incident_without_its_message_is_found(deliveries, alerts):
    with pytest.raises(Broken, match="X5"):
        check_announced(store(deliveries=deliveries, alerts=alerts))


def test_a_message_that_is_gone_or_that_no_job_looks_after_is_found():
    check_outbox(store(deliveries=[OPENED]), {1})
    with pytest.raises(Broken, match="gone"):
        check_outbox(store(), {1})
    with pytest.raises(Broken, match="no job looks after"):
        check_outbox(store(deliveries=[(1, "pending", 0, None)]), set())
