"""The real `wakeful` in processes of its own, and signals to wait for: lines and named pipes, never time."""

from __future__ import annotations

import io
import json
import os
import queue
import select
import signal
import subprocess
import sys
import threading
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple

import pytest

from wakeful.surfaces.cli import main

PATIENCE = 300  # seconds after which a wait is a failure; nothing takes so long on purpose, on the slowest machine


class Answer(NamedTuple):
    """How a command ended and what it said."""

    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)


class Terminal:
    """A directory of its own, a home of its own, and nothing of the environment the tests run in."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir()
        (folder / ".wakeful").mkdir()
        self.env = {"HOME": str(self.home), "PATH": os.environ["PATH"], "TZ": "UTC", "PYTHONWARNINGS": "error"}
        self._opened: list[Process] = []

    module = "wakeful.cli"  # what is run as `wakeful`

    def start(self, *argv: str, **env: str) -> Process:
        process = Process(argv, self.folder, {**self.env, **env}, self.module)
        self._opened.append(process)
        return process

    def __call__(self, *argv: str, **env: str) -> Answer:
        """Run a command to its end."""
        return self.start(*argv, **env).ended()

    def ask(self, *argv: str) -> Answer:
        """The same in this process, which is quicker: for what a test prepares and looks at."""
        out, err = io.StringIO(), io.StringIO()
        with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err):
            patch.chdir(self.folder)
            for name, value in self.env.items():
                patch.setenv(name, value)
            patch.delenv("WAKEFUL_DB", raising=False)
            code = main(list(argv))
        return Answer(code, out.getvalue(), err.getvalue())

    def serve(self, *argv: str) -> Process:
        """A server that is ready."""
        process = self.start("serve", "--port", "0", *argv)
        process.until("serving")
        return process

    def pipe(self, name: str) -> Pipe:
        return Pipe(self.folder / name)

    def close(self) -> None:
        for process in self._opened:
            process.kill()


class Process:
    """A running `wakeful`, whose lines can be waited for."""

    def __init__(self, argv, folder: Path, env: dict[str, str], module: str = "wakeful.cli") -> None:
        self._popen = subprocess.Popen(
            [sys.executable, "-m", module, *argv],
            cwd=folder,
            env=env,
            text=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self.lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._said: dict[str, list[str]] = {"out": [], "err": []}
        self._readers = [
            threading.Thread(target=self._read, args=(name, stream), daemon=True)
            for name, stream in (("out", self._popen.stdout), ("err", self._popen.stderr))
        ]
        for reader in self._readers:
            reader.start()

    @property
    def pid(self) -> int:
        return self._popen.pid

    @property
    def log(self) -> str:
        """What it has said so far on standard error."""
        return "".join(self._said["err"])

    def _read(self, name, stream) -> None:
        with stream:
            for line in stream:
                self._said[name].append(line)
                self.lines.put(line)
        self.lines.put(None)

    def until(self, text: str) -> str:
        """The next line that contains the text, from either stream."""
        ended = 0
        while True:
            try:
                line = self.lines.get(timeout=PATIENCE)
            except queue.Empty:
                raise AssertionError(f"said no {text!r} in {PATIENCE} s: {self._said}") from None
            if line is None:
                ended += 1
                if ended == len(self._readers):
                    raise AssertionError(f"ended without saying {text!r}: {self._said}")
            elif text in line:
                return line

    def signal(self, number: signal.Signals) -> None:
        self._popen.send_signal(number)

    def ended(self) -> Answer:
        code = self._popen.wait(PATIENCE)
        for reader in self._readers:
            reader.join(PATIENCE)
        return Answer(code, "".join(self._said["out"]), "".join(self._said["err"]))

    def kill(self) -> None:
        if self._popen.poll() is None:
            self._popen.kill()
        self.ended()


class Pipe:
    """A named pipe a command under test writes to: what it says can be waited for."""

    def __init__(self, path: Path) -> None:
        os.mkfifo(path)
        self.path = path
        self._fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)  # both ends, so that it never ends

    def line(self, seconds: float = PATIENCE) -> str:
        ready, _, _ = select.select([self._fd], [], [], seconds)
        assert ready, f"nothing was written to {self.path.name}"
        return os.read(self._fd, 4096).decode().strip()

    def write(self, text: str) -> None:
        os.write(self._fd, f"{text}\n".encode())


def lives(pid: int) -> bool:
    """Whether the process still does anything; one that ended and waits to be collected does not."""
    try:
        os.kill(pid, 0)
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return not Path("/proc/self").exists()  # gone meanwhile, or no such folder here
    return state not in "ZX"
