"""Modifiers: what any timed trigger may carry besides its own rhythm.

`start`, `until`, `except` dates and `active_hours` decide which slots exist; `jitter` and `stagger` only move the
real start of a slot to later; `max_runs` is counted by the engine. Start and until are both inclusive.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator
from datetime import date, datetime
from typing import TYPE_CHECKING, Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.active_hours import ActiveHours
from wakeful.triggers.durations import format_interval, interval_data, interval_ms
from wakeful.triggers.moments import DAY, LAST_MS, iso, read_moment, spoken
from wakeful.triggers.values import Value
from wakeful.triggers.zones import place_named, zone_in_use

if TYPE_CHECKING:
    from collections.abc import Collection
    from datetime import timedelta
    from typing import TypedDict, Unpack

    class SharedOptions(TypedDict, total=False):
        """The keywords every timed trigger takes, jitter aside."""

        stagger: str | float | timedelta | None
        active_hours: ActiveHours | dict[str, str] | None
        start: datetime | str | None
        until: datetime | str | None
        max_runs: int | None
        except_dates: Collection[date | str]

    class ModifierOptions(SharedOptions, total=False):
        """The keywords every timed trigger takes."""

        jitter: float


_EPOCH_DAY = date(1970, 1, 1).toordinal()
_MOST_REFUSALS = 3_000  # refused this often in a row, eight years for a daily rhythm, it counts as never
_MASK = (1 << 64) - 1


class Modifiers(Value):
    """All modifiers of one trigger; `PLAIN` where there are none."""

    __slots__ = ("active_hours", "days", "jitter", "max_runs", "stagger_ms", "start_ms", "until_ms")
    _fields = ("jitter", "stagger_ms", "active_hours", "start_ms", "until_ms", "max_runs", "days")

    jitter: float
    stagger_ms: int
    active_hours: ActiveHours | None
    start_ms: int | None
    until_ms: int | None
    max_runs: int | None
    days: tuple[int, ...]

    def __init__(
        self,
        *,
        jitter: float = 0,
        stagger: Any = None,
        active_hours: Any = None,
        start: Any = None,
        until: Any = None,
        max_runs: int | None = None,
        except_dates: Any = (),
    ) -> None:
        begin = None if start is None else read_moment(start, "start")
        end = None if until is None else read_moment(until, "until")
        if begin is not None and end is not None and end < begin:
            raise InvalidTrigger(f"until {iso(end)} lies before start {iso(begin)}.", "until")
        if max_runs is not None and (type(max_runs) is not int or max_runs < 1):
            raise InvalidTrigger(f"max_runs must be a whole number from 1, not {max_runs!r:.40}.", "max_runs")
        self._set(
            jitter=_percent(jitter),
            stagger_ms=_stagger(stagger),
            active_hours=None if active_hours is None else ActiveHours.read(active_hours),
            start_ms=begin,
            until_ms=end,
            max_runs=max_runs,
            days=_days(except_dates),
        )

    def delay(self, job_id: int, rand: float, period: int) -> int:
        """How much later than its slot a run starts: always the same share of the stagger for a job, plus jitter."""
        late = int(rand * period * self.jitter / 100)
        return late + (_mixed(job_id) * self.stagger_ms >> 64) if self.stagger_ms else late

    def reopens(self, ms: int, tz: str | None) -> int:
        """The first moment at or after `ms` that is on no except date and within the hours."""
        while ms < LAST_MS:
            before = ms
            if self.days:
                ms = zone_in_use(tz).when(ms, self._until_allowed)
            if self.active_hours is not None:
                ms = self.active_hours.opens(ms)
            if ms == before:
                break
        return ms

    def closes(self, ms: int, tz: str | None) -> int:
        """The first moment at or after `ms` that is on an except date or outside the hours."""
        close = zone_in_use(tz).when(ms, self._until_excepted) if self.days else LAST_MS
        return close if self.active_hours is None else min(close, self.active_hours.closes(ms))

    def first(self, next_slot: Callable[[int], int | None], after: int, tz: str | None) -> int | None:
        """The first slot after `after` that all modifiers let through."""
        if self.start_ms is not None:
            after = max(after, self.start_ms - 1)
        for _ in range(_MOST_REFUSALS):
            slot = next_slot(after)
            if slot is None or (self.until_ms is not None and slot > self.until_ms):
                return None
            reopens = self.reopens(slot, tz)
            if reopens == slot:
                return slot
            after = reopens - 1
        return None

    def spans(self, after: int, until: int, tz: str | None) -> Iterator[tuple[int, int]]:
        """The parts of (after, until] in which slots count, as spans of the same kind."""
        begin, end = self.bounded(after, until)
        if not self.gated:
            yield begin, end
            return
        moment = self.reopens(begin + 1, tz)
        while moment <= end:
            close = self.closes(moment, tz)
            yield moment - 1, min(close - 1, end)
            moment = self.reopens(close, tz)

    def bounded(self, after: int, until: int) -> tuple[int, int]:
        """(after, until] cut to start and until."""
        begin = after if self.start_ms is None else max(after, self.start_ms - 1)
        return begin, until if self.until_ms is None else min(until, self.until_ms)

    @property
    def gated(self) -> bool:
        """Whether some moments are closed."""
        return self.active_hours is not None or bool(self.days)

    @property
    def except_dates(self) -> tuple[date, ...]:
        return tuple(date.fromordinal(day + _EPOCH_DAY) for day in self.days)

    def without_hours(self) -> Modifiers:
        return self._replaced(active_hours=None)

    def starting(self, ms: int) -> Modifiers:
        return self._replaced(start_ms=ms)

    def resolved(self, zone: str) -> Modifiers:
        """With the zone of the hours settled."""
        return self if self.active_hours is None else self._replaced(active_hours=self.active_hours.resolved(zone))

    def describe(self, tz: str | None) -> list[str]:
        zone = place_named(tz)
        words = [] if self.active_hours is None else [self.active_hours.describe()]
        if self.days:
            words.append(f"except {_dates_listed(self.days)}")
        if self.start_ms is not None:
            words.append(f"from {spoken(self.start_ms, zone, fine=True)}")
        if self.until_ms is not None:
            words.append(f"until {spoken(self.until_ms, zone, fine=True)}")
        if self.max_runs is not None:
            words.append("one run only" if self.max_runs == 1 else f"at most {self.max_runs} runs")
        if self.stagger_ms:
            words.append(f"staggered over {format_interval(self.stagger_ms)}")
        if self.jitter:
            short = f"{self.jitter:g}"
            words.append(f"up to {short if float(short) == self.jitter else repr(self.jitter)} % later")
        return words

    def to_data(self) -> dict[str, Any]:
        """Only what was given, under the names a configuration uses."""
        if self is PLAIN:
            return {}
        hours = self.active_hours
        data = {
            "jitter": self.jitter or None,
            "stagger": interval_data(self.stagger_ms) if self.stagger_ms else None,
            "active_hours": None if hours is None else hours.to_data(),
            "start": None if self.start_ms is None else iso(self.start_ms),
            "until": None if self.until_ms is None else iso(self.until_ms),
            "max_runs": self.max_runs,
            "except": [str(day) for day in self.except_dates] or None,
        }
        return {name: value for name, value in data.items() if value is not None}

    def _until_allowed(self, local: int) -> int:
        day = local // DAY
        index = bisect_left(self.days, day)
        while index < len(self.days) and self.days[index] == day:
            day, index = day + 1, index + 1
        return max(0, day * DAY - local)

    def _until_excepted(self, local: int) -> int | None:
        index = bisect_left(self.days, local // DAY)
        return None if index == len(self.days) else max(0, self.days[index] * DAY - local)


def _dates_listed(days: tuple[int, ...]) -> str:
    """The dates of sorted days, three or more in a row as "2026-12-24 to 2026-12-31"."""
    words: list[str] = []
    start = 0
    for index in range(1, len(days) + 1):
        if index < len(days) and days[index] == days[index - 1] + 1:
            continue
        run = [str(date.fromordinal(day + _EPOCH_DAY)) for day in (days[start], days[index - 1])]
        apart = days[index - 1] - days[start]
        words.append(f"{run[0]} to {run[1]}" if apart > 1 else ", ".join(run[: apart + 1]))
        start = index
    return ", ".join(words)


def _percent(value: object) -> float:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 10:
        return value
    raise InvalidTrigger(f"jitter must be a percentage from 0 to 10, not {value!r:.40}.", "jitter")


def _stagger(value: object) -> int:
    if value is None or (value == 0 and not isinstance(value, bool)):
        return 0
    if isinstance(value, bool):
        raise InvalidTrigger(f'stagger is a duration such as "10m", not {value}.', "stagger")
    return interval_ms(value)  # type: ignore[arg-type]  # refuses what is no duration


def _days(dates: object) -> tuple[int, ...]:
    if not isinstance(dates, (list, tuple, set, frozenset)):
        raise InvalidTrigger('except_dates must be a list of dates such as ["2026-12-25"].', "except_dates")
    return tuple(sorted({_day(item) for item in dates}))


def _day(item: object) -> int:
    if isinstance(item, str) and len(item) == 10:
        try:
            item = date.fromisoformat(item)
        except ValueError:
            item = str(item)
    if isinstance(item, date) and not isinstance(item, datetime):
        return item.toordinal() - _EPOCH_DAY
    raise InvalidTrigger(f'except_dates has {item!r:.40}: expected a date such as "2026-12-25".', "except_dates")


def _mixed(number: int) -> int:
    """A 64-bit number that looks random and is always the same for the same input (splitmix64's last step)."""
    number = (number + 0x9E3779B97F4A7C15) & _MASK
    number = (number ^ number >> 30) * 0xBF58476D1CE4E5B9 & _MASK
    number = (number ^ number >> 27) * 0x94D049BB133111EB & _MASK
    return number ^ number >> 31


PLAIN = Modifiers()


def modifiers(**options: Unpack[ModifierOptions]) -> Modifiers:
    """The modifiers of a trigger's keywords; the very same `PLAIN` where none is given."""
    return PLAIN if not options or options == {"jitter": 0} else Modifiers(**options)
