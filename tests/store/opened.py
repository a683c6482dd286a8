"""Several stores on one database, for tests of what they do to each other."""

from __future__ import annotations

import asyncio

from wakeful.clock import SystemClock
from wakeful.store import make_store


class Opened:
    """Stores on one database, closed at the end."""

    def __init__(self, url, count=1):
        self._stores = [make_store(url, SystemClock()) for _ in range(count)]

    async def __aenter__(self):
        for store in self._stores:
            await store.open()
        return self._stores

    async def __aexit__(self, *_):
        for store in self._stores:
            await store.close()


async def waiting(connection, event, unless=None):
    """Wait until another backend of this database waits for that; its process, or None if `unless` is done first."""
    sql = (
        "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND wait_event = %s "
        "AND pid <> pg_backend_pid()"
    )
    async with asyncio.timeout(120):
        while not (found := await asyncio.to_thread(lambda: connection.execute(sql, (event,)).fetchone())):
            if unless is not None and unless.done():
                return None
    return found[0]
