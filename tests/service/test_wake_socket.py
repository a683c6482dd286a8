"""What another process writes to a SQLite file reaches its engine at once, and where it cannot, half a second later."""

from __future__ import annotations

import asyncio
import os
import socket
import stat
import sys
from datetime import UTC, datetime, timedelta

import pytest

from tests.service.real_time import PATIENCE, Watch, make, real
from wakeful import Manual, Once
from wakeful.kernel.loop.config import Tuning
from wakeful.store import wake_socket
from wakeful.store.wake_socket import WakeSocket, notify
from wakeful.testing import VirtualClock, run

#: Waiting for the engine to look by itself takes longer than a test may.
ONLY_THE_BELL = Tuning(poll_ms=4 * PATIENCE * 1000)


def soon():
    return datetime.now(UTC) + timedelta(milliseconds=1)


ACT = """
import asyncio, sys
from datetime import UTC, datetime
from wakeful import Once, Scheduler

async def main(url, verb, what):
    async with Scheduler(url, timezone="UTC") as scheduler:
        if verb == "add":
            await scheduler.add_job(what, Once(datetime.now(UTC)))
        elif verb == "run":
            await scheduler.run_job(what)
        else:
            await scheduler.cancel_run(what)

asyncio.run(main(*sys.argv[1:]))
"""


async def elsewhere(folder, *words):
    """Another process does it, and ends."""
    url = f"sqlite:///{folder / 'wakeful.db'}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", ACT, url, *words)
    assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    process._transport.close()


async def under_way(scheduler):
    """Started, and past its first look for others' changes; the next one is as far away as `poll_ms` says."""
    watch = Watch(scheduler)
    scheduler.on_job_due("job", lambda run: None)
    await scheduler.start()
    await scheduler.add_job("first", Once(soon()))
    await watch.finished()
    return watch


@pytest.fixture
def long_folder(tmp_path):
    folder = tmp_path / ("f" * 60) / ("g" * 60)
    folder.mkdir(parents=True)
    assert len(os.fsencode(wake_socket.socket_path(str(folder / "wakeful.db")))) > 108
    return folder


@pytest.mark.promise("H5", "X23")
@real
async def test_what_another_process_adds_runs_and_cancels_is_done_without_waiting_for_the_next_look(tmp_path):
    async def hang(run):
        await asyncio.Event().wait()

    async with make(tmp_path, tuning=ONLY_THE_BELL) as scheduler:
        watch = await under_way(scheduler)
        await elsewhere(tmp_path, "add", "added")
        await watch.finished(2)
        await scheduler.add_job("asked for", Manual(), kind="long")
        scheduler.on_job_due("long", hang)
        await elsewhere(tmp_path, "run", "asked for")
        await watch.started(3)
        [run] = await scheduler.get_run_log("asked for")
        await elsewhere(tmp_path, "cancel", run.id)
        await watch.finished(3)
        assert (await scheduler.get_run(run.id)).outcome == "cancelled"


@pytest.mark.promise("X23")
@real
async def test_a_second_scheduler_in_the_same_process_rings_too(tmp_path):
    async with make(tmp_path, tuning=ONLY_THE_BELL) as scheduler, make(tmp_path) as other:
        watch = await under_way(scheduler)
        for number in range(5):
            await other.add_job(f"added {number}", Once(soon()))
        await watch.finished(6)
        runs = sorted((run.job, run.outcome) for run in await scheduler.get_run_log())
    assert runs == [(name, "success") for name in (*(f"added {number}" for number in range(5)), "first")]


@pytest.mark.promise("X23")
@real
async def test_a_path_that_is_too_long_for_a_socket_has_a_bell_all_the_same(long_folder):
    async with make(long_folder, tuning=ONLY_THE_BELL) as scheduler:
        watch = await under_way(scheduler)
        await elsewhere(long_folder, "add", "added")
        await watch.finished(2)
        assert wake_socket.socket_path(str(long_folder / "wakeful.db")).exists()


@pytest.mark.promise("X23")
@real
async def test_the_bell_is_its_owners_alone_and_gone_when_the_engine_is(tmp_path):
    file = tmp_path / "wakeful.db.bell"
    before = os.umask(0)
    try:
        async with make(tmp_path) as scheduler:
            assert not file.exists()
            for _ in range(2):
                await scheduler.start()
                assert stat.S_ISSOCK(file.lstat().st_mode)
                assert stat.S_IMODE(file.lstat().st_mode) == 0o600
                await scheduler.stop()
                assert not file.exists()
            await scheduler.start()
        assert not file.exists()
    finally:
        os.umask(before)


