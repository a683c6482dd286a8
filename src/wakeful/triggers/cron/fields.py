"""Reading a cron expression into bit sets.

Five fields, or six with seconds first. Everything that is not understood is refused with the field and the reason;
nothing is guessed.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from wakeful.errors import InvalidTrigger
from wakeful.triggers.cron.days import EVERY_DATE, EVERY_WEEKDAY, DayRule

SHORTHANDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LONGEST = 1024


class CronField(NamedTuple):
    """One field's name and what may stand in it."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()

    @property
    def end(self) -> int:
        """The largest number that may be written: Sunday is 7 too."""
        return 7 if self.high == 6 else self.high

    def span(self, low: int, high: int) -> str:
        return str(low) if low == high else f"{low}-{high}"


SECOND = CronField("second", 0, 59)
MINUTE = CronField("minute", 0, 59)
HOUR = CronField("hour", 0, 23)
DAY_OF_MONTH = CronField("day of month", 1, 31)
MONTH = CronField("month", 1, 12, ("JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"))
DAY_OF_WEEK = CronField("day of week", 0, 6, ("SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"))


class Fields(NamedTuple):
    """An expression as bit sets: bit n of `minutes` is set when minute n matches."""

    seconds: int
    minutes: int
    hours: int
    months: int
    days: DayRule
    fixed: bool  # no second, minute or hour begins with `*`: clock changes treat it as an appointment


@lru_cache(maxsize=2048)
def read(expression: str) -> Fields:
    """The fields of an expression; InvalidTrigger says which field is wrong, and why."""
    tokens = _tokens(expression)
    try:
        return Fields(
            seconds=_bits(tokens[0], SECOND),
            minutes=_bits(tokens[1], MINUTE),
            hours=_bits(tokens[2], HOUR),
            months=_bits(tokens[4], MONTH),
            days=_day_rule(tokens[3], tokens[5]),
            fixed=not any(token[0] == "*" for token in tokens[:3]),
        )
    except _Wrong as wrong:
        message = f'Cron expression "{expression}": {wrong.field.name} "{wrong.part}" {wrong.reason}.'
        raise InvalidTrigger(message, wrong.field.name) from None


def members(bits: int) -> tuple[int, ...]:
    """The numbers whose bit is set, in order."""
    return tuple([n for n in range(bits.bit_length()) if bits >> n & 1])


class _Wrong(Exception):
    def __init__(self, field: CronField, part: str, reason: str) -> None:
        self.field, self.part, self.reason = field, part[:40], reason


def _tokens(expression: str) -> list[str]:
    if len(expression) > _LONGEST:
        raise InvalidTrigger(f"A cron expression has at most {_LONGEST} characters.", "expression")
    text = expression.strip()
    if text.startswith("@"):
        text = _shorthand(text)
    # Outside ASCII, capitals of other letters would become ours: a dotless i is no I, and a long s no S.
    tokens = [token.upper() if token.isascii() else token for token in text.split()]
    if len(tokens) == 5:
        return ["0", *tokens]
    if len(tokens) != 6:
        count = "is empty" if not tokens else f'"{expression}" has {len(tokens)} field{"s" if len(tokens) > 1 else ""}'
        years = " (years are not supported)" if len(tokens) == 7 else ""
        raise InvalidTrigger(
            f"Cron expression {count}{years}: expected 5 (minute, hour, day of month, month, day of week), "
            "or 6 with seconds first.",
            "expression",
        )
    return tokens


def _shorthand(text: str) -> str:
    known = SHORTHANDS.get(text.lower())
    if known is not None:
        return known
    if text.lower() == "@reboot":
        raise InvalidTrigger(
            '"@reboot" is not a time: start the job when your program starts (run_job, or `wakeful run` from a system '
            "service), or use Interval, which is due at once when it never ran.",
            "expression",
        )
    if text.lower().startswith("@every"):
        amount = " ".join(text.split()[1:])[:20] or "5m"
        raise InvalidTrigger(
            f'"{text[:40]}" is not cron: use Every("{amount}") in Python, --every {amount} on the command line, '
            f'or every: "{amount}" in YAML and JSON.',
            "expression",
        )
    raise InvalidTrigger(f'Unknown cron shorthand "{text[:40]}": use one of {", ".join(SHORTHANDS)}.', "expression")


def _bits(token: str, field: CronField) -> int:
    bits = 0
    for part in token.split(","):
        bits |= _part_bits(part, field)
    return bits


