"""Who is measured: one module per scheduler, run in a fresh process of its own environment.

A contender is asked by verbs on its command line (`contender.py` has them), so that ours and a peer's code are never
loaded into one process, and everybody pays for their own imports.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".bench"


@dataclass(frozen=True)
class Contender:
    """One scheduler as it is measured: where it lives and how it is set up."""

    name: str
    module: str
    environment: str | None  # a folder below .bench, or None for the Python that runs this
    packages: tuple[str, ...]
    setting: str
    ours: bool = False

    @property
    def python(self) -> str:
        return sys.executable if self.environment is None else str(CACHE / self.environment / "bin" / "python")

    def command(self, verb: str, **options: Any) -> list[str]:
        return [self.python, "-m", f"bench.contenders.{self.module}", verb, json.dumps(options)]

    def ask(self, verb: str, *, timeout: float = 600, **options: Any) -> Any:
        """Run a verb to its end in a fresh process; what it answered."""
        done = subprocess.run(
            self.command(verb, **options),
            cwd=ROOT,
            env=environment(),
            stdout=subprocess.PIPE,
            text=True,
            timeout=timeout,
            check=True,
        )
        return json.loads(done.stdout)


def environment() -> dict[str, str]:
    """What every measured process sees: this source tree to import from, and no warnings in the way."""
    return {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}", "PYTHONWARNINGS": "ignore"}


WAKEFUL = Contender(
    "Wakeful", "wakeful_jobs", None, ("wakeful",), "Scheduler(url) with its defaults, async handler", ours=True
)
HUEY = Contender(
    "Huey",
    "huey_jobs",
    "peers",
    ("huey",),
    "SqliteHuey, WAL, fsync on, consumer with 2 threads polling at 10 to 50 ms, scheduler at 1 s (its least)",
)
APSCHEDULER3 = Contender(
    "APScheduler 3",
    "apscheduler3_jobs",
    "peers",
    ("APScheduler", "SQLAlchemy"),
    "SQLAlchemyJobStore on SQLite, WAL, synchronous=FULL, 10 threads, no misfire limit",
)
APSCHEDULER4 = Contender(
    "APScheduler 4",
    "apscheduler4_jobs",
    "peers-apscheduler4",
    ("APScheduler", "SQLAlchemy", "aiosqlite"),
    "SQLAlchemyDataStore on aiosqlite, WAL, synchronous=FULL, AsyncScheduler, async job, alpha release",
)
PEERS = (HUEY, APSCHEDULER3, APSCHEDULER4)

#: The same question on a PostgreSQL server. Whose folder has an address in it (`contender.ADDRESS`) works there.
WAKEFUL_POSTGRES = Contender(
    "Wakeful",
    "wakeful_jobs",
    None,
    ("wakeful", "psycopg"),
    "Scheduler(url) with its defaults, async handler; with several nodes, as many processes",
    ours=True,
)
WAKEFUL_WORKFLOWS = Contender(
    "Wakeful",
    "wakeful_jobs",
    None,
    ("wakeful", "psycopg"),
    "one process with Scheduler(url) and its defaults, a consumer with prepare, mutate and next for each workflow",
    ours=True,
)
PROCRASTINATE = Contender(
    "Procrastinate",
    "procrastinate_jobs",
    "peers-postgres",
    ("procrastinate", "psycopg"),
    "PsycopgConnector, async worker, concurrency 10, LISTEN/NOTIFY and polling at 50 ms, batch_defer of 1,000",
)
DBOS = Contender(
    "DBOS",
    "dbos_jobs",
    "peers-postgres",
    ("dbos", "SQLAlchemy", "psycopg"),
    "queue polled at 50 ms without a limit, enqueued 500 in a transaction, delay_seconds for later ones",
)
APSCHEDULER4_POSTGRES = Contender(
    "APScheduler 4",
    "apscheduler4_jobs",
    "peers-postgres",
    ("APScheduler", "SQLAlchemy", "asyncpg"),
    "SQLAlchemyDataStore on asyncpg, PsycopgEventBroker, AsyncScheduler, async job, alpha release",
)
DBOS_STEPS = Contender(
    "DBOS",
    "dbos_steps",
    "peers-postgres",
    ("dbos", "SQLAlchemy", "psycopg"),
    "queue polled at 50 ms without a limit, a workflow of three steps for each event, all enqueued before the start",
)
PEERS_POSTGRES = (PROCRASTINATE, DBOS, APSCHEDULER4_POSTGRES)
