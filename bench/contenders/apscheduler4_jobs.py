"""APScheduler 4 (alpha) with its SQLAlchemy data store on aiosqlite: WAL, synchronous=FULL."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

from apscheduler import AsyncScheduler
from apscheduler.datastores.sqlalchemy import SQLAlchemyDataStore
from apscheduler.triggers.date import DateTrigger
from sqlalchemy import event
from sqlalchemy.ext.asyncio import create_async_engine

from bench.contenders.contender import Jobs, Scheduler, act, mark_async


class APScheduler4(Scheduler):
    """It adds one schedule per transaction; there is no bulk add."""

    async def _with(self, use: Callable[[Any], Awaitable[None]]) -> None:
        engine = create_async_engine(f"sqlite+aiosqlite:///{self.folder}/apscheduler4.db")

        @event.listens_for(engine.sync_engine, "connect")
        def durable(connection: Any, _: Any) -> None:
            cursor = connection.cursor()
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.close()

        async with AsyncScheduler(SQLAlchemyDataStore(engine)) as scheduler:
            await scheduler.configure_task("mark", func=mark_async, misfire_grace_time=None)
            await use(scheduler)

    def store(self, jobs: Jobs) -> None:
        async def use(scheduler: Any) -> None:
            for number, due in jobs:
                when = DateTrigger(datetime.fromtimestamp(due, UTC))
                await scheduler.add_schedule("mark", when, id=f"d{number}", args=(number, due))

        asyncio.run(self._with(use))

    def pending(self) -> int:
        # A finished schedule stays until a clean-up every quarter of an hour; its job leaves when it is done.
        with contextlib.closing(sqlite3.connect(self.folder / "apscheduler4.db")) as connection:
            return int(connection.execute("SELECT count(*) FROM jobs").fetchone()[0])

    def serve(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - the shape of every contender
        async def use(scheduler: Any) -> None:
            await scheduler.run_until_stopped()

        asyncio.run(self._with(use))


if __name__ == "__main__":
    act(APScheduler4)
