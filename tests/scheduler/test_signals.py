"""A program that only runs jobs ends in good order when it gets a signal, without a trace."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

PROGRAM = """
import asyncio, signal, sys
import wakeful
scheduler = wakeful.Scheduler(sys.argv[1])
heard = []

@scheduler.job(wakeful.Once("2026-01-01T00:00:00Z"))
async def work():
    print("working", flush=True)
    while scheduler.get_status() == "running":
        await asyncio.sleep(0.01)
    print("stopping", flush=True)
    await asyncio.sleep(float(sys.argv[2]))
    return "finished"

async def main():
    async with scheduler:
        before = signal.getsignal(signal.SIGINT)
        await scheduler.run_forever()
        assert signal.getsignal(signal.SIGINT) == before
        print(scheduler.get_status(), (await scheduler.get_run_log("work"))[0].output)

asyncio.run(main())
"""


@pytest.mark.parametrize(
    ("signals", "seconds", "output"),
    [([signal.SIGINT], 0.1, "finished"), ([signal.SIGTERM], 0.1, "finished"), ([signal.SIGINT] * 2, 600, None)],
    ids=["Ctrl-C", "SIGTERM", "twice"],
)
def test_run_forever_returns_after_a_signal_and_a_second_one_does_not_wait(tmp_path, signals, seconds, output):
    command = [sys.executable, "-W", "error", "-c", PROGRAM, f"sqlite:///{tmp_path}/wakeful.db", str(seconds)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "working\n"
        os.kill(process.pid, signals[0])
        assert process.stdout.readline() == "stopping\n"
        for number in signals[1:]:
            os.kill(process.pid, number)
        said, trace = process.communicate(timeout=120)
    assert (said, process.returncode) == (f"stopped {output}\n", 0)
    assert "Traceback" not in trace


OWN_HANDLER = """
import asyncio, os, signal, sys
import wakeful

async def main():
    async with wakeful.Scheduler(sys.argv[1]) as scheduler:
        loop, ours = asyncio.get_running_loop(), asyncio.Event()
        loop.add_signal_handler(signal.SIGTERM, ours.set)
        running = loop.create_task(scheduler.run_forever())
        while not scheduler.is_running():
            await asyncio.sleep(0)
        os.kill(os.getpid(), signal.SIGTERM)
        await ours.wait()
        print(scheduler.get_status())
        await scheduler.stop()
        await running

asyncio.run(main())
"""


def test_a_programs_own_handler_is_left_alone(tmp_path):
    command = [sys.executable, "-W", "error", "-c", OWN_HANDLER, f"sqlite:///{tmp_path}/wakeful.db"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.stderr, done.returncode) == ("running\n", "", 0)
