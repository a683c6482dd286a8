"""Reading the output of a tool as it arrives: its reply, session, cost and tokens. Pure except for its own state.

Text is the reply as it is. Of JSON lines, the last that matches has the reply, sessions are taken from any line, and
cost and tokens from the last line that has them, or as a sum. Lines that are not JSON are ignored: tools print those,
too. Memory is bounded, however much is printed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from itertools import islice
from typing import Any

from wakeful.domains.agents.runners.forms import Matches, OutputForm, Printed, meaning_of
from wakeful.domains.agents.runners.paths import number_at, value_at, values_at
from wakeful.domains.agents.runners.plain_text import LONGEST_REPLY, read_text
from wakeful.domains.agents.runners.turn import usable_session

__all__ = ["LONGEST_REPLY", "OutputForm", "OutputReader", "Printed", "plain"]

LONGEST = 16 * 1024 * 1024  # bytes of a line, or of a document
MOST_STARTS = 200  # places where a document may begin, of which each may take long to be found wrong
LONGEST_STRAY, LONGEST_NAME, MOST_DENIED = 4_000, 200, 20
UNNAMED = "it reported an error and did not say which"


class OutputReader:
    """Fed with what a tool prints; `on_session` gets each new session id at once."""

    def __init__(
        self, form: OutputForm, on_session: Callable[[str], None], on_end: Callable[[], None] = lambda: None
    ) -> None:
        """`on_end` is called when the tool has said all it has to say."""
        self._form = form
        self._on_session = on_session
        self._on_end = on_end
        self._held = bytearray()  # the line that is not over, or the document
        self._too_long = False
        self._goes_on = False  # the last line had a reply
        self._found = Printed()

    def feed(self, chunk: bytes) -> None:
        if self._form.format == "text":
            return
        *whole, rest = chunk.split(b"\n") if self._form.format == "jsonl" else [chunk]
        for part in whole:
            self._add(part)
            self._end_line()
        self._add(rest)

    def finish(self, text: str, stderr: str = "") -> Printed:
        """What was printed; `text` is the whole, as far as it was kept. Some print the JSON of an error elsewhere."""
        if self._form.format == "text":
            return read_text(self._form, text, stderr)
        if self._form.format == "json":
            kept = "" if self._too_long else self._held.decode("utf-8", "replace")
            self._take_document(_document(kept or text), text, stderr)
        else:
            self._end_line()
            self._try_document(text, stderr)
        return self._found

    def _add(self, part: bytes) -> None:
        self._too_long = self._too_long or len(self._held) + len(part) > LONGEST
        if not self._too_long:
            self._held += part

    def _end_line(self) -> None:
        line, self._held = bytes(self._held).strip(), bytearray()
        too_long, self._too_long = self._too_long, False
        if too_long:
            return
        text = line.decode("utf-8", "replace")
        data = _parsed(text) if line.startswith((b"{", b"[")) else None
        if data is not None:
            for one in self._events_in(data):
                self._take(one)
        elif text and len(self._found.stray) < LONGEST_STRAY:
            self._found = self._found._replace(stray=f"{self._found.stray}\n{text}"[:LONGEST_STRAY])

    def _events_in(self, data: Any) -> list[Any]:
        """A line is one event; some tools print all of theirs as one list."""
        is_list = isinstance(data, list) and any(isinstance(one, dict) and _all(one, self._form.match) for one in data)
        return data if is_list and self._form.match else [data]

    def _try_document(self, text: str, stderr: str) -> None:
        """Where no line had a result, all of it may be one object."""
        form, found = self._form.document, self._found
        if form is None or found.has_result or found.error is not None:
            return
        data = _parsed(text.strip())
        if data is None or any(value_at(data, path) is not None for path in (form.reply, *form.error) if path):
            self._form = form
            self._take_document(data, "", stderr)

    def _take_document(self, found: Any, text: str, stderr: str) -> None:
        if found is not None:
            self._take(found)
            return
        stray = self._found.stray or text.strip()[:LONGEST_STRAY]
        self._found = self._found._replace(stray=stray)
        # Of output outside the results, only the error messages.
        data = _document(stderr.replace("[ERROR] ", "\n"))
        error = next((value for path in self._form.error if isinstance(value := value_at(data, path), str)), None)
        if error is not None:
            self._see_error(data, error)

    def _take(self, data: Any) -> None:
        if not isinstance(data, dict | list):
            return
        form = self._form
        self._see_session(data)
        self._see_progress(data)
        if _all(data, form.match):
            reply = _text(value_at(data, form.reply)) if form.reply is not None else None
            if form.joined and self._goes_on:
                reply = _text((self._found.reply or "") + (reply or ""))
            self._found = self._found._replace(reply=reply, has_result=True, recovered=self._found.error is not None)
        elif form.done and _all(data, form.done):
            self._found = self._found._replace(reply=self._found.reply or "", has_result=True)
        self._goes_on = _all(data, form.match)
        if not form.fails or _any(data, form.fails):
            self._look_for_error(data)
        if self._goes_on and form.apology is not None and re.search(form.apology, self._found.reply or ""):
            self._see_error(data, self._found.reply)
        if form.resets_at is not None and _all(data, form.limited):
            at = value_at(data, form.resets_at)
            self._found = self._found if at is None else self._found._replace(resets_at=at)
        self._count(data)
        if _any(data, form.ends):
            self._on_end()

    def _look_for_error(self, data: Any) -> None:
        form = self._form
        wrong = next((value for path, value in form.wrong if value_at(data, path) == value), None)
        wrong = wrong and (self._found.complaint or wrong)
        error = next((value for path in form.error if (value := value_at(data, path))), wrong)
        if error is not None:
            self._see_error(data, error)

    def _see_error(self, data: Any, error: Any) -> None:
        form = self._form
        meaning = next((meaning for path, value, meaning in form.means if value_at(data, path) == value), None)
        meaning = meaning or (meaning_of(value_at(data, form.status)) if form.status is not None else None)
        is_own = not isinstance(error, bool)
        said = _text(error) if is_own else self._found.reply
        text = said or _kind(data) or UNNAMED
        meaning = meaning or meaning_of(plain(text)[1])
        self._found = self._found._replace(error=text, is_own=is_own, meaning=meaning, recovered=False)

    def _see_progress(self, data: Any) -> None:
        """Whether it complains, and whether it does anything; a complaint stands until it continues."""
        form, found = self._form, self._found
        said = _text(value_at(data, form.complaint)) if form.complaint else None
        if said and (not form.complains or _any(data, form.complains)):
            status = value_at(data, form.complaint_status) if form.complaint_status else None
            meaning = meaning_of(status) or meaning_of(plain(said)[1])
            self._found = found._replace(complaint=said, complaint_meaning=meaning)
        elif not _any(data, form.opens) and not _any(data, form.ends):
            self._found = found._replace(acted=True, complaint=None, complaint_meaning=None)

    def _see_session(self, data: Any) -> None:
        form = self._form
        session = usable_session(value_at(data, form.session)) if form.session is not None else None
        if session is not None and session != self._found.session:
            self._found = self._found._replace(session=session)
            self._on_session(session)

    def _count(self, data: Any) -> None:
        form, found = self._form, self._found
        costs = [number_at(data, path) for path in (form.own_cost, form.cost) if path is not None]
        counts = [_counts(data, paths, form) for paths in (form.own_tokens, form.tokens) if paths]
        came_in, came_out = next((pair for pair in counts if pair != (None, None)), (None, None))
        cost = next((cost for cost in costs if cost is not None), None)
        new = {"cost": cost, "tokens_in": came_in, "tokens_out": came_out}
        found = found._replace(**{key: self._next(getattr(found, key), value) for key, value in new.items()})
        denied = values_at(data, form.denied) if form.denied is not None else []
        if denied and isinstance(denied[0], list):
            found = found._replace(denied=tuple(_denial(one) for one in denied[0][:MOST_DENIED]))
        version = value_at(data, form.version) if form.version is not None else None
        self._found = found._replace(version=version[:LONGEST_NAME]) if isinstance(version, str) else found

    def _next(self, before: Any, value: float | None) -> Any:
        if value is None:
            return before
        return before + value if self._form.sums and before is not None else value


def plain(text: str) -> tuple[str, int | None]:
    """An error without the JSON that it was wrapped in: its message, and its status where the JSON has one."""
    start = text.find("{")
    if start < 0:
        return text, None
    try:
        data = json.JSONDecoder().raw_decode(text, start)[0]
    except (ValueError, RecursionError):
        return text, None
    message, code = value_at(data, "error.message") or value_at(data, "message"), value_at(data, "error.code")
    return (message, code if isinstance(code, int) else None) if isinstance(message, str) and message else (text, None)


def _kind(data: Any) -> str | None:
    """What kind of result it calls itself, unless that says nothing."""
    kind = value_at(data, "subtype")
    return kind if isinstance(kind, str) and kind != "success" else None


def _counts(data: Any, paths: tuple[str, ...], form: OutputForm) -> tuple[float | None, float | None]:
    """The tokens that went in, and those that came out."""
    numbers = [number_at(data, path) for path in paths]
    came_in = _sum(numbers[:-1])
    total = number_at(data, form.total) if form.total is not None else None
    if total is not None and came_in is not None:
        return came_in, max(0, total - came_in)
    return came_in, _sum([numbers[-1], *(number_at(data, path) for path in form.thoughts)])


def _sum(numbers: list[float | None]) -> float | None:
    found = [number for number in numbers if number is not None]
    return sum(found) if found else None


def _all(data: Any, matches: Matches) -> bool:
    return all(value_at(data, path) == value for path, value in matches)


def _any(data: Any, matches: Matches) -> bool:
    return any(value_at(data, path) == value for path, value in matches)


def _denial(entry: Any) -> str:
    """A tool that was not allowed, with what it was to do."""
    if not isinstance(entry, dict):
        return (_text(entry) or "")[:LONGEST_NAME]
    what = entry.get("tool_input")
    words = what.get("command") if isinstance(what, dict) and isinstance(what.get("command"), str) else _text(what)
    return f"{entry.get('tool_name')}{f'({words})' if words else ''}"[:LONGEST_NAME]


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
