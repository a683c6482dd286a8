"""Active hours: the part of each day in which scheduled starts are wanted.

The start belongs to the hours, the end does not; an end before the start crosses midnight. What counts is what the
clock on the wall shows, so hours follow every change of the clock.
"""

from __future__ import annotations

from datetime import datetime, time
from typing import Any

from wakeful.errors import InvalidTrigger
from wakeful.triggers.moments import DAY, to_ms
from wakeful.triggers.values import Value
from wakeful.triggers.zones import settled_zone, zone_in_use, zone_name

_FIELD = "active_hours"


class ActiveHours(Value):
    """`ActiveHours("09:00", "22:00", "Europe/Berlin")`; the zone may be "local", or be left to the job's default."""

    __slots__ = ("end", "start", "timezone")
    _fields = ("start", "end", "timezone")

    start: int
    end: int
    timezone: str | None

    def __init__(self, start: str | time, end: str | time, timezone: str | None = None) -> None:
        begin, finish = _second(start, "start"), _second(end, "end")
        if begin == finish:
            raise InvalidTrigger(
                "active_hours start and end are the same: leave active_hours out for the whole day.", _FIELD
            )
        if begin == DAY:
            raise InvalidTrigger('active_hours cannot start at 24:00: write "00:00".', _FIELD)
        self._set(start=begin, end=finish, timezone=zone_name(timezone))

    @classmethod
    def read(cls, value: object) -> ActiveHours:
        """From ActiveHours or `{"start", "end", "timezone"}`."""
        if isinstance(value, cls):
            return value
        if not isinstance(value, dict) or not {"start", "end"} <= set(value) <= {"start", "end", "timezone"}:
            raise InvalidTrigger(
                'active_hours must have "start" and "end" and may have "timezone", '
                'for example {"start": "09:00", "end": "22:00", "timezone": "Europe/Berlin"}.',
                _FIELD,
            )
        return cls(value["start"], value["end"], value.get("timezone"))

    def contains(self, moment: datetime) -> bool:
        """Whether the moment lies within the hours."""
        return self.is_open(to_ms(moment, "moment"))

    def is_open(self, ms: int) -> bool:
        return self.opens(ms) == ms

    def opens(self, ms: int) -> int:
        """The first moment at or after `ms` within the hours."""
        return zone_in_use(self.timezone).when(ms, self._until_open)

    def closes(self, ms: int) -> int:
        """The first moment at or after `ms` outside the hours."""
        return zone_in_use(self.timezone).when(ms, self._until_closed)

    def resolved(self, default: str) -> ActiveHours:
        """With its zone decided: the default where none was given, the system's own for "local"."""
        return ActiveHours(_clock(self.start), _clock(self.end), settled_zone(self.timezone, default))

    def describe(self) -> str:
        zone = f" {self.timezone}" if self.timezone else ""
        return f"only {_clock(self.start)}\u2013{_clock(self.end)}{zone}"

    def to_data(self) -> dict[str, Any]:
        data = {"start": _clock(self.start), "end": _clock(self.end)}
        return {**data, "timezone": self.timezone} if self.timezone else data

    def __repr__(self) -> str:
        return f"ActiveHours({', '.join(map(repr, self.to_data().values()))})"

    def _inside(self, second: int) -> bool:
        if self.start < self.end:
            return self.start <= second < self.end
        return second >= self.start or second < self.end

    def _until_open(self, local: int) -> int:
        second = local % DAY
        return 0 if self._inside(second) else (self.start - second) % DAY

    def _until_closed(self, local: int) -> int | None:
        second = local % DAY
        if not self._inside(second):
            return 0
        whole_day = self.end - self.start == DAY
        return None if whole_day else (self.end - second) % DAY


def hours_of(value: Any) -> Any:
    """Hours as `09:00-17:00`, in the form with `start` and `end`; anything else as it is."""
    if not isinstance(value, str):
        return value
    start, _, end = (part.strip() for part in value.partition("-"))
    return {"start": start, "end": end}


def _second(value: object, which: str) -> int:
    if isinstance(value, time):
        if value.tzinfo is None and not value.second and not value.microsecond:
            return value.hour * 3600 + value.minute * 60
    elif isinstance(value, str):
        hour, colon, minute = value.partition(":")
        if colon and len(minute) == 2 and 0 < len(hour) <= 2 and (hour + minute).isdecimal() and value.isascii():
            second = int(hour) * 3600 + int(minute) * 60
            if int(minute) < 60 and second <= DAY:
                return second
    if isinstance(value, str):
        meant = int(value) if len(value) <= 2 and value.isdecimal() and value.isascii() and value != "" else DAY
        fallback = 9 if which == "start" else 17
        shown, how = f'"{value[:20]}"', f'"{meant if meant <= 24 else fallback:02}:00"'
    else:
        shown, how = f"{value!s:.20}", '"HH:MM" in quotes'
    raise InvalidTrigger(f"active_hours {which} {shown} is not a time of day: write {how}.", _FIELD)


def _clock(second: int) -> str:
    return f"{second // 3600:02}:{second // 60 % 60:02}"
