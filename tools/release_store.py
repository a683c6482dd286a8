"""Makes a small store with the program of a release and keeps it as SQL: later versions must open it.

    python -m tools.release_store PYTHON

PYTHON is the interpreter of an environment with that release. A file and a PostgreSQL database are filled through its
command line, and written to tests/data/stores/VERSION.sqlite.sql and VERSION.postgres.sql.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
from contextlib import closing
from pathlib import Path

from tests.store.postgres_server import PostgresServer

FOLDER = Path(__file__).resolve().parents[1] / "tests" / "data" / "stores"
PATIENCE_S = 60
WORK = """
add tick --every 1s --until 2030-01-01T00:00:00Z --cwd / -- echo tick
add nightly --cwd / --cron "0 2 * * 1-5" --tz Europe/Berlin --lane disk=1 -- ./backup.sh --full
add once --cwd / --at 2026-01-01T00:00:00Z -- echo once
add broken --cwd / --every 1s -- sh -c "echo it broke >&2; exit 3"
add late --cwd / --cron "30 6 1 * *" -- echo late
pause late
add yearly --cron "0 5 1 1 *" --cwd / -- echo yearly
add gone --cwd / --every 1h -- true
run gone
remove gone --yes
token create deploy --role operator
"""


class Release:
    """The command line of one release, on one store."""

    def __init__(self, python: str, folder: Path, store: str) -> None:
        self._command = [python, "-m", "wakeful.cli", "--db", store]
        self._folder = folder
        self._env = {"HOME": str(folder), "PATH": os.environ["PATH"], "TZ": "UTC"}

    def do(self, *argv: str) -> str:
        done = subprocess.run(
            [*self._command, *argv],
            cwd=self._folder, env=self._env, capture_output=True, text=True, timeout=PATIENCE_S, check=True,
        )  # fmt: skip
        return done.stdout

    def serve_until_it_ran(self) -> None:
        """Run a server until each job that is due has a run."""
        command = [*self._command, "serve", "--port", "0", "--node", "made-here"]
        with subprocess.Popen(command, cwd=self._folder, env=self._env, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr is not None  # noqa: S101 - it is a pipe
            waiting = {"tick", "once", "broken"}
            for line in server.stderr:
                waiting -= {name for name in waiting if f" {name} run_" in line}
                if not waiting:
                    break
            server.send_signal(signal.SIGTERM)
            server.stderr.read()


def fill(python: str, folder: Path, store: str) -> str:
    """Fill a store through the command line of a release; its version."""
    import shlex

    release = Release(python, folder, store)
    for line in WORK.strip().splitlines():
        release.do(*shlex.split(line))
    release.serve_until_it_ran()
    return release.do("--version").split()[-1]


def dump_sqlite(path: Path) -> str:
    """The file as SQL, with its own numbers."""
    with closing(sqlite3.connect(path)) as database:
        numbers = [
            (name, database.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
        ]
        return "\n".join([*(f"PRAGMA {name} = {value};" for name, value in numbers), *database.iterdump(), ""])


def main(python: str) -> None:
    """Make both stores and write them."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        version = fill(python, folder, str(folder / "wakeful.db"))
        (FOLDER / f"{version}.sqlite.sql").write_text(dump_sqlite(folder / "wakeful.db"), encoding="utf-8")
        server = PostgresServer()
        try:
            server.start()
            url = server.new_database()
            fill(python, folder, url)
            (FOLDER / f"{version}.postgres.sql").write_text(server.dump(url), encoding="utf-8")
        finally:
            server.remove()
    print(f"wrote {version}.sqlite.sql and {version}.postgres.sql")


if __name__ == "__main__":
    main(sys.argv[1])
