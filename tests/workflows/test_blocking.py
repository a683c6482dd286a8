"""A handler that blocks the event loop is named while it does."""

from __future__ import annotations

import contextlib
import functools
import logging
import re
import threading
from pathlib import Path

import pytest

from tests.workflows.mailroom import virtual
from wakeful.domains.workflows import blocking, views

PATIENCE_S = 120


class Named(logging.Handler):
    """Hears the log, also from other threads, and is the clock that times steps: only handlers move it."""

    def __init__(self):
        super().__init__()
        self.said = []
        self.heard = threading.Event()
        self.now = 0

    def boot(self):
        return self.now

    def blocks(self):
        self.now += 2 * blocking.LIMIT_MS

    def emit(self, record):
        if "event loop" in record.getMessage():
            self.said.append(record.getMessage())
            self.heard.set()


@pytest.fixture
def named(monkeypatch):
    found, log = Named(), logging.getLogger("wakeful.workflows")
    monkeypatch.setattr(blocking, "LOOK_S", 0.01)
    monkeypatch.setattr(blocking, "_CLOCK", found)
    log.addHandler(found)
    yield found
    log.removeHandler(found)


@pytest.mark.promise("K16")
@pytest.mark.parametrize("phase", ["poll", "mutate"])
@virtual
async def test_a_handler_that_blocks_the_loop_is_named_while_it_does(room, named, phase):
    room.mails = ["a"]

    async def block(ctx):
        named.blocks()
        named.heard.wait(PATIENCE_S)  # it goes on only once it was named

    room.act[phase] = block
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        handler, called = ("poll", "producer") if phase == "poll" else ("append", "mutate")
        (said,) = named.said
        assert said.startswith(f"{called} of mailroom.{handler} blocks the event loop at {__file__}:")
        (run,) = [one for one in await room.attempts(scheduler, handler) if one.notes is not None]
        (note,) = (await scheduler.read(lambda tx: views.run_view(tx, run)))["notes"]
        assert re.fullmatch(rf"{called} of mailroom.{handler} blocked the event loop for \d+\.\d s", note)
        assert run.status == "committed"


@virtual
async def test_a_handler_that_awaits_blocks_nothing_however_long_it_takes(room, named):
    async def wait(ctx):
        for _ in range(30):
            named.now += blocking.LIMIT_MS // 10
            await room.sleep("1s")

    room.act["poll"] = wait
    async with room.open(poll={"timeout": "7d"}) as scheduler:
        await scheduler.start()
        await room.sleep("1m")
    assert named.said == []


def line_of(text):
    """The line of this file that has the text first."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


async def in_a_call(ctx, wait):
    await ctx.call(wait, PATIENCE_S)  # of a library


async def in_a_library(ctx, wait):
    with contextlib.closing(contextlib.ExitStack()) as stack:
        stack.callback(wait, PATIENCE_S)  # called by the one that closes
        del stack


async def through_a_library(ctx, wait):
    functools.reduce(lambda *_: wait(PATIENCE_S), [1, 2])  # our own line again


@pytest.mark.promise("K16")
@pytest.mark.parametrize(
    ("how", "line"),
    [(in_a_call, "# of a library"), (in_a_library, "with contextlib.closing"), (through_a_library, "# our own line")],
)
@virtual
async def test_the_line_that_is_named_is_the_authors_also_where_a_library_blocks(room, named, how, line):
    def act(ctx):
        named.blocks()
        return how(ctx, named.heard.wait)

    room.act["poll"] = act
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1m")
        (said,) = named.said
        assert said.startswith(f"producer of mailroom.poll blocks the event loop at {__file__}:{line_of(line)}. ")
