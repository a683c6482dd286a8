"""Child processes: all are started here, in a session of their own, with a clean environment and nothing else of ours.

The environment of a server holds its secrets. A program gets a short list of ordinary variables, and what its
configuration names one by one.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import selectors
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from wakeful import clock
from wakeful.references import VARIABLE

INHERITED = ("PATH", "HOME", "LANG", "TZ", "USER", "SHELL", "TMPDIR")
ERRORS_KEPT = 16_384  # bytes of the end of standard error
OUTPUT_KEPT = 65_536
LOOK_S = 0.25  # how often we look whether a program has ended whose output another one holds open
LAST_MS = 250  # how long what a program left behind is still heard after its end
CHUNK = 65_536

DEVNULL = subprocess.DEVNULL
Process = subprocess.Popen[bytes]


def is_ordinary(name: str) -> bool:
    """Whether every program gets this variable."""
    return name in INHERITED or name.startswith("LC_")


def clean_environment(passed: Iterable[str] = (), given: Mapping[str, str] | None = None) -> dict[str, str]:
    """Ordinary variables, those of ours that are passed on by name where we have them, and what is given."""
    names = set(passed)
    ours = {name: text for name, text in os.environ.items() if is_ordinary(name) or name in names}
    return {**ours, **(given or {})}


def listed_variable(item: Any) -> str:
    """The same item, where a list such as `env` may have it: NAME or NAME=value; else ValueError."""
    if not isinstance(item, str) or not VARIABLE.fullmatch(item.partition("=")[0]):
        raise ValueError("must be NAME, which is passed on, or NAME=value")
    if "\0" in item:
        raise ValueError("must not contain a NUL byte, which no program can be given")
    return item


class EnvironmentList(NamedTuple):
    """A list of `NAME` and `NAME=value`, as files have it: the names that are passed on, and what is set."""

    passed: tuple[str, ...]
    given: dict[str, str]

    @classmethod
    def read(cls, items: Sequence[str]) -> EnvironmentList:
        """What the list says; ValueError for an item that says nothing."""
        items = [listed_variable(item) for item in items]
        given = {name: text for name, sign, text in (item.partition("=") for item in items) if sign}
        return cls(tuple(item for item in items if "=" not in item and item not in given), given)

    def environment(self) -> dict[str, str]:
        """The clean environment with what is listed."""
        return clean_environment(self.passed, self.given)


def start_process(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    stdin: int | IO[bytes] = DEVNULL,
    stdout: int = DEVNULL,
    stderr: int = DEVNULL,
) -> Process:
    """Start a program; it gets these three streams, this environment, and none of our other descriptors."""
    return subprocess.Popen(  # noqa: S603 - running what a configuration says is what this is for
        argv, stdin=stdin, stdout=stdout, stderr=stderr, cwd=cwd, env=dict(env), start_new_session=True
    )


def stdin_file(content: bytes) -> IO[bytes]:
    """A file without a name: unlike a pipe it needs no writer, and no program can block on it."""
    with contextlib.ExitStack() as on_failure:
        if sys.platform == "linux":
            file: IO[bytes] = on_failure.enter_context(os.fdopen(os.memfd_create("stdin"), "w+b"))
        else:
            file = on_failure.enter_context(tempfile.TemporaryFile())
        file.write(content)
        file.seek(0)
        on_failure.pop_all()
    return file


class Finished(NamedTuple):
    """What a program left behind: `output` is its beginning, cut after what was asked for; `errors` is the end."""

    exit_code: int
    output: bytes
    errors: bytes


class TookTooLong(Exception):
    """A program that was killed because its time was over."""


def run_to_end(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    seconds: float,
    cwd: str | Path | None = None,
    stdin: bytes = b"",
    keep: int = OUTPUT_KEPT,
) -> Finished:
    """Run a short program; TookTooLong after so many seconds, OSError where it cannot be started."""
    child = _Child(argv, env, cwd, stdin, keep)
    timer = threading.Timer(seconds, child.kill)
    timer.daemon = True
    timer.start()
    try:
        finished = child.finish()
    finally:
        timer.cancel()
        child.kill()
    if child.killed:
        raise TookTooLong(f"{argv[0]} took longer than {seconds:g} s")
    return finished


async def run_beside(
    argv: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | Path | None = None,
    stdin: bytes = b"",
    keep: int = OUTPUT_KEPT,
) -> Finished:
    """Run a program alongside the event loop, for as long as it takes; who cancels this kills it with its group."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Finished] = loop.create_future()
    child = _Child(argv, env, cwd, stdin, keep)

    def notify(found: Finished | OSError) -> None:
        if isinstance(found, OSError):
            ended.set_exception(found)
        else:
            ended.set_result(found)

    def wait() -> None:
        try:
            found: Finished | OSError = child.finish()
        except OSError as error:
            found = error
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(notify, found)

    # A thread of its own: programs may take minutes, and the shared ones are few.
    threading.Thread(target=wait, name=f"child-{child.pid}", daemon=True).start()
    try:
        return await asyncio.shield(ended)
    except asyncio.CancelledError:
        child.kill()
        await asyncio.wait({ended})
        raise


