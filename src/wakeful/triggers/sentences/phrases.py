"""The grammar of schedules in words: one table.

A sentence is a row of phrases in any order, each said once. A row of the table has the part of a schedule that the
phrase gives, its form, and its value where the form has no slot. In a form, `a|b` is either word, `[a]` may be left
out, and `{slot}` is read by the reader of that name. The first form that fits is taken, so what is longer or more
particular comes first. `making` says which parts make which trigger.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from wakeful.triggers.durations import UNITS
from wakeful.triggers.sentences import calendar, clocks, times
from wakeful.triggers.sentences.amounts import every_span, number, ordinal, percent, span, unit
from wakeful.triggers.sentences.places import place
from wakeful.triggers.sentences.text import Reader, Text, series

TABLE: tuple[tuple[str, str, Any], ...] = (
    # What is not a time
    ("report", "expected to report in", True),
    ("external", "when its|the webhook is called", "webhook"),
    ("external", "on webhook|webhooks", "webhook"),
    ("external", "when a chat message arrives", "chat"),
    ("external", "only when asked [to]", "manual"),
    ("external", "manually|manual", "manual"),
    ("external", "on demand|request", "manual"),
    ("external", "when it reports in", "ping"),
    # A pause after each run
    ("pause", "{span} after the last|previous run ends|end|ended|finishes|finished", None),
    ("pause", "{span} after each|every run [ends|finishes]", None),
    ("pause", "{span} between runs", None),
    # Days
    ("month_day", "[on] every|each year [on] {month_day}", None),
    ("month_day", "yearly|annually [on] {month_day}", None),
    ("month_day", "once a|per|every year [on] {month_day}", None),
    ("month_day", "[on] {month_day} every|each|of year|every [year]", None),
    ("month_day", "[on] every|each {month_day}", None),
    ("daily", "every|each day|days", True),
    ("daily", "daily", True),
    ("daily", "once|one a|per day", True),
    ("part", "[once] [every|each|in] {part}", None),
    ("part", "[in] [the] {parts}", None),
    ("part", "nightly", "night"),
    ("days", "[on] every|each|all {any_weekdays}", None),
    ("days", "weekly [on] [every] {any_weekdays}", None),
    ("days", "every|each week [on] [every] {any_weekdays}", None),
    ("days", "once a|per week [on] {any_weekdays}", None),
    ("days", "[on] {weekdays}", None),
    ("days", "on|at the weekend|weekends", calendar.WEEKEND),
    ("not_days", "except|but|not [not|for] [on] {any_weekdays}", None),
    ("or_days", "and on {any_weekdays}", None),
    ("dates", "and [on] the {dates}", None),
    ("falling", "falling on the {dates}", None),
    ("all_months", "of|in every|each|the|a month", True),
    ("all_months", "[once] every|each|a|per month [on]", True),
    ("all_months", "monthly [on]", True),
    ("months", "of|in|during|from {months}", None),
    ("each_month", "every|each {months} [on]", None),
    # Times that continue by the clock
    ("each_second", "every {number} seconds of the minute", None),
    ("each_second", "every second of the minute", 1),
    ("second", "at second|seconds {numbers} [of] [the] [minute]", None),
    ("nth_hour", "of every {ordinal} hour", None),
    ("hours", "in the hours {numbers}", None),
    ("window", "from|between {window}", None),
    ("marks", "on the hour", [0]),
    ("marks", "at the top of the|every|each hour", [0]),
    ("marks", "on the half hour", [30]),
    ("marks", "[at] half past the|every|each hour", [30]),
    ("marks", "[at] [a] quarter past|after the|every|each hour", [15]),
    ("marks", "[at] [a] quarter to the|every|each hour", [45]),
    ("marks", "at {marks}", None),
    ("marks", "at minute|minutes {numbers} [of] [the|every|each] [hour]", None),
    ("marks", "[at] {numbers} [minutes] past|after [the|every|each] hour", None),
    ("grid", "by|on the clock", True),
    # A rhythm
    ("pace", "[once] every|each {every_span}", None),
    ("pace", "once a|an|per {unit}", None),
    ("pace", "hourly", UNITS["h"]),
    ("pace", "weekly", 7 * UNITS["d"]),
    ("pace", "biweekly|fortnightly", 14 * UNITS["d"]),
    ("each_months", "every {number} months [on]", None),
    ("each_months", "every quarter [on]", 3),
    ("each_months", "quarterly [on]", 3),
    ("dates", "[on] [the] {dates}", None),
    ("each_dates", "[on] every|each {dates}", None),
    # What bounds it
    ("hours_only", "only [on] [during|from|between|at] {window} [{zone}]", None),
    ("except", "except|but|not [not|for] [on] {iso_dates}", None),
    ("anchor", "since|anchored|counted|counting [at|from] {moment}", None),
    ("start", "from|starting|beginning|start [from|on] {moment}", None),
    ("until", "until|till|til|ending|ends [on] {moment}", None),
    ("max_runs", "one run|time only", 1),
    ("max_runs", "at most once", 1),
    ("max_runs", "at most {number} runs|run|times|time", None),
    ("max_runs", "up to {number} runs|run|times|time", None),
    ("max_runs", "max|maximum {number} runs|run|times|time", None),
    ("times", "[for] {number} runs|run|times|time [only]", None),
    ("stagger", "staggered|stagger [over|by] {span}", None),
    ("jitter", "up to {percent} later", None),
    ("jitter", "[with] [a] jitter [of] {percent}", None),
    ("jitter", "[with] {percent} jitter", None),
    ("grace", "[with] {span} of grace", None),
    # One time
    ("once", "{dated_moment}", None),
    ("once", "once [at|on] {dated_moment}", None),
    ("once", "at|on {dated_moment}", None),
    # Times of day
    ("clocks", "[once] at|@ {clocks}", None),
    ("clocks", "[once] {plain_clocks}", None),
    ("marks", "at {numbers} [minutes] past", None),
    # Where
    ("tz", "[in] [my|the] local time", "local"),
    ("tz", "in {zone} [time]", None),
    ("tz", "( {zone} )", None),
    ("tz", "{zone} [time]", None),
)  # fmt: skip


def _every_span(text: Text, index: int) -> tuple[int, int] | None:
    """What follows "every", but not the second Monday."""
    nth = text.word(index) == "second" and calendar.weekday(text, index + 1)
    return None if nth else every_span(text, index)


def _numbers(text: Text, index: int) -> tuple[list[int], int] | None:
    return series(text, index, _uncounted)


def _uncounted(text: Text, index: int) -> tuple[int, int] | None:
    """A number that does not count runs, as in "at second 5, one run only"."""
    found = number(text, index)
    return None if found is None or text.word(found[1]) in ("run", "runs", "time", "times", "%", "percent") else found


def _marks(text: Text, index: int) -> tuple[list[int], int] | None:
    return series(text, index, clocks.marks, filler=("at",))


def _any_weekdays(text: Text, index: int) -> tuple[int, int] | None:
    found = calendar.weekdays(text, index)
    return (found[0].bits, found[1]) if found else None


def _weekdays(text: Text, index: int) -> tuple[int, int] | None:
    """Weekdays that are a rhythm: `monday` alone is one day."""
    found = calendar.weekdays(text, index)
    return (found[0].bits, found[1]) if found and not found[0].single else None


def _unit(text: Text, index: int) -> tuple[int, int] | None:
    size = unit(text.word(index)) if len(text.word(index)) > 1 else None
    return (size, index + 1) if size else None


def _part(text: Text, index: int) -> tuple[str, int] | None:
    index += text.word(index) == "the"
    return (text.word(index), index + 1) if text.word(index) in clocks.PARTS else None


def _parts(text: Text, index: int) -> tuple[str, int] | None:
    """`mornings`, which is every morning."""
    name = text.word(index).removesuffix("s")
    return (name, index + 1) if name in clocks.PARTS and name != text.word(index) else None


SLOTS: dict[str, Reader] = {
    "any_weekdays": _any_weekdays,
    "clocks": clocks.clocks,
    "dated_moment": times.dated_moment,
    "dates": calendar.dates,
    "every_span": _every_span,
    "iso_dates": calendar.iso_dates,
    "marks": _marks,
    "moment": times.moment,
    "month_day": calendar.month_day,
    "months": calendar.months,
    "number": number,
    "numbers": _numbers,
    "ordinal": ordinal,
    "part": _part,
    "parts": _parts,
    "percent": percent,
    "plain_clocks": clocks.plain_clocks,
    "span": span,
    "unit": _unit,
    "weekdays": _weekdays,
    "window": clocks.window,
    "zone": place,
}


class _Element(NamedTuple):
    """A word of a form: some words of which one must be there, or a slot."""

    words: frozenset[str]
    slot: Reader | None
    optional: bool


class Phrase(NamedTuple):
    """A row of the table, ready to be matched."""

    part: str
    form: str
    value: Any
    elements: tuple[_Element, ...]
    first: frozenset[str] | None  # the words it may begin with; None where it may begin with a slot

    def read(self, text: Text, index: int) -> tuple[Any, int] | None:
        """The value of the phrase that is written there, and the word behind it."""
        values: list[Any] = []
        for element in self.elements:
            if element.slot is None:
                fits = text.word(index) in element.words
                if not fits and not element.optional:
                    return None
                index += fits
                continue
            found = element.slot(text, index) if index < len(text) else None
            if found is None and not element.optional:
                return None
            values.append(found and found[0])
            index = found[1] if found else index
        return (self.value if not values else values[0] if len(values) == 1 else tuple(values)), index


def _element(word: str) -> _Element:
    optional = word.startswith("[")
    word = word.strip("[]")
    slot = SLOTS[word.strip("{}")] if word.startswith("{") else None
    return _Element(frozenset() if slot else frozenset(word.split("|")), slot, optional)


def _first(elements: tuple[_Element, ...]) -> frozenset[str] | None:
    words: set[str] = set()
    for element in elements:
        if element.slot is not None:
            return None
        words |= element.words
        if not element.optional:
            break
    return frozenset(words)


def _phrase(part: str, form: str, value: object) -> Phrase:
    elements = tuple(map(_element, form.split()))
    return Phrase(part, form, value, elements, _first(elements))


PHRASES = tuple(_phrase(*row) for row in TABLE)
#: Every word that a form has, for what was misspelled.
VOCABULARY = frozenset(word for phrase in PHRASES for element in phrase.elements for word in element.words)


def phrases(text: Text) -> tuple[dict[str, Any], int]:
    """The parts that a text gives, and the word from which on it is not understood (its length: all is)."""
    parts: dict[str, Any] = {}
    index = 0
    while index < len(text):
        if text.word(index) == "," and parts:
            index += 1
            continue
        word = text.word(index)
        rows = (one for one in PHRASES if one.first is None or word in one.first)
        found = next(((one.part, *hit) for one in rows if (hit := one.read(text, index))), None)
        if found is None or found[0] in parts or found[2] == index:
            return parts, index
        parts[found[0]] = found[1]
        index = found[2]
    return parts, index
