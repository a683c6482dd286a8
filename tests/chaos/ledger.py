"""What happened outside the store: one line per fact, appended in one write, so that a kill loses and tears none.

Handlers write when they start and end, the meddler what was confirmed as stored, the orchestrator whom it killed when.
The store says what it believes; this file says what was so.
"""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import NamedTuple

START, END, CUT = "start", "end", "cut"  # of a handler: run, attempt, job; cut: it was cancelled on the way
READY, DEAD = "ready", "dead"  # of the server: pid
STORED, PAUSED, RESUMED, REMOVED = "stored", "paused", "resumed", "removed"  # the meddler's: job
CANCELLED, ASKED = "cancelled", "asked"  # the meddler's: run


class Line(NamedTuple):
    """One fact: when, what, about which run or process or nothing (-), which attempt, which job."""

    at: float
    what: str
    ref: str
    attempt: int
    job: str


class Ledger:
    """An append-only file that several processes share."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

    def note(self, what: str, ref: str = "-", attempt: int = 0, job: str = "-") -> float:
        at = time.time()
        os.write(self._file, f"{at:.6f} {what} {ref} {attempt} {job}\n".encode())
        return at

    def lines(self) -> list[Line]:
        found = []
        for text in self.path.read_text(encoding="utf-8").splitlines():
            at, what, ref, attempt, job = text.split(" ")
            found.append(Line(float(at), what, ref, int(attempt), job))
        return found

    def close(self) -> None:
        os.close(self._file)


#: The same two lines from a shell: a command job's body. `$1` is the ledger, `$2` how long it works.
COMMAND = (
    'echo "$(date +%s.%N) start $WAKEFUL_RUN_ID $WAKEFUL_ATTEMPT $WAKEFUL_JOB" >> "$1"; '
    'sleep "$2"; echo "$(date +%s.%N) end $WAKEFUL_RUN_ID $WAKEFUL_ATTEMPT $WAKEFUL_JOB" >> "$1"'
)
