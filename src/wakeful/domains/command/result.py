"""How a command ended, in numbers and in one sentence."""

from __future__ import annotations

import signal
from dataclasses import dataclass
from pathlib import Path

from wakeful.errors import SchedulerError

LAST_LINE_MOST = 200


class CommandFailed(SchedulerError):
    """The command has no exit code: it could not be started, or its end could not be learnt."""

    code = "command_failed"
    traced = False  # the message says it all


class ArgumentsRefused(CommandFailed):
    """The system starts no program with these arguments: they are too long, or have a zero byte."""


class CommandTimedOut(SchedulerError):
    """The command ran longer than it may and was stopped; `.result` has what it printed until then."""

    code = "command_timed_out"

    def __init__(self, message: str, result: CommandResult) -> None:
        super().__init__(message)
        self.result = result


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
    stderr: str = ""  # where it is kept apart
    lingered: bool = False  # it did not end when all was over, and was ended

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
