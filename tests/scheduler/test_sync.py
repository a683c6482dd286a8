"""`wakeful.sync`: the scheduler without `await`, in scripts, threads and notebooks."""

from __future__ import annotations

import asyncio
import functools
import inspect
import os
import signal
import subprocess
import sys
import threading
from datetime import UTC, datetime

import pytest

import wakeful
from tests.house.test_scheduler_names import USERS
from tests.store.postgres_server import emptied_url
from wakeful import Every, JobExists, Manual, Once, SchedulerError, SchedulerNotOpen
from wakeful.scheduler.loop_thread import OWN_LOOP

PAST = Once(datetime(2026, 1, 1, tzinfo=UTC))


@pytest.fixture
def scheduler(request, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    url = emptied_url() if getattr(request, "param", "") == "postgres" else f"sqlite:///{tmp_path}/wakeful.db"
    with wakeful.sync.Scheduler(url) as scheduler:
        yield scheduler


def test_every_method_users_have_is_there_and_waits():
    for name in USERS:
        theirs, ours = getattr(wakeful.Scheduler, name), getattr(wakeful.sync.Scheduler, name)
        assert not inspect.iscoroutinefunction(ours), name
        if not isinstance(theirs, (property, functools.cached_property)):
            assert inspect.signature(ours).parameters.keys() == inspect.signature(theirs).parameters.keys(), name
            assert ours.__doc__, name
            assert "await " not in ours.__doc__, name


@pytest.mark.parametrize("scheduler", ["sqlite", "postgres"], indirect=True)
def test_a_script_adds_jobs_runs_them_and_reads_what_came_of_it(scheduler):
    ended = threading.Event()

    @scheduler.job(PAST)
    def hello(run):
        assert scheduler.get_job("hello").status == "running"  # a plain handler may use it, too
        return {"attempt": run.attempt}

    @scheduler.on_job_due("follow")
    async def follow():
        return scheduler.is_running()

    unsubscribe = scheduler.subscribe(lambda event: event.data.get("job") == "follow" and ended.set(), "run")
    scheduler.add_job("follow", wakeful.After("hello"), kind="follow")
    scheduler.start()
    assert ended.wait(120)
    unsubscribe()
    for run in scheduler.get_run_log():
        assert scheduler.wait_for_run(run.id, timeout=120).outcome == "success"
    scheduler.stop()
    assert [run.output for run in scheduler.get_run_log()] == [True, {"attempt": 1}]
    assert scheduler.get_status() == "stopped"


def test_exceptions_are_raised_in_the_caller(scheduler):
    scheduler.add_job("a", Every("1h"))
    with pytest.raises(JobExists):
        scheduler.add_job("a", Every("1h"))
    with pytest.raises(wakeful.InvalidJob, match="the run, or none"):
        scheduler.on_job_due("a", lambda a, b: None)


@pytest.mark.parametrize("call", ["list_jobs", "close"])
def test_a_call_that_would_wait_for_itself_is_refused(scheduler, call):
    said, ended = [], threading.Event()

    @scheduler.on_job_due("bad")
    async def bad():
        try:
            getattr(scheduler, call)()
        except SchedulerError as error:
            said.append(str(error))
        finally:
            ended.set()

    scheduler.add_job("bad", Manual(), kind="bad")
    scheduler.start()
    scheduler.run_job("bad")
    assert ended.wait(120)
    assert said == [OWN_LOOP]


def test_it_works_where_an_event_loop_is_running(tmp_path):
    async def notebook():
        with wakeful.sync.Scheduler(f"sqlite:///{tmp_path}/wakeful.db") as scheduler:
            scheduler.add_job("a", Every("1h"))
            scheduler.start()
            return scheduler.list_jobs()

    assert [job.name for job in asyncio.run(notebook())] == ["a"]


def test_it_can_be_opened_again_and_says_when_it_is_not_open(tmp_path):
    scheduler = wakeful.sync.Scheduler(f"sqlite:///{tmp_path}/wakeful.db")
    before = threading.active_count()
    for _ in range(2):
        with pytest.raises(SchedulerNotOpen, match="`with scheduler:`"):
            scheduler.list_jobs()
        with scheduler:
            threading.Thread(target=_stop_when_running, args=[scheduler]).start()
            scheduler.run_forever()
    assert threading.active_count() <= before + 1  # the one that stopped it may be ending
    scheduler.close()


def _stop_when_running(scheduler):
    while not scheduler.is_running():
        pass
    scheduler.stop()


def test_a_store_that_cannot_be_opened_leaves_no_thread(tmp_path):
    before = threading.active_count()
    with pytest.raises(wakeful.StoreError):
        wakeful.sync.Scheduler(f"sqlite:///{tmp_path}").open()
    assert threading.active_count() == before


PROGRAM = """
import sys, threading, wakeful
scheduler = wakeful.sync.Scheduler(sys.argv[1])
@scheduler.job(wakeful.Once("2026-01-01T00:00:00Z"))
def work():
    print("working", flush=True)
    while scheduler.get_status() == "running":
        threading.Event().wait(0.01)
    print("stopping", flush=True)
    threading.Event().wait(float(sys.argv[2]))
    return "finished"
with scheduler:
    scheduler.run_forever()
    print(scheduler.get_status(), scheduler.get_run_log("work")[0].output)
"""


@pytest.mark.parametrize(("seconds", "twice", "output"), [(0.1, False, "finished"), (600, True, None)])
def test_ctrl_c_waits_for_jobs_and_a_second_one_does_not(tmp_path, seconds, twice, output):
    command = [sys.executable, "-W", "error", "-c", PROGRAM, f"sqlite:///{tmp_path}/wakeful.db", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "working\n"
        os.kill(process.pid, signal.SIGINT)
        assert process.stdout.readline() == "stopping\n"
        if twice:
            os.kill(process.pid, signal.SIGINT)
        assert process.stdout.read() == f"stopped {output}\n"
        assert process.wait(120) == 0
