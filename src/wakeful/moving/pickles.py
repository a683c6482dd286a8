"""Pickles of APScheduler, read without running anything in them.

A pickle is a program: reading one in the usual way calls whatever it names. Here it can name only classes of
APScheduler, for which plain records stand, and dates, durations and time zones. Anything else is refused, and so is a
value that only looks small. The reader in Python is used because the other reserves memory as a pickle asks.
"""

from __future__ import annotations

import io
import pickle
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

LARGEST = 1024 * 1024
_TRIGGERS, _CRON = "apscheduler.triggers.", "apscheduler.triggers.cron."
RECORDS = frozenset(
    {
        f"{_TRIGGERS}interval:IntervalTrigger",
        f"{_TRIGGERS}date:DateTrigger",
        f"{_TRIGGERS}combining:AndTrigger",
        f"{_TRIGGERS}combining:OrTrigger",
        f"{_CRON[:-1]}:CronTrigger",
        *(f"{_CRON}fields:{name}Field" for name in ("Base", "Week", "DayOfMonth", "DayOfWeek", "Month")),
        *(
            f"{_CRON}expressions:{name}"
            for name in (
                "AllExpression", "RangeExpression", "MonthRangeExpression", "WeekdayRangeExpression",
                "WeekdayPositionExpression", "LastDayOfMonthExpression",
            )
        ),
    }
)  # fmt: skip
"""The classes that may be named, each of which becomes a `Record`."""
PLAIN = {"datetime:datetime": datetime, "datetime:timedelta": timedelta, "datetime:timezone": timezone}


class PickleRefused(Exception):
    """A pickle that is not read; the reason, as the end of a sentence."""


class Record:
    """What a pickled object holds."""

    kind = ""
    fields: dict[str, Any]

    def __setstate__(self, state: Any) -> None:
        """Slots come as a pair."""
        parts = state if isinstance(state, tuple) else (state,)
        self.fields = {str(key): value for part in parts if isinstance(part, dict) for key, value in part.items()}

    def get(self, name: str) -> Any:
        return getattr(self, "fields", {}).get(name)


class _Zone:
    """Called in place of what makes a time zone: its name comes first among the arguments."""

    __slots__ = ()

    def __call__(self, *arguments: Any) -> tzinfo:
        name = arguments[0] if arguments else "UTC"
        if not isinstance(name, str) or len(name) > 100:
            raise PickleRefused("it has a time zone without a name")
        return ZoneInfo(name)


class _Attribute:
    """Called in place of `getattr`, with which zones of the standard library are pickled; it gives nothing else."""

    __slots__ = ()

    def __call__(self, owner: Any, name: Any) -> Any:
        if type(owner) is _Zone and name == "_unpickle":
            return owner
        raise PickleRefused("it asks for an attribute, which is not read: a pickle can run any code that it names")


ZONES = ("pytz:_p", "pytz:_UTC", "pytz:timezone", "zoneinfo:ZoneInfo._unpickle", "zoneinfo:ZoneInfo")


class _PickleReader(pickle._Unpickler):  # noqa: SLF001 - it reserves no memory in advance
    def __init__(self, data: bytes) -> None:
        super().__init__(io.BytesIO(data))
        self._made: dict[str, Any] = {}  # anew for each pickle, which can change classes that it is given

    def find_class(self, module: str, name: str) -> Any:
        """What stands for a class; PickleRefused for one that is not known."""
        full = f"{module}:{name}"
        if full in PLAIN:
            return PLAIN[full]
        if full in ZONES:
            return _Zone()
        if full == "builtins:getattr":
            return _Attribute()
        if full not in RECORDS:
            raise PickleRefused(f"it names {module}.{name}, which is not read: a pickle can run any code that it names")
        if full not in self._made:
            self._made[full] = type("Record", (Record,), {"kind": name})
        return self._made[full]

    def persistent_load(self, _: Any) -> Any:
        raise PickleRefused("it refers to something outside of it")


def read_pickle(data: object) -> Any:
    """What a pickle holds; PickleRefused where it names anything that is not known here."""
    if not isinstance(data, bytes):
        raise PickleRefused("its state is not a pickle")
    if len(data) > LARGEST:
        raise PickleRefused("its state is larger than 1 MiB")
    try:
        return _PickleReader(data).load()
    except PickleRefused:
        raise
    except Exception as error:  # noqa: BLE001 - whatever a broken pickle raises, the entry is refused with it
        raise PickleRefused(f"its state cannot be read ({type(error).__name__})") from None
