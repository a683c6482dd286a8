"""The cron expression of parts that say times by the clock."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any

from wakeful.counting import counted
from wakeful.errors import InvalidTrigger
from wakeful.triggers.durations import UNITS, format_interval
from wakeful.triggers.sentences.calendar import EVERY_DAY, Dates
from wakeful.triggers.sentences.clocks import DAY_MS, HOUR, MINUTE, in_part

Parts = Mapping[str, Any]


def expression(parts: Parts) -> str:
    """The expression; InvalidTrigger says what is missing, or why cron cannot say it."""
    second, minute, hour = _times(parts) if "clocks" in parts else _pace(parts)
    month_days, months, weekdays = _days(parts)
    text = f"{minute} {hour} {month_days} {months} {weekdays}"
    return text if second == "0" else f"{second} {text}"


def refused(reason: str) -> InvalidTrigger:
    return InvalidTrigger(reason, "when")


def clock_text(ms: int) -> str:
    return f"{ms // HOUR:02}:{ms // MINUTE % 60:02}"


# -- times of day -----------------------------------------------------------------------------------------------------


def _times(parts: Parts) -> tuple[str, str, str]:
    given = [in_part(said, parts["part"]) if "part" in parts else said.ms for said in parts["clocks"]]
    if DAY_MS in given:
        raise refused("has 24:00: write 00:00, on the day after.")
    hours, minutes = {clock // HOUR for clock in given}, {clock // MINUTE % 60 for clock in given}
    seconds = {clock // 1000 % 60 for clock in given}
    if len(set(given)) != len(hours) * len(minutes) * len(seconds):
        times = " and ".join(clock_text(clock) for clock in sorted(given)[:2])
        raise refused(f"has times such as {times} that one cron expression cannot hold: make a schedule for each.")
    if any(name in parts for name in ("marks", "window", "hours", "nth_hour", "grid", "pace")):
        raise refused("says both times of day and a rhythm: say one of them.")
    return _seconds(parts, spans(seconds)), spans(minutes), spans(hours)


def _seconds(parts: Parts, otherwise: str = "0") -> str:
    if "each_second" in parts:
        return _star(parts["each_second"], 60)
    return spans(parts["second"]) if "second" in parts else otherwise


# -- rhythms ----------------------------------------------------------------------------------------------------------


def _pace(parts: Parts) -> tuple[str, str, str]:
    """The three fields of a rhythm such as "every 10 minutes from 08:00 to 18:50"."""
    pace = parts.get("pace", UNITS["h"] if _hourly(parts) else 0)
    if not pace:
        raise refused("lacks a time of day.")
    if "part" in parts:
        raise refused('has a part of the day: say from when to when, such as "every hour from 08:00 to 12:00".')
    marks = parts.get("marks") or [parts["window"][0] // MINUTE % 60 if "window" in parts else 0]
    if any(mark > 59 for mark in marks):
        raise refused("has a minute beyond 59.")
    if pace % UNITS["h"] == 0:
        return _seconds(parts), spans(marks), _hour(parts, pace // UNITS["h"])
    if "marks" in parts:
        raise refused("says both how many minutes apart and which minutes: say one of them.")
    if pace % UNITS["m"] == 0:
        minute, hour = _minutes(parts, _even(pace, UNITS["m"], 60))
        return _seconds(parts), minute, hour
    if "second" in parts or "each_second" in parts:
        raise refused("says both how many seconds apart and which seconds: say one of them.")
    minute, hour = _minutes(parts, 1)
    return _star(_even(pace, UNITS["s"], 60), 60), minute, hour


def _hourly(parts: Parts) -> bool:
    return "marks" in parts or "nth_hour" in parts or "hours" in parts


def _even(pace: int, unit: int, size: int) -> int:
    steps = pace // unit
    if pace % unit or size % steps:
        near = ["1 hour", "2 hours"] if UNITS["h"] < pace < 2 * UNITS["h"] else _dividing(steps, unit, size)
        raise refused(
            f"has times {format_interval(pace)} apart, which no clock repeats evenly: say {' or '.join(near)}, or only "
            f'"every {format_interval(pace)}", with active_hours for the hours of a day.'
        )
    return steps


def _dividing(steps: int, unit: int, size: int) -> list[str]:
    """The nearest lengths that an hour or a minute is a multiple of."""
    fit = [step for step in range(1, size // 2 + 1) if size % step == 0]
    found = (
        max((one for one in fit if one < steps), default=None),
        min((one for one in fit if one > steps), default=None),
    )
    return [counted(one, "minute" if unit == UNITS["m"] else "second") for one in found if one is not None]


def _hour(parts: Parts, steps: int) -> str:
    if "window" in parts:
        return spans(_window_hours(parts["window"], steps), stepped=True)
    if "hours" in parts or "nth_hour" in parts:
        return _some_hours(parts)
    if 24 % steps:
        raise refused(f"has times {steps}h apart, which no day repeats evenly: leave the days and hours out.")
    return _star(steps, 24)


def _window_hours(window: tuple[int, int], steps: int) -> list[int]:
    """The hours from a time of day to another, the end included; past midnight where the end comes first."""
    start, end = window
    if start == end:
        raise refused("begins and ends at the same time: leave the hours out.")
    end += DAY_MS if end < start else -(end == DAY_MS)
    return [hour % 24 for hour in range(start // HOUR, end // HOUR + 1, steps)]


def _minutes(parts: Parts, steps: int) -> tuple[str, str]:
    """The minutes and hours of "every 10 minutes", within the hours that are given."""
    if "window" not in parts:
        return _star(steps, 60), _some_hours(parts)
    start, end = parts["window"]
    first, last = start // MINUTE % 60, end // MINUTE % 60
    end += DAY_MS if end < start else 0
    latest = first + (59 - first) // steps * steps
    if first >= steps or start == end or first < last < latest:
        raise refused(f"has hours that cron cannot hold with times {steps}m apart: use active hours for them.")
    stop = end // HOUR - (last <= first and not (last == first == latest))
    hours = [hour % 24 for hour in range(start // HOUR, stop + 1)]
    return (_star(steps, 60) if first == 0 else spans(range(first, 60, steps))), spans(hours)


def _some_hours(parts: Parts) -> str:
    if "nth_hour" in parts:
        if not 1 <= parts["nth_hour"] <= 12 or 24 % parts["nth_hour"]:
            raise refused("has hours that no day repeats evenly.")
        return _star(parts["nth_hour"], 24)
    return spans(parts["hours"]) if "hours" in parts else "*"


def _star(steps: int, size: int) -> str:
    if not 0 < steps <= size or size % steps:
        raise refused(f"has a step of {steps}, which does not divide {size}.")
    return "*" if steps == 1 else f"*/{steps}"


# -- days -------------------------------------------------------------------------------------------------------------


def _days(parts: Parts) -> tuple[str, str, str]:
    """The two day fields and the months between them."""
    dates: Dates | None = parts.get("dates")
    bits = parts.get("days", 0) or (EVERY_DAY if "not_days" in parts and "dates" not in parts else 0)
    bits &= ~parts.get("not_days", 0)
    if not bits and ("days" in parts or "not_days" in parts):
        raise refused("leaves no day.")
    months = _months(parts)
    if "month_day" in parts:
        month, day = parts["month_day"]
        if dates or bits or months != "*":
            raise refused("says two kinds of days: say one of them.")
        return str(day), str(month), "*"
    if "falling" in parts:
        both = _falling(parts["falling"], bits, dates)
        return both[0], months, both[1]
    of_week = weekday_text(bits) if bits else ""
    if dates is None:
        lacks = bool(parts.keys() & {"all_months", "each_month"}) and "days" not in parts and "pace" not in parts
        if "or_days" in parts or lacks or "each_months" in parts:
            raise refused("lacks a day of the month.")
        return "*", months, of_week or "*"
    if "each_dates" in parts and not parts.keys() & {"all_months", "months", "each_month", "each_months"}:
        _refuse_every_few(dates)
    if bits:
        raise refused('says dates and weekdays: write "and on" between them for both, or "falling on" for the overlap.')
    in_week = [*dates.of_week, *([weekday_text(parts["or_days"])] if "or_days" in parts else [])]
    return ",".join(dates.of_month) or "*", months, ",".join(in_week) or "*"


def _refuse_every_few(dates: Dates) -> None:
    """Every second Monday may be that of a month, or every other one."""
    if any("#" in one and not one.endswith("#1") for one in dates.of_week):
        raise refused('may be a day of every month or of every few weeks: write "of every month" behind the day.')


def _months(parts: Parts) -> str:
    if "each_months" in parts:
        return _star(parts["each_months"], 12)
    months = parts.get("months") or parts.get("each_month", ())
    return "*" if not months or len(months) == 12 else spans(months)


def _falling(dates: Dates, bits: int, dated: Dates | None) -> tuple[str, str]:
    """Days that are both. Cron takes two fields so where one begins with `*`: */31 is the 1st, and */7 is Sunday."""
    in_week = [weekday_text(bits)] if bits else []
    in_week += dated.of_week if dated else ()
    if dates.of_week or (dated and dated.of_month) or not in_week:
        raise refused("says dates that fall on dates: say the weekdays first.")
    if "1" in dates.of_month:
        rest = [part for part in dates.of_month if part != "1"]
        return ",".join(["*/31", *rest]), ",".join(in_week)
    if bits & 1:
        return ",".join(dates.of_month), ",".join(["*/7", *in_week])
    raise refused("has days that are both a weekday and a date, which cron can say only of the 1st and of Sundays.")


def weekday_text(bits: int) -> str:
    return spans(day for day in range(7) if bits >> day & 1)


def spans(values: Iterable[int], *, stepped: bool = False) -> str:
    """Numbers as a field of cron: "1-5,9"; evenly spaced ones as "8-20/2" where that is wanted."""
    numbers = sorted(set(values))
    steps = {b - a for a, b in pairwise(numbers)}
    if stepped and len(numbers) > 2 and len(steps) == 1 and steps != {1}:
        return f"{numbers[0]}-{numbers[-1]}/{steps.pop()}"
    words: list[str] = []
    start = 0
    for index in range(1, len(numbers) + 1):
        if index < len(numbers) and numbers[index] == numbers[index - 1] + 1:
            continue
        run = numbers[start:index]
        words += [f"{run[0]}-{run[-1]}"] if len(run) > 2 else map(str, run)
        start = index
    return ",".join(words)
