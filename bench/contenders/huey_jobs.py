"""Huey on SQLite: WAL, fsync on, one consumer process with threads."""

from __future__ import annotations

import json
import time
from datetime import datetime
from typing import Any

from huey import SqliteHuey, crontab

from bench.contenders.contender import Jobs, Scheduler, act, mark


class Huey(Scheduler):
    """Periodic tasks live in code, so `recur` belongs to serving."""

    def __init__(self, folder: Any) -> None:
        super().__init__(folder)
        self._huey = SqliteHuey(filename=str(folder / "huey.db"), fsync=True)
        self._mark = self._huey.task(name="mark")(mark)

    def store(self, jobs: Jobs) -> None:
        for number, due in jobs:
            self._mark.schedule(args=(number, due), eta=datetime.fromtimestamp(due))  # noqa: DTZ006 - it wants local time

    def pending(self) -> int:
        return int(self._huey.storage.queue_size() + self._huey.storage.schedule_size())

    def pickup(self, options: dict[str, Any]) -> None:
        """Enqueue single jobs from this process while another serves."""
        for number in range(options["samples"]):
            self._mark(number, time.time())
            time.sleep(options["every"])
        print(json.dumps({}))

    def serve(self, options: dict[str, Any]) -> None:
        count, began = options.get("recurring", 0), time.time()
        for number in range(count):
            at = datetime.fromtimestamp(began + 600 + number * 2940 / count)  # noqa: DTZ006 - as above
            when = crontab(minute=str(at.minute), hour=str(at.hour))
            self._huey.periodic_task(when, name=f"p{number}")(lambda number=number: mark(number, 0.0))
        if count:
            self._mark(0, time.time())
        self._huey.create_consumer(
            workers=2, initial_delay=0.01, max_delay=0.05, backoff=1.15, scheduler_interval=1
        ).run()


if __name__ == "__main__":
    act(Huey)