def _part_bits(part: str, field: CronField) -> int:
    """The bits of `*`, `a`, `a-b`, and each of them with `/step` (`a/step` runs to the end of the field)."""
    if part == "*":
        return (2 << field.high) - (1 << field.low)
    base, slash, step_text = part.partition("/")
    first, dash, last = base.partition("-")
    if base == "*":
        low, high = field.low, field.high
    else:
        low = _value(first, field, part)
        high = _value(last, field, part, low) if dash else field.end if slash else low
    step = _step(step_text, low, high, field, part) if slash else 1
    if high < low:
        raise _Wrong(field, part, _unwrapped(low, high, step, field))
    bits = 0
    for value in range(low, high + 1, step):
        bits |= 1 << (value if field is not DAY_OF_WEEK else value % 7)
    return bits


def _value(text: str, field: CronField, part: str, low: int | None = None) -> int:
    """A number or name. Sunday is 0 and 7; as the end of a range (after `low`) its name means 7."""
    if text in field.names:
        value = field.low + field.names.index(text)
        return 7 if value == 0 and low else value
    if text.isascii() and text.isdigit() and len(text) <= 4:
        value = int(text)
        if field.low <= value <= field.end:
            return value
        raise _Wrong(field, part, f"is out of range: use {_choices(field)}")
    if text == "?":
        raise _Wrong(field, part, "is not understood: ? can only be used alone, for a day")
    raise _Wrong(field, part, f"is not understood: use {_choices(field)}")


def _choices(field: CronField) -> str:
    names = f" or {field.names[0]} to {field.names[-1]}" if field.names else ""
    return f"{field.low} to {field.end}{names}"


def _step(text: str, low: int, high: int, field: CronField, part: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise _Wrong(field, part, "has a step that is no whole number: write for example */5")
    step = int(text) if len(text) <= 4 else 10_000
    if step == 0:
        raise _Wrong(field, part, "has a step of 0: use 1 or more")
    size = high - low + 1 if high >= low else high - low + 1 + field.high - field.low + 1
    if step > size:
        raise _Wrong(field, part, f"has a step larger than its range of {size}: use {low}, or a smaller step")
    return step


def _unwrapped(low: int, high: int, step: int, field: CronField) -> str:
    """How to write a range that runs past the end of its field."""
    size = field.high - field.low + 1
    if step > 1:
        values = range(low, high + size + 1, step)
        text = ",".join(str((value - field.low) % size + field.low) for value in values)
    elif field is DAY_OF_WEEK:
        text = field.span(low, 7) + (f",{field.span(1, high)}" if high else "") if low < 7 else field.span(0, high)
    else:
        text = f"{field.span(low, field.high)},{field.span(field.low, high)}"
    return f"runs past the end: write {text}"


def _day_rule(in_month: str, in_week: str) -> DayRule:
    dates, before_last, nearest, last_weekday = 0, [], [], False
    for part in [] if in_month == "?" else in_month.split(","):
        if part == "L":
            before_last.append(0)
        elif part == "LW":
            last_weekday = True
        elif part.startswith("L-"):
            before_last.append(_days_before_last(part))
        elif part.endswith("W"):
            nearest.append(_value(part[:-1], DAY_OF_MONTH, part))
        else:
            dates |= _part_bits(part, DAY_OF_MONTH)
    weekdays, nth, last = 0, [], 0
    for part in [] if in_week == "?" else in_week.split(","):
        if "#" in part:
            nth.append(_nth(part))
        elif part.endswith("L"):
            last |= 1 << _last(part) % 7
        else:
            weekdays |= _part_bits(part, DAY_OF_WEEK)
    return DayRule(
        dates=dates if in_month != "?" else EVERY_DATE,
        before_last=tuple(sorted(set(before_last))),
        nearest=tuple(sorted(set(nearest))),
        last_weekday=last_weekday,
        weekdays=weekdays if in_week != "?" else EVERY_WEEKDAY,
        nth=tuple(sorted(set(nth))),
        last=last,
        both=in_month[0] in "*?" or in_week[0] in "*?",
    ).simplified()


def _days_before_last(part: str) -> int:
    days = part[2:]
    if days.isascii() and days.isdigit() and len(days) <= 2 and 1 <= int(days) <= 30:
        return int(days)
    raise _Wrong(DAY_OF_MONTH, part, "is not understood: L-1 to L-30 count back from the last day")


def _last(part: str) -> int:
    if part == "L":
        raise _Wrong(DAY_OF_WEEK, part, "needs a weekday: 5L or FRIL is the last Friday of the month")
    return _value(part[:-1], DAY_OF_WEEK, part)


def _nth(part: str) -> tuple[int, int]:
    day, _, nth = part.partition("#")
    if nth not in {"1", "2", "3", "4", "5"}:
        raise _Wrong(DAY_OF_WEEK, part, "is not understood: a weekday, # and 1 to 5, for example 2#3 or TUE#3")
    return _value(day, DAY_OF_WEEK, part) % 7, int(nth)
