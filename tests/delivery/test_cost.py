"""What waits for a dead target costs the others nothing: the head of a queue is found by an index."""

from __future__ import annotations

import asyncio
import sqlite3

import pytest

from wakeful import Scheduler
from wakeful.domains.delivery.tables import DeliveryRow, Outbox

MANY = 20_000


def row(number):
    return DeliveryRow(
        number, "dead", None, "pending", 1, "output", "x", None, None, None, None, None, None, None, 0, 0, 1, None, 1
    )


def steps(path, sql):
    """How much of a machine SQLite needs for a query, in thousands of its steps, and by which index."""
    store = sqlite3.connect(path)
    count = 0

    def tick():
        nonlocal count
        count += 1

    plan = " ".join(line[3] for line in store.execute(f"EXPLAIN QUERY PLAN {sql}"))
    store.set_progress_handler(tick, 1_000)
    store.execute(sql).fetchall()
    store.close()
    return count, plan


def test_the_queue_of_another_connector_is_not_looked_through(tmp_path):
    path = tmp_path / "t.db"

    async def fill():
        async with Scheduler(f"sqlite:///{path}") as scheduler:

            def work(tx, _):
                for number in range(1, MANY):
                    tx.of(Outbox).add(row(number))
                tx.of(Outbox).add(row(MANY)._replace(connector="fine"))

            await scheduler.transact(work)
            assert (await scheduler.read(lambda tx: tx.of(Outbox).head("fine"))).id == MANY

    asyncio.run(fill())
    for where in (
        "connector = 'fine' AND open = 1 ORDER BY id LIMIT 1",
        "connector = 'dead' AND open = 1 ORDER BY id LIMIT 1",
        "connector IS NULL AND open = 1",
        "connector = 'fine' AND held_for IS NOT NULL AND held_for = 'quiet' AND digest_id IS NULL ORDER BY id LIMIT 1",
        "run_id IN (1, 2)",
        "status = 'failed' ORDER BY id DESC LIMIT 50",
        "job = 'backup' ORDER BY id DESC LIMIT 50",
        "agent = 'reporter' ORDER BY id DESC LIMIT 50",
        "id < 1 AND open = 0 AND held_for IS NULL ORDER BY id LIMIT 500",
    ):
        count, plan = steps(path, f"SELECT * FROM deliveries WHERE {where}")  # noqa: S608 - written above
        assert (count, "SCAN" in plan, "TEMP B-TREE" in plan) == (0, False, False), (where, plan)


@pytest.mark.promise("X24")
def test_what_a_connector_has_sent_is_not_looked_through_for_what_waits(tmp_path):
    path = tmp_path / "t.db"

    async def fill():
        async with Scheduler(f"sqlite:///{path}") as scheduler:

            def work(tx, _):
                for number in range(1, MANY):
                    tx.of(Outbox).add(row(number)._replace(connector="fine", status="sent", open=0))
                tx.of(Outbox).add(row(MANY)._replace(connector="fine"))

            await scheduler.transact(work)
            assert (await scheduler.read(lambda tx: tx.of(Outbox).head("fine"))).id == MANY

    asyncio.run(fill())
    for where in (
        "open = 1 ORDER BY id LIMIT 1",
        "open = 1 AND status = 'sending' ORDER BY id LIMIT 10",
        "open = 1 AND urgent = 0 AND status <> 'sending'",
        "held_for IS NOT NULL AND held_for = 'quiet' AND digest_id IS NULL ORDER BY id LIMIT 1",
        "held_for IS NOT NULL AND held_for = 'pairing'",
    ):
        count, plan = steps(path, f"SELECT * FROM deliveries WHERE connector = 'fine' AND {where}")  # noqa: S608 - as above
        assert (count, "TEMP B-TREE" in plan) == (0, False), (where, plan)
    count, plan = steps(path, "SELECT created_at, queued_at FROM deliveries WHERE open = 1 LIMIT 10000")
    assert (count <= 1, "deliveries_waiting" in plan) == (True, True), (count, plan)
