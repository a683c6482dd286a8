"""Opening a SQLite file as a store: is it there, is it ours, is it ours to write, and who else has it.

Every way in which a file can be wrong ends in one sentence that names the file and says what to do.

An open file is compared with what lies there: one that is removed or replaced stays open in every process that has it
open, and all continues in a file that nobody else can see. One that another is copied over is noticed if it is shorter.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import secrets
import sqlite3
from functools import partial
from pathlib import Path
from typing import IO, NoReturn

from wakeful import clock as clocks
from wakeful.errors import StoreError, StoreFull, StoreGone, StoreLocked, StoreRefused, StoreUnusable
from wakeful.private_files import FILE_MODE, make_private_folder, open_private
from wakeful.store.process_identity import on_fork
from wakeful.store.schema_shape import Column
from wakeful.store.schema_version import (
    DOMAINS_KEY,
    OLDEST_KEY,
    Living,
    Stored,
    known_schemas,
    refuse_contracting,
    refuse_newer,
    steps,
)
from wakeful.store.upgrade_backups import way_back

#: The database, what was written ahead of it, and what coordinates its processes; SQLite keeps all three while it is
#: open anywhere.
_PARTS = ("", "-wal", "-shm")


class OpenFiles:
    """Which files they are; `check` compares."""

    def __init__(self, path: str) -> None:
        self._path = os.path.realpath(path)
        self._known: dict[str, tuple[int, int]] = {}
        self._size = 0  # of the database's file, in bytes
        self._overwritten = False

    def note(self) -> None:
        """These are the files we have open now."""
        found = {self._path + part: _which(self._path + part) for part in _PARTS}
        self._known = {file: which for file, which in found.items() if which is not None}
        self._size, self._overwritten = 0, False

    def check(self) -> None:
        """StoreGone if one of them is not there any more, or another one is in its place."""
        if self._overwritten:
            raise _gone(self._path, "overwritten")
        for file, known in self._known.items():
            try:
                found = _which(file)
            except OSError:
                continue  # the disk does not say: whoever writes to it next finds out
            if found != known:
                raise _gone(file, "removed" if found is None else "replaced by another file")

    def is_shorter(self) -> bool:
        """Whether the database's file has become shorter; in regular use only VACUUM makes it so."""
        try:
            size = Path(self._path).stat().st_size if self._known else 0
        except OSError:
            return False  # `check` finds out
        self._size = max(self._size, size)
        return size < self._size

    def explain_shorter(self, *, vacuumed: bool) -> None:
        """StoreGone unless the file is shorter because it was vacuumed."""
        self._size, self._overwritten = 0, not vacuumed
        self.check()


def _gone(file: str, what: str) -> StoreGone:
    message = (
        f"{file} was {what} while it was in use, so nothing is stored or started any more: put the right "
        "file there, then start again."
    )
    return StoreGone(message)


def _which(file: str) -> tuple[int, int] | None:
    try:
        found = Path(file).stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino


APPLICATION_ID = 0x57414B45  # "WAKE"
OLDEST_SQLITE = (3, 35, 0)  # RETURNING
MEMORY = ":memory:"
LOOKERS = 10
#: Pages each connection keeps. They are all in use within minutes, and the system has the others in its own cache; what
#: a reader keeps is of no use to it after the next write.
WRITER_KIB, READER_KIB = 8_000, 2_000


def path_of(url: str) -> str:
    """The file behind `sqlite:///relative.db`, `sqlite:////absolute.db` or `sqlite://` (in memory)."""
    rest = url.removeprefix("sqlite://")
    if rest in ("", "/", MEMORY, "/" + MEMORY):
        return MEMORY
    if not rest.startswith("/") or not _can_be_a_path(rest):
        message = f"{url!r} is not a store's address: write sqlite:///file.db, or sqlite:////absolute/file.db."
        raise StoreUnusable(message)
    # Absolute, so that a program that changes its directory keeps its store, and SQLite sees no "file:" address.
    try:
        return str(Path(rest[1:]).expanduser().absolute())
    except RuntimeError as error:
        message = f"{url!r} names the home directory of an unknown user: write the whole path."
        raise StoreUnusable(message) from error


def _can_be_a_path(text: str) -> bool:
    try:
        return b"\0" not in os.fsencode(text)
    except UnicodeEncodeError:
        return False


def files_beside(path: str) -> Path:
    """The folder for what does not fit into a row; a store in memory has one with a random name."""
    if path == MEMORY:
        import tempfile  # slow to load, and only a store in memory needs it

        return Path(tempfile.gettempdir()) / f"wakeful-{secrets.token_hex(8)}.logs"
    return Path(path + ".logs")


