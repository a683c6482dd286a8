"""Process death, in one process: everything that a dead process would no longer do is kept from happening."""

from __future__ import annotations

import asyncio


async def die(scheduler):
    """End a scheduler as kill -9 would: nothing is settled, nothing is written, its lock is free.

    The store is cut off first, so that whatever still runs on the way out cannot leave a trace.
    """
    engine, store = scheduler._engine, scheduler._store
    writer, store._writer = store._writer, None
    tasks = [active.task for active in engine.active.values() if active.task is not None]
    engine.active.clear()
    for task in tasks:
        task.cancel()
    await engine.end()
    await asyncio.gather(*tasks, return_exceptions=True)
    writer.close()
    store._lock.release()
    scheduler._status = "stopped"
