"""What processes on one database announce to each other, and what a node then looks for."""

from __future__ import annotations

import os
import resource
import threading

import psycopg
import pytest

from tests.service.real_time import real
from tests.store.postgres_server import postgres_url
from tests.store.samples import NOW, OpenStore, job
from wakeful import Manual, Scheduler, ids
from wakeful.clock import ManualClock
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.engine.recovery import crash_all
from wakeful.kernel.loop import sweep
from wakeful.store import postgres_listener
from wakeful.store.alarm_watermark import LOOK_MS, Watermark
from wakeful.store.postgres_address import PostgresAddress
from wakeful.store.postgres_listener import Listener, announcement, earliest, sent_by
from wakeful.store.postgres_session import CHANNEL

pytestmark = pytest.mark.promise("X2")


@pytest.fixture
def listening():
    """The watermark of a process that listens and has just looked: nothing is set before a second ago."""
    watermark = Watermark()
    watermark.listen(listening=True)
    watermark.begin(NOW)
    watermark.first({0: None, 5: NOW - 3000}, NOW)
    assert watermark.wants_look()
    watermark.committed(NOW)
    return watermark


def test_a_process_that_listens_looks_only_for_what_was_announced_below_its_floor(listening):
    listening.begin(NOW + 1)
    assert not listening.wants_look()
    listening.heard(NOW - 1000)  # at the highest watermark, so found from there on
    listening.begin(NOW + 1)
    assert not listening.wants_look()
    listening.heard(NOW - 1001)
    listening.heard(NOW)
    listening.begin(NOW + 1)
    assert listening.wants_look()
    listening.committed(NOW + 2)
    listening.begin(NOW + 2)
    assert not listening.wants_look()


def test_it_looks_at_least_once_a_second_and_when_a_sender_does_not_say(listening):
    listening.begin(NOW + LOOK_MS)
    assert listening.wants_look()
    listening.committed(NOW + LOOK_MS)
    listening.begin(NOW + LOOK_MS + 1)
    assert not listening.wants_look()
    listening.heard(None)
    listening.begin(NOW + LOOK_MS + 1)
    assert listening.wants_look()


def test_what_was_announced_is_remembered_until_a_look_is_committed(listening):
    listening.heard(NOW - 5000)
    listening.begin(NOW + 1)
    assert listening.wants_look()
    listening.begin(NOW + 2)  # the one before was rolled back
    assert listening.wants_look()
    listening.heard(NOW - 6000)  # while it looks
    listening.committed(NOW + 2)
    listening.begin(NOW + 3)
    assert listening.wants_look()


def test_a_transaction_that_does_not_ask_forgets_nothing_that_was_announced(listening):
    listening.heard(NOW - 5000)
    listening.begin(NOW + 1)
    listening.committed(NOW + 1)
    listening.begin(NOW + 2)
    assert listening.wants_look()


def test_a_process_that_does_not_listen_any_more_always_looks(listening):
    listening.listen(listening=False)
    for moment in (NOW + 1, NOW + 2):
        listening.begin(moment)
        assert listening.wants_look()
        listening.committed(moment)


def test_an_announcement_says_who_sent_it_and_the_earliest_alarm():
    for name in ("host-1-1", "a host-1-1"):
        assert sent_by(name, announcement(name, None))
        assert sent_by(name, announcement(name, NOW))
        assert not sent_by(name, announcement(f"{name}2", NOW))
        assert earliest(announcement(name, NOW)) == NOW
        assert earliest(announcement(name, -5)) == -5
        assert earliest(announcement(name, None)) is None


def test_other_processes_are_sent_the_earliest_alarm_of_a_transaction_with_events_and_without():
    url = postgres_url()
    with OpenStore(url, ManualClock()) as store, psycopg.connect(url, autocommit=True) as other:
        other.execute(f"LISTEN {CHANNEL}")

        def emit_too(tx):
            tx.jobs.add([job(3, due_at=NOW - 90), job(4, due_at=NOW - 80)])
            tx.events.emit("run", {"type": "waiting"})
            tx.events.emit("job", {"type": "added"})

        store.add(job(1, due_at=NOW + 5), job(2, due_at=NOW - 70))
        store.write(emit_too)
        store.write(lambda tx: tx.runs.ask_cancel(7))
        said = [notice.payload for notice in other.notifies(timeout=120, stop_after=3)]
    assert [earliest(payload) for payload in said] == [NOW - 70, NOW - 90, None]


@real
async def test_what_a_take_over_queues_again_is_announced_to_the_other_nodes():
    """The node that takes over may not have a place for all of it."""
    url = postgres_url()
    async with Scheduler(url) as scheduler, await psycopg.AsyncConnection.connect(url, autocommit=True) as other:
        await scheduler.add_job("cut-off", Manual())
        run_id = ids.number_of("run", await scheduler.run_job("cut-off"))

        def begin(tx, _context):
            _, state = find_job(tx, "cut-off")
            run = tx.runs.get(run_id)._replace(status="active", started_at=tx.now, node=7)
            tx.jobs.save_started([state._replace(due_at=None, run_id=run_id, queued=0)])
            tx.runs.activate([run])
            return run

        run = await scheduler.transact(begin)
        await other.execute(f"LISTEN {CHANNEL}")
        await scheduler.transact(lambda tx, context: crash_all(tx, context, [run]))
        said = [earliest(notice.payload) async for notice in other.notifies(timeout=120, stop_after=1)]
        again = await scheduler.read(lambda tx: find_job(tx, "cut-off")[1].due_at)
    assert said == [again]


