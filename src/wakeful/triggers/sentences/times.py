"""Moments as people say them: `in 20 minutes`, `tomorrow at 9`, `next tuesday at 14:00`, `2026-12-24 18:00`.

Reading gives a `Moment`; which moment that is depends on the present and on the zone, and `settled` says it. What has
an offset is the same everywhere; everything else is what the clock on the wall of the zone shows.
"""

from __future__ import annotations

import re
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import NamedTuple

from wakeful.errors import InvalidTrigger
from wakeful.triggers.moments import from_ms, to_ms, zone_text
from wakeful.triggers.sentences.amounts import span
from wakeful.triggers.sentences.calendar import iso_date, month_day, single_weekday
from wakeful.triggers.sentences.clocks import DAY_MS, HOUR, PARTS, TimeOfDay, any_clock, clock, in_part, says_half
from wakeful.triggers.sentences.text import Text
from wakeful.triggers.zones import place_named, zone

_ISO = re.compile(r"[0-9]{4}-?[0-9]{2}-?[0-9]{2}[T0-9].*", re.ASCII)
_LABEL = re.compile(r"[A-Z]{1,6}|ChST|(?:UTC)?[+-][0-9]{2}(?::?[0-9]{2})?", re.ASCII)
_OFFSET = re.compile(r"(?:UTC)?([+-])([0-9]{2}):?([0-9]{2})?", re.ASCII)
_YEAR = re.compile(r"(?:19[7-9][0-9]|[2-9][0-9]{3})", re.ASCII)
OUT_OF_REACH = "is out of reach: use the years 2 to 9998."
_UTC = ("UTC", "GMT", "Z")
_TODAY = {"today": 0, "tonight": 0, "tomorrow": 1}


class PresentNeededError(Exception):
    """A sentence means another moment in every zone or at every time, and neither was given."""


class Day(NamedTuple):
    """A day: by its date, or as counted from today."""

    date: date | None = None
    ahead: int | None = None
    weekday: int | None = None  # Sunday is 0
    later: bool = False  # not today
    month_day: tuple[int, int] | None = None
    part: str = ""  # the part of the day that a bare hour is in


class TimeExpression(NamedTuple):
    """A moment as it was said."""

    exact: int | None = None  # milliseconds since 1970
    ahead: int | None = None  # milliseconds from now
    day: Day | None = None  # None: the first such time of day
    clock: int = 0
    label: str = ""  # CET, UTC+01
    utc: tuple[date | None, int] | None = None  # the same in UTC, as it is printed next to it

    @property
    def on_the_wall(self) -> bool:
        """Whether it is what a clock shows somewhere, rather than a moment that is the same everywhere."""
        return self.exact is None and self.ahead is None and self.utc is None and not _fixed_offset(self.label)


def moment(text: Text, index: int) -> tuple[TimeExpression, int] | None:
    """A moment; a time of day alone is the next one."""
    found = dated_moment(text, index)
    if found:
        return found
    at = any_clock(text, index + 1) if text.word(index) == "at" else clock(text, index)
    return _labelled(text, None, at) if at else None


def dated_moment(text: Text, index: int) -> tuple[TimeExpression, int] | None:
    """A moment that is more than a time of day."""
    if text.word(index) == "now":
        return TimeExpression(ahead=0), index + 1
    ahead = span(text, index + 1) if text.word(index) == "in" else span(text, index)
    if ahead and text.word(index) == "in":
        return _in(text, *ahead)
    if ahead and text.has(ahead[1], "from", "now"):
        return TimeExpression(ahead=ahead[0]), ahead[1] + 2
    exact = _iso(text, index)
    if exact:
        return exact
    day = _day(text, index)
    if day:
        return _at_clock(text, *day)
    return _clock_first(text, index)


def settled(said: TimeExpression, now: int | None, zone_name: str | None) -> int:
    """The moment in milliseconds; InvalidTrigger where there is none."""
    try:
        return _settled(said, now, zone_name)
    except InvalidTrigger:
        raise
    except (OverflowError, ValueError):
        raise InvalidTrigger(OUT_OF_REACH, "when") from None


def _settled(said: TimeExpression, now: int | None, zone_name: str | None) -> int:
    if said.exact is not None:
        return said.exact
    if said.ahead is not None:
        return _known(now) + said.ahead
    if said.utc is not None and said.day is not None:
        return _printed(said, zone_name)
    if _fixed_offset(said.label):
        place: tzinfo = _offset(said.label)
    else:
        place = _place(_known_zone(zone_name or _named(said.label)))
    return _on_a_day(said, now, place)


