"""What became of a commit: never guessed, whether its answer was lost on the way or says something else."""

from __future__ import annotations

import asyncio
import contextlib
import random

import psycopg
import pytest

from tests.chaos.proxy import Proxy
from tests.service.real_time import PATIENCE, real
from tests.store.postgres_server import postgres_url, shared_server
from tests.store.samples import NOW, job, run
from wakeful.clock import SystemClock
from wakeful.errors import StoreRefused, StoreUnreachable
from wakeful.kernel.context import Context
from wakeful.kernel.kinds import Kinds
from wakeful.kernel.loop.loop_state import LoopState, release_unknown
from wakeful.store import make_store, postgres_writer
from wakeful.store.records import NodeRow

pytestmark = pytest.mark.promise("X2")

LOCKED_OUT = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
STARTED = {"type": "started"}  # as in the last statement before a claim's commit, which the proxy looks for


class Behind:
    """A store whose way to the server can be cut, and what its listeners heard."""

    def __init__(self):
        self.url = postgres_url()
        self.way = Proxy(shared_server().port)
        self.store = make_store(self.url.replace(f":{shared_server().port}/", f":{self.way.port}/"), SystemClock())
        self.heard = []

    async def __aenter__(self):
        await self.store.open()
        self.store.on_events(lambda groups: self.heard.extend(group.stream for group in groups))
        await self.store.write(lambda tx: tx.lanes.add({"lane": 1}))
        return self

    async def __aexit__(self, *_):
        await self.store.close()
        await asyncio.to_thread(self.way.close)

    async def write_cut_off(self, moment):
        """Begin to write; returns when the way is cut, before the server hears of the commit or after."""
        self.way.cut(moment)
        writing = asyncio.ensure_future(self.store.write(_one_more))
        assert await asyncio.to_thread(self.way.is_cut.wait, PATIENCE)
        return writing

    def stored(self):
        with psycopg.connect(self.url) as other:
            (used,) = other.execute("SELECT used FROM lanes WHERE key = 'lane'").fetchone()
            (events,) = other.execute("SELECT count(*) FROM events WHERE stream = 'run'").fetchone()
        assert used - 1 == events
        return events


def _one_more(tx):
    tx.lanes.add({"lane": 1})
    tx.events.emit("run", STARTED)
    return "written"


@real
async def test_a_commit_whose_answer_is_cut_off_counts_once_and_is_heard_of():
    async with Behind() as behind:
        writing = await behind.write_cut_off("answer")
        behind.way.resume(torn=True)
        assert await asyncio.wait_for(writing, PATIENCE) == "written"
        assert (behind.stored(), behind.heard) == (1, ["run"])
        assert await behind.store.write(_one_more) == "written"
        assert behind.stored() == 2


@real
async def test_a_commit_that_never_reached_the_server_is_an_error_and_announces_nothing():
    async with Behind() as behind:
        writing = await behind.write_cut_off("commit")
        behind.way.resume(torn=True)
        with pytest.raises(StoreUnreachable):
            await asyncio.wait_for(writing, PATIENCE)
        assert (behind.stored(), behind.heard) == (0, [])


@pytest.mark.parametrize(("moment", "stored"), [("answer", 1), ("commit", 0)])
@real
async def test_a_commit_that_cannot_be_looked_up_is_called_unknown_whatever_became_of_it(monkeypatch, moment, stored):
    monkeypatch.setattr(postgres_writer, "FATE_MS", 100)
    async with Behind() as behind:
        writing = await behind.write_cut_off(moment)
        behind.way.refuse()
        with pytest.raises(StoreUnreachable, match="not known whether the change was stored: look before"):
            await asyncio.wait_for(writing, PATIENCE)
        assert (behind.stored(), behind.heard) == (stored, [])


@pytest.mark.parametrize("together", [False, True], ids=["alone", "in a group"])
@real
async def test_a_commit_that_the_server_answers_with_a_rollback_is_an_error(together):
    store = make_store(postgres_url(), SystemClock())
    await store.open()

    def careless(tx):
        tx.lanes.add({"lane": 1})
        with contextlib.suppress(psycopg.Error):
            tx.jobs._session.execute("SELECT 1 / 0")

    def held(tx):  # keeps the writer busy, so that what is handed in meanwhile is one group
        tx.lanes.add({"held": 1})
        tx.jobs._session.execute("SELECT pg_sleep(0.1)")

    works = [held, careless, lambda tx: tx.lanes.add({"other": 1})] if together else [careless]
    results = await asyncio.gather(*map(store.write, works), return_exceptions=True)
    assert (
        [type(result) for result in results] == [type(None), StoreRefused, type(None)] if together else [StoreRefused]
    )
    (refused,) = [result for result in results if result is not None]
    assert "nothing was stored" in str(refused) or "aborted" in str(refused)
    assert await store.read(lambda tx: tx.lanes.all()) == ({"held": 1, "other": 1} if together else {})
    await store.close()


@real
async def test_a_claim_whose_commit_is_still_under_way_is_waited_for_before_claims_are_released():
    url = postgres_url()
    store = make_store(url, SystemClock())
    await store.open()
    node = NodeRow(7, "one", NOW, NOW, None, "{}")
    await store.write(lambda tx: tx.members.join(node))
    await store.write(lambda tx: tx.jobs.add([job(1, run_id=5)]))
    other = make_store(url, SystemClock())
    await other.open()
    claimed, finish = asyncio.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def claim(tx):
        tx.members.lives(7)
        tx.runs.add([run(5, status="active", node=7, started_at=NOW)])
        loop.call_soon_threadsafe(claimed.set)
        asyncio.run_coroutine_threadsafe(finish.wait(), loop).result(PATIENCE)

    claiming = asyncio.ensure_future(other.write(claim))
    await claimed.wait()
    context = Context(7, Kinds(), frozenset(), None, lambda: 9, random.Random(7))
    releasing = asyncio.ensure_future(release_unknown(store, LoopState(), context, frozenset()))
    with psycopg.connect(url, autocommit=True) as looking:
        async with asyncio.timeout(PATIENCE):
            while not releasing.done() and not looking.execute(LOCKED_OUT).fetchone()[0]:
                await asyncio.to_thread(lambda: None)
    finish.set()
    await asyncio.gather(claiming, releasing)
    (found,) = await store.read(lambda tx: tx.runs.open(1))
    assert found.status == "queued"
    await store.close()
    await other.close()
