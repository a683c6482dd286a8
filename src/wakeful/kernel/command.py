"""The built-in job kind `command`: a program in a process group of its own, with a clean environment.

What must stay true:
- there is no shell: the argument list reaches the program as it is written;
- the program sees a short list of variables and what the job names, nothing else of ours;
- nothing of a command outlives its run: background children are killed when it ends, and the whole group when the run
  is cancelled, runs out of time or the scheduler stops. A child that left the group on purpose (setsid) lives on, but
  nobody listens to it any more;
- we never signal a process we did not start. The leader stays unreaped until its group has been killed, because as
  long as it holds the number no other group can get it;
- what a killed scheduler left running is found again by `kill_leftover`, before the slot is run once more.
"""

from __future__ import annotations

import asyncio
import contextlib
import difflib
import errno
import io
import json
import os
import select
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NamedTuple, Protocol

from wakeful.errors import InvalidJob, SchedulerError
from wakeful.kernel.capture import Capture, LogFile, Redactor, off_loop, readable

RUN_ID = "WAKEFUL_RUN_ID"
INHERITED = ("PATH", "HOME", "LANG", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR")

ARGUMENTS_MOST = 512 * 1024
ARGUMENT_MOST = 128 * 1024 - 1  # what Linux takes as one argument
STDIN_MOST = 4 * 1024 * 1024
OUTPUT_MOST = 16 * 1024 * 1024
TIMEOUT_MOST_MS = 366 * 86_400_000
LAST_LINE_MOST = 200
KILL_WAIT = 2.0


class _Exit(Protocol):
    """Readable once its process has ended."""

    def fileno(self) -> int: ...
    def close(self) -> None: ...


class CommandFailed(SchedulerError):
    """The command has no exit code: it could not be started, or its end could not be learnt."""

    code = "command_failed"


class CommandTimedOut(SchedulerError):
    """The command ran longer than it may and was stopped; `.result` has what it printed until then."""

    code = "command_timed_out"

    def __init__(self, message: str, result: CommandResult) -> None:
        super().__init__(message)
        self.result = result


@dataclass(frozen=True, slots=True)
class Limits:
    """How patient we are (seconds) and how much we keep (bytes)."""

    grace: float = 5.0  # between SIGTERM and SIGKILL
    drain: float = 1.0  # for the output to end after the command has
    log_bytes: int = 100 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class CommandSpec:
    """What to run. Secrets belong in `pass_env` (names), never in `env` (values, stored with the job)."""

    argv: tuple[str, ...]
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    pass_env: tuple[str, ...] = ()
    timeout_ms: int | None = None
    output_limit: int = 64 * 1024
    success_codes: tuple[int, ...] = (0,)
    stdin: str | None = None

    @classmethod
    def from_payload(cls, payload: object) -> CommandSpec:
        """Read a job's payload; InvalidJob says in one sentence what is wrong with it."""
        if not isinstance(payload, Mapping):
            raise InvalidJob('A command needs a payload such as {"argv": ["./backup.sh"]}.')
        given = {key: value for key, value in payload.items() if value is not None}
        for key in given:
            _refuse_unknown(key)
        if "argv" not in given:
            raise InvalidJob('A command needs argv, the program and its arguments: ["./backup.sh", "--full"].')
        spec = cls(**{key: _CHECKS[key](value) for key, value in given.items()})
        if sum(len(text.encode()) + 1 for text in (*spec.argv, *spec.env, *spec.env.values())) > ARGUMENTS_MOST:
            raise InvalidJob(f"A command's argv and env may take {ARGUMENTS_MOST} bytes together; use stdin for more.")
        return spec


def _refuse_unknown(key: object) -> None:
    if key in _CHECKS:
        return
    near = difflib.get_close_matches(str(key), _CHECKS, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known are {', '.join(_CHECKS)}."
    raise InvalidJob(f"A command has no {key!r}: {hint}")


def _argv(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        raise InvalidJob("A command's argv must be a list of strings, not one string: there is no shell to split it.")
    if not isinstance(value, list | tuple) or not value:
        raise InvalidJob("A command's argv must be a non-empty list of strings.")
    argv = tuple(_text(item, f"argv[{index}]", most=ARGUMENT_MOST) for index, item in enumerate(value))
    if not argv[0]:
        raise InvalidJob("A command's argv must begin with the name of a program.")
    return argv


def _env(value: object) -> dict[str, str]:
    if not isinstance(value, Mapping):
        raise InvalidJob("A command's env must map names to values.")
    return {_name(name, "env"): _text(text, f"env[{name!r}]", most=ARGUMENT_MOST) for name, text in value.items()}


def _pass_env(value: object) -> tuple[str, ...]:
    if not isinstance(value, list | tuple):
        raise InvalidJob("A command's pass_env must be a list of names of variables.")
    return tuple(_name(name, "pass_env") for name in value)


def _success_codes(value: object) -> tuple[int, ...]:
    if not isinstance(value, list | tuple) or not value:
        raise InvalidJob("A command's success_codes must be a non-empty list of exit codes.")
    return tuple(_number(code, "success_codes", 0, 255) for code in value)


def _name(value: object, where: str) -> str:
    name = _text(value, f"{where} name", least=1)
    if "=" in name:
        raise InvalidJob(f"A command's {where} has the name {name!r}, and a variable's name cannot contain '='.")
    return name


def _text(value: object, where: str, *, least: int = 0, most: int = 4096, nul: bool = False) -> str:
    if not isinstance(value, str):
        raise InvalidJob(f"A command's {where} must be a string, not {type(value).__name__}.")
    try:
        size = len(value.encode())
    except UnicodeEncodeError:
        raise InvalidJob(f"A command's {where} contains half a surrogate pair, which is not text.") from None
    if "\0" in value and not nul:
        raise InvalidJob(f"A command's {where} contains a NUL byte, which no program can be given.")
    if not least <= size <= most:
        raise InvalidJob(f"A command's {where} must have {least} to {most} bytes, not {size}.")
    return value


def _number(value: object, where: str, least: int, most: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidJob(f"A command's {where} must be a whole number from {least} to {most}.")
    return value


_CHECKS: dict[str, Callable[[object], Any]] = {
    "argv": _argv,
    "cwd": lambda value: _text(value, "cwd", least=1),
    "env": _env,
    "pass_env": _pass_env,
    "timeout_ms": lambda value: _number(value, "timeout_ms", 1, TIMEOUT_MOST_MS),
    "output_limit": lambda value: _number(value, "output_limit", 0, OUTPUT_MOST),
    "success_codes": _success_codes,
    "stdin": lambda value: _text(value, "stdin", most=STDIN_MOST, nul=True),
}


@dataclass(frozen=True, slots=True)
class CommandResult:
    """How a command ended. A negative exit code is the signal that killed it."""

    exit_code: int
    output: str
    output_bytes: int
    truncated: bool
    log_file: Path | None
    success_codes: tuple[int, ...] = (0,)
    notes: tuple[str, ...] = ()

    def error(self) -> str | None:
        """None on success, else one sentence with the last line the command printed."""
        if self.exit_code in self.success_codes:
            return None
        if self.exit_code < 0:
            what = f"killed by {_signal_name(-self.exit_code)}"
            what += " (out of memory?)" if self.exit_code == -signal.SIGKILL else ""
        else:
            what = f"exited with code {self.exit_code}"
        return what + self.last_words()

    def last_words(self) -> str:
        """The last line that says something, as the end of a sentence; empty when there is none."""
        for line in reversed(self.output.splitlines()):
            if said := " ".join("".join(c if c.isprintable() else " " for c in line).split()):
                return f": {said}" if len(said) <= LAST_LINE_MOST else f": {said[: LAST_LINE_MOST - 1]}…"
        return ""


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


async def run_command(
    spec: CommandSpec,
    *,
    run_env: Mapping[str, str],
    log_path: Path,
    secrets: Collection[str] = (),
    limits: Limits = Limits(),  # noqa: B008 - frozen
) -> CommandResult:
    """Run a command to its end, however it ends; its exit code is a result, not an exception.

    Raises CommandFailed when it could not be started and CommandTimedOut when it took longer than `spec.timeout_ms`.
    Cancelling ends the whole group, SIGTERM first; a second cancellation does not wait for the grace to pass. When this
    returns or raises, nothing of the command runs and its leader is reaped; `log_path` is gone unless it has more than
    `output`, except that a cancelled command's log stays, since nothing else holds what it printed. `secrets` are
    values that are replaced in everything kept.
    """
    record, redactor = _Record(log_path), Redactor(secrets)
    try:
        await off_loop(record.announce, run_env.get(RUN_ID, ""))
        group, pipe = _start(spec, _environment(spec, run_env))
        capture = Capture(pipe, LogFile(log_path, limits.log_bytes), redactor, keep=spec.output_limit)
        ending = await _supervise(group, capture, record, spec.timeout_ms, limits)
    finally:
        await off_loop(record.remove)
    log_file = await capture.finish()
    if ending.exit_code is None:
        raise CommandFailed(
            f"{spec.argv[0]!r} ended, but other code in this process took its exit code: SIGCHLD must not be ignored."
        )
    notes = (record.problem, ending.note, capture.log.problem)
    result = CommandResult(
        exit_code=ending.exit_code,
        output=capture.excerpt.text(),
        output_bytes=capture.excerpt.total,
        truncated=capture.excerpt.truncated,
        log_file=log_file,
        success_codes=spec.success_codes,
        notes=tuple(note for note in notes if note),
    )
    if ending.timed_out:
        seconds = (spec.timeout_ms or 0) / 1000
        raise CommandTimedOut(f"stopped after its limit of {seconds:g} s{result.last_words()}", result)
    return result


def _environment(spec: CommandSpec, run_env: Mapping[str, str]) -> dict[str, str]:
    """What the command sees. A name in `pass_env` that we do not have is left out; nothing overrides `run_env`."""
    inherited = {name: text for name, text in os.environ.items() if name in INHERITED or name.startswith("LC_")}
    passed = {name: os.environ[name] for name in spec.pass_env if name in os.environ}
    return inherited | passed | dict(spec.env) | dict(run_env)


class _Ending(NamedTuple):
    exit_code: int | None  # None: somebody else collected it
    timed_out: bool
    note: str | None


async def _supervise(
    group: _Group, capture: Capture, record: _Record, timeout_ms: int | None, limits: Limits
) -> _Ending:
    """See the group to its end. However this is left, the group has been killed and the reading has ended."""
    pump = capture.start()
    note = None
    try:
        try:
            await off_loop(record.name, group.pid)
            timed_out = not await _within(timeout_ms / 1000 if timeout_ms else None, group.exited())
            if not timed_out and not await _ends(pump, limits.drain):
                note = "Its output was still open after it had ended; what it left running in its group was killed."
        except asyncio.CancelledError:
            await _terminate(group, pump, limits.grace)
            await _ends(pump, limits.drain / 4)
            raise
        if timed_out:
            await _terminate(group, pump, limits.grace)
        exit_code = group.reap()
        if await _ends(pump, limits.drain / 4):
            pump.result()
        return _Ending(exit_code, timed_out, note)
    finally:
        group.reap()
        pump.cancel()
        await asyncio.wait({pump})


async def _terminate(group: _Group, pump: asyncio.Task[None], grace: float) -> None:
    """Ask the group to end, wait until its leader has and its output too, then kill what is left."""

    async def end() -> None:
        await group.exited()
        await asyncio.wait({pump})

    group.signal(signal.SIGTERM)
    group.signal(signal.SIGCONT)
    await _within(grace, end())
    group.signal(signal.SIGKILL)
    await _within(KILL_WAIT, group.exited())


async def _within(seconds: float | None, work: Coroutine[Any, Any, None]) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await work
    except TimeoutError:
        return False
    return True


async def _ends(task: asyncio.Task[None], seconds: float) -> bool:
    done, _ = await asyncio.wait({task}, timeout=seconds)
    return bool(done)


def _start(spec: CommandSpec, env: dict[str, str]) -> tuple[_Group, int]:
    """Start the program; its group and the reading end of the one pipe that takes both its streams, in order.

    Done on the loop: the interpreter stands still until the new program is loaded, so a thread would gain nothing.
    """
    cwd = os.path.expanduser(spec.cwd) if spec.cwd else None  # noqa: PTH111 - an unknown ~user stays as it is
    try:
        with contextlib.ExitStack() as stack:
            stdin = stack.enter_context(_stdin_file(spec.stdin)) if spec.stdin is not None else subprocess.DEVNULL
            pipe, write_end = os.pipe()
            stack.callback(os.close, write_end)
            on_failure = stack.enter_context(contextlib.ExitStack())
            on_failure.callback(os.close, pipe)
            popen = subprocess.Popen(  # noqa: S603 - running what the job says is what this kind is for
                spec.argv, stdin=stdin, stdout=write_end, stderr=write_end, cwd=cwd, env=env, start_new_session=True
            )
            group = _Group(popen)
            on_failure.pop_all()
            return group, pipe
    except (OSError, ValueError) as error:
        raise CommandFailed(_why_not_started(spec.argv[0], cwd, env, error)) from error


def _stdin_file(text: str) -> IO[bytes]:
    """A file without a name: unlike a pipe it needs nobody to feed it, and no program can block on it."""
    with contextlib.ExitStack() as on_failure:
        if sys.platform == "linux":
            file: IO[bytes] = on_failure.enter_context(os.fdopen(os.memfd_create("stdin"), "w+b"))
        else:
            file = on_failure.enter_context(tempfile.TemporaryFile())
        file.write(text.encode())
        file.seek(0)
        on_failure.pop_all()
    return file


def _why_not_started(program: str, cwd: str | None, env: Mapping[str, str], error: OSError | ValueError) -> str:
    number = error.errno if isinstance(error, OSError) else None
    reason = error.strerror if isinstance(error, OSError) else str(error)
    if isinstance(error, OSError) and cwd is not None and error.filename == cwd:
        return f"the command's cwd {cwd!r} cannot be used: {reason}"
    path = env.get("PATH", os.defpath)
    is_path = "/" in program
    found = shutil.which(str(Path(cwd or "", program)) if is_path else program, mode=os.F_OK, path=path)
    # A folder on PATH that we may not read is reported in place of the program that is nowhere.
    if number in (errno.ENOENT, errno.ENOTDIR) or (number == errno.EACCES and not found and not is_path):
        if found:
            return f"{program!r} names an interpreter in its first line that does not exist"
        if not is_path:
            return f"{program!r} was not found on PATH ({path})"
        return f"{program!r} does not exist" + (f" in {cwd!r}" if cwd and program[0] != "/" else "")
    if number == errno.EACCES:
        return f"{program!r} may not be executed: {reason}; try chmod +x"
    if number == errno.ENOEXEC:
        return f"{program!r} is not a program: a script needs a first line such as #!/bin/sh"
    return f"{program!r} could not be started: {reason}"


class _Group:
    """A started program and its process group, until `reap`."""

    def __init__(self, leader: subprocess.Popen[bytes]) -> None:
        self.pid = leader.pid
        self._leader = leader
        self._reaped = False
        try:
            try:
                self._exit = _exit_of(leader.pid)
            except OSError:
                self._exit = _exit_by_thread(leader.pid)
        except OSError:
            os.killpg(leader.pid, signal.SIGKILL)
            leader.wait()
            raise

    async def exited(self) -> None:
        await readable(self._exit.fileno())

    def signal(self, number: signal.Signals) -> None:
        if self._reaped or _is_collected(self.pid):
            return
        # Nobody left to signal, or (macOS) only the ended leader.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    def reap(self) -> int | None:
        """Kill what is left of the group, then collect the leader's exit code. Never blocks; again changes nothing."""
        if not self._reaped:
            self.signal(signal.SIGKILL)
            self._reaped = True
            self._exit.close()
            self._exit_code = self._collect()
            self._leader.returncode = self._exit_code if self._exit_code is not None else 0
        return self._exit_code

    def _collect(self) -> int | None:
        try:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            return None
        if pid:
            return os.waitstatus_to_exitcode(status)
        # Killed this instant, or stuck in the kernel: a thread sees it off, so that no zombie stays.
        threading.Thread(target=_collect_later, args=(self.pid,), name=f"reap-{self.pid}", daemon=True).start()
        return -signal.SIGKILL


def _collect_later(pid: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)


def _is_collected(pid: int) -> bool:
    """Whether somebody else collected our child (SIGCHLD ignored, a foreign wait): then its number may be anyone's."""
    if sys.platform != "darwin":  # where Python has no waitid
        try:
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            return True
    return False


def _exit_of(pid: int) -> _Exit:
    """Something that becomes readable when the process ends, and does not collect it."""
    if sys.platform == "linux":
        return io.FileIO(os.pidfd_open(pid))
    else:  # noqa: RET505 - mypy takes what follows a platform's return for unreachable
        with contextlib.ExitStack() as on_failure:
            queue = select.kqueue()
            on_failure.callback(queue.close)
            change = select.kevent(pid, select.KQ_FILTER_PROC, select.KQ_EV_ADD, select.KQ_NOTE_EXIT)
            queue.control([change], 0)
            on_failure.pop_all()
        return queue


def _exit_by_thread(pid: int) -> _Exit:
    """The same for our own child where the kernel has no such thing, or the process has already ended."""
    pipe, write_end = os.pipe()

    def wait() -> None:
        if sys.platform != "darwin":
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
        os.close(write_end)

    threading.Thread(target=wait, name=f"wait-{pid}", daemon=True).start()
    return io.FileIO(pipe)


def _record_path(log_path: Path) -> Path:
    return log_path.with_name(log_path.name + ".pid")


class _Record:
    """The note beside the log that says which process a run is: its run before the start, its leader after.

    Two lines of JSON. It is there while the command runs and removed with it, so one that is found belongs to a
    scheduler that was killed. Methods block and run in the writer thread; that it cannot be written is a `problem`,
    not a failure.
    """

    def __init__(self, log_path: Path) -> None:
        self._path = _record_path(log_path)
        self._fd: int | None = None
        self.problem: str | None = None

    def announce(self, run_id: str) -> None:
        try:
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._fd = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            self._failed(error)
        else:
            self._add(self._fd, {"run": run_id})

    def name(self, pid: int) -> None:
        if self._fd is not None:
            self._add(self._fd, {"pid": pid, "started": _started(pid)})

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


def kill_leftover(log_path: Path) -> bool:
    """Kill what a killed scheduler left running of the run that logs to `log_path`; True if anything was.

    For recovery, before the slot is run again and on the machine that ran it. Blocks, a few seconds at most, until what
    was killed is gone. Kills a group only if it is proved to be ours: its leader has the noted number and start, or
    (Linux) a member carries the run's id in its environment. Afterwards the note is gone: a second call does nothing.
    """
    path = _record_path(log_path)
    try:
        lines = path.read_bytes().splitlines()
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


def _kill_group(group: int, members: list[int]) -> bool:
    # A command may itself have started the scheduler that now recovers it.
    if not members or group <= 1 or group == os.getpgrp():
        return False
    with contextlib.ExitStack() as stack, selectors.DefaultSelector() as selector:
        for pid in members:
            with contextlib.suppress(OSError):  # gone meanwhile, or no way to watch it
                selector.register(stack.enter_context(contextlib.closing(_exit_of(pid))), selectors.EVENT_READ)
        try:
            os.killpg(group, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            return False
        while selector.get_map() and (ended := selector.select(KILL_WAIT)):
            for key, _ in ended:
                selector.unregister(key.fileobj)
    return True


def _leftover(run_id: str, pid: int | None, started: str | None) -> tuple[int, list[int]]:
    """The run's group and those of its members that live, none if there is no proof that they are ours."""
    every = list(_processes())
    if not every:  # no /proc: the leader alone can be told
        return (pid, [pid]) if pid and started and _started(pid) == started else (0, [])
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


def _carries(pid: int, run_id: str) -> bool:
    if not run_id:
        return False
    try:
        return f"{RUN_ID}={run_id}".encode() in Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
    except OSError:
        return False


def _started(pid: int) -> str | None:
    """When a process started, in words that no other process of that number shares; None if it is gone."""
    if process := _process(pid):
        return f"{_boot()} {process.ticks}"
    try:
        listing = subprocess.run(  # noqa: S603
            ["/bin/ps", "-o", "lstart=", "-p", str(pid)],
            capture_output=True,
            env={"LC_ALL": "C", "TZ": "UTC"},
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return listing.stdout.decode().strip()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""
