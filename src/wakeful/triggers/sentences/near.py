"""The nearest sentence that is understood, for one that is not."""

from __future__ import annotations

import re
from collections.abc import Callable
from difflib import get_close_matches

from wakeful.triggers.sentences.amounts import ORDINALS
from wakeful.triggers.sentences.calendar import MONTHS, WEEKDAYS
from wakeful.triggers.sentences.phrases import VOCABULARY
from wakeful.triggers.sentences.text import Text

#: What people mean most often, one of each kind.
EXAMPLES = (
    "every 20 minutes",
    "every day at 09:00",
    "weekdays at 09:00",
    "mondays and thursdays at 18:30",
    "every 2 hours from 08:00 to 20:00",
    "the 1st of every month at 06:00",
    "the last day of every month at 18:00",
    "the last friday of every month at 17:00",
    "every january 15 at 12:00",
    "in 20 minutes",
    "tomorrow at 09:00",
    "next tuesday at 14:00",
    "2026-12-24 18:00",
    "weekdays at 09:00 in Europe/Berlin",
    "every hour on the hour",
    "20 minutes after the last run ends",
    "after backup succeeds",
    "only when asked to",
)
_TIMES = {"afternoon": "15:00", "evening": "21:00", "night": "21:00", "tonight": "21:00", "nightly": "21:00"}
_LEADING = ("from", "until", "till", "til", "since", "starting", "ending", "between", "to", "and", "at")
#: How people begin who ask for something.
_ASKING = ("please", "run", "runs", "start", "do", "execute", "schedule", "it", "this", "remind", "me", "job")
_LONGEST = 200
_TIME = r"(\d{1,2}(?::\d\d)?(?:\s?[ap]m)?)"
_RANGE = re.compile(
    rf"(?<![\w:-])(?:from\s|between\s)?{_TIME}\s?[-\u2013]\s?{_TIME}(?![\w:-])", re.IGNORECASE | re.ASCII
)
_CLOCK = re.compile(r"(?<![\w:+-])(\d{1,2}):(\d\d)(?![\w:])", re.ASCII)
_MOST_WORDS = 30
_UNITS = ("second", "seconds", "minute", "minutes", "hour", "hours", "day", "days", "week", "weeks")
_KNOWN = sorted(
    VOCABULARY
    | set(_UNITS)
    | set(WEEKDAYS)
    | {f"{day}s" for day in WEEKDAYS}
    | {
        "weekday",
        "weekdays",
        "weekend",
        "weekends",
        "noon",
        "midnight",
        "morning",
        "evening",
        "today",
        "tomorrow",
        "yesterday",
        "next",
    }
    | set(MONTHS)
    | set(ORDINALS)
)


def nearest(sentence: str, is_read: Callable[[str], bool]) -> str:
    """`did you mean "…"?`: the sentence with its words corrected or a time added, or else the most similar example."""
    impossible = _no_time(sentence)
    if impossible is not None:
        return f"{impossible} is no time of day: write one from 00:00 to 23:59."
    ranged = _RANGE.sub(r"from \1 to \2", sentence[:_LONGEST])
    if ranged != sentence and is_read(ranged):
        return f'did you mean "{ranged}"?'
    words = Text(sentence[:_LONGEST]).words[:_MOST_WORDS]
    for attempt in (*_completed(words), *_corrected(words)):
        if is_read(attempt):
            return f'did you mean "{attempt}"?'
    near = get_close_matches(" ".join(words), EXAMPLES, 1, 0.0)
    return f'write for example "{near[0]}".' if near else f'write for example "{EXAMPLES[0]}".'


def _no_time(sentence: str) -> str | None:
    """The first text of a sentence that is written like a time of day, and is none."""
    for hour, minute in _CLOCK.findall(sentence[:_LONGEST]):
        if int(hour) > 24 or int(minute) > 59 or (int(hour) == 24 and int(minute)):
            return f"{hour}:{minute}"
    return None


def _completed(words: list[str]) -> list[str]:
    """With a time of day, and with a date."""
    if not words or words[-1] in _LEADING:
        return []
    at = _time_for(words)
    return [f"{_joined(words)}{end}" for end in (at, f" on the 1st{at}", " on the 1st")]


def _time_for(words: list[str]) -> str:
    return f" at {next((_TIMES[word] for word in words if word in _TIMES), '09:00')}"


def _corrected(words: list[str]) -> list[str]:
    """With every unknown word replaced by the known one that is most like it, or left out."""
    known = set(_KNOWN)
    unknown = [word for word in words if word.isalpha() and word not in known and len(word) > 2]
    near = {word: get_close_matches(word, _KNOWN, 1, 0.65) for word in unknown[:5]}
    better = [near[word][0] if near.get(word) else word for word in words]
    asked = next((index for index, word in enumerate(words) if word not in _ASKING), 0)
    fewer = [word for word in words if word not in unknown]
    # What has a number says when: without it, the sentence would mean another time.
    shorter = better[:-1] if better and not any(sign.isdigit() for sign in better[-1]) else []
    found = [one for one in (better[asked:], better, fewer, shorter) if one and one != words]
    return [
        f"{_joined(one)}{end}" for one in found for end in ("", _time_for(one)) if not end or one[-1] not in _LEADING
    ]


def _joined(words: list[str]) -> str:
    return " ".join(words).replace(" ,", ",").replace("( ", "(").replace(" )", ")")
