"""DBOS on PostgreSQL: one-shot jobs are workflows on a queue."""

from __future__ import annotations

import os
import time
from typing import Any

import psycopg
import sqlalchemy
from dbos import DBOS, DBOSClient

from bench.contenders.contender import Jobs, Scheduler, act, mark

BATCH = 500
QUEUE, VERSION = "q", "1"


class Dbos(Scheduler):
    """Its tables are made by an application that starts; delayed work is looked at once a second."""

    def _launch(self) -> None:
        os.environ.setdefault("DBOS__VMID", "bench")
        DBOS(
            config={
                "name": "bench",
                "system_database_url": self.address,
                "application_version": VERSION,
                "log_level": "WARNING",
                "scheduler_polling_interval_sec": 1.0,
                "sys_db_pool_size": 20,
            }
        )

        @DBOS.workflow(name="mark")
        def run_mark(number: int, due: float) -> None:
            mark(number, due)

        DBOS.launch()
        DBOS.register_queue(QUEUE, polling_interval_sec=0.05)

    def prepare(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - the shape of every contender
        self._launch()
        DBOS.destroy()

    def _client(self) -> Any:
        return DBOSClient(system_database_url=self.address, application_name="bench")

    def _options(self, due: float) -> Any:
        options: dict[str, Any] = {"queue_name": QUEUE, "workflow_name": "mark", "app_version": VERSION}
        wait = due - time.time()
        return {**options, "delay_seconds": wait} if wait > 0 else options

    def store(self, jobs: Jobs) -> None:
        client = self._client()
        engine = sqlalchemy.create_engine(self.address.replace("postgresql://", "postgresql+psycopg://"))
        for first in range(0, len(jobs), BATCH):
            with engine.begin() as connection:
                for number, due in jobs[first : first + BATCH]:
                    client.enqueue_in_transaction(connection, self._options(due), number, due)
        client.destroy()

    def pending(self) -> int:
        sql = "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED')"
        with psycopg.connect(self.address) as connection:
            (count,) = connection.execute(sql).fetchone() or (0,)
            return int(count)

    def pickup(self, options: dict[str, Any]) -> None:
        client = self._client()
        for number in range(options["samples"]):
            time.sleep(options["every"])
            now = time.time()
            client.enqueue(self._options(now), number, now)
        client.destroy()
        print("{}")

    def serve(self, options: dict[str, Any]) -> None:  # noqa: ARG002 - the shape of every contender
        self._launch()
        while True:
            time.sleep(3600)


if __name__ == "__main__":
    act(Dbos)
