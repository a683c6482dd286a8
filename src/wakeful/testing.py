"""Time under your control: for your own tests, and for ours.

`run(main)` is `asyncio.run` on an event loop whose time is virtual. When every task waits, time jumps to the next
moment that a task waits for, so a week of schedules passes in milliseconds and always in the same order:

    from wakeful import Every, Scheduler
    from wakeful.testing import VirtualClock, run

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            ...
            await scheduler.start()
            await clock.sleep("3d")

    clock = VirtualClock()
    run(main(), clock)

Threads, subprocesses and sockets have no place in virtual time: sync handlers and what is given to `asyncio.to_thread`
are run inline and take no time, the rest is refused.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from wakeful.virtual_time import VirtualClock, VirtualLoop, run

if TYPE_CHECKING:
    from wakeful.workflow_testing import WorkflowTest

__all__ = ["VirtualClock", "VirtualLoop", "WorkflowTest", "run"]


def __getattr__(name: str) -> Any:
    if name == "WorkflowTest":
        return importlib.import_module("wakeful.workflow_testing").WorkflowTest
    message = f"module {__name__!r} has no attribute {name!r}"
    raise AttributeError(message)
