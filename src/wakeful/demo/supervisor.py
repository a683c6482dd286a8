"""The process that the user starts: it holds the port, and starts the server again when it is killed.

It loads nothing of the server, so that the link is there at once.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from wakeful.child_processes import Process, clean_environment, start_process
from wakeful.clock import block
from wakeful.demo.place import DemoFolder, State
from wakeful.errors import SchedulerError
from wakeful.kernel.actions.sign_in import new_code

HOST = "127.0.0.1"
WAITING = 64  # connections that wait while no server runs
LOOKS, LOOK_S = 250, 0.02  # how long the server may take to end
PYTHON = ("PYTHONPATH", "PYTHONHOME", "PYTHONDONTWRITEBYTECODE", "PYTHONWARNINGS", "VIRTUAL_ENV")
DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR", "XDG_CURRENT_DESKTOP", "XDG_DATA_DIRS",
           "DBUS_SESSION_BUS_ADDRESS", "BROWSER")  # fmt: skip


class _Over(Exception):
    """A signal, or the end of the time that was given."""


class _Signals:
    """Ends a wait at the first signal. One that comes at another time ends the next wait: nothing is left half done."""

    def __init__(self, seconds: float | None) -> None:
        self._came = self._waiting = False
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
            signal.signal(number, self._note)
        if seconds is not None:
            signal.setitimer(signal.ITIMER_REAL, seconds)

    def _note(self, *_: object) -> None:
        self._came = True
        self._end_wait()

    def _end_wait(self) -> None:
        if self._came and self._waiting:
            self._waiting = False  # once: what follows is short
            raise _Over

    def wait(self, server: Process) -> int:
        """How the server ended, or _Over."""
        self._waiting = True
        self._end_wait()
        try:
            return server.wait()
        finally:
            self._waiting = False


def run_demo(port: int, seconds: float | None, *, opens: bool, say: Callable[[str], None]) -> None:
    """Print the link, and keep a server alive behind it until a signal, or for so many seconds."""
    signals = _Signals(seconds)
    with (
        contextlib.suppress(_Over),
        tempfile.TemporaryDirectory(prefix="wakeful-demo-") as folder,
        contextlib.closing(_listen(port)) as bound,
    ):
        place, code = DemoFolder(Path(folder)), new_code()
        place.write(State(code))
        link = f"http://{HOST}:{bound.getsockname()[1]}/in/{code}"
        say(link)
        say(f"The link works once, within ten minutes. The demo lives in {folder}; press Ctrl-C to end it.")
        sys.stdout.flush()
        if opens:
            open_browser(link)
        _keep_alive(place, bound, signals, say)
    say("The demo is over; its store is gone.")


def _listen(port: int) -> socket.socket:
    try:
        return socket.create_server((HOST, port), backlog=WAITING)
    except OSError:
        from wakeful.surfaces.api.server import bind  # says why, in a sentence

        return bind(HOST, port)


def _keep_alive(place: DemoFolder, bound: socket.socket, signals: _Signals, say: Callable[[str], None]) -> None:
    """Start the server, and start it again whenever it is killed."""
    server = _start(place, bound)
    try:
        while (code := signals.wait(server)) == -signal.SIGKILL:
            killed, server = server.pid, _start(place, bound)
            say(f"Process {killed} was killed. Process {server.pid} continues with what it left.")
            sys.stdout.flush()
        if code:
            raise SchedulerError(f"The server of the demo ended with exit code {code}: see what it printed above.")
    finally:
        _end(server)


def _start(place: DemoFolder, bound: socket.socket) -> Process:
    argv = [sys.executable, "-P", "-m", "wakeful.demo.serving", str(place.folder)]
    return start_process(argv, env=clean_environment(PYTHON), stdin=bound.fileno(), stderr=sys.stderr.fileno())


def _end(server: Process) -> None:
    if server.poll() is None:
        server.terminate()
    for _ in range(LOOKS):
        if server.poll() is not None:
            return
        block(LOOK_S)
    os.killpg(server.pid, signal.SIGKILL)  # it has had its time
    server.wait()


def has_display() -> bool:
    """Whether a browser could be seen by whoever started this."""
    return sys.platform == "darwin" or bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def open_browser(link: str) -> None:
    """Open the link in the user's browser, where there is a way to."""
    program = shutil.which("open" if sys.platform == "darwin" else "xdg-open")
    if program is not None and has_display():
        start_process([program, link], env=clean_environment(DESKTOP))
