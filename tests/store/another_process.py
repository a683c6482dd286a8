"""Another process that follows instructions and reports results: how two processes meet on one store in tests."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import textwrap

PATIENCE_S = 120

_PRELUDE = """
import asyncio, os, resource, sqlite3, sys
from wakeful.clock import SystemClock
from wakeful.errors import SchedulerError
from wakeful.store import make_store, sqlite  # both now: rights to read them may be given up

def say(*words):
    print(*words, flush=True)

def wait():
    if not sys.stdin.readline():
        sys.exit("the test is gone")

def drop_rights():
    if os.geteuid() == 0:
        os.setgroups([])
        os.setgid(65534)
        os.setuid(65534)

async def opened(url):
    store = make_store(url, SystemClock())
    await store.open()
    return store

def attempt(url):
    \"\"\"Open the store, write one thing, close it; say what came of it.\"\"\"
    async def main():
        store = await opened(url)
        try:
            await store.write(lambda tx: tx.facts.put({"written by": os.getpid()}))
        finally:
            await store.close()
    try:
        asyncio.run(main())
    except SchedulerError as error:
        say(type(error).__name__, error)
    else:
        say("done")

url = sys.argv[1]
"""


class AnotherProcess:
    """Runs `code` after the prelude; `say` lets it go on from its `wait()`, `hear` waits for what it says."""

    def __init__(self, code, url):
        program = _PRELUDE + textwrap.dedent(code)
        self._process = subprocess.Popen(
            [sys.executable, "-c", program, url], stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
        )
        self.pid = self._process.pid

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.kill()
        self._process.stdin.close()
        self._process.stdout.close()

    def say(self):
        self._process.stdin.write(b"\n")

    def hear(self):
        """Its next line; a failure when it does not come."""
        said = b""
        while not said.endswith(b"\n"):
            ready, _, _ = select.select([self._process.stdout], [], [], PATIENCE_S)
            assert ready, f"nothing heard after {said!r}"
            more = os.read(self._process.stdout.fileno(), 1)
            assert more, f"it ended after {said!r}"
            said += more
        return os.fsdecode(said[:-1])

    def kill(self):
        """As kill -9: no word, no clean-up."""
        self._process.kill()
        self._process.wait(PATIENCE_S)


def output_of(code, url):
    """The one line that a process says before it ends."""
    with AnotherProcess(code, url) as other:
        return other.hear()
