"""Process death, in one process: everything that a dead process would no longer do is kept from happening."""

from __future__ import annotations

import asyncio

from wakeful.store.sqlite import SqliteStore


async def die(scheduler):
    """End a scheduler as kill -9 would: nothing is settled, nothing is written, its lock and connections are free.

    The store is cut off first, so that whatever still runs on the way out cannot leave a trace.
    """
    engine, store = scheduler._engine, scheduler._store
    discard = _cut_off_file(store) if isinstance(store, SqliteStore) else _cut_off_server(store)
    tasks = [active.task for active in engine.active.values() if active.task is not None]
    engine.active.clear()
    for task in tasks:
        task.cancel()
    await engine.end()
    await asyncio.gather(*tasks, return_exceptions=True)
    discard()
    scheduler._status = "stopped"


def _cut_off_file(store):
    writer, store._writer = store._writer, None

    def discard():
        writer.close()
        store._lock.release()

    return discard


def _cut_off_server(store):
    """A node dies without notice to the others: its row says it is alive, until another node finds out."""
    store._open = False

    def discard():
        for connection in (store._writer, store._apart, *store._idle_readers):
            if connection is not None:
                connection.close()
        store._idle_readers.clear()

    return discard
