"""A cron expression in plain words: "weekdays at 09:00", "every hour on the half hour".

Times of day come after the days ("Mondays at 09:00"), rhythms before them ("every 5 minutes on weekdays"). What has no
good name is listed, never rounded to something nicer than the truth. The words can be typed back; where they would be
read as another expression, the expression itself stands behind them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from wakeful.errors import InvalidTrigger
from wakeful.triggers.cron.days import EVERY_DATE, DayRule
from wakeful.triggers.cron.fields import Fields, members, read

_DAYS = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
_LATE = ("November", "December")
_MONTHS = ("", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", *_LATE)
_NTH = ("", "first", "second", "third", "fourth", "fifth")
_MOST_LISTED = 6  # times of day; more than these are described as a rhythm


@lru_cache(maxsize=2048)
def describe(expression: str) -> str:
    """The whole expression in words, without its zone."""
    fields = read(expression)
    words = _words(fields)
    if _is_plain(fields):  # most expressions are, and a listing describes many
        return words
    meant, rhythm_alone = _read_back(words)
    if rhythm_alone:  # a rhythm counts from some moment, unless it is said to follow the clock
        words = f"{words} by the clock"
    return words if meant == fields else f"{words} (cron {expression})"


def _is_plain(fields: Fields) -> bool:
    """Whether it is one time on some weekdays of every month, whose words are never read as anything else."""
    once_a_day = all(field.bit_count() == 1 for field in (fields.seconds, fields.minutes, fields.hours))
    return once_a_day and fields.fixed and fields.days.dates == EVERY_DATE and not (fields.days.nth or fields.days.last)


def _read_back(words: str) -> tuple[Fields | None, bool]:
    """What the words are read as, and whether they say nothing but a rhythm."""
    from wakeful.triggers.sentences.expressions import expression  # which builds on this package
    from wakeful.triggers.sentences.phrases import phrases
    from wakeful.triggers.sentences.text import Text

    text = Text(words)
    parts, end = phrases(text)
    try:
        return (read(expression(parts)) if end == len(text) else None), set(parts) == {"pace"}
    except InvalidTrigger:
        return None, False


def _words(fields: Fields) -> str:
    rhythm, times = _time(fields)
    days = _days(fields)
    if times:
        return f"{days or 'every day'} {times}" if not days.startswith("the ") else f"on {days} {times}"
    if not days:
        return rhythm
    return f"{rhythm}{days.removeprefix('every day')}" if days.startswith("every day") else f"{rhythm} on {days}"


def _time(fields: Fields) -> tuple[str, str]:
    """A rhythm ("every 5 minutes"), or else times of day ("at 09:00")."""
    seconds, minutes, hours = members(fields.seconds), members(fields.minutes), members(fields.hours)
    exact = f":{seconds[0]:02}" if seconds[0] and len(seconds) == 1 else ""
    rhythm = _rhythm(minutes, hours, exact=bool(exact), fixed=fields.fixed)
    within = "" if len(seconds) == 1 else _within("second", seconds)
    if not rhythm:
        clock = [f"{hour:02}:{minute:02}{exact}" for hour in hours for minute in minutes]
        return "", f"at {_listed(clock)}" + (f", {within} of the minute" if within else "")
    if exact:
        return f"{rhythm}, at second {seconds[0]}", ""
    if within.startswith("every") and len(minutes) == 60:  # the seconds set the pace
        return rhythm.replace("every minute", within), ""
    return (f"{rhythm}, {within} of the minute" if within else rhythm), ""


def _rhythm(minutes: Sequence[int], hours: Sequence[int], *, exact: bool, fixed: bool) -> str:
    """How minutes and hours continue, or nothing where a list of times says it better.

    A list says that the times are appointments; what is not `fixed` is a rhythm wherever it has words for one.
    """
    first, last = f"{hours[0]:02}:{minutes[0]:02}", f"{hours[-1]:02}:{minutes[-1]:02}"
    run = len(hours) > 2 and _is_run(hours)
    step = _even_step(hours, 24)
    few = len(minutes) * len(hours) <= _MOST_LISTED
    if few and fixed and not (run and len(minutes) == 1):
        return ""
    if len(minutes) == 1:
        return _hourly(minutes[0], hours, exact=exact, few=few)
    pace = _within("minute", minutes)
    if len(hours) == 24:
        return pace if pace.startswith("every") else f"every hour {pace}"
    if step:
        return f"every {step} hours {pace}" if pace.startswith("at") else f"{pace} of every {_ordinal(step)} hour"
    if _is_run(hours):
        return f"{pace if pace.startswith('every') else f'every hour {pace}'} from {first} to {last}"
    return f"{pace} in the hours {_runs([f'{hour:02}' for hour in range(24)], hours)}"


def _hourly(minute: int, hours: Sequence[int], *, exact: bool, few: bool) -> str:
    """The hours that have one time each."""
    first, last = f"{hours[0]:02}:{minute:02}", f"{hours[-1]:02}:{minute:02}"
    step, even = _step(hours), _even_step(hours, 24) > 0
    if len(hours) == 24:
        return f"every hour {_past(minute)}" if not exact else f"every hour at :{minute:02}"
    if len(hours) > 2 and _is_run(hours):
        return f"every hour from {first} to {last}"
    if even:
        return f"every {step} hours" + (f" at :{minute:02}" if minute else "")
    return f"every {step} hours from {first} to {last}" if step > 1 and not few else ""


def _within(unit: str, values: Sequence[int]) -> str:
    """What a list of minutes or seconds means: "every minute", "every 5 minutes", "at :05 and :35"."""
    if len(values) == 60:
        return f"every {unit}"
    step = _even_step(values, 60)
    if step:
        return f"every {step} {unit}s"
    if unit == "minute" and (len(values) <= _MOST_LISTED or _step(values) > 1):
        return f"at {_series([f':{value:02}' for value in values])}"
    return f"at {unit}s {_runs([str(value) for value in range(60)], values)}"


def _past(minute: int) -> str:
    return {0: "on the hour", 30: "on the half hour"}.get(minute, f"at :{minute:02}")


def _days(fields: Fields) -> str:
    """Which days, as what follows "on"; nothing for every day."""
    rule, months = fields.days, members(fields.months)
    named = "" if len(months) == 12 else _runs(_MONTHS, months)
    in_months = f" {'from' if len(months) > 2 and _is_run(months) else 'in'} {named}" if named else ""
    of_months = f" of {named or 'every month'}"
    dates = _dates(rule)
    weekdays, dated_weekdays = _weekdays(rule)
    monthly = " and the ".join([*dates, *dated_weekdays])
    if not monthly and not weekdays:
        return f"every day{in_months}" if in_months else ""
    if not monthly:
        return f"{weekdays}{in_months}"
    if dates and (weekdays or dated_weekdays) and rule.both:
        restricted = (
            " and the ".join([weekdays, *dated_weekdays]) if weekdays else f"the {' and the '.join(dated_weekdays)}"
        )
        return f"{restricted} falling on the {' and the '.join(dates)}{of_months}"
    if not weekdays:
        return f"the {monthly}{of_months}"
    return f"the {monthly} and on {weekdays}{in_months}" if named else f"the {monthly} of every month and on {weekdays}"


def _dates(rule: DayRule) -> list[str]:
    """The dates of a month, each as what follows "the"; nothing when all are meant."""
    days = members(rule.dates)
    if len(days) == 31:
        return []
    words = []
    if _step(days) > 1 and len(days) > 4:
        words.append(_series([_ordinal(day) for day in days]))
    elif days:
        words.append(_runs([_ordinal(day) for day in range(32)], days))
    words += [f"weekday nearest the {_ordinal(day)}" for day in rule.nearest]
    before = sorted(rule.before_last, reverse=True)
    words += ["last day" if back == 0 else f"{_ordinal(back + 1)}-to-last day" for back in before]
    return words + ["last weekday"] * rule.last_weekday


def _weekdays(rule: DayRule) -> tuple[str, list[str]]:
    """Weekdays of every week ("Mondays and Fridays"), and those of a month ("third Tuesday")."""
    days = members(rule.weekdays)
    dated = [f"{_NTH[nth]} {_DAYS[day]}" for day, nth in rule.nth]
    dated += [f"last {_DAYS[day]}" for day in members(rule.last)]
    if len(days) == 7:
        return "", dated
    if days == (1, 2, 3, 4, 5):
        return "weekdays", dated
    if days == (0, 6):
        return "weekends", dated
    from_monday = sorted(day or 7 for day in days)
    return _runs(["", *[f"{day}s" for day in (*_DAYS[1:], "Sunday")]], from_monday), dated


def _runs(names: Sequence[str], values: Sequence[int]) -> str:
    """Names of values, three or more in a row as "a to b"."""
    words: list[str] = []
    start = 0
    for index in range(1, len(values) + 1):
        if index < len(values) and values[index] == values[index - 1] + 1:
            continue
        run = [names[value] for value in values[start:index]]
        words += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else run
        start = index
    return _listed(words)


def _listed(words: Sequence[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}" if words else ""


def _series(words: Sequence[str]) -> str:
    """A list, shortened in the middle where it continues evenly."""
    return _listed(words) if len(words) <= _MOST_LISTED else f"{', '.join(words[:3])} … {words[-1]}"


def _step(values: Sequence[int]) -> int:
    """The constant step of a list, or 0."""
    steps = {b - a for a, b in pairwise(values)}
    return steps.pop() if len(steps) == 1 else 0


def _even_step(values: Sequence[int], size: int) -> int:
    """The step of a list that goes round a clock evenly, from 0; else 0."""
    step = _step(values)
    return step if step > 1 and values[0] == 0 and values[-1] + step == size else 0


def _is_run(values: Sequence[int]) -> bool:
    return values[-1] - values[0] == len(values) - 1


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in {11, 12, 13} else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"
