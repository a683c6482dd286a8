"""What a handler gives to an executor of its own counts as its work until the executor says that it is over."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool

import pytest

from tests.service.real_time import real
from wakeful.domains.workflows.threads import Work, is_left, seen_by

PATIENCE_S = 120


@real
async def test_a_handler_may_give_work_to_processes():
    """What is given to them must be found under its name there: it is given as it is."""
    loop, work = asyncio.get_running_loop(), Work(2)
    with ProcessPoolExecutor(1) as pool, seen_by(work):
        assert await loop.run_in_executor(pool, abs, -21) == 21
        gone = loop.run_in_executor(pool, os._exit, 3)
        with pytest.raises(BrokenProcessPool):
            await gone
        with pytest.raises(BrokenProcessPool):
            await loop.run_in_executor(pool, abs, -21)
        assert not work.leave(lambda: lambda: None)
        assert loop.run_in_executor(pool, abs, -21).cancelled()


@real
async def test_what_waits_for_a_thread_of_an_executor_is_at_work_until_it_is_cancelled():
    loop, gate, work, seen = asyncio.get_running_loop(), threading.Event(), Work(3), asyncio.Event()
    with ThreadPoolExecutor(1) as pool:
        with seen_by(work):
            first = loop.run_in_executor(pool, gate.wait, PATIENCE_S)
            second = loop.run_in_executor(pool, gate.wait, PATIENCE_S)
        assert work.leave(lambda: lambda: loop.call_soon_threadsafe(seen.set))
        second.cancel()
        gate.set()
        await first
        await seen.wait()
        assert not is_left(3)
