"""What went wrong, as one sentence on standard error and an exit code.

0 done, 1 the thing failed, 2 wrong use, 3 not found, 4 refused. Every error of the library knows its own code; what
this surface adds is wrong use. A traceback is shown on request: WAKEFUL_DEBUG=1.
"""

from __future__ import annotations

import os
import re
import sys
from typing import IO

from wakeful.console.humanize import visible
from wakeful.console.output import say_text, say_trusted
from wakeful.errors import SchedulerError

INTERRUPTED = 130  # what a shell says for a program ended by Ctrl-C


class WrongUse(SchedulerError):
    """The command line cannot be read as anything; nothing was changed."""

    exit_code = 2
    code = "wrong_use"


def report_error(error: BaseException) -> int:
    """Print what the error means to the person at the keyboard; the exit code to end with."""
    if os.environ.get("WAKEFUL_DEBUG", "0") not in ("", "0"):
        import traceback

        say_text("".join(traceback.format_exception(error)).rstrip(), error=True)
    if isinstance(error, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(error, SchedulerError):
        say_error(str(error))
        return error.exit_code
    if hasattr(error, "format_message"):  # the argument parser's own family, whose base has moved between versions
        say_error(_usage(error))
        return int(getattr(error, "exit_code", 2))
    if type(error).__name__ == "Abort":
        say_error("Nothing was done.")
        return 1
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        say_error(f"{where}{error.strerror}.")
        return 1
    say_error(f"This is a fault in Wakeful: {type(error).__name__}: {error}. Set WAKEFUL_DEBUG=1 to see where.")
    return 1


def say_error(sentence: str) -> None:
    """One sentence on standard error, red where there are colours."""
    _say("Error:", "1;31", sentence)


def say_note(sentence: str) -> None:
    """Something a person should know besides the result: on standard error, so that results stay clean."""
    _say("Note:", "33", sentence)


def say_aside(sentence: str) -> None:
    """How it went, for the person; the result itself is on standard output."""
    _say("", "", sentence)


def _say(label: str, colour: str, sentence: str) -> None:
    sys.stdout.flush()  # keeps the order of output, also where both streams go to one file
    shown = f"\x1b[{colour}m{label}\x1b[0m" if label and has_colours(sys.stderr) else label
    say_trusted(f"{shown} {visible(sentence, keep=chr(9))}".lstrip(), error=True)


def has_colours(stream: IO[str]) -> bool:
    """Whether colours may be used there."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _usage(error: BaseException) -> str:
    """The parser's complaint in our form: what is wrong, the nearest right name, where to read on."""
    possible = list(getattr(error, "possibilities", None) or [])
    said = str(getattr(error, "message", "") if possible else error.format_message())  # type: ignore[attr-defined]
    said = _plain(" ".join(said.split()), error)
    said = said if said.endswith(("?", ".", "!")) else f"{said}."
    if possible:
        said += f" Did you mean {possible[0]}?"
    context = getattr(error, "ctx", None)
    return f"{said} See {context.command_path} --help." if context is not None else said


def _plain(said: str, error: BaseException) -> str:
    """The parser's words where they name no option, no command or nothing a person can do, in our own."""
    names = list(getattr(getattr(error, "cmd", None), "commands", ()))
    if said == "Missing command." and names:
        return f"Missing command: {', '.join(names[:-1])} or {names[-1]}."
    value = re.match(r"Invalid value for (?:'-\w' / )?'(?P<option>[^']+)': Input should be (?P<wanted>.+)", said)
    if value is None:
        return said
    wanted = value["wanted"].replace("greater than or equal to", "at least").replace("less than or equal to", "at most")
    return f"{value['option']} must be {'a whole number' if 'integer' in wanted else wanted}."