class _Child:
    """A started program whose streams are read to their end by one thread, and which another one may kill."""

    def __init__(
        self, argv: Sequence[str], env: Mapping[str, str], cwd: str | Path | None, stdin: bytes, keep: int
    ) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self.killed = False
        with contextlib.ExitStack() as stack, contextlib.ExitStack() as on_failure:
            given = stack.enter_context(stdin_file(stdin))
            ends = []
            for _ in range(2):
                read_end, write_end = os.pipe()
                on_failure.callback(os.close, read_end)
                stack.callback(os.close, write_end)
                ends.append((read_end, write_end))
            (self._output, stdout), (self._errors, stderr) = ends
            self._process = start_process(argv, env=env, cwd=cwd, stdin=given, stdout=stdout, stderr=stderr)
            on_failure.pop_all()
        self.pid = self._process.pid

    def kill(self) -> None:
        """Kill the program and its group, if it has not ended."""
        with self._lock:
            if self._process.poll() is None:
                self.killed = True
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.killpg(self.pid, signal.SIGKILL)

    def finish(self) -> Finished:
        """Read until both streams end, or the program has ended and a process that it left holds one open."""
        kept = {self._output: b"", self._errors: b""}
        try:
            with selectors.DefaultSelector() as selector:
                for end in kept:
                    selector.register(end, selectors.EVENT_READ)
                last = None  # when to stop reading from what the program left behind
                while selector.get_map():
                    ready = [key.fd for key, _ in selector.select(LOOK_S)]
                    if self.killed or self._has_ended():
                        now = clock.SystemClock().boot()
                        last = now + LAST_MS if last is None else last
                        if not ready or now >= last:
                            break
                    for end in ready:
                        chunk = os.read(end, CHUNK)
                        if not chunk:
                            selector.unregister(end)
                        kept[end] = self._kept(end, kept[end], chunk)
        finally:
            os.close(self._output)
            os.close(self._errors)
        return Finished(self._reap(), kept[self._output], kept[self._errors])

    def _kept(self, end: int, before: bytes, chunk: bytes) -> bytes:
        """One byte more of the output than is asked for shows that there was more."""
        if end == self._errors:
            return (before + chunk)[-ERRORS_KEPT:]
        return before + chunk[: max(0, self._keep + 1 - len(before))]

    def _reap(self) -> int:
        pause = 0.001
        while not self._has_ended():
            clock.block(pause)
            pause = min(2 * pause, LOOK_S)
        return int(self._process.returncode)

    def _has_ended(self) -> bool:
        with self._lock:  # so that nobody signals a number that is free again
            return self._process.poll() is not None
