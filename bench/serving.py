"""A contender at work: its processes, the marks its jobs leave, what it costs."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import time
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

from bench.contenders import ROOT, Contender, environment


class Mark(NamedTuple):
    """One job's start, as it recorded it itself (epoch seconds)."""

    number: int
    due: float
    started: float


class Serving:
    """One contender's scheduler, serving in fresh processes (`nodes` of them) from `with` to its end."""

    def __init__(self, contender: Contender, folder: Path, *, nodes: int = 1, **options: Any) -> None:
        self._command = contender.command("serve", folder=str(folder), **options)
        self._marks = folder / "marks.log"
        self._said = folder / "serve.log"
        self._nodes = nodes
        self._processes: list[subprocess.Popen[bytes]] = []
        self.spawned_at = 0.0

    def __enter__(self) -> Self:
        self._marks.write_bytes(b"")
        environ = {**environment(), "BENCH_MARKS": str(self._marks)}
        with self._said.open("ab") as out:
            self.spawned_at = time.time()
            for _ in range(self._nodes):
                self._processes.append(
                    subprocess.Popen(
                        self._command, cwd=ROOT, env=environ, stdout=out, stderr=out, start_new_session=True
                    )
                )
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.stop()

    def stop(self) -> None:
        """End the process groups we started, kindly and then not."""
        for word in (signal.SIGTERM, signal.SIGKILL):
            alive = [process for process in self._processes if process.poll() is None]
            for process in alive:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, word)
            for process in alive:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(8)

    def wait_for(self, count: int, seconds: float) -> None:
        """Until so many jobs have started; an error when they have not in time."""
        end, seen = time.time() + seconds, 0
        with self._marks.open("rb") as file:
            while seen < count:
                seen += file.read().count(b"\n")
                if seen >= count:
                    return
                if any(process.poll() is not None for process in self._processes):
                    message = f"the serving process ended early: {self.said().strip()[-800:]}"
                    raise RuntimeError(message)
                if time.time() > end:
                    message = f"only {seen} of {count} jobs had started after {seconds:.0f} s"
                    raise TimeoutError(message)
                time.sleep(0.01)

    def marks(self) -> list[Mark]:
        rows = [line.split() for line in self._marks.read_text(encoding="ascii").splitlines()]
        return [Mark(int(number), float(due), float(started)) for number, due, started in rows]

    def said(self) -> str:
        return self._said.read_text(encoding="utf-8", errors="replace")

    def last_words(self) -> dict[str, Any]:
        """What our own contender prints when it is stopped."""
        found: dict[str, Any] = json.loads(self.said().splitlines()[-1])
        return found

    def cpu_s(self) -> float:
        """Processor time the processes have used, all threads that still live, to the nanosecond."""
        return sum(_threads_s(process.pid) for process in self._processes)

    def rss_mib(self) -> float:
        return sum(_rss_mib(process.pid) for process in self._processes)


def _threads_s(pid: int) -> float:
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text(encoding="ascii").split()[0]) for task in tasks) / 1e9


def _rss_mib(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text(encoding="utf-8").splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) / 1024
    return 0.0


class Watcher:
    """Asks a contender's own store, from another process, when nothing is left to do."""

    def __init__(self, contender: Contender, folder: Path, seconds: float = 120) -> None:
        self._process = subprocess.Popen(
            contender.command("watch", folder=str(folder), seconds=seconds),
            cwd=ROOT,
            env=environment(),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self._seconds = seconds

    def settled_at(self) -> float:
        """Begin to look, and answer when the last job was on record as done."""
        said, _ = self._process.communicate("look\n", timeout=self._seconds + 30)
        at = float(json.loads(said))
        if not at:
            message = f"jobs were still not settled {self._seconds:.0f} s after the last start"
            raise TimeoutError(message)
        return at

    def end(self) -> None:
        if self._process.poll() is None:
            self._process.kill()
            self._process.communicate()
