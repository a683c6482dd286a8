"""The one place where text leaves for the terminal.

Names, payloads, notes, errors and output come from outside: from agents, from programs, from all who may add a
job. An escape sequence in them must not steer the reader's terminal, so every control character is shown as what it is.
Nothing else in this package prints, tables apart.
"""

from __future__ import annotations

import codecs
import io
import json
import logging
import sys
from textwrap import indent
from types import TracebackType
from typing import IO, TYPE_CHECKING, Annotated

import typer

from wakeful.console.humanize import plain, visible
from wakeful.triggers.moments import iso

if TYPE_CHECKING:
    from typing import TypeAlias

    ExcInfo: TypeAlias = tuple[type[BaseException], BaseException, TracebackType | None] | tuple[None, None, None]


CHUNK = 64 * 1024


def say(line: str = "", *, error: bool = False) -> None:
    """One line; a line break in it is shown, too."""
    say_trusted(visible(line, keep="\t"), error=error)


def say_text(text: str, *, error: bool = False) -> None:
    """A text of several lines."""
    say_trusted(visible(text), error=error)


def say_trusted(text: str, *, error: bool = False) -> None:
    """Our own words as they are, colours included."""
    print(text, file=sys.stderr if error else sys.stdout)


class PrintedOutput:
    """What a run printed: as it is for a file or another program, with control characters shown on a terminal."""

    def __init__(self) -> None:
        self._shown = sys.stdout.isatty()
        # Holds back half a character and half a line break until the rest has come.
        utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._decoder = io.IncrementalNewlineDecoder(utf8, translate=False)

    def copy(self, file: IO[bytes] | None) -> None:
        """What has come since the last time."""
        if file is None:
            return
        sys.stdout.flush()
        while chunk := file.read(CHUNK):
            if self._shown:
                sys.stdout.write(visible(self._decoder.decode(chunk)))
            else:
                sys.stdout.buffer.write(chunk)
        sys.stdout.flush()

    def end(self) -> None:
        """Nothing more comes."""
        if self._shown:
            sys.stdout.write(visible(self._decoder.decode(b"", final=True)))
            sys.stdout.flush()

    def put(self, text: str) -> None:
        """A text that is all there is, with a line break at its end."""
        text = visible(text) if self._shown else text
        print(text, end="" if text.endswith("\n") else "\n")


class LogFormatter(logging.Formatter):
    """Lines of a log: what others wrote in one cannot look like another.

    A record with a `trace` is followed by it, indented, so that no line of it looks like the next record.
    """

    def format(self, record: logging.LogRecord) -> str:
        text, trace = super().format(record), getattr(record, "trace", None)
        return f"{text}\n{indent(visible(trace).rstrip(), '    ', lambda _: True)}" if trace else text

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - the standard library's name
        return visible(super().formatMessage(record), keep="\t")

    def formatException(self, ei: ExcInfo) -> str:  # noqa: N802 - as above
        return visible(super().formatException(ei))


class JsonFormatter(logging.Formatter):
    """One JSON object a line, for programs: `at level event job run node message`, and `trace` where there is one."""

    def __init__(self, node: str) -> None:
        super().__init__()
        self._node = node

    def format(self, record: logging.LogRecord) -> str:
        said = {
            "at": iso(int(record.created * 1000)),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", None) or record.name,
            "job": getattr(record, "job", None),
            "run": getattr(record, "run", None),
            "node": self._node,
            "message": record.getMessage(),
        }
        trace = getattr(record, "trace", None) or (self.formatException(record.exc_info) if record.exc_info else None)
        return json.dumps({**said, "trace": trace} if trace else said)


def log_to(stream: IO[str], form: str | logging.Formatter, times: str | None = None) -> None:
    """Send what is logged there, a line each; failures once, as `ServeLog` reports them when they are stored."""
    handler = logging.StreamHandler(stream)
    handler.addFilter(lambda record: record.name != "wakeful.runs")
    handler.setFormatter(LogFormatter(form, times) if isinstance(form, str) else form)
    logging.basicConfig(level=logging.INFO, handlers=[handler])


Yes = Annotated[bool, typer.Option("-y", "--yes", help="Do not ask for confirmation.")]


def ask_before(question: str, *, yes: bool) -> None:
    """End the command unless the answer is yes. Programs are not asked."""
    if not yes and sys.stdin.isatty():
        typer.confirm(plain(question), abort=True)


def ask_before_final(what: str, *, yes: bool) -> None:
    """The same before something that cannot be undone."""
    ask_before(f"{what} It cannot be undone. Go on?", yes=yes)
