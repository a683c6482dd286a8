"""The nodes of a drill as processes: started, killed, frozen and thawed, each with its log and its ledger.

Every process is known by its handle, and `close` ends all of them, whatever happened before.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from tests.chaos.node import READY, Fact, read_facts
from tests.chaos.waiting import LOOK_S, any_ends

ROOT = Path(__file__).resolve().parents[2]
PATIENCE_S = 300.0
FOREVER = float("inf")


@dataclass
class Blow:
    """What was done to a process, when, and until when it lasted (for a kill: until the name was started again)."""

    what: str  # "kill" or "freeze"
    node: str
    pid: int
    at: float
    until: float = FOREVER


class Fleet:
    """The living processes by name, and all that was done to them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.blows: list[Blow] = []
        self.surprises: list[str] = []  # processes that ended by themselves
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._frozen: dict[str, Blow] = {}

    def start(self, name: str, url: str, *options: str) -> None:
        command = [sys.executable, "-m", "tests.chaos.node", url, name, str(self.folder / f"{name}.ledger"), *options]
        environment = {**os.environ, "XDG_STATE_HOME": str(self.folder)}
        with (self.folder / f"{name}.log").open("ab") as said:
            self._processes[name] = subprocess.Popen(
                command, cwd=ROOT, env=environment, stdin=subprocess.PIPE, stdout=said, stderr=said,
                start_new_session=True,
            )  # fmt: skip
        for blow in self.blows:
            if blow.node == name and blow.what == "kill" and blow.until == FOREVER:
                blow.until = time.time()

    def kill(self, name: str) -> None:
        process = self._processes.pop(name)
        if process.poll() is not None:
            self.surprises.append(f"{name} had ended by itself with {process.returncode}: {self.said(name)[-1500:]}")
        blow = Blow("kill", name, process.pid, time.time())
        _end(process)
        self.blows.append(blow)

    def freeze(self, name: str) -> None:
        process = self._processes[name]
        blow = Blow("freeze", name, process.pid, time.time())
        process.send_signal(signal.SIGSTOP)
        self.blows.append(blow)
        self._frozen[name] = blow

    def thaw(self, name: str) -> None:
        self._processes[name].send_signal(signal.SIGCONT)
        self._frozen.pop(name).until = time.time()

    def pid(self, name: str) -> int:
        return self._processes[name].pid

    def said(self, name: str) -> str:
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def facts(self) -> list[Fact]:
        return read_facts(self.folder)

    def until_ready(self) -> None:
        """Wait until every process serves."""
        end = time.monotonic() + PATIENCE_S
        wanted = {process.pid for process in self._processes.values()}
        while wanted - {fact.pid for fact in self.facts() if fact.what == READY}:
            assert time.monotonic() < end, "not all nodes became ready"
            self.stay_up(time.monotonic() + LOOK_S)

    def stay_up(self, moment: float) -> None:
        """Wait until that moment of the monotonic clock; a node that ends by itself before is a failure at once."""
        if any_ends(self._processes.values(), moment):
            ended = [name for name, process in self._processes.items() if any_ends([process], time.monotonic())]
            raise AssertionError(f"{ended[0]} ended by itself: {self.said(ended[0])[-1500:]}")

    def stop(self) -> None:
        """End all in good order."""
        for process in self._processes.values():
            process.terminate()
        for name, process in list(self._processes.items()):
            try:
                code: object = process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                code = "nothing, and had to be killed"
                _end(process)
            _close_pipe(process)
            if code != 0:
                self.surprises.append(f"{name} stopped with {code}: {self.said(name)[-1500:]}")
        self._processes.clear()

    def close(self) -> None:
        """End whatever is left, at once."""
        for process in self._processes.values():
            _end(process)
        self._processes.clear()


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()  # also ends one that is frozen
    process.wait()
    _close_pipe(process)


def _close_pipe(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        process.stdin.close()