def check_file(path: str, *, create: bool) -> None:
    """Refuse what cannot be a store before SQLite touches it."""
    if sqlite3.sqlite_version_info < OLDEST_SQLITE:
        wanted = ".".join(map(str, OLDEST_SQLITE))
        message = (
            f"This Python has SQLite {sqlite3.sqlite_version}; Wakeful needs {wanted} or later: use a newer Python."
        )
        raise StoreUnusable(message)
    file = Path(path)
    try:
        there, regular, directory = file.exists(), file.is_file(), file.is_dir()
    except OSError as error:
        message = f"{path} cannot be reached ({error.strerror}): choose another place."
        raise StoreUnusable(message) from error
    if directory:
        message = f"{path} is a directory: name a file in it, for example {file / 'wakeful.db'}."
        raise StoreUnusable(message)
    if there and not regular:
        message = f"{path} is not a file: choose another place."
        raise StoreUnusable(message)
    if not there:
        if not create:
            message = (
                f"There is no store at {path}: add a job or start a server to create it, or name another with --db."
            )
            raise StoreUnusable(message)
        try:
            make_private_folder(file.parent)
        except OSError as error:
            message = f"The directory of {path} cannot be made ({error.strerror}): choose another place."
            raise StoreUnusable(message) from error
        # Private to its owner, as are the files SQLite makes next to it. Connecting reports any obstacle.
        with contextlib.suppress(OSError):
            _make_private(path)


def _make_private(path: str) -> None:
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, FILE_MODE)
    try:
        os.fchmod(fd, FILE_MODE)
    finally:
        os.close(fd)


def connect(path: str, *, readonly: bool = False) -> sqlite3.Connection:
    """A connection with our settings; WAL and synchronous=FULL are what "stored" means here. Raises sqlite3.Error."""
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False, cached_statements=512)
    try:
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute(f"PRAGMA cache_size = -{READER_KIB if readonly else WRITER_KIB}")
        connection.execute("PRAGMA temp_store = MEMORY")
        connection.execute("PRAGMA journal_size_limit = 67108864")
        if readonly:
            connection.execute("PRAGMA query_only = 1")
    except BaseException:
        connection.close()
        raise
    return connection


