"""APScheduler 3 with its SQLAlchemy store on SQLite: WAL, synchronous=FULL, a pool of threads."""

from __future__ import annotations

import contextlib
import sqlite3
import time
from datetime import UTC, datetime, timedelta
from typing import Any

from apscheduler.executors.pool import ThreadPoolExecutor
from apscheduler.jobstores.sqlalchemy import SQLAlchemyJobStore
from apscheduler.schedulers.background import BackgroundScheduler
from sqlalchemy import create_engine, event

from bench.contenders.contender import Jobs, Scheduler, act, mark, wait_for_marks


class APScheduler3(Scheduler):
    """It stores one job per transaction; there is no bulk add."""

    def _scheduler(self) -> Any:
        engine = create_engine(f"sqlite:///{self.folder}/apscheduler3.db")

        @event.listens_for(engine, "connect")
        def durable(connection: Any, _: Any) -> None:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=FULL")

        return BackgroundScheduler(
            jobstores={"default": SQLAlchemyJobStore(engine=engine)},
            executors={"default": ThreadPoolExecutor(10)},
            job_defaults={"misfire_grace_time": None, "coalesce": True},
            timezone=UTC,
        )

    def _paused(self) -> Any:
        """One that only stores. It is never shut down: that would run what is due with its threads already gone."""
        scheduler = self._scheduler()
        scheduler.start(paused=True)
        return scheduler

    def store(self, jobs: Jobs) -> None:
        scheduler = self._paused()
        for number, due in jobs:
            scheduler.add_job(mark, "date", run_date=datetime.fromtimestamp(due, UTC), args=[number, due])

    def recur(self, count: int) -> None:
        scheduler = self._paused()
        first = datetime.now(UTC) + timedelta(minutes=10)
        for number in range(count):
            begin = first + timedelta(seconds=number * 2940 / count)
            scheduler.add_job(mark, "interval", hours=1, start_date=begin, args=[number, 0.0], id=f"s{number}")

    def pending(self) -> int:
        with contextlib.closing(sqlite3.connect(self.folder / "apscheduler3.db")) as connection:
            return int(connection.execute("SELECT count(*) FROM apscheduler_jobs").fetchone()[0])

    def serve(self, options: dict[str, Any]) -> None:
        scheduler = self._scheduler()
        scheduler.start()
        for number in range(options.get("pickups", 0)):
            # Another process cannot wake it, so immediate jobs are added from inside.
            now = time.time()
            scheduler.add_job(mark, "date", run_date=datetime.fromtimestamp(now, UTC), args=[number, now])
            wait_for_marks(number + 1, 10)
            time.sleep(options["every"])
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    act(APScheduler3)