def test_a_listener_hears_of_what_is_set_below_the_floor_and_of_what_is_not():
    url, watermark, heard = postgres_url(), Watermark(), threading.Event()

    def looks():
        """Whether there is a look after the next notification."""
        assert heard.wait(120)
        heard.clear()
        watermark.begin(NOW + 1)
        wanted = watermark.wants_look()
        watermark.committed(NOW + 1)
        return wanted

    with OpenStore(url, ManualClock()) as store:
        watermark.begin(NOW)
        watermark.first({0: None}, NOW)
        assert watermark.wants_look()
        watermark.committed(NOW)
        listener = Listener(PostgresAddress(url), "me", watermark, heard.set)
        try:
            assert looks()  # at what was announced before it listened
            store.add(job(1, due_at=NOW))
            assert not looks()
            store.add(job(2, due_at=NOW - 5000))
            assert looks()
        finally:
            listener.stop()
    watermark.begin(NOW + 1)
    assert watermark.wants_look()  # it does not listen any more


# -- what any role of the database may send ---------------------------------------------------------------------------


@pytest.fixture
def listener():
    """A listener, its watermark, and what says that it heard something."""
    url, watermark, heard = postgres_url(), Watermark(), threading.Event()
    with OpenStore(url, ManualClock()):
        one = Listener(PostgresAddress(url), "me", watermark, heard.set)
        assert heard.wait(120)
        heard.clear()
        try:
            yield url, watermark, heard
        finally:
            one.stop()


HOSTILE = [
    "9" * 7900,
    f"me {'9' * 7900}",
    f"a -{'9' * 5000}",
    "\N{ARABIC-INDIC DIGIT ONE}" * 300,
    "a ²",
    "a \N{MATHEMATICAL BOLD DIGIT ONE}",
    " ",
    "\x01",
]


@pytest.mark.parametrize("payload", HOSTILE)
def test_whatever_is_announced_says_no_impossible_time(payload):
    assert earliest(payload) is None


def test_a_hostile_notification_does_not_end_the_listener(listener):
    url, watermark, heard = listener
    with psycopg.connect(url, autocommit=True) as other:
        for payload in HOSTILE:
            other.execute("SELECT pg_notify(%s, %s)", (CHANNEL, payload))
        other.execute("SELECT pg_notify(%s, %s)", (CHANNEL, f"other {NOW - 7000}"))
        assert heard.wait(120)
    watermark.begin(NOW)
    watermark.first({0: None}, NOW)
    assert watermark.wants_look()


def test_it_listens_with_more_than_1024_open_files():
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 4096), hard))
    files = []
    try:
        while not files or files[-1] < 1030:
            files.append(os.dup(0))
        url, heard = postgres_url(), threading.Event()
        with OpenStore(url, ManualClock()) as store:
            one = Listener(PostgresAddress(url), "me", Watermark(), heard.set)
            try:
                for due_at in (NOW, NOW + 1):
                    assert heard.wait(120)
                    heard.clear()
                    store.add(job(due_at, due_at=due_at))
                assert heard.wait(120)
            finally:
                one.stop()
    finally:
        for number in files:
            os.close(number)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_after_any_failure_it_listens_again_and_says_so_while_it_cannot(listener, monkeypatch, caplog):
    url, watermark, heard = listener
    broken, tried = threading.Event(), threading.Semaphore(0)

    def breaks(payload):
        broken.set()
        raise RuntimeError("unforeseen")

    def refuses(address):
        tried.release()
        raise RuntimeError("no more connections")

    with psycopg.connect(url, autocommit=True) as other, monkeypatch.context() as patched:
        patched.setattr(postgres_listener, "earliest", breaks)
        patched.setattr(postgres_listener, "connect", refuses)
        patched.setattr(postgres_listener, "_LONGEST_PAUSE_S", 0.01)
        patched.setattr(postgres_listener, "_FIRST_PAUSE_S", 0.01)
        other.execute("SELECT pg_notify(%s, 'x 1')", (CHANNEL,))
        assert broken.wait(120)
        for _ in range(5):
            assert tried.acquire(timeout=120)
        assert watermark.listens_in_vain
    assert heard.wait(120)  # it is back, and looks
    assert not watermark.listens_in_vain
    assert caplog.text.count("unforeseen") == 1


@real
async def test_an_alert_says_that_a_node_does_not_hear_others_until_it_does():
    node = Scheduler(postgres_url(), node="one", timezone="UTC")
    async with node:
        await node.start()
        watermark = node._store._writer.watermark

        async def alerts():
            await node._store.write(lambda tx: sweep.guard(tx, node._engine.identify()))
            return [(alert.kind, alert.message) for alert in await node.list_alerts()]

        assert await alerts() == []
        watermark.listen(listening=False, in_vain=True)
        wanted = "Changes by other processes reach node one within a second, not at once: its log says why."
        assert await alerts() == [("not_listening", wanted)]
        watermark.listen(listening=True)
        assert await alerts() == []
        await node.stop()