def schema_version(connection: sqlite3.Connection, path: str) -> Stored:
    """Which migrations this file has seen, or StoreUnusable when it is not ours to use; only reads."""
    (found,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if found != APPLICATION_ID and (tables or version):
        message = f"{path} is another program's database: choose another file for Wakeful."
        raise StoreUnusable(message)
    keys = "SELECT key, value FROM meta WHERE key IN (?, ?)"
    facts = dict(connection.execute(keys, (OLDEST_KEY, DOMAINS_KEY)).fetchall()) if tables else {}
    stored = Stored.of(int(version), facts, lambda: _columns(connection), path)
    refuse_newer(stored, path, partial(way_back, path))
    return stored


def _columns(connection: sqlite3.Connection) -> set[Column]:
    """The columns of all tables, by the database's own word."""
    sql = "SELECT t.name, c.name FROM sqlite_master t JOIN pragma_table_info(t.name) c WHERE t.type = 'table'"
    return {(str(table), str(column)) for table, column in connection.execute(sql)}


def keep_log(connection: sqlite3.Connection, path: str) -> None:
    """Write ahead into a log, which is what lets readers and the writer work side by side."""
    (mode,) = connection.execute("PRAGMA journal_mode = WAL").fetchone()
    if path != MEMORY and mode != "wal":
        message = f"{path} cannot have a write-ahead log where it is: choose a place on a local disk."
        raise StoreUnusable(message)


def migrate(connection: sqlite3.Connection, path: str) -> None:
    """Bring the schema to this version, inside the caller's transaction; one that is newer and suits us stays."""
    stored = schema_version(connection, path)
    if stored.is_current():
        return
    coming = stored.after(steps())
    if stored.version and coming.contracts(stored) and path != MEMORY:
        refuse_contracting(coming, _living(path), path)
    for step, script in zip(steps(), migrations(), strict=True):
        if stored.lacks(step):
            for statement in _statements(script):
                connection.execute(statement)
    connection.execute(f"PRAGMA user_version = {coming.number}")
    connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.executemany(
        "INSERT INTO meta (key, value) VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value",
        coming.facts(),
    )


def _living(path: str) -> list[Living]:
    """The process that runs this file's engine, if there is one: it says in its lock what it knows."""
    holder = engine_holder(path)
    if holder is None:
        return []
    return [Living.of(f"{holder.get('node', 'the server')} (process {holder.get('pid', 'unknown')})", holder)]


def migrations() -> list[str]:
    """The numbered steps, in order, as SQLite wants them."""
    # Only the exact words INTEGER PRIMARY KEY make a column SQLite's own row number, which is what makes ids fast.
    return [step.script.replace("bigint PRIMARY KEY", "INTEGER PRIMARY KEY") for step in steps()]


def _statements(script: str) -> list[str]:
    lines = [line.partition("--")[0].rstrip() for line in script.splitlines()]
    return [statement for part in "\n".join(lines).split(";") if (statement := part.strip())]


class EngineLock:
    """The right to start this file's jobs: a lock the system frees when its process ends, however it ends."""

    def __init__(self, path: str) -> None:
        self._path = _lock_path(path)
        self._file: IO[str] | None = None
        on_fork(self, EngineLock.release)  # closed there, it stays ours; kept there, it would outlive us

    def acquire(self, who: dict[str, object]) -> None:
        """Take it, or raise StoreLocked with the holder."""
        try:
            file = os.fdopen(open_private(self._path, os.O_RDWR | os.O_CREAT), "r+", encoding="utf-8")
        except OSError as error:
            message = f"{self._path} cannot be written ({error.strerror}): the engine needs it to be the only one."
            if error.errno == errno.ELOOP:
                message = f"{self._path} is a symbolic link: remove it, then start again."
            raise StoreUnusable(message) from error
        try:
            _lock(file)
        except OSError as error:
            holder = holder_text(file.read())
            file.close()
            message = f"Another server already runs this store ({holder}): stop it first, or use another store."
            raise StoreLocked(message) from error
        file.seek(0)
        file.truncate()
        file.write(json.dumps({**who, **known_schemas()}))
        file.flush()
        self._file = file

    @property
    def held(self) -> bool:
        """Whether this process holds it."""
        return self._file is not None

    def release(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


def _lock(file: IO[str]) -> None:
    """Take the lock, and retry while other processes only check who has it: they hold it for a moment too."""
    for attempt in range(LOOKERS):
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            if attempt == LOOKERS - 1:
                raise
            clocks.block(0.01)
        else:
            return


def _lock_path(path: str) -> str:
    """Next to the file itself, also when a link led to it: one store, one lock."""
    return os.path.realpath(path) + ".lock"


def engine_holder(path: str) -> dict[str, object] | None:
    """Who runs the engine on this file right now, or None."""
    try:
        with os.fdopen(open_private(_lock_path(path), os.O_RDWR), "r+", encoding="utf-8") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except OSError as error:
                if error.errno not in (errno.EAGAIN, errno.EACCES):
                    raise
                with contextlib.suppress(ValueError):
                    found = json.loads(file.read())
                    return found if isinstance(found, dict) else {}
                return {}
    except FileNotFoundError:
        return None
    return None


def holder_text(content: str) -> str:
    try:
        who = json.loads(content)
        return f"process {who['pid']} on {who['host']}, node {who['node']}"
    except (ValueError, KeyError, TypeError):
        return "its lock file does not say who"


def explain(error: sqlite3.Error, path: str) -> NoReturn:
    """Raise what the database error means to the person who runs this."""
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_FULL:
        message = f"The disk that holds {path} is full: free some space; nothing was half written."
        raise StoreFull(message) from error
    if code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
        message = f"{path} has been locked by another process for too long: end what holds it, then try again."
        raise StoreLocked(message) from error
    if code in _UNUSABLE:
        raise StoreUnusable(_UNUSABLE[code].format(path=path)) from error
    message = f"The database {path} failed: {error}."
    raise (StoreRefused if code in _REFUSED else StoreError)(message) from error


#: The fault is in the data to be written (or in a conflicting row), not in the machine.
_REFUSED = {
    sqlite3.SQLITE_ERROR,
    sqlite3.SQLITE_CONSTRAINT,
    sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE,
    sqlite3.SQLITE_TOOBIG,
}


_UNUSABLE = {
    sqlite3.SQLITE_NOTADB: "{path} is not a database: choose another file, or move this one away.",
    sqlite3.SQLITE_CORRUPT: "{path} is damaged: restore a backup, or recover it with the sqlite3 tool's .recover.",
    sqlite3.SQLITE_READONLY: "{path} cannot be written: check the permissions of the file and of its directory.",
    sqlite3.SQLITE_CANTOPEN: "{path} cannot be opened: check that its directory exists and may be written.",
    sqlite3.SQLITE_PERM: "{path} may not be accessed: check its permissions.",
    sqlite3.SQLITE_IOERR: "The disk that holds {path} failed: check it, its quota and the limits on file sizes; "
    "nothing was half written.",
}
