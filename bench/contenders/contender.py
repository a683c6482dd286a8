"""The verbs every contender answers, and the one thing every measured job does.

A contender's module ends with `act(ItsClass)`. The job's body is `mark`: one append of who ran when.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

Jobs = list[tuple[int, float]]  # (number, due in epoch seconds)
ADDRESS = "address"  # the file in a contender's folder that names a database on a server, where it is to use one

_marks: int | None = None


def mark(number: int, due: float) -> None:
    """The measured job: say when it started."""
    global _marks  # noqa: PLW0603 - one descriptor for the life of the process, opened by the first mark
    if _marks is None:
        _marks = os.open(os.environ["BENCH_MARKS"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    os.write(_marks, b"%d %.6f %.6f\n" % (number, due, time.time()))


async def mark_async(number: int, due: float) -> None:
    mark(number, due)


class Scheduler:
    """One scheduler on one folder. A verb it does not offer is left out of its class."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        named = folder / ADDRESS
        self.address = named.read_text(encoding="utf-8") if named.exists() else ""

    def prepare(self, options: dict[str, Any]) -> None:
        """Make the tables, before anybody is timed."""

    def store(self, jobs: Jobs) -> None:
        """Durably store one-shot jobs while nothing runs."""
        raise NotImplementedError

    def recur(self, count: int) -> None:
        """Durably store so many hourly jobs, first due 10 to 59 minutes ahead."""
        raise NotImplementedError

    def serve(self, options: dict[str, Any]) -> None:
        """Run what is due, until killed."""
        raise NotImplementedError

    def pending(self) -> int:
        """How many stored jobs are not yet recorded as done; only whether it is 0 matters."""
        raise NotImplementedError


def act(kind: type[Scheduler]) -> None:
    """Do what the command line asks."""
    verb, options = sys.argv[1], json.loads(sys.argv[2])
    scheduler = kind(Path(options["folder"]))
    began = time.perf_counter()
    if verb == "store":
        scheduler.store([(number, due) for number, due in _spread(options)])
        print(json.dumps({"seconds": time.perf_counter() - began}))
    elif verb == "recur":
        scheduler.recur(options["count"])
        print(json.dumps({"seconds": time.perf_counter() - began}))
    elif verb == "prepare":
        scheduler.prepare(options)
        print(json.dumps({}))
    elif verb == "watch":
        _watch(scheduler, options["seconds"])
    elif verb == "serve":
        scheduler.serve(options)
    else:
        getattr(scheduler, verb)(options)


def _spread(options: dict[str, Any]) -> Jobs:
    """`count` jobs from `first` on, evenly over `span` seconds."""
    count, first, span = options["count"], options["first"], options.get("span", 0.0)
    return [(number, first + number * span / count) for number in range(count)]


def _watch(scheduler: Scheduler, seconds: float) -> None:
    """Wait for a line on stdin, then until nothing is pending; print when that was (0: not in time)."""
    scheduler.pending()  # imports and opens before anybody is timed
    sys.stdin.readline()
    end = time.time() + seconds
    while time.time() < end:
        if not scheduler.pending():
            print(json.dumps(time.time()))
            return
        time.sleep(0.01)
    print(json.dumps(0))


def wait_for_marks(count: int, seconds: float) -> bool:
    """Until the marks file has so many lines, from inside a contender's own process."""
    end = time.time() + seconds
    path = Path(os.environ["BENCH_MARKS"])
    while time.time() < end:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return True
        time.sleep(0.002)
    return False
