"""Running a command: seen to its end by time, by cancellation or of its own, with nothing left behind."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from wakeful.domains.command.capture import Capture, Redactor, off_loop
from wakeful.domains.command.launch import environment, launch, secret_values
from wakeful.domains.command.leftovers import RUN_ID, RunNote, kill_strays
from wakeful.domains.command.log_file import LogFile
from wakeful.domains.command.process_group import KILL_WAIT, ProcessGroup
from wakeful.domains.command.result import CommandFailed, CommandResult, CommandTimedOut
from wakeful.domains.command.spec import CommandSpec
from wakeful.threads import room
from wakeful.trace_context import trace_variables

ERRORS_KEPT = 64 * 1024  # bytes of standard error where it is kept apart


@dataclass(frozen=True, slots=True)
class CommandLimits:
    """How patient we are (seconds) and how much we keep (bytes)."""

    grace: float = 5.0  # between SIGTERM and SIGKILL
    drain: float = 1.0  # for the output to end after the command has
    linger: float = 5.0  # for the command to end once it has said all it has to say
    log_bytes: int = 100 * 1024 * 1024


async def run_command(
    spec: CommandSpec,
    *,
    run_env: Mapping[str, str],
    log_path: Path,
    secrets: Collection[str] = (),
    limits: CommandLimits = CommandLimits(),  # noqa: B008 - frozen
    streams: Streams | None = None,
) -> CommandResult:
    """Run a command to its end, however it ends; its exit code is a result, not an exception.

    Raises CommandFailed when it could not be started and CommandTimedOut when it took longer than `spec.timeout_ms`.
    Cancelling ends the whole group, SIGTERM first; a second cancellation does not wait for the grace to pass. When this
    returns or raises, nothing of the command runs and its leader is reaped; `log_path` is gone unless it has more than
    `output`, except that a cancelled command's log stays, since nothing else holds what it printed. `secrets`
    and the values the job gives its command are replaced in everything kept. With `streams`, standard error is kept
    apart as `stderr`; the log has both, with standard error marked, and stays.
    """
    run_note, hidden = RunNote(log_path), {*secrets, *secret_values(spec)}
    log, errors = LogFile(log_path, limits.log_bytes, adds=streams is not None), _Errors()
    try:
        await off_loop(run_note.announce, run_env.get(RUN_ID, ""))
        run_env = {**run_env, **trace_variables()}
        env = environment(spec, run_env) if streams is None else {**streams.environment, **run_env}
        with errors.opened(apart=streams is not None) as write_end:
            group, pipe = launch(spec, env, write_end)
        capture = Capture(
            pipe,
            log,
            Redactor(hidden),
            keep=spec.output_limit,
            on_output=streams.on_output if streams is not None else None,
            keeps_log=streams is not None,
        )
        async with errors.read(log, Redactor(hidden), limits):
            over = streams.over if streams is not None else None
            ending = await _supervise(group, capture, run_note, spec.timeout_ms, limits, over=over)
    finally:
        try:
            if streams is not None and streams.variable is not None:
                await _end_strays(run_env.get(RUN_ID, ""), streams.variable)
        finally:
            await off_loop(_end_files, log, run_note)
    log_file = await capture.finish()
    if ending.exit_code is None:
        raise CommandFailed(
            f"{spec.argv[0]!r} ended, but other code in this process took its exit code: SIGCHLD must not be ignored."
        )
    notes = (run_note.problem, ending.note, capture.log.problem)
    result = CommandResult(
        exit_code=ending.exit_code,
        output=capture.excerpt.text(),
        output_bytes=capture.excerpt.total,
        truncated=capture.excerpt.truncated,
        log_file=log_file,
        success_codes=spec.success_codes,
        notes=tuple(note for note in notes if note),
        stderr=errors.text(),
        lingered=ending.lingered,
    )
    if ending.timed_out:
        seconds = (spec.timeout_ms or 0) / 1000
        raise CommandTimedOut(f"stopped after its limit of {seconds:g} s{result.last_words()}", result)
    return result


def _end_files(log: LogFile, run_note: RunNote) -> None:
    """Nothing more is read: standard error may have ended later than the output."""
    log.close(keep=True)
    run_note.remove()


class Streams(NamedTuple):
    """For a program whose two streams mean different things: its whole environment, and a listener to its output."""

    environment: Mapping[str, str]
    on_output: Callable[[bytes], None] | None = None
    variable: str | None = None  # by which processes are found that left its group: they end with it
    over: asyncio.Event | None = None  # set once it has said all it has to say: it is then expected to end


class _Errors:
    """Standard error where it is kept apart; else nothing."""

    def __init__(self) -> None:
        self._pipe: int | None = None
        self._capture: Capture | None = None

    @contextlib.contextmanager
    def opened(self, *, apart: bool) -> Iterator[int | None]:
        """The descriptor to print errors to, or None for that of the output."""
        if not apart:
            yield None
            return
        self._pipe, write_end = os.pipe()
        try:
            yield write_end
        except BaseException:
            os.close(self._pipe)
            raise
        finally:
            os.close(write_end)

    @contextlib.asynccontextmanager
    async def read(self, log: LogFile, redactor: Redactor, limits: CommandLimits) -> AsyncIterator[None]:
        """Read it for as long as the program runs, and what is left when it has ended."""
        if self._pipe is None:
            yield
            return
        self._capture = Capture(self._pipe, log, redactor, keep=ERRORS_KEPT, is_stderr=True)
        pump = self._capture.start()
        try:
            yield
            await _ends(pump, limits.drain / 4)
        finally:
            pump.cancel()
            await asyncio.wait({pump})

    def text(self) -> str:
        return self._capture.excerpt.text() if self._capture is not None else ""


async def _end_strays(run_id: str, variable: str) -> None:
    """Not in the writer thread: logs of others are not kept waiting."""
    await asyncio.shield(room("processes").call(kill_strays, run_id, variable))


class _Ending(NamedTuple):
    exit_code: int | None  # None: other code collected it
    timed_out: bool
    note: str | None
    lingered: bool


async def _supervise(
    group: ProcessGroup,
    capture: Capture,
    run_note: RunNote,
    timeout_ms: int | None,
    limits: CommandLimits,
    *,
    over: asyncio.Event | None,
) -> _Ending:
    """See the group to its end. However this is left, the group has been killed and the reading has ended."""
    pump = capture.start()
    note, exited = None, asyncio.Event()
    try:
        try:
            await off_loop(run_note.name, group.pid)
            ended = _ended(group, exited, over, limits.linger)
            is_late = not await _within(timeout_ms / 1000 if timeout_ms else None, ended)
            timed_out = is_late and not (over is not None and over.is_set())  # all was said in time
            lingered = not timed_out and not exited.is_set()
            if exited.is_set() and not await _ends(pump, limits.drain):
                note = "Its output was still open after it had ended; what it left running in its group was killed."
        except asyncio.CancelledError:
            await _terminate(group, pump, limits.grace)
            await _ends(pump, limits.drain / 4)
            raise
        if not exited.is_set():
            await _terminate(group, pump, limits.grace)
        exit_code = group.reap()
        if await _ends(pump, limits.drain / 4):
            pump.result()
        return _Ending(exit_code, timed_out, note, lingered)
    finally:
        group.reap()
        pump.cancel()
        await asyncio.wait({pump})


async def _ended(group: ProcessGroup, exited: asyncio.Event, over: asyncio.Event | None, linger: float) -> None:
    """Wait until the leader has exited, which sets `exited`, or lingers although everything else has ended."""

    async def leave() -> None:
        await group.exited()
        exited.set()

    if over is None:
        await leave()
        return
    leaving, ending = asyncio.ensure_future(leave()), asyncio.ensure_future(over.wait())
    try:
        await asyncio.wait({leaving, ending}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait({leaving}, timeout=linger)
    finally:
        leaving.cancel()
        ending.cancel()
        await asyncio.wait({leaving, ending})


async def _terminate(group: ProcessGroup, pump: asyncio.Task[None], grace: float) -> None:
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
