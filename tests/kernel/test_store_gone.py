"""A store whose file is removed or replaced while it is in use: noticed, said, and nothing goes on in the dark.

Only a SQLite store is a file.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import sqlite3
from datetime import timedelta
from pathlib import Path

import httpx
import pytest

from tests.cli.terminal import Terminal
from tests.kernel.scene import at, virtual
from tests.service.real_time import PATIENCE, Watch, real
from tests.store.sqlite_template import lay_out
from tests.waiting import eventually
from wakeful import Every, Manual, NewJob, Once, Scheduler, StoreGone

pytestmark = pytest.mark.promise("X26")


def removed(file):
    for part in ("", "-wal", "-shm"):
        Path(f"{file}{part}").unlink()


def replaced(file):
    copy = file.with_suffix(".copy")
    shutil.copy(file, copy)
    copy.rename(file)


def moved(file):
    file.rename(file.with_suffix(".old"))


def without_log(file):
    Path(f"{file}-wal").unlink()


@pytest.fixture
def scene(sqlite_scene):
    return sqlite_scene


@pytest.fixture
def file(tmp_path):
    lay_out(tmp_path / "wakeful.db")
    return tmp_path / "wakeful.db"


WAYS = pytest.mark.parametrize("lose", [removed, replaced, moved, without_log])


@WAYS
@virtual
async def test_it_is_noticed_within_a_sweep_and_the_engine_stops(scene, lose):
    file = Path(scene.url.removeprefix("sqlite:///"))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("daily", Every("1d", anchor=at(days=1)))
        await scheduler.start()
        await scene.sleep("1m")
        lose(file)
        await scene.sleep(timedelta(milliseconds=scene.tuning.sweep_ms))
        assert scheduler.get_status() == "stopped"
        assert "while it was in use" in scheduler.get_state().trouble
        verdict = await scheduler.get_verdict()
        assert (verdict.state, verdict.well) == ("stalled", False)
        assert "while it was in use" in verdict.sentence
        for call in (lambda: scheduler.add_job("b", Manual()), scheduler.list_jobs, scheduler.start):
            with pytest.raises(StoreGone, match="put the right file there, then start again"):
                await call()
        await scene.sleep("3d")
        assert scene.runs == []


def checkpointed(file):
    with contextlib.closing(sqlite3.connect(file)) as other:
        assert other.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()[0] == 0


def size_of(file):
    return file.stat().st_size


@virtual
async def test_a_backup_that_is_copied_over_the_file_is_noticed_too(scene, tmp_path):
    file, backup = Path(scene.url.removeprefix("sqlite:///")), tmp_path / "backup.db"
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        checkpointed(file)
        shutil.copyfile(file, backup)
        await scheduler.add_jobs([NewJob(f"job-{number}", Manual(), payload="x" * 5_000) for number in range(50)])
        checkpointed(file)
        await scene.sleep("1m")
        shutil.copyfile(backup, file)
        await scene.sleep(timedelta(milliseconds=scene.tuning.sweep_ms))
        assert scheduler.get_status() == "stopped"
        for call in (lambda: scheduler.add_job("b", Manual()), scheduler.list_jobs, scheduler.start):
            with pytest.raises(StoreGone, match="was overwritten while it was in use"):
                await call()


@virtual
async def test_a_file_that_a_person_vacuums_stays_in_use(scene):
    file = Path(scene.url.removeprefix("sqlite:///"))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        for payload in ("x" * 5_000, None):
            jobs = [NewJob(f"job-{number}", Manual(), payload=payload) for number in range(50)]
            await scheduler.add_jobs(jobs, if_exists="update")
            checkpointed(file)
            await scene.sleep("2s")
        before = size_of(file)
        with contextlib.closing(sqlite3.connect(file)) as other:
            other.execute("VACUUM")
        checkpointed(file)
        assert size_of(file) < before
        await scene.sleep("2s")
        await scheduler.add_job("b", Once(at(0)))
        await scene.sleep("2s")
        assert [run.job for run in scene.runs] == ["b"]


@WAYS
@real
async def test_what_runs_is_ended_and_who_waits_for_the_scheduler_hears_why(file, lose):
    ended = []
    scheduler = Scheduler(f"sqlite:///{file}", timezone="UTC")

    @scheduler.on_job_due("job")
    async def handler(run):
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(run.job)

    async with asyncio.timeout(PATIENCE), scheduler:
        watch = Watch(scheduler)
        await scheduler.add_job("a", Once(at()))
        running = asyncio.create_task(scheduler.run_forever())
        await watch.started()
        lose(file)
        with pytest.raises(StoreGone):
            await running
        assert ended == ["a"]
    if lose is replaced:  # its place is free for a server on the new file
        async with Scheduler(f"sqlite:///{file}", timezone="UTC") as other:
            await other.start()


@pytest.mark.parametrize("lose", [removed, replaced])
def test_a_server_says_so_everywhere_and_others_see_that_none_runs_the_store(tmp_path, lose):
    terminal = Terminal(tmp_path)
    place = lay_out(tmp_path / "t.db")
    try:
        server = terminal.serve("--db", place)
        address = re.search(r"http://\S+:\d+", server.until("listening on"))[0]
        token = (tmp_path / "t.db.token").read_text().strip()
        with httpx.Client(base_url=address, headers={"Authorization": f"Bearer {token}"}, trust_env=False) as client:
            assert client.get("/readyz").status_code == 200
            lose(tmp_path / "t.db")
            stopped = eventually(
                lambda: client.get("/readyz").json()["reasons"], lambda said: "The engine is not running." in said
            )
            assert client.get("/readyz").status_code == client.get("/healthz").status_code == 503
            assert "while it was in use" in stopped[-1]
            refused = client.get("/api/verdict")
            assert (refused.status_code, "while it was in use" in refused.text) == (503, True)
        server.until("the engine stops")
        seen = terminal("status", "--db", place)
        assert "No server is running" in seen.out
    finally:
        terminal.close()
