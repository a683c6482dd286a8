"""Reading a sentence: its trigger, or a refusal with the nearest sentence that is understood.

Every sentence that `describe()` prints is read back as an equal trigger.
"""

from __future__ import annotations

import json
import re

from wakeful.errors import IntervalParseError, InvalidTrigger
from wakeful.triggers.base import Trigger
from wakeful.triggers.cron import Cron
from wakeful.triggers.external import OWN_RUNS, After, spoken_name
from wakeful.triggers.moments import FIRST_SECOND, LAST_MS
from wakeful.triggers.sentences.making import make
from wakeful.triggers.sentences.near import nearest
from wakeful.triggers.sentences.phrases import phrases
from wakeful.triggers.sentences.places import place, refuse_place
from wakeful.triggers.sentences.text import Text
from wakeful.triggers.sentences.times import OUT_OF_REACH, PresentNeededError, TimeExpression, moment, settled
from wakeful.triggers.zones import settled_zone, system_zone

LONGEST = 100_000
_LONGEST_TIME = 200
_INCOMPLETE = ("lacks a time of day", "lacks a day of the month", "says no time")  # and what is missing can be added
_REPORT = "expected to report in "
_FIELD = re.compile(
    r"(?:[0-9*?#/,LW-]|JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC|SUN|MON|TUE|WED|THU|FRI|SAT)+",
    re.ASCII | re.IGNORECASE,
)
_NUMERIC = re.compile(r"[0-9*/,-]+", re.ASCII)
_ENDED = {
    "succeeded": "success", "failed": "failure", "ended": "any", "finished": "any", "completed": "any", "done": "any",
}  # fmt: skip
_ENDS = {"succeeds": "success", "fails": "failure", "ends": "any", "finishes": "any", "completes": "any", **_ENDED}
_HELPING = (" has", " have", " is", " was")


class UnreadError(Exception):
    """The word from which on a sentence is not understood."""


def read_sentence(text: str, now: int | None = None, zone: str | None = None, own: str | None = None) -> Trigger:
    """The trigger of a sentence. PresentNeededError where it needs a present or a zone that is not given.

    `zone` is the default one; `own` becomes the trigger's own where the sentence names none.
    """
    given: object = text
    if not isinstance(given, str):
        raise InvalidTrigger(f'A schedule in words is a text such as "weekdays at 09:00", not {given!r:.40}.', "when")
    if len(text) > LONGEST:
        raise InvalidTrigger(f"A schedule in words has at most {LONGEST} characters.", "when")
    chained = _after(text.strip())
    if chained is not None:
        return chained
    sentence = " ".join(text.split()).rstrip(".!")
    try:
        return _read(sentence, now, zone, own)
    except IntervalParseError as error:
        raise InvalidTrigger(f"{_quoted(sentence)}: {error}.", "when") from None
    except UnreadError as error:
        reason = f"is not understood at {_quoted(str(error))}"
    except InvalidTrigger as error:
        reason = str(error).rstrip(".")
        if reason[:1].isupper():  # a complaint about a zone or a bound, which is a sentence
            raise
        if error.field != "when":
            raise InvalidTrigger(f"{_quoted(sentence)}: {error}", error.field) from None
        if reason not in _INCOMPLETE:
            raise InvalidTrigger(f"{_quoted(sentence)} {error}", "when") from None
    near = nearest(sentence, lambda attempt: _is_read(attempt, now, zone))
    raise InvalidTrigger(f"{_quoted(sentence)} {reason}: {near}", "when")


def read_time(text: str, now: int, zone: str) -> int:
    """The moment that a text names, in milliseconds since 1970; InvalidTrigger says what is wrong with any other."""
    said, own = _time(text)
    ms = settled(said, now, settled_zone(own, system_zone()) if own else zone)
    if not FIRST_SECOND * 1000 <= ms < LAST_MS:
        raise InvalidTrigger(OUT_OF_REACH, "when")
    return ms


def is_on_the_wall(text: str) -> bool:
    """Whether a time is what the clock of the default zone shows, rather than the same moment everywhere."""
    try:
        said, own = _time(text)
    except InvalidTrigger:
        return True
    return said.on_the_wall and own is None


