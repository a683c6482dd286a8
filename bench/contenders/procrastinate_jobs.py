"""Procrastinate on PostgreSQL: one asynchronous worker. Its periodic tasks live in code and are never stored."""

from __future__ import annotations

import asyncio
import logging
import time
from datetime import UTC, datetime
from itertools import groupby
from typing import Any

import procrastinate
import psycopg

from bench.contenders.contender import Jobs, Scheduler, act, mark, mark_async

BATCH = 1000
logging.getLogger("procrastinate").setLevel(logging.ERROR)  # it warns of apps made in a main module


class Procrastinate(Scheduler):
    """It stores many jobs in one statement, if they are due at the same time."""

    def _app(self, connector: Any) -> Any:
        app = procrastinate.App(connector=connector(conninfo=self.address))
        self._task = app.task(name="mark")(mark_async)
        return app

    def prepare(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - the shape of every contender
        with self._app(procrastinate.SyncPsycopgConnector).open() as app:
            app.schema_manager.apply_schema()

    def store(self, jobs: Jobs) -> None:
        with self._app(procrastinate.SyncPsycopgConnector).open():
            for due, group in groupby(jobs, key=lambda job: job[1]):
                later = self._task.configure(schedule_at=datetime.fromtimestamp(due, UTC))
                rows = [{"number": number, "due": due} for number, due in group]
                for first in range(0, len(rows), BATCH):
                    later.batch_defer(*rows[first : first + BATCH])

    def pending(self) -> int:
        sql = "SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')"
        with psycopg.connect(self.address) as connection:
            (count,) = connection.execute(sql).fetchone() or (0,)
            return int(count)

    def pickup(self, options: dict[str, Any]) -> None:
        with self._app(procrastinate.SyncPsycopgConnector).open():
            for number in range(options["samples"]):
                time.sleep(options["every"])
                self._task.defer(number=number, due=time.time())
        print("{}")

    def serve(self, options: dict[str, Any]) -> None:
        app = self._app(procrastinate.PsycopgConnector)

        async def fire(timestamp: int, number: int = 0) -> None:
            mark(number, timestamp)

        count = options.get("recurring", 0)
        if count:
            tick = app.task(name="tick")(fire)
            for number in range(count):
                at = datetime.fromtimestamp(time.time() + 600 + number * 2940 / count, UTC)
                app.periodic(cron=f"{at.minute} {at.hour} * * *", periodic_id=f"p{number}")(tick)

        async def work() -> None:
            async with app.open_async():
                await app.run_worker_async(concurrency=10, fetch_job_polling_interval=0.05)

        asyncio.run(work())


if __name__ == "__main__":
    act(Procrastinate)
