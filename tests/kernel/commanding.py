"""Commands to run, and ways to see that nothing of them stays: what the tests of commands share."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import select
import sys
from pathlib import Path

import pytest

from wakeful.domains.command.run import CommandLimits, run_command
from wakeful.domains.command.spec import CommandSpec

QUICK = CommandLimits(grace=0.2, drain=0.1)
PATIENT = CommandLimits(grace=30.0, drain=30.0)
RUN = {"WAKEFUL_RUN_ID": "run_7", "WAKEFUL_JOB": "backup"}
WHOLE_GROUP = "exec 9>line; "  # everything the shell starts holds the lifeline too


def sh(script, *args, **fields):
    return CommandSpec(("sh", "-c", script, "sh", *map(str, args)), **fields)


def python(script, **fields):
    return CommandSpec((sys.executable, "-c", script), **fields)


@pytest.fixture
def log_path(tmp_path):
    return tmp_path / "logs" / "run_7.log"


@pytest.fixture
def run(log_path):
    def run(spec, **options):
        options = {"run_env": RUN, "log_path": log_path, "limits": PATIENT} | options
        return asyncio.run(run_command(spec, **options))

    return run


class Lifeline:
    """A FIFO that processes hold open for writing: a line says they are there, its end that all of them are gone."""

    def __init__(self, folder):
        self.path = folder / "line"
        os.mkfifo(self.path)
        self._fd = os.open(self.path, os.O_RDONLY | os.O_NONBLOCK)

    def line(self):
        return self._wait().decode().strip()

    def gone(self):
        while self._wait():
            continue
        return True

    def _wait(self):
        poll = select.poll()
        poll.register(self._fd, select.POLLIN)
        assert poll.poll(20_000), "nothing came through the lifeline"
        return os.read(self._fd, 4096)

    def close(self):
        os.close(self._fd)


@pytest.fixture
def lifeline(tmp_path):
    lifeline = Lifeline(tmp_path)
    yield lifeline
    lifeline.close()


def descriptors():
    gc.collect()
    return sorted(entry.name for entry in Path("/dev/fd").iterdir())


def children():
    found = set()
    for task in Path("/proc/self/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # a thread that ended meanwhile
            found.update((task / "children").read_text().split())
    return found


@pytest.fixture
def has_children():
    """Whether there are any that were not there before: a server that other tests use may be one."""
    before = children()
    return lambda: bool(children() - before)
