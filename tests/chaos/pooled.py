"""A cluster behind a pooler in transaction mode: PgBouncer where it is installed, else the tests' own.

Nodes are killed and frozen as in the drill without one, while a reader reads all the time; every read must be answered.
"""

from __future__ import annotations

import asyncio
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Protocol

from tests.chaos.cluster import ClusterDrill, Scenario
from tests.store.pooler import TransactionPooler
from tests.store.postgres_server import USER
from wakeful import Scheduler
from wakeful.errors import SchedulerError

SERVER_CONNECTIONS = 4  # fewer than a node has: each is used by everybody
READERS = 4
PATIENCE_S = 300.0


class Way(Protocol):
    """A way to a server: the port to connect to instead of its own."""

    port: int

    def close(self) -> None: ...


class PgBouncer:
    """PgBouncer in transaction mode before one server, from its making until `close`."""

    def __init__(self, target: int) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="wakeful-pgbouncer-"))
        owner = pwd.getpwnam("nobody") if os.getuid() == 0 else None  # it refuses to run as root
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = int(probe.getsockname()[1])
        (self._folder / "users").write_text(f'"{USER}" ""\n')
        (self._folder / "ini").write_text(
            f"[databases]\n* = host=127.0.0.1 port={target}\n"
            f"[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {self.port}\nunix_socket_dir =\n"
            f"auth_type = trust\nauth_file = {self._folder / 'users'}\nlogfile = {self._folder / 'log'}\n"
            f"pool_mode = transaction\ndefault_pool_size = {SERVER_CONNECTIONS}\nmax_client_conn = 200\n"
        )
        if owner is not None:
            os.chown(self._folder, owner.pw_uid, owner.pw_gid)
        self._process = subprocess.Popen(
            [str(program()), "-q", str(self._folder / "ini")], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, user=owner.pw_uid if owner else None, group=owner.pw_gid if owner else None,
        )  # fmt: skip
        self._until_it_listens()

    def _until_it_listens(self) -> None:
        for _ in range(int(PATIENCE_S / 0.05)):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self.port)) == 0:
                    return
            assert self._process.poll() is None, (self._folder / "log").read_text()
            threading.Event().wait(0.05)
        raise TimeoutError

    def close(self) -> None:
        self._process.terminate()
        self._process.wait(PATIENCE_S)
        shutil.rmtree(self._folder, ignore_errors=True)


def program() -> str | None:
    """Where PgBouncer is installed, if it is."""
    return shutil.which("pgbouncer", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin")


def way_to(target: int) -> Way:
    return PgBouncer(target) if program() else TransactionPooler(target, SERVER_CONNECTIONS)


class Reading:
    """Reads through the pooler in threads of its own, until `stop`; `answered`, and what was `refused`."""

    def __init__(self, url: str) -> None:
        self.answered = 0
        self.refused: list[str] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=lambda: asyncio.run(self._read(url))) for _ in range(READERS)]
        for thread in self._threads:
            thread.start()

    async def _read(self, url: str) -> None:
        async with Scheduler(url, timezone="UTC") as scheduler:
            while not self._over.is_set():
                try:
                    jobs = await scheduler.list_jobs(limit=20)
                    for job in jobs:
                        assert (await scheduler.get_job(job.name)).name == job.name
                    await scheduler.get_run_log(limit=20)
                except SchedulerError as error:
                    self.refused.append(str(error))
                self.answered += 1

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()


def drill(folder: Path, seed: int, nodes: int = 3, jobs: int = 600, span_s: float = 30.0) -> list[str]:
    """Print the counts; what was wrong."""
    print(f"  behind {'PgBouncer' if program() else 'our own pooler, PgBouncer is not installed'}", flush=True)
    scenario = Scenario(seed, nodes=nodes, jobs=jobs, span_s=span_s, max_running=32, short=True)
    readings: list[Reading] = []
    with ExitStack() as ends:

        def way(target: int) -> int:
            made = way_to(target)
            ends.callback(made.close)
            return made.port

        @contextmanager
        def reached(url: str) -> Iterator[None]:
            readings.append(Reading(url))
            try:
                yield
            finally:
                readings[0].stop()

        verdict = ClusterDrill(folder, scenario, way=way, reached=reached).run()
    print("\n".join(f"  {line}" for line in verdict.lines()))
    (reading,) = readings
    print(f"  {reading.answered} rounds of reads, {len(reading.refused)} refused")
    wrong = [f"{len(found)} {name.replace('_', ' ')}" for name, found in verdict.faults.items() if found]
    return wrong + sorted(set(reading.refused))
