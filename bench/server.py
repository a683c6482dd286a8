"""The PostgreSQL server that everybody is measured on: ours for the run, durable, otherwise as it comes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from bench.contenders.contender import ADDRESS
from tests.store.postgres_server import PostgresServer

_TICKS = os.sysconf("SC_CLK_TCK")


class Server:
    """One server for all contenders; each measurement has a database of its own."""

    def __init__(self, server: PostgresServer) -> None:
        self._server = server

    def database(self, folder: Path) -> str:
        """A new database, named in the contender's folder; its address."""
        url = self._server.new_database()
        (folder / ADDRESS).write_text(url, encoding="utf-8")
        return url

    def version(self) -> str:
        with psycopg.connect(self._server.url()) as connection:
            return connection.info.parameter_status("server_version") or ""

    def cpu_s(self) -> float:
        """Processor time of the server and of all sessions it has had."""
        pid = int((self._server.folder / "data" / "postmaster.pid").read_text(encoding="utf-8").split()[0])
        total = 0
        for stat in Path("/proc").glob("[0-9]*/stat"):
            try:
                fields = stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
            except OSError:  # it ended meanwhile
                continue
            if stat.parent.name == str(pid):
                total += sum(map(int, fields[11:15]))
            elif int(fields[1]) == pid:
                total += sum(map(int, fields[11:13]))
        return total / _TICKS


@contextmanager
def running() -> Iterator[Server]:
    """A server from here to the end of the block."""
    server = PostgresServer(durable=True)
    try:
        server.start()
        yield Server(server)
    finally:
        server.remove()
