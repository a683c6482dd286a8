"""Reading the output of a tool as it arrives: its reply, session, cost and tokens. Pure except for its own state.

Text is the reply as it is. Of JSON lines, the last that matches has the reply, sessions are taken from any line, and
cost and tokens from the last line that has them, or as a sum. Lines that are not JSON are ignored: tools print those,
too. Memory is bounded, however much is printed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any, NamedTuple

from wakeful.agents.runners.paths import number_at, value_at
from wakeful.agents.runners.turn import usable_session

LONGEST_LINE = 4 * 1024 * 1024
MOST_STARTS = 200  # places where a document may begin, of which each may take long to be found wrong
LONGEST_REPLY = 100_000  # characters: the run's log has longer ones


class OutputForm(NamedTuple):
    """How a tool prints: `text`, `json` (one object or list) or `jsonl` (one object per line), and what lies where."""

    format: str = "text"
    reply: str | None = None
    session: str | None = None
    cost: str | None = None
    tokens: tuple[str, ...] = ()  # those that went in, and those that came out last
    error: tuple[str, ...] = ()
    match: tuple[tuple[str, Any], ...] = ()
    resets_at: str | None = None  # of a rate limit
    limited: tuple[tuple[str, Any], ...] = ()  # lines that report a reached limit; others only mention one
    wrong: tuple[tuple[str, Any], ...] = ()  # a line with one of these failed, whatever else it says
    sums: bool = False  # cost and tokens of all lines count together
    ends: tuple[tuple[str, Any], ...] = ()  # a line with one of these is the last that counts


class Printed(NamedTuple):
    """What was understood of it."""

    reply: str | None = None
    has_result: bool = False
    session: str | None = None
    cost: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    error: str | None = None
    resets_at: Any = None


class OutputReader:
    """Fed with what a tool prints; `on_session` gets each new session id at once."""

    def __init__(
        self, form: OutputForm, on_session: Callable[[str], None], on_end: Callable[[], None] = lambda: None
    ) -> None:
        """`on_end` is called when the tool has said all it has to say."""
        self._form = form
        self._on_session = on_session
        self._on_end = on_end
        self._line = bytearray()
        self._too_long = False
        self._found = Printed()

    def feed(self, chunk: bytes) -> None:
        if self._form.format != "jsonl":
            return
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._add(part)
            self._end_line()
        self._add(rest)

    def finish(self, text: str, stderr: str = "") -> Printed:
        """What was printed; `text` is the whole, as far as it was kept. Some print the JSON of an error elsewhere."""
        if self._form.format == "text":
            return Printed(reply=text.strip("\n")[:LONGEST_REPLY], has_result=True)
        if self._form.format == "json":
            found = _document(text)
            self._take(found)
            if found is None:
                self._take_error(_document(stderr.replace("[ERROR] ", "\n")))
        else:
            self._end_line()
        return self._found

    def _add(self, part: bytes) -> None:
        self._too_long = self._too_long or len(self._line) + len(part) > LONGEST_LINE
        if not self._too_long:
            self._line += part

    def _end_line(self) -> None:
        line, self._line = bytes(self._line).strip(), bytearray()
        too_long, self._too_long = self._too_long, False
        if too_long or not line.startswith((b"{", b"[")):
            return
        self._take(_parsed(line.decode("utf-8", "replace")))

    def _take(self, data: Any) -> None:
        if not isinstance(data, dict | list):
            return
        self._see_session(data)
        form, found = self._form, self._found
        if all(value_at(data, path) == value for path, value in form.match):
            reply = value_at(data, form.reply) if form.reply is not None else None
            found = found._replace(reply=_text(reply), has_result=True)
        wrong = next((value for path, value in form.wrong if value_at(data, path) == value), None)
        error = next((value for path in form.error if (value := value_at(data, path))), wrong)
        if error is not None:
            found = found._replace(error=error if isinstance(error, str) else found.reply or _text(error))
        if form.resets_at is not None and all(value_at(data, path) == value for path, value in form.limited):
            at = value_at(data, form.resets_at)
            found = found if at is None else found._replace(resets_at=at)
        self._found = self._count(data, found)
        if any(value_at(data, path) == value for path, value in form.ends):
            self._on_end()

    def _take_error(self, data: Any) -> None:
        """Of output outside the results, only the error messages."""
        error = next((value for path in self._form.error if isinstance(value := value_at(data, path), str)), None)
        self._found = self._found._replace(error=error)

    def _see_session(self, data: Any) -> None:
        form = self._form
        session = usable_session(value_at(data, form.session)) if form.session is not None else None
        if session is not None and session != self._found.session:
            self._found = self._found._replace(session=session)
            self._on_session(session)

    def _count(self, data: Any, found: Printed) -> Printed:
        form = self._form
        cost = number_at(data, form.cost) if form.cost is not None else None
        numbers = [number_at(data, path) for path in form.tokens]
        came_in = [number for number in numbers[:-1] if number is not None]
        new = {"cost": cost, "tokens_in": sum(came_in) if came_in else None, "tokens_out": (numbers or [None])[-1]}
        return found._replace(**{key: self._next(getattr(found, key), value) for key, value in new.items()})

    def _next(self, before: Any, value: float | None) -> Any:
        if value is None:
            return before
        return before + value if self._form.sums and before is not None else value


def _document(text: str) -> Any:
    """The JSON in a tool's output; words may stand around it."""
    whole = _parsed(text.strip())
    if isinstance(whole, dict | list):
        return whole
    decoder = json.JSONDecoder()
    starts = (index for index, sign in enumerate(text) if sign in "{[" and (index == 0 or text[index - 1] == "\n"))
    for start in islice(starts, MOST_STARTS):
        try:
            found = decoder.raw_decode(text, start)[0]
        except (ValueError, RecursionError):
            continue
        if isinstance(found, Mapping | list):
            return found
    return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _text(value: Any) -> str | None:
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return text[:LONGEST_REPLY]
