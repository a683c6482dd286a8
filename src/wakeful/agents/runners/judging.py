"""What the end of a tool's call means: pure functions from what it printed to a decision.

| what is seen | decision |
|---|---|
| exit code 0 and a reply | `Answered` |
| exit code 0 and no result where one is expected | `Wrong` |
| a failed call that names a rate limit | `Limited`, until the time it names |
| a failed call that resumed a session which the tool does not know | `Gone` |
| a failed call that names an overload | `Overloaded` |
| another exit code, an error in the result, or text of `failure` | `Wrong` |
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wakeful.agents.runners.output import Printed
from wakeful.agents.runners.reset_times import moment_of, reset_time
from wakeful.agents.runners.turn import Answered, Ending, Gone, Limited, Overloaded, Reply, Wrong
from wakeful.kernel.rules.outcome import beginning

MOST_SAID, MOST_WORDS = 500, 200
JUDGED, LONGEST_LINE = 64 * 1024, 4_000  # characters: patterns are looked for in no more, whatever is printed


class Signs(NamedTuple):
    """Patterns that say what an exit code does not."""

    success: str | None = None
    failure: str | None = None
    rate_limit: str | None = None
    session_gone: str | None = None
    overload: str | None = None


class Call(NamedTuple):
    """A call that has ended."""

    exit_code: int
    stdout: str
    stderr: str
    printed: Printed
    is_text: bool
    resumed: bool
    error: str | None  # what its exit code says, in words


class Moment(NamedTuple):
    """When, and where the tool's clock stands."""

    now: int
    zone: str = "UTC"


def judge(call: Call, signs: Signs, moment: Moment) -> Ending:
    """What a call means."""
    failure = _failure(call, signs)
    said = _said(call)
    if _limited(call, signs, said, failed=failure is not None):
        until = moment_of(call.printed.resets_at, moment.now)
        line = _line(signs.rate_limit, said) or said
        for text in (line, said):  # other lines may have times of their own
            until = until if until is not None else reset_time(text, moment.now, moment.zone)
        return Limited(_short(line), until)
    if failure is None:
        return Answered(reply_of(call.printed))
    if call.resumed and _matches(signs.session_gone, said):
        return Gone(_short(_line(signs.session_gone, said) or failure))
    if _matches(signs.overload, said):
        return Overloaded(_short(_line(signs.overload, said) or failure))
    return Wrong(_short(failure), reply=reply_of(call.printed))


def reply_of(printed: Printed) -> Reply:
    counts = [None if count is None else int(count) for count in (printed.tokens_in, printed.tokens_out)]
    return Reply(printed.reply or "", printed.session, printed.cost, *counts)


def _failure(call: Call, signs: Signs) -> str | None:
    """Why a call failed, or None."""
    everything = f"{_bounded(call.stdout)}\n{_bounded(call.stderr)}"
    if _matches(signs.failure, everything):
        return _line(signs.failure, everything)
    if call.printed.error is not None:
        return call.printed.error
    if call.exit_code != 0 and not (signs.success and _matches(signs.success, everything)):
        return call.error or f"exited with code {call.exit_code}"
    if not call.printed.has_result:
        return f"it ended without a result{_last_words(call)}"
    if call.printed.reply is None:
        return f"its result has no reply{_last_words(call)}"
    return None


def _limited(call: Call, signs: Signs, said: str, *, failed: bool) -> bool:
    # The reply of a successful call may mention limits; plain text has no other place for them.
    return (failed or call.is_text) and _matches(signs.rate_limit, said)


def _said(call: Call) -> str:
    """What a call complains about; what an agent wrote on its way to a result is no complaint."""
    only_output = call.is_text or not (call.printed.has_result or call.printed.error)
    parts = [call.printed.error, call.stderr, call.stdout if only_output else None]
    return "\n".join(_bounded(part) for part in parts if part)


def _bounded(text: str) -> str:
    """The beginning and the end of a text, long lines cut: a search may take the square of their length."""
    if len(text) > JUDGED:
        text = f"{text[: JUDGED // 2]}\n{text[-JUDGED // 2 :]}"
    if len(text) <= LONGEST_LINE:
        return text
    return "\n".join(line[:LONGEST_LINE] for line in text.split("\n"))


def _matches(pattern: str | None, text: str) -> bool:
    return pattern is not None and re.search(pattern, text, re.IGNORECASE) is not None


def _line(pattern: str | None, text: str) -> str | None:
    """The line that a pattern was found in."""
    found = re.search(pattern, text, re.IGNORECASE) if pattern is not None else None
    if found is None:
        return None
    start = text.rfind("\n", 0, found.start()) + 1
    end = text.find("\n", found.end())
    return text[start : end if end >= 0 else len(text)].strip()


def _last_words(call: Call) -> str:
    lines = [line.strip() for line in f"{call.stdout}\n{call.stderr}".splitlines() if line.strip()]
    return f": {beginning(lines[-1], MOST_WORDS)}" if lines else ""


def _short(text: str) -> str:
    return beginning(" ".join(text.split()), MOST_SAID)
