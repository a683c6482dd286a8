"""What the end of a tool's call means: pure functions from what it printed to a decision.

| what is seen | decision |
|---|---|
| exit code 0 and a reply, perhaps an empty one | `Answered` |
| exit code 0 and no result where one is expected | `Wrong` |
| a failed call that names a rate limit | `Limited`, until the time it names |
| a failed call that resumed a session which the tool does not know | `Gone` |
| a failed call that names an overload | `Overloaded` |
| another exit code, an error in the result, or text of `failure` | `Wrong` |
| it took too long: by what it complained about last | `Limited`, `Overloaded`, or `Wrong`: a timeout |

Fields that say what an error is count before its words.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from wakeful.domains.agents.runners.forms import LIMIT, OVERLOAD, Printed
from wakeful.domains.agents.runners.output import plain
from wakeful.domains.agents.runners.reset_times import moment_of, reset_time
from wakeful.domains.agents.runners.turn import Answered, CallFailed, Ending, Gone, Limited, Overloaded, Reply
from wakeful.kernel.rules.outcome import beginning
from wakeful.patterns import Pattern

MOST_SAID, MOST_WORDS = 500, 200
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_LOGGED = re.compile(r'timestamp=\S+ level=ERROR\b.*\berror\.error="([^"]+)".*')
JUDGED, LONGEST_LINE = 64 * 1024, 4_000  # characters: patterns are looked for in no more, whatever is printed


Sign = Pattern | str | None  # of a user, or of a preset: ours, and searched by `re`


class Signs(NamedTuple):
    """Patterns that say what an exit code does not."""

    success: Sign = None
    failure: Sign = None
    rate_limit: Sign = None
    session_gone: Sign = None
    overload: Sign = None
    quota: Sign = None  # what was bought or allotted is used up
    empty: Sign = None  # an error that says that the reply was empty, which is none


class EndedCall(NamedTuple):
    """A call that has ended."""

    exit_code: int
    stdout: str
    stderr: str
    printed: Printed
    is_text: bool
    resumed: bool
    error: str | None  # what its exit code says, in words
    timed_out: bool = False


class CallTime(NamedTuple):
    """When, and where the tool's clock stands."""

    now: int
    zone: str = "UTC"


def judge(call: EndedCall, signs: Signs, moment: CallTime) -> Ending:
    """What a call means."""
    failure, used = _failure(call, signs), reply_of(call.printed)
    if failure is None:  # whatever it says: the agent may write about limits, or be told to
        return Answered(used)
    said, meaning = _said(call), _meaning(call)
    if not call.timed_out and _matches(signs.empty, call.printed.error or ""):
        return Answered(used._replace(text=""))
    if meaning == LIMIT or (meaning is None and (_matches(signs.rate_limit, said) or _matches(signs.quota, said))):
        return _limited(call, signs, said, moment)
    if call.resumed and _matches(signs.session_gone, said):
        return Gone(_short(_line(signs.session_gone, said) or failure), reply=used)
    if meaning == OVERLOAD or _matches(signs.overload, said):
        return Overloaded(_short(_line(signs.overload, said) or failure), reply=used)
    return CallFailed(_short(failure), outcome="timeout" if call.timed_out else "error", reply=used)


def reply_of(printed: Printed) -> Reply:
    return Reply(printed.reply or "", printed.session, printed.cost, printed.tokens_in, printed.tokens_out)


def _failure(call: EndedCall, signs: Signs) -> str | None:
    """Why a call failed, or None."""
    everything = f"{_bounded(call.stdout)}\n{_bounded(call.stderr)}"
    printed = call.printed
    if call.timed_out:
        return call.error
    if _matches(signs.failure, everything):
        return _line(signs.failure, everything)
    if printed.error is not None and not (printed.recovered and call.exit_code == 0):
        return printed.error
    if call.exit_code != 0 and not (signs.success and _matches(signs.success, everything)):
        return call.error or f"exited with code {call.exit_code}"
    if not printed.has_result:
        return f"it ended without a result{_last_words(call)}"
    if printed.reply is None:
        return f"its result has no reply{_last_words(call)}"
    # It may say why there is nothing to say.
    return printed.complaint if not printed.reply and printed.complaint else None


def _meaning(call: EndedCall) -> str | None:
    """What fields of its output say that the failure is."""
    printed = call.printed
    return printed.meaning or (printed.complaint_meaning if printed.error is None else None)


def _limited(call: EndedCall, signs: Signs, said: str, moment: CallTime) -> Limited:
    """A limit with its end: from the field that says it, else from the line that mentions the limit."""
    until = moment_of(call.printed.resets_at, moment.now)
    is_own = call.printed.is_own or call.printed.meaning == LIMIT  # not what the agent wrote
    own = (call.printed.error if is_own else None) or call.printed.complaint
    line = _line(signs.rate_limit, said) or _line(signs.quota, said) or call.printed.error or said
    confirmed = until is not None
    for text in (own or "", line, said):  # other lines may have times of their own
        if until is None:
            until = reset_time(text, moment.now, moment.zone)
            confirmed = until is not None and text == own
    is_quota = until is None and _matches(signs.quota, said)
    return Limited(_short(line), until, confirmed=confirmed, reply=reply_of(call.printed), is_quota=is_quota)


def _said(call: EndedCall) -> str:
    """What a call complains about; what an agent wrote on its way to a result is no complaint.

    A tool that prints its troubles to standard error may have overcome them: if it was stopped while it worked, they
    do not count.
    """
    printed = call.printed
    parts = [printed.error, printed.complaint]
    parts += [] if call.timed_out and printed.acted and not call.is_text else [call.stderr]
    parts.append(call.stdout if call.is_text else None if printed.has_result else printed.stray)
    return "\n".join(_bounded(part) for part in parts if part)


def _bounded(text: str) -> str:
    """The beginning and the end of a text, long lines cut: a search may take the square of their length."""
    if len(text) > JUDGED:
        text = f"{text[: JUDGED // 2]}\n{text[-JUDGED // 2 :]}"
    if len(text) <= LONGEST_LINE:
        return text
    return "\n".join(line[:LONGEST_LINE] for line in text.split("\n"))


def _matches(sign: Sign, text: str) -> bool:
    if isinstance(sign, Pattern):
        return sign.is_in(text)
    return sign is not None and re.search(sign, text, re.IGNORECASE) is not None


def _line(sign: Sign, text: str) -> str | None:
    """The line that a pattern was found in; several where it needs them."""
    if not _matches(sign, text):
        return None
    lines = text.split("\n")
    end = _least(len(lines), lambda count: _matches(sign, "\n".join(lines[:count])))
    size = _least(end, lambda count: _matches(sign, "\n".join(lines[end - count : end])))
    return "\n".join(lines[end - size : end]).strip()


def _least(most: int, is_enough: Callable[[int], bool]) -> int:
    """The least number from which on something is so, at most `most`, for which it is."""
    least = 0
    while least + 1 < most:
        middle = (least + most) // 2
        least, most = (least, middle) if is_enough(middle) else (middle, most)
    return most


def _last_words(call: EndedCall) -> str:
    lines = [line.strip() for line in f"{call.stdout}\n{call.stderr}".splitlines() if line.strip()]
    return f": {beginning(lines[-1], MOST_WORDS)}" if lines else ""


def readable(text: str) -> str:
    """A message without colours and without the JSON or the entry of a log that it stands in."""
    return _COLOUR.sub("", _LOGGED.sub(r"\1", _bounded(plain(text)[0]))).strip()


def _short(text: str) -> str:
    return beginning(" ".join(readable(text).split()), MOST_SAID)
