"""What a killed scheduler leaves running: the note that says which process a run is, the proof, and the kill."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.child_processes import TookTooLong, run_to_end
from wakeful.domains.command.process_group import KILL_WAIT, exit_of
from wakeful.private_files import make_private_folder, open_private, open_unlinked

NOTE_MOST = 64 * 1024
STRAY_ROUNDS = 10
PLAIN = {"LC_ALL": "C", "TZ": "UTC"}  # so that what a program prints never depends on the machine
PATIENCE_S = 10
RUN_ID = "WAKEFUL_RUN_ID"  # the variable by which a process says which run it belongs to


def _note_path(log_path: Path) -> Path:
    return log_path.with_name(log_path.name + ".pid")


class RunNote:
    """The note next to the log that says which process a run is: its run before the start, its leader after.

    Two lines of JSON. It is there while the command runs and removed with it, so one that is found belongs to a
    scheduler that was killed. Methods block and run in the writer thread; that it cannot be written is a `problem`,
    not a failure.
    """

    def __init__(self, log_path: Path) -> None:
        self._path = _note_path(log_path)
        self._fd: int | None = None
        self.problem: str | None = None

    def announce(self, run_id: str) -> None:
        try:
            make_private_folder(self._path.parent)
            self._fd = open_private(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        except OSError as error:
            self._failed(error)
        else:
            self._add(self._fd, {"run": run_id})

    def name(self, pid: int) -> None:
        if self._fd is not None:
            self._add(self._fd, {"pid": pid, "started": start_of(pid)})

    def remove(self) -> None:
        if self._fd is None:
            return
        os.close(self._fd)
        self._fd = None
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            self._failed(error)

    def _add(self, fd: int, line: dict[str, object]) -> None:
        try:
            os.write(fd, json.dumps(line).encode() + b"\n")
        except OSError as error:
            self._failed(error)

    def _failed(self, error: OSError) -> None:
        reason = error.strerror or error
        self.problem = f"It could not be noted which process this is ({reason}): a crash would leave it running."


def has_note(log_path: Path) -> bool:
    """Whether a process was noted for the run that logs there; without a note nothing of it can be found."""
    return _note_path(log_path).exists()


def kill_leftover(log_path: Path) -> bool:
    """Kill what a killed scheduler left running of the run that logs to `log_path`; True if anything was.

    For recovery, before the slot is run again and on the machine that ran it. Blocks, a few seconds at most, until what
    was killed is gone. Kills a group only if it is proved to be ours: its leader has the noted number and start, or
    (Linux) a member carries the run's id in its environment. Afterwards the note is gone: a second call does nothing.
    """
    path = _note_path(log_path)
    try:
        with open_unlinked(path) as file:
            lines = file.read(NOTE_MOST).splitlines()
    except OSError:
        return False
    noted: dict[str, Any] = {}
    for line in lines:
        with contextlib.suppress(ValueError, TypeError):  # half a line is what a kill -9 may leave
            noted |= json.loads(line)
    killed = _kill_group(*_leftover(noted.get("run", ""), noted.get("pid"), noted.get("started")))
    with contextlib.suppress(OSError):  # it then proves nothing a second time either
        path.unlink()
    return killed


def kill_strays(run_id: str, variable: str) -> int:
    """Kill processes of a run that left its group; how many.

    They are found by their environment (Linux): the run's id, and `variable` with any value. For a run that is over.
    Blocks for a few seconds at most, until what was killed is gone.
    """
    killed: set[int] = set()
    for _ in range(STRAY_ROUNDS):  # one that forks while it is looked for is found in the next round
        found = [one.pid for one in _processes() if one.state not in "ZX" and _carries(one.pid, run_id, variable)]
        strays = [pid for pid in found if pid != os.getpid()]
        if not strays:
            break
        killed.update(pid for pid in strays if _kill_stray(pid, run_id, variable))
    return len(killed)


def _kill_stray(pid: int, run_id: str, variable: str) -> bool:
    try:
        with contextlib.closing(exit_of(pid)) as ended, selectors.DefaultSelector() as selector:
            if not _carries(pid, run_id, variable):  # the number belongs to another process by now
                return False
            selector.register(ended, selectors.EVENT_READ)
            os.kill(pid, signal.SIGKILL)
            selector.select(KILL_WAIT)
    except OSError:  # gone meanwhile, or not ours
        return False
    return True


def _kill_group(group: int, members: list[int]) -> bool:
    # A command may itself have started the scheduler that now recovers it.
    if not members or group <= 1 or group == os.getpgrp():
        return False
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for pid in members:
            with contextlib.suppress(OSError):  # gone meanwhile, or no way to watch it
                selector.register(stack.enter_context(contextlib.closing(exit_of(pid))), selectors.EVENT_READ)
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return False
        while selector.get_map() and (ended := selector.select(KILL_WAIT)):
            for key, _ in ended:
                selector.unregister(key.fileobj)
    return True


def _leftover(run_id: str, pid: int | None, started: str | None) -> tuple[int, list[int]]:
    """The run's group and its live members; none without proof that they are ours."""
    every = list(_processes())
    if not every:  # no /proc: only the leader can be recognised
        return (pid, [pid]) if pid and started and start_of(pid) == started else (0, [])
    if pid is None:
        # Killed between start and note: the oldest leader that carries the run's id; younger ones it has detached.
        leaders = [one for one in every if one.pid == one.group == one.session and _carries(one.pid, run_id)]
        pid = min(leaders, key=lambda one: (one.ticks, one.pid)).pid if leaders else 0
    members = [one for one in every if one.group == one.session == pid]
    proved = any(one.pid == pid and started == f"{_boot()} {one.ticks}" for one in members)
    if proved or any(_carries(one.pid, run_id) for one in members):
        return pid, [one.pid for one in members if one.state not in "ZX"]
    return 0, []


class _Process(NamedTuple):
    pid: int
    state: str
    group: int
    session: int
    ticks: int  # since boot, when it started


def _processes() -> Iterator[_Process]:
    for entry in Path("/proc").glob("[0-9]*"):
        if process := _process(int(entry.name)):
            yield process


def _process(pid: int) -> _Process | None:
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    # The name in parentheses may contain anything, parentheses too.
    rest = stat.rpartition(b")")[2].split()
    return _Process(pid, rest[0].decode(), int(rest[2]), int(rest[3]), int(rest[19]))


def _carries(pid: int, run_id: str, variable: str = RUN_ID) -> bool:
    """Whether a process has the run's id in its environment, and the variable besides it."""
    if not run_id:
        return False
    try:
        found = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False
    return f"{RUN_ID}={run_id}".encode() in found and any(one.startswith(f"{variable}=".encode()) for one in found)


def start_of(pid: int) -> str | None:
    """When a process started, in words that no other process of that number shares; None if it is gone."""
    if process := _process(pid):
        return f"{_boot()} {process.ticks}"
    try:
        listing = run_to_end(["/bin/ps", "-o", "lstart=", "-p", str(pid)], env=PLAIN, seconds=PATIENCE_S)
    except (OSError, TookTooLong):
        return None
    return listing.output.decode().strip() or None if listing.exit_code == 0 else None


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
