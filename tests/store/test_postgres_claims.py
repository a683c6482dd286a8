"""A claim asks PostgreSQL once: what it is given is of one moment, and what comes after it is known without asking."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from tests.service.real_time import real
from tests.store.opened import Opened, waiting
from tests.store.postgres_server import postgres_url
from tests.store.samples import NOW, job
from wakeful import Manual, Scheduler
from wakeful.errors import JobExists
from wakeful.store.jobs import LOOK_AGAIN_MS
from wakeful.store.postgres_session import LOCK_SPACE, lock_number
from wakeful.store.records import NodeRow

pytestmark = pytest.mark.promise("X2")

GATE = 42
#: Lets the question what is due wait after it has begun.
_GATED = f"""
ALTER TABLE priorities RENAME TO ungated;
CREATE VIEW priorities AS
SELECT level FROM ungated WHERE (SELECT pg_advisory_xact_lock_shared({GATE})) IS NOT NULL
"""  # noqa: S608 - a number of our own


def claim(*, rearm=None):
    """Clears what is due, or sets its alarms again; which it was, and when to look again."""

    def work(tx):
        states = [state for _, state in tx.jobs.due(NOW, 10)]
        tx.jobs.save_started([state._replace(due_at=rearm) for state in states])
        return [state.job_id for state in states], tx.jobs.next_alarm(claimed=True)

    return work


@real
async def test_a_job_that_is_edited_while_a_claim_asks_is_claimed_as_it_is_then():
    url = postgres_url()
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(1, due_at=NOW), job(2, due_at=NOW)]))
        with psycopg.connect(url, autocommit=True) as other:
            other.execute(_GATED)
            other.execute("SELECT pg_advisory_lock(%s)", (GATE,))
            asked = asyncio.ensure_future(store.write(lambda tx: tx.jobs.due(NOW, 10)))
            await waiting(other, "advisory")
            with other.transaction():
                other.execute("UPDATE jobs SET kind = 'other' WHERE id = 1")
                other.execute("UPDATE job_state SET revision = 7 WHERE job_id = 1")
            other.execute("SELECT pg_advisory_unlock(%s)", (GATE,))
            found = await asked
    assert [(job.kind, state.revision) for job, state in found] == [("other", 7), ("work", 1)]


@real
async def test_after_a_claim_the_next_alarm_is_the_first_that_is_left_or_was_set_since():
    async with Opened(postgres_url()) as (store,):
        assert await store.write(claim()) == ([], None)
        await store.write(lambda tx: tx.jobs.add([job(1, due_at=NOW), job(2, due_at=NOW + 70, priority=3)]))
        assert await store.write(claim(rearm=NOW + 50)) == ([1], NOW + 50)
        await store.write(lambda tx: tx.jobs.add([job(3, due_at=NOW - 5)]))
        assert await store.write(claim(rearm=NOW + 90)) == ([3], NOW + 50)


@real
async def test_what_another_node_has_in_hand_is_looked_for_again_and_stays_in_sight():
    url = postgres_url()
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.jobs.add([job(number, due_at=NOW - 9) for number in (1, 2)]))
        with psycopg.connect(url) as other:
            other.execute("SELECT * FROM job_state WHERE job_id = 2 FOR UPDATE")
            assert await store.write(claim()) == ([1], NOW + LOOK_AGAIN_MS)
            assert await store.write(claim()) == ([], NOW + LOOK_AGAIN_MS)
        assert await store.write(claim()) == ([2], None)


def due_for(node_id):
    def work(tx):
        standing, due = tx.jobs.due_for(node_id, NOW, 10, parked=True)
        return standing.draining, [state.job_id for _, state in due]

    return work


@real
@pytest.mark.parametrize(("change", "expected"), [("stopped_at", None), ("draining", True)])
async def test_a_node_that_is_stopped_while_it_asks_is_given_nothing(change, expected):
    url = postgres_url()
    async with Opened(url) as (store,):
        await store.write(lambda tx: tx.members.join(NodeRow(1, "one", NOW, NOW, None, "{}")))
        await store.write(lambda tx: tx.jobs.add([job(1, due_at=NOW)]))
        with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as onlooker:
            other.execute(f"UPDATE nodes SET {change} = 1")  # noqa: S608 - a column of ours
            asked = asyncio.ensure_future(store.write(due_for(1)))
            await waiting(onlooker, "transactionid")
            assert onlooker.execute("SELECT job_id FROM job_state FOR UPDATE SKIP LOCKED").fetchall() == [(1,)]
            other.commit()
            assert await asked == (expected, [])


@real
@pytest.mark.parametrize("known", [False, True])
async def test_a_lane_is_read_as_it_is_once_the_node_before_has_let_go_of_it(known):
    """Also one that the other node has only just made."""
    url = postgres_url()
    async with Opened(url, 2) as (one, two):
        if known:
            await one.write(lambda tx: tx.lanes.add({"lane": 1}))
        with psycopg.connect(url) as other, psycopg.connect(url, autocommit=True) as onlooker:
            other.execute("SELECT pg_advisory_xact_lock(%s, %s)", (LOCK_SPACE, lock_number("lanes")))
            asked = asyncio.ensure_future(two.write(lambda tx: tx.lanes.loads(["lane", "lane"])))
            await waiting(onlooker, "advisory")
            other.execute(
                "INSERT INTO lanes (key, used, size) VALUES ('lane', 4, 9) "
                "ON CONFLICT (key) DO UPDATE SET used = 4, size = 9"
            )
            other.commit()
            assert await asked == {"lane": (4, 9, False, None)}


@real
async def test_of_two_that_add_the_same_name_one_is_refused_and_no_other_waits_for_them():
    url = postgres_url()
    async with Scheduler(url) as one, Scheduler(url) as two:
        await two.add_job("other", Manual())
        with psycopg.connect(url) as before, psycopg.connect(url, autocommit=True) as onlooker:
            before.execute(
                "INSERT INTO jobs (id, name, kind, source, trigger, payload, options, created_at, updated_at) "
                "VALUES (1, 'same', 'work', 'code', '{}', 'null', '{}', 0, 0)"
            )
            late = asyncio.ensure_future(one.add_job("same", Manual()))
            await waiting(onlooker, "transactionid")
            async with asyncio.timeout(120):
                await two.add_job("further", Manual())  # events are written meanwhile
            before.commit()
        with pytest.raises(JobExists, match="'same' already exists"):
            await late
        with pytest.raises(JobExists):
            await two.add_job("further", Manual())
        assert [job.name for job in await two.list_jobs(limit=2)] == ["further", "other"]
