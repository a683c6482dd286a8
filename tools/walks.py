"""How far four everyday walks go through the code: files, functions and calls within src/wakeful, by profile.

    python -m tools.walks

Each walk is made twice, and the second time is counted: what is loaded and prepared once does not matter.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import sys
import tempfile
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import httpx

import wakeful
from wakeful.routing.auth import admit
from wakeful.routing.settings import ServerSettings
from wakeful.surfaces.api.app import create_app
from wakeful.surfaces.api.guard import Guard
from wakeful.surfaces.cli import main

ROOT = str(Path(wakeful.__file__).parent)
SOON_S = 0.2
CRASH = (
    "import asyncio, os, sys, wakeful\n"
    "async def main():\n"
    "    async with wakeful.Scheduler(sys.argv[1]) as scheduler:\n"
    "        scheduler.on_job_due('x')(lambda run: os._exit(9))\n"
    "        await scheduler.add_job('job', wakeful.Every('1d'), kind='x')\n"
    "        await scheduler.run_job('job')\n"
    "        await scheduler.start()\n"
    "        await asyncio.Event().wait()\n"
    "asyncio.run(main())\n"
)


class Walk:
    """Counts the functions of ours that are called while it is entered, in every thread that began after `watch`."""

    def __init__(self) -> None:
        self._on = False
        self._calls: Counter[tuple[str, int]] = Counter()

    def watch(self) -> None:
        threading.setprofile(self._note)
        sys.setprofile(self._note)

    def _note(self, frame: FrameType, event: str, _: Any) -> None:
        code = frame.f_code
        if self._on and event == "call" and code.co_filename.startswith(ROOT) and code.co_name != "<module>":
            self._calls[code.co_filename, code.co_firstlineno] += 1

    def __enter__(self) -> None:
        self._calls.clear()
        self._on = True

    def __exit__(self, *_: object) -> None:
        self._on = False

    def counts(self) -> tuple[int, int, int]:
        return len({file for file, _ in self._calls}), len(self._calls), self._calls.total()


def handler(done: asyncio.Event) -> Any:
    async def handle(_: wakeful.Run) -> None:
        done.set()

    return handle


async def due_job(walk: Walk, url: str) -> None:
    async with wakeful.Scheduler(url) as scheduler:
        done = asyncio.Event()
        scheduler.on_job_due("x")(handler(done))
        await scheduler.start()
        for name in ("first", "second"):
            done.clear()
            at = datetime.now(UTC) + timedelta(seconds=2 * SOON_S)
            await scheduler.add_job(name, wakeful.Once(at), kind="x")
            await asyncio.sleep(SOON_S)
            with walk:
                await until_settled(done)
            await check(scheduler, name)


async def until_settled(done: asyncio.Event) -> None:
    """Until the handler was called and its run has ended, without asking: that would be counted."""
    await asyncio.wait_for(done.wait(), 30)
    await asyncio.sleep(SOON_S)


async def check(scheduler: wakeful.Scheduler, name: str) -> None:
    run = (await scheduler.get_run_log(name, 1))[0]
    if run.outcome != "success":
        raise RuntimeError(f"{name} has not ended well: {run!r}")


async def put_job(walk: Walk, url: str) -> None:
    settings = ServerSettings()
    async with wakeful.Scheduler(url) as scheduler:
        await scheduler.start()
        token = await scheduler.create_token("ada", "admin")
        app = create_app(scheduler, settings)
        transport = httpx.ASGITransport(Guard(app, settings, admit=partial(admit, gate=app.state.gate)))
        headers = {"Authorization": f"Bearer {token}"}
        async with httpx.AsyncClient(transport=transport, base_url=settings.url, headers=headers) as client:
            for name in ("first", "second"):
                with walk:
                    answer = await client.put(f"/api/jobs/{name}", json={"every": "1d", "kind": "x"})
                answer.raise_for_status()


def add(walk: Walk, url: str) -> None:
    for name in ("first", "second"):
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()), walk:
            code = main(["--db", url, "add", name, "--every", "1d", "--", "true"])
        if code != 0:
            raise RuntimeError(f"wakeful add ended with {code}")


async def recovery(walk: Walk, url: str) -> None:
    for place in (f"{url}.1", f"{url}.2"):
        crashed = await asyncio.create_subprocess_exec(sys.executable, "-c", CRASH, place)
        await crashed.wait()
        async with wakeful.Scheduler(place) as scheduler:
            done = asyncio.Event()
            scheduler.on_job_due("x")(handler(done))
            with walk:
                await scheduler.start()
                await until_settled(done)
            await check(scheduler, "job")


def print_walks() -> None:
    walks = {
        "due job": due_job,
        "PUT /api/jobs/NAME": put_job,
        "wakeful add": add,
        "recovery of a crashed run": recovery,
    }
    print(f"{'walk':27}{'files':>7}{'functions':>11}{'calls':>7}")
    for name, make in walks.items():
        with tempfile.TemporaryDirectory() as folder:
            walk = Walk()
            walk.watch()
            going = make(walk, f"sqlite:///{folder}/walk.db")
            if going is not None:
                asyncio.run(going)
        files, functions, calls = walk.counts()
        print(f"{name:27}{files:7}{functions:11}{calls:7}")


if __name__ == "__main__":
    print_walks()
