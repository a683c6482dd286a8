"""Leases as long as in life: when a dead node is taken over from, and when a living one must start nothing more."""

from __future__ import annotations

import asyncio
import threading
from datetime import UTC, datetime, timedelta

import psycopg
import pytest

from tests.kernel.crashing import die
from tests.service.real_time import PATIENCE, Watch, real
from tests.store.postgres_server import emptied_url, postgres_url
from wakeful import Once, Scheduler
from wakeful.kernel.cluster.membership import Lease
from wakeful.kernel.loop.config import Tuning
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.testing import VirtualClock, run

pytestmark = pytest.mark.promise("X2")

START = datetime(2026, 1, 1, tzinfo=UTC)
PAST = datetime(2020, 1, 1, tzinfo=UTC)
GRACE_S = 5
TIMES = LeaseTimes()


@pytest.mark.parametrize("lived_s", [0.5, 3, 4.9, 7.3, 61])
def test_a_dead_nodes_work_is_taken_over_when_its_lease_is_over_and_within_five_seconds(lived_s, tmp_path, monkeypatch):
    """The lease counts from the last beat: that is at most one beat before the death."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    clock, url, started = VirtualClock(START), emptied_url(), []

    def node(name):
        made = Scheduler(url, clock=clock, node=name, timezone="UTC", seed=len(name))

        async def work(run):
            started.append((name, run.reason, clock.now()))
            if name == "one":
                await asyncio.Event().wait()

        made.on_job_due("work", work)
        return made

    async def main():
        one, other = node("one"), node("other")
        for each in (one, other):
            await each.open()
        await one.start()
        await one.add_job("a", Once(PAST), kind="work")
        await clock.sleep(0.1)
        await other.start()
        await clock.sleep(lived_s)
        (seen_at,) = await other._store.read(
            lambda tx: [row.seen_at for row in tx.members.alive() if row.name == "one"]
        )
        await die(one)
        await clock.sleep(3 * TIMES.lease_ms / 1000)
        first, again = started
        assert (first[:2], again[:2]) == (("one", "schedule"), ("other", "recovery"))
        assert TIMES.lease_ms <= again[2] - seen_at <= TIMES.lease_ms + GRACE_S * 1000
        assert [alert.kind for alert in await other.list_alerts()] == ["dead_node"]
        await other.stop()
        await other.close()

    run(main(), clock)


def test_a_lease_holds_until_a_margin_before_others_may_call_the_node_dead():
    clock = VirtualClock(START)
    lease = Lease(clock, TIMES)
    clock.elapse(2 * TIMES.lease_ms / 1000)
    assert not lease.holds()
    lease.confirm(clock.boot())
    clock.elapse((TIMES.lease_ms - TIMES.margin_ms - 1) / 1000)
    assert lease.holds()
    clock.elapse(0.001)
    assert not lease.holds()
    assert TIMES.beat_ms < TIMES.lease_ms - TIMES.margin_ms < TIMES.lease_ms


_NO_BEATS = """
CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'no beat gets through'; END $$;
CREATE TRIGGER no_beats BEFORE UPDATE ON nodes FOR EACH ROW EXECUTE FUNCTION refuse()
"""


@real
async def test_a_node_whose_beats_are_not_confirmed_starts_nothing_before_its_lease_is_over():
    """It reaches the database and could claim: that its beats fail is reason enough not to."""
    short = LeaseTimes(beat_ms=200, lease_ms=1500, margin_ms=700)
    url = postgres_url()
    node = Scheduler(url, node="one", timezone="UTC", tuning=Tuning(lease=short))
    node.on_job_due("work", lambda run: run.job)
    async with node, asyncio.timeout(PATIENCE):
        watch = Watch(node)
        await node.start()
        await node.add_job("before", Once(PAST), kind="work")
        await watch.finished()
        with psycopg.connect(url, autocommit=True) as admin:
            admin.execute(_NO_BEATS)
            engine = node._engine
            while engine.node_lease.may_admit():
                await asyncio.to_thread(threading.Event().wait, 0.01)
            await node.add_job("after", Once(PAST), kind="work")
            looked = engine.counters.checks
            while engine.counters.checks < looked + 5:
                engine.wake(recheck_store=True)
                await asyncio.to_thread(threading.Event().wait, 0.01)
            assert await node.get_run_log("after") == []
            admin.execute("DROP TRIGGER no_beats ON nodes")
        await watch.finished(2)
        await node.stop()


@pytest.mark.promise("H12")
@pytest.mark.parametrize(("given", "used"), [("off", "on"), ("on", "on"), ("local", "local"), ("remote_apply",) * 2])
@real
async def test_a_commit_is_on_disk_before_it_is_answered_whatever_the_default_of_the_database(given, used):
    """`synchronous_commit = off` would answer before; stricter settings are the operator's own."""
    url = postgres_url()
    with psycopg.connect(url, autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {url.rpartition('/')[2]} SET synchronous_commit = {given}")
    node = Scheduler(url, node="one", timezone="UTC")
    async with node:

        def work(tx):
            return tx.jobs._session.rows("SELECT current_setting('synchronous_commit')")[0][0]

        assert await node._store.write(work) == used
        assert await asyncio.to_thread(node._store.write_apart, work) == used


# -- the oldest transaction -------------------------------------------------------------------------------------------


@real
async def test_a_session_that_holds_a_transaction_open_for_long_is_named_in_an_alert_until_it_ends(monkeypatch):
    from wakeful.kernel.loop import sweep

    monkeypatch.setattr(sweep, "OLD_TRANSACTION_MS", 0)
    url = postgres_url()
    node = Scheduler(url, node="one", timezone="UTC")
    async with node:
        engine = node._engine

        def swept():
            return node._store.write(lambda tx: sweep.guard(tx, engine.identify()))

        with psycopg.connect(url, application_name="pg_dump") as onlooker:
            onlooker.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            onlooker.execute("SELECT count(*) FROM jobs")
            await swept()
            (alert,) = await node.list_alerts()
            pid = onlooker.info.backend_pid
            assert alert.kind == "old_transaction"
            assert alert.message.startswith("A transaction of wakeful has been open for 0 minutes (process ")
            assert f"(process {pid}, pg_dump)" in alert.message
            monkeypatch.setattr(sweep, "OLD_TRANSACTION_MS", int(timedelta(minutes=15).total_seconds() * 1000))
            await swept()  # it is not that old
        assert await node.list_alerts() == []
