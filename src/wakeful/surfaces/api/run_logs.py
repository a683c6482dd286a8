"""The output of a run on its way to a reader: sent in pieces, each when the one before was taken.

A reader that takes nothing costs a piece and what its connection buffers, however long the log is, and there are only
so many such answers at once.
"""

from __future__ import annotations

import codecs
import contextlib
import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, NamedTuple

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from wakeful.kernel.model.run import Run
from wakeful.private_files import open_unlinked
from wakeful.routing.problems import ApiError
from wakeful.threads import room

PIECE = 64 * 1024


class Downloads:
    """How many logs are being sent."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._open = 0

    def check(self) -> None:
        """503 if there are too many for one more."""
        if self._open >= self._most:
            raise ApiError(503, "too_many_logs", "Too many logs are being read.", headers={"Retry-After": "5"})

    @contextlib.contextmanager
    def one(self) -> Iterator[None]:
        self._open += 1
        try:
            yield
        finally:
            self._open -= 1


class Tail(NamedTuple):
    """The end of a text: a file at its beginning, and how many bytes of it."""

    file: IO[bytes]
    size: int


def tail_of(path: Path, most: int, run: Run) -> Tail:
    """At most so much of a run's log; where there is none on this machine, of what the record holds."""
    try:
        file: IO[bytes] = open_unlinked(path)
    except OSError:
        file = io.BytesIO(_said(run).encode("utf-8", "replace"))
    size = file.seek(0, 2)
    begin = max(0, size - most)
    file.seek(begin)
    return Tail(file, size - begin)


def _said(run: Run) -> str:
    """A command's output as it printed it, an answer's body, else what the handler returned; the error last."""
    output: Any = run.output
    if isinstance(output, dict) and run.kind == "command" and isinstance(output.get("output"), str):
        output = output["output"]
    elif isinstance(output, dict) and run.kind == "http" and isinstance(output.get("body"), str):
        output = output["body"]
    text = "" if output is None else output if isinstance(output, str) else json.dumps(output, indent=2)
    return "\n".join(part for part in (text, run.error) if part)


class LogAnswer(Response):
    """The answer. It closes the file."""

    media_type = "text/plain"

    def __init__(self, tail: Tail, downloads: Downloads) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._tail = tail
        self._downloads = downloads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del scope, receive
        file, left = self._tail
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with self._downloads.one(), file:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            while left > 0 and (piece := await room("logs").call(file.read, min(PIECE, left))):
                left -= len(piece)
                text = decoder.decode(piece).encode()
                await send({"type": "http.response.body", "body": text, "more_body": True})
            rest = decoder.decode(b"", final=True).encode()
            await send({"type": "http.response.body", "body": rest, "more_body": False})
