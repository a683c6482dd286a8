"""`demo --terminal`: a living fleet that leaves nothing behind."""

from __future__ import annotations

import os
import pty
import select
import signal
import subprocess
import sys

from tests.cli.terminal import PATIENCE
from wakeful.surfaces.cli.demo import fleet


def test_the_demo_shows_jobs_of_several_kinds(tmp_path):
    jobs = {job.name: job for job in fleet(tmp_path)}
    assert {job.trigger.type for job in jobs.values()} == {"every", "interval", "cron", "once", "after"}
    assert any(job.options.get("lanes") for job in jobs.values())
    assert any(job.kind == "command" for job in jobs.values())


def test_the_demo_ends_by_itself_after_the_time_it_is_given(terminal):
    answer = terminal("demo", "--terminal", "--for", "1s", TMPDIR=str(terminal.folder))
    assert (answer.code, answer.err) == (0, "")
    lines = answer.out.splitlines()
    assert lines[0].startswith(f"A demo fleet is at work in {terminal.folder}/wakeful-demo-")
    assert lines[-1] == "The demo is over; its store is gone."
    assert list(terminal.folder.glob("wakeful-demo-*")) == []


def test_without_a_terminal_the_demo_prints_each_end_and_a_signal_ends_it(terminal):
    demo = terminal.start("demo", "--terminal", TMPDIR=str(terminal.folder))
    assert " after " in demo.until("inbox run_")
    demo.signal(signal.SIGINT)
    assert demo.ended().code == 0
    assert list(terminal.folder.glob("wakeful-demo-*")) == []


def test_in_a_terminal_the_demo_draws_jobs_and_runs(terminal):
    screen, inside = pty.openpty()
    env = {**terminal.env, "TERM": "xterm", "COLUMNS": "100", "LINES": "30", "TMPDIR": str(terminal.folder)}
    process = subprocess.Popen(
        [sys.executable, "-m", "wakeful.cli", "demo", "--terminal", "--for", "1s"],
        stdin=subprocess.DEVNULL, stdout=inside, stderr=inside, env=env, cwd=terminal.folder,
    )  # fmt: skip
    os.close(inside)
    drawn = b""
    try:
        while b"The demo is over" not in drawn:
            ready, _, _ = select.select([screen], [], [], PATIENCE)
            assert ready
            drawn += os.read(screen, 65536)
        assert process.wait(PATIENCE) == 0
    finally:
        process.kill()
        process.wait()
        os.close(screen)
    text = drawn.decode()
    for part in ("Wakeful demo", "SCHEDULE", "flaky-feed", "spring-cleaning", "paused", "OUTCOME", "inbox"):
        assert part in text
