"""An empty SQLite store with its tables, copied instead of made: thirty migrations take longer than most tests."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

from tests.store.samples import OpenStore
from wakeful.clock import ManualClock


def lay_out(path: Path) -> str:
    """Put a store at that path as it is after it was first opened; its address."""
    path.write_bytes(_empty_store())
    path.chmod(0o600)
    return f"sqlite:///{path}"


@functools.cache
def _empty_store() -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "wakeful.db"
        with OpenStore(f"sqlite:///{path}", ManualClock()):
            pass
        assert not path.with_name("wakeful.db-wal").exists(), "a copy of the file alone would lack what is in the log"
        return path.read_bytes()