def _in(text: Text, ms: int, end: int) -> tuple[TimeExpression, int]:
    """`in 20 minutes`; `in 3 days at 9` is a time of that day."""
    at = any_clock(text, end + 1) if text.word(end) == "at" and ms % DAY_MS == 0 else None
    return (TimeExpression(day=Day(ahead=ms // DAY_MS), clock=at[0]), at[1]) if at else (TimeExpression(ahead=ms), end)


def _iso(text: Text, index: int) -> tuple[TimeExpression, int] | None:
    """ISO 8601 in one word or two."""
    found = iso_date(text, index)
    behind = index + 2 if found and text.word(index + 1) == "at" else index + 1
    if found is None and not _ISO.fullmatch(text.raw[index].upper() if index < len(text) else ""):
        return None
    if found is None:
        return _read_iso(text, text.raw[index].upper(), index + 1)
    if text.word(behind)[:1].isdigit():
        return _read_iso(text, f"{text.word(index)}T{text.word(behind).upper()}", behind + 1)
    return None


def _read_iso(text: Text, written: str, end: int) -> tuple[TimeExpression, int] | None:
    try:
        said = datetime.fromisoformat(written)
    except ValueError:
        return None
    if said.tzinfo is not None:
        try:
            return TimeExpression(exact=to_ms(said)), end
        except OverflowError:
            return None
    since = (said.hour * 3_600 + said.minute * 60 + said.second) * 1_000 + said.microsecond // 1_000
    return _labelled(text, Day(date=said.date()), (since, end))


def _day(text: Text, index: int) -> tuple[Day, int] | None:
    index += text.word(index) == "on"
    word = text.word(index)
    index += word == "the" and text.word(index + 1) == "day"
    if text.has(index, "day", "after", "tomorrow"):
        return Day(ahead=2), index + 3
    if word in _TODAY:
        return Day(ahead=_TODAY[word], part="night" if word == "tonight" else ""), index + 1
    if word == "this" and text.word(index + 1) in PARTS:
        return Day(ahead=0, part=text.word(index + 1)), index + 2
    if word in ("next", "this", "coming"):
        named = single_weekday(text, index + 1)
        return (Day(weekday=named[0], later=word == "next"), named[1]) if named else None
    found = iso_date(text, index)
    if found:
        return Day(date=found[0]), found[1]
    named = single_weekday(text, index)
    return (Day(weekday=named[0]), named[1]) if named else _named_date(text, index)


def _named_date(text: Text, index: int) -> tuple[Day, int] | None:
    """`december 24`, `24 december 2026`, `dec 24, 2026`; `the 24th of december` is every year's."""
    found = None if text.word(index) == "the" else month_day(text, index)
    if found is None:
        return None
    named, end = found
    year = end + (text.word(end) == ",")
    if not _YEAR.fullmatch(text.word(year)):
        return Day(month_day=named), end
    try:
        return Day(date=date(int(text.word(year)), *named)), year + 1
    except ValueError:
        return None


def _at_clock(text: Text, day: Day, end: int) -> tuple[TimeExpression, int] | None:
    """A day with its time; a date alone begins at midnight, any other day alone is no moment."""
    at = end + (text.word(end) == ",")
    part = text.word(at) if text.word(at) in PARTS else day.part
    at += text.word(at) in PARTS
    at += text.word(at) == "at"
    found = any_clock(text, at)
    if found is None or text.word(found[1]) in _DURATIONS:
        return _labelled(text, day, (0, end)) if day.date is not None else None
    if not part:
        return _labelled(text, day, found)
    since = in_part(TimeOfDay(found[0], says_half(text, at, found[1])), part)
    past_midnight = DAY_MS if part == "night" and since < 12 * HOUR else 0
    said = _labelled(text, day, (since, found[1]))
    return (said[0]._replace(clock=since + past_midnight), said[1]) if said else None


_DURATIONS = ("minutes", "hours", "days", "seconds", "runs", "times")


def _clock_first(text: Text, index: int) -> tuple[TimeExpression, int] | None:
    """`at 9 tomorrow`, `6pm on friday`."""
    at = any_clock(text, index + 1) if text.word(index) == "at" else clock(text, index)
    day = _day(text, at[1]) if at else None
    if at is None or day is None or text.word(day[1]) in (",", "and", "to", "-", "\u2013"):
        return None
    return _labelled(text, day[0], (at[0], day[1]))


def _labelled(text: Text, day: Day | None, at: tuple[int, int]) -> tuple[TimeExpression, int] | None:
    """With the abbreviation of the zone and the time in UTC that are printed behind it."""
    since, end = at
    if since >= DAY_MS:
        return None
    label = _label(text.raw[end]) if end < len(text) else ""
    end += bool(label)
    utc = _beside(text, end)
    return TimeExpression(day=day, clock=since, label=label, utc=utc and utc[0]), utc[1] if utc else end


def _label(raw: str) -> str:
    """The abbreviation that a word is, as it is printed; "" for another word, also one in capital letters."""
    from wakeful.triggers.sentences.phrases import VOCABULARY  # which is made with the readers of this module

    if raw.upper() in _UTC:
        return raw.upper()
    return raw if _LABEL.fullmatch(raw) and raw.lower() not in VOCABULARY else ""


def _beside(text: Text, index: int) -> tuple[tuple[date | None, int], int] | None:
    if text.word(index) != "(":
        return None
    day = iso_date(text, index + 1)
    at = clock(text, day[1] if day else index + 1)
    if at is None or not text.has(at[1], "utc", ")"):
        return None
    return (day[0] if day else None, at[0]), at[1] + 2


def _printed(said: TimeExpression, zone_name: str | None) -> int:
    """The moment of the UTC next to it, where the zone's clock then shows what is said."""
    own = said.day.date if said.day else None
    day, since = said.utc or (None, 0)
    if own is None:
        raise InvalidTrigger("combines a time in UTC with a day that is not a date.", "when")
    ms = _since(day or own, since)
    if zone_name is not None:
        shown = from_ms(ms).astimezone(_place(zone_name)).replace(tzinfo=None)
        if shown != _wall(own, said.clock):
            raise InvalidTrigger(f"says two times: it is {shown:%Y-%m-%d %H:%M} in {zone_name} then.", "when")
    return ms


def _on_a_day(said: TimeExpression, now: int | None, place: tzinfo) -> int:
    """The first of the days that may be meant, at the time."""
    day = said.day
    if day is not None and day.date is not None:
        return _at(day.date, said, place)
    present = _known(now)
    here = from_ms(present).astimezone(place)
    if day is not None and day.ahead is not None:
        ms = _at(here.date() + timedelta(day.ahead), said, place)
        if ms <= present:
            text = f"{said.clock // 3_600_000:02}:{said.clock // 60_000 % 60:02}"
            raise InvalidTrigger(f"has passed: it is {here:%H:%M} now; write tomorrow {text}.", "when")
        return ms
    found = next((ms for one in _candidates(day, here.date()) if (ms := _at(one, said, place)) > present), None)
    if found is None:
        raise InvalidTrigger("is a date that no year has.", "when")
    return found


def _candidates(day: Day | None, today: date) -> list[date]:
    if day is None:
        return [today + timedelta(ahead) for ahead in (0, 1, 2)]
    if day.month_day is not None:
        dates = [_date(today.year + ahead, *day.month_day) for ahead in range(10)]
        return [one for one in dates if one is not None]
    ahead = ((day.weekday or 0) - 1 - today.weekday()) % 7
    if day.later and ahead == 0:
        ahead = 7
    return [today + timedelta(ahead + week) for week in (0, 7)]


def _date(year: int, month: int, day: int) -> date | None:
    try:
        return date(year, month, day)
    except ValueError:
        return None


def _at(day: date, said: TimeExpression, place: tzinfo) -> int:
    """The moment at which clocks there show this; of two the first, unless an abbreviation says which."""
    naive = _wall(day, said.clock)
    folds = [naive.replace(tzinfo=place, fold=fold) for fold in (0, 1)]
    if said.label and not _fixed_offset(said.label):
        folds = [one for one in folds if zone_text(one) == said.label] or folds
        if zone_text(folds[0]) != said.label:
            raise InvalidTrigger(f"says {said.label}, but it is {zone_text(folds[0])} in {place} then.", "when")
    found = folds[0].astimezone(UTC)
    if found.astimezone(place).replace(tzinfo=None, fold=0) != naive:
        raise InvalidTrigger(
            f"has a time that no clock shows: {naive:%Y-%m-%d %H:%M} does not exist in {place}, "
            "the clock moves forward then: choose another time.",
            "when",
        )
    return to_ms(found)


def _wall(day: date, since: int) -> datetime:
    return datetime(day.year, day.month, day.day) + timedelta(milliseconds=since)  # noqa: DTZ001 - what a clock shows


def _since(day: date, since: int) -> int:
    return (day.toordinal() - date(1970, 1, 1).toordinal()) * DAY_MS + since


def _known(now: int | None) -> int:
    if now is None:
        raise PresentNeededError
    return now


def _known_zone(name: str | None) -> str:
    if name is None:
        raise PresentNeededError
    return name


def _place(name: str) -> tzinfo:
    return place_named(name) or UTC


def _named(label: str) -> str | None:
    """The zone that an abbreviation names by itself, such as UTC."""
    return zone(label).name if label else None


def _fixed_offset(label: str) -> bool:
    return label in _UTC or _OFFSET.fullmatch(label) is not None


def _offset(label: str) -> tzinfo:
    from datetime import timezone

    match = _OFFSET.fullmatch(label)
    if match is None:
        return UTC
    minutes = int(match[2]) * 60 + int(match[3] or 0)
    return timezone(timedelta(minutes=-minutes if match[1] == "-" else minutes))