KILLED = """
import asyncio, sys
from wakeful import Scheduler

async def main():
    async with Scheduler(sys.argv[1], timezone="UTC") as scheduler:
        await scheduler.start()
        print("in", flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.promise("X23")
@real
async def test_the_bell_of_a_killed_engine_does_no_harm_and_is_replaced_by_the_next(tmp_path):
    url = f"sqlite:///{tmp_path / 'wakeful.db'}"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", KILLED, url, stdout=asyncio.subprocess.PIPE)
    assert await asyncio.wait_for(process.stdout.readline(), PATIENCE) == b"in\n"
    process.kill()
    await process.wait()
    process._transport.close()
    left = (tmp_path / "wakeful.db.bell").lstat()
    await elsewhere(tmp_path, "add", "while nobody ran")
    async with make(tmp_path, tuning=ONLY_THE_BELL) as scheduler:
        watch = await under_way(scheduler)
        await elsewhere(tmp_path, "add", "added")
        await watch.finished(3)
        assert (tmp_path / "wakeful.db.bell").lstat().st_ctime_ns != left.st_ctime_ns


def a_file(place, outside):
    place.write_text("somebody's", encoding="utf-8")


def a_link(place, outside):
    place.symlink_to(outside)


def a_dangling_link(place, outside):
    place.symlink_to(outside.parent / "nowhere")


@pytest.mark.promise("X23")
@pytest.mark.parametrize("put", [a_file, a_link, a_dangling_link])
@real
async def test_what_lies_in_the_bells_place_stays_and_changes_are_seen_at_the_next_look(tmp_path, caplog, put):
    outside = tmp_path / "outside"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as theirs:
        theirs.bind(str(outside))
        theirs.settimeout(0)
        place = tmp_path / "wakeful.db.bell"
        put(place, outside)
        before = place.lstat()
        async with make(tmp_path) as scheduler:
            watch = await under_way(scheduler)
            await elsewhere(tmp_path, "add", "added")
            await watch.finished(2)
        assert place.lstat() == before
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
    assert "wakeful.db.bell (something else is in its place: remove it)" in caplog.text


@pytest.mark.promise("X23")
@real
async def test_a_socket_of_another_user_is_neither_replaced_nor_rung(tmp_path, monkeypatch):
    file, place = tmp_path / "wakeful.db", tmp_path / "wakeful.db.bell"
    file.touch()
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as theirs:
        theirs.bind(str(place))
        theirs.settimeout(0)
        if os.geteuid() == 0:
            os.chown(place, 65534, 65534)
        else:
            place.chmod(0)  # as closed to us as theirs would be
        notify(str(file))
        with pytest.raises(BlockingIOError):
            theirs.recv(1)
        monkeypatch.setattr(os, "geteuid", lambda: 4711)
        before = place.lstat()
        hung = WakeSocket(str(file))
        hung.listen(asyncio.Event().wait)
        hung.take_down()
        assert place.lstat() == before


class Counted:
    """Counts how often it is told, and waits with each until it may go on."""

    def __init__(self):
        self.times = 0
        self.may_go_on = asyncio.Event()
        self._told = asyncio.Event()

    async def __call__(self):
        self.times += 1
        self._told.set()
        await self.may_go_on.wait()

    async def told(self):
        await asyncio.wait_for(self._told.wait(), PATIENCE)
        self._told.clear()


async def turn_round():
    """Let the loop see to all that is ready, several times over."""
    for _ in range(20):
        await asyncio.sleep(0)


@pytest.mark.promise("X23")
@real
async def test_rings_during_a_look_are_one_more_look(tmp_path):
    path, counted = str(tmp_path / "wakeful.db"), Counted()
    (tmp_path / "wakeful.db").touch()
    hung = WakeSocket(path)
    hung.listen(counted)
    notify(path)
    await counted.told()
    for _ in range(2000):
        notify(path)
        await asyncio.sleep(0)
    assert counted.times == 1
    counted.may_go_on.set()
    await counted.told()
    assert counted.times == 2
    await turn_round()
    hung.take_down()
    assert counted.times == 2


@pytest.mark.promise("X23")
@real
async def test_who_rings_without_end_costs_one_look_per_pause(tmp_path, monkeypatch):
    monkeypatch.setattr(wake_socket, "PAUSE_S", 4 * PATIENCE)
    path, counted = str(tmp_path / "wakeful.db"), Counted()
    (tmp_path / "wakeful.db").touch()
    counted.may_go_on.set()
    hung = WakeSocket(path)
    hung.listen(counted)
    for _ in range(2000):
        notify(path)
        await asyncio.sleep(0)
    assert counted.times == 1
    hung.take_down()
    await turn_round()


@pytest.mark.promise("X23")
@real
async def test_a_ring_with_nothing_written_and_the_engines_own_writes_start_no_turn(tmp_path, monkeypatch):
    heard = []
    async with make(tmp_path, tuning=ONLY_THE_BELL) as scheduler:
        watch = await under_way(scheduler)
        scheduler._store.on_change(lambda: heard.append("changed"))
        asked = asyncio.Event()
        ask = scheduler._store.changed_elsewhere

        async def changed_elsewhere():
            changed = await ask()
            asked.set()
            return changed

        monkeypatch.setattr(scheduler._store, "changed_elsewhere", changed_elsewhere)
        await scheduler.add_job("own", Once(soon()))
        await watch.finished(2)
        assert not asked.is_set()
        notify(str(tmp_path / "wakeful.db"))
        await asyncio.wait_for(asked.wait(), PATIENCE)
        await turn_round()
        assert heard == []


@pytest.mark.promise("X23")
def test_in_virtual_time_there_is_no_bell(tmp_path):
    clock = VirtualClock()

    async def main():
        async with make(tmp_path, clock=clock) as scheduler:
            await scheduler.start()
            assert (tmp_path / "wakeful.db.lock").exists()
            assert not (tmp_path / "wakeful.db.bell").exists()

    run(main(), clock)


def test_a_link_to_a_store_leads_to_the_bell_of_the_store(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "real.db")
    assert wake_socket.socket_path(str(tmp_path / "link.db")) == wake_socket.socket_path(str(tmp_path / "real.db"))
