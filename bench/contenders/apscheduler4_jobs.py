"""APScheduler 4 (alpha) with its SQLAlchemy data store: on aiosqlite (WAL, synchronous=FULL) or on PostgreSQL."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import time
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
        async with self._on_server() if self.address else self._on_file() as scheduler:
            await scheduler.configure_task("mark", func=mark_async, misfire_grace_time=None)
            await use(scheduler)

    def _on_server(self) -> Any:
        # Not its AsyncpgEventBroker: that of 4.0.0a6 fails with the anyio it asks for.
        from apscheduler.eventbrokers.psycopg import PsycopgEventBroker

        engine = create_async_engine(self.address.replace("postgresql://", "postgresql+asyncpg://"))
        return AsyncScheduler(SQLAlchemyDataStore(engine), PsycopgEventBroker(self.address))

    def _on_file(self) -> Any:
        engine = create_async_engine(f"sqlite+aiosqlite:///{self.folder}/apscheduler4.db")

        @event.listens_for(engine.sync_engine, "connect")
        def durable(connection: Any, _: Any) -> None:
            cursor = connection.cursor()
            cursor.execute("PRAGMA journal_mode=WAL")
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.close()

        return AsyncScheduler(SQLAlchemyDataStore(engine))

    def prepare(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - the shape of every contender
        async def use(_: Any) -> None:
            """Opening it is enough."""

        asyncio.run(self._with(use))

    def store(self, jobs: Jobs) -> None:
        async def use(scheduler: Any) -> None:
            for number, due in jobs:
                when = DateTrigger(datetime.fromtimestamp(due, UTC))
                await scheduler.add_schedule("mark", when, id=f"d{number}", args=(number, due))

        asyncio.run(self._with(use))

    def pending(self) -> int:
        # A finished schedule stays until a clean-up every quarter of an hour; its job leaves when it is done.
        if self.address:
            import psycopg

            with psycopg.connect(self.address) as connection:
                (count,) = connection.execute("SELECT count(*) FROM jobs").fetchone() or (0,)
                return int(count)
        with contextlib.closing(sqlite3.connect(self.folder / "apscheduler4.db")) as connection:
            return int(connection.execute("SELECT count(*) FROM jobs").fetchone()[0])

    def pickup(self, options: dict[str, Any]) -> None:
        async def use(scheduler: Any) -> None:
            for number in range(options["samples"]):
                await asyncio.sleep(options["every"])
                await scheduler.add_job("mark", args=(number, time.time()))

        asyncio.run(self._with(use))
        print("{}")

    def serve(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - the shape of every contender
        async def use(scheduler: Any) -> None:
            await scheduler.run_until_stopped()

        asyncio.run(self._with(use))


if __name__ == "__main__":
    act(APScheduler4)