def _time(text: str) -> tuple[TimeExpression, str | None]:
    """The moment as it is said, and the zone that is said with it."""
    words = Text(" ".join(text.split())[:_LONGEST_TIME])
    found = moment(words, 0)
    if found is None:
        day = words.word(0) if moment(Text(f"{words.word(0)} 09:00"), 0) and len(words) == 1 else ""
        raise InvalidTrigger(f"lacks a time of day: write {day} 09:00." if day else "is not a time", "when")
    said, end = found
    own = place(words, end + (words.word(end) == "in"))
    if (own[1] if own else end) != len(words):
        raise InvalidTrigger("is not a time", "when")
    return said, own[0] if own else None


def _read(sentence: str, now: int | None, zone: str | None, own: str | None = None) -> Trigger:
    body = sentence[len(_REPORT) :] if sentence.lower().startswith(_REPORT) else sentence
    found = _cron(body)
    if found is None:
        words = Text(sentence)
        parts, end = phrases(words)
    else:
        words = Text(f"{sentence[: len(sentence) - len(body)]}{found[1]}")
        parts, end = phrases(words)
        parts["cron"] = found[0]
    if end < len(words):
        refuse_place(words, end)
        raise UnreadError(words.raw[end])
    if own and "external" not in parts:
        parts.setdefault("tz", own)
    return make(parts, now, zone)


def _cron(sentence: str) -> tuple[str, str] | None:
    """A cron expression, plain or behind its words, and what follows it."""
    opened = sentence.lower().find("(cron ")
    if opened >= 0:
        return _worded_cron(sentence, opened)
    words = sentence.split(" ")
    if words[0].lower() == "cron":
        words = words[1:]
    if words and words[0].startswith("@") and len(words[0]) > 1 and not words[0][1].isdigit():
        return words[0].rstrip(","), " ".join(words[1:])
    count = 0
    while count < min(6, len(words)) and (_NUMERIC if count < 2 else _FIELD).fullmatch(words[count]):
        count += 1
        if count >= 5 and words[count - 1].endswith(","):
            break
    if count < 2:
        return None
    if count < 5:  # nothing but cron begins with two such words, and its own complaint is the better one
        count = len(words)
    return " ".join(words[:count]).rstrip(","), " ".join(words[count:])


def _worded_cron(sentence: str, opened: int) -> tuple[str, str]:
    closed = sentence.find(")", opened)
    closed = closed if closed > 0 else len(sentence)
    expression = sentence[opened + len("(cron ") : closed]
    words = Cron(expression).describe()
    if words.lower() != sentence[: closed + 1].lower():
        raise InvalidTrigger(f'says something else than its cron expression, which is "{words}".', "when")
    return expression, sentence[closed + 1 :].lstrip(", ")


def _after(text: str) -> After | None:
    """`after NAME succeeds`; a name that is no single line of words stands in quotes."""
    first, _, rest = text.partition(" ")
    if first.lower() not in ("after", "when") or not rest.strip():
        return None
    if rest.rpartition(" ")[2].rstrip(".!").lower() in _ENDS:  # the end of a sentence, and no part of a name
        rest = rest.rstrip(".!")
    name, _, verb = rest.rpartition(" ")
    on = _ENDS.get(verb.lower())
    helped = verb.lower() in _ENDED and name.lower().endswith(_HELPING)
    if verb.lower() == "done" and not helped:
        on = None
    if on is None and first.lower() == "when":
        return None
    name = (name.rpartition(" ")[0] if helped else name if on else rest).strip()
    _refuse_no_job(text, name, on)
    name = spoken_name(name)
    if name.startswith('"'):
        try:
            name = json.loads(name)
        except ValueError:
            raise InvalidTrigger(f"{_quoted(text)} has a name whose quotes are not closed.", "when") from None
    return After(name, on=on or "success")  # type: ignore[arg-type]  # one of the three


def _refuse_no_job(text: str, name: str, on: str | None) -> None:
    """InvalidTrigger where a time or the job's own run is said, and no name of another job."""
    near = None
    if name.lower() in OWN_RUNS:
        near = "20 minutes after the last run ends"
    elif on is None and _is_read(f"in {name}", 0, "UTC"):
        near = f"in {name}"
    elif on is None and _is_read(f"at {name}", 0, "UTC"):
        near = f"at {name}"
    if near is not None:
        raise InvalidTrigger(f'{_quoted(text)} is not about another job: did you mean "{near}"?', "when")


def _is_read(text: str, now: int | None, zone: str | None) -> bool:
    try:
        _read(text, now, zone)
    except (InvalidTrigger, IntervalParseError, UnreadError):
        return False
    except PresentNeededError:
        return True
    return True


def _quoted(text: str) -> str:
    return f'"{text[:60]}"'
