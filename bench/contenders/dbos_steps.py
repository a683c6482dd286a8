"""DBOS on PostgreSQL: a workflow of three steps for each event, as prepare, mutate and next are stored by ours."""

from __future__ import annotations

import json
import os
import time
from typing import Any

import psycopg
from dbos import DBOS, DBOSClient

from bench.contenders.contender import Scheduler, act

QUEUE, VERSION = "events", "1"
OPEN = "SELECT count(*) FROM dbos.workflow_status WHERE status IN ('ENQUEUED', 'PENDING', 'DELAYED')"


class DbosSteps(Scheduler):
    """Workflows on a queue, each step durable before the next begins."""

    def steps(self, options: dict[str, Any]) -> None:
        """Work through `count` events that are all enqueued before the start; prints how long that took."""
        self._launch()  # its tables are made by an application that starts
        DBOS.destroy()
        client = DBOSClient(system_database_url=self.address, application_name="bench")
        wanted: Any = {"queue_name": QUEUE, "workflow_name": "work", "app_version": VERSION}
        for number in range(options["count"]):
            client.enqueue(wanted, number)
        client.destroy()
        began = time.perf_counter()
        self._launch()
        with psycopg.connect(self.address, autocommit=True) as connection:
            while (connection.execute(OPEN).fetchone() or (0,))[0]:
                time.sleep(0.01)
        print(json.dumps({"seconds": time.perf_counter() - began}), flush=True)
        DBOS.destroy()

    def _launch(self) -> None:
        os.environ.setdefault("DBOS__VMID", "bench")
        DBOS(
            config={
                "name": "bench", "system_database_url": self.address, "application_version": VERSION,
                "log_level": "WARNING", "sys_db_pool_size": 20,
            }
        )  # fmt: skip

        @DBOS.step()
        def prepare(number: int) -> int:
            return number

        @DBOS.step()
        def mutate(number: int) -> int:
            return number + 1

        @DBOS.step()
        def following(number: int) -> int:
            return number + 1

        @DBOS.workflow(name="work")
        def work(number: int) -> int:
            return following(mutate(prepare(number)))

        DBOS.launch()
        DBOS.register_queue(QUEUE, polling_interval_sec=0.05)


if __name__ == "__main__":
    act(DbosSteps)
