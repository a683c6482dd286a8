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

    def enqueue(self, options: dict[str, Any]) -> None:
        """Enqueue `count` events, before anything is timed."""
        self._launch(options)  # its tables are made by an application that starts
        DBOS.destroy()
        client = DBOSClient(system_database_url=self.address, application_name="bench")
        wanted: Any = {"queue_name": QUEUE, "workflow_name": "work", "app_version": VERSION}
        for number in range(options["count"]):
            client.enqueue(wanted, number)
        client.destroy()
        print(json.dumps({}), flush=True)

    def steps(self, options: dict[str, Any]) -> None:
        """Work through what was enqueued; prints how long that took, and the processor time of this process."""
        began, cpu = time.perf_counter(), time.process_time()
        self._launch(options)
        with psycopg.connect(self.address, autocommit=True) as connection:
            while (connection.execute(OPEN).fetchone() or (0,))[0]:
                time.sleep(0.01)
        took = {"seconds": time.perf_counter() - began, "cpu_s": time.process_time() - cpu}
        print(json.dumps(took), flush=True)
        DBOS.destroy()

    def _launch(self, options: dict[str, Any]) -> None:
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
        # One at a time, it waits for its next look after each: so it looks more often.
        alone = options["at_once"] == 1
        DBOS.register_queue(QUEUE, polling_interval_sec=0.01 if alone else 0.05, concurrency=1 if alone else None)


if __name__ == "__main__":
    act(DbosSteps)
