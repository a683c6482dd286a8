"""Sparse expressions around every change of every clock in the time zone database, against counting minutes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import pairwise
from typing import NamedTuple
from zoneinfo import ZoneInfo, available_timezones
from zoneinfo import _zoneinfo as plain  # the one written in Python knows its changes

import pytest

from wakeful.triggers import Cron

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = int(datetime(2040, 1, 1, tzinfo=UTC).timestamp())
GROUPS = 24
MINUTE, HOUR, DAY = 60, 3600, 86_400


class Change(NamedTuple):
    """A moment at which the clock of a zone is moved; in seconds, as all here."""

    at: int
    before: int  # the offset until then
    after: int

    @property
    def reach(self) -> int:
        """How far around it times are looked at."""
        return abs(self.after - self.before) + 2 * HOUR


@cache
def changes() -> dict[Change, str]:
    """Every change since 1970 with a zone that has it; those of several zones once."""
    found: dict[Change, str] = {}
    for name in sorted(available_timezones()):
        zone, known = ZoneInfo(name), plain.ZoneInfo.no_cache(name)
        moments = sorted({at for at in [*known._trans_utc, *_by_rule(known)] if 3 * DAY < at < LAST})
        own = [Change(at, _offset(zone, at - 1), _offset(zone, at)) for at in moments]
        own = [change for change in own if change.before != change.after]
        assert all(later.at - earlier.at > later.reach + earlier.reach for earlier, later in pairwise(own))
        for change in own:
            found.setdefault(change, name)
    return found


def _by_rule(zone: plain.ZoneInfo) -> list[int]:
    """The changes after the last one that is listed, where there is a rule for them."""
    rule = zone._tz_after
    if not hasattr(rule, "transitions"):
        return []
    offsets = (rule.std.utcoff.total_seconds(), rule.dst.utcoff.total_seconds())
    years = range(2007, 2040)
    return [
        int(local - offset) for year in years for local, offset in zip(rule.transitions(year), offsets, strict=True)
    ]


def _offset(zone: ZoneInfo, second: int) -> int:
    return int((EPOCH + timedelta(seconds=second)).astimezone(zone).utcoffset().total_seconds())


class Sparse(NamedTuple):
    """An expression for one day of the year."""

    minutes: str
    hours: str
    day: int  # since 1970

    @property
    def text(self) -> str:
        date = EPOCH + timedelta(days=self.day)
        return f"{self.minutes} {self.hours} {date.day} {date.month} *"

    @property
    def fixed(self) -> bool:
        return self.minutes[0] != "*" and self.hours[0] != "*"

    def shown(self, first: int, last: int) -> list[int]:
        """The times that a clock shows which goes from one local second up to another."""
        hours, minutes = _numbers(self.hours, 24), _numbers(self.minutes, 60)
        begin = max(first, self.day * DAY)
        return [
            local
            for local in range(begin + -begin % MINUTE, min(last, (self.day + 1) * DAY), MINUTE)
            if local % DAY // HOUR in hours and local % HOUR // MINUTE in minutes
        ]


@cache
def _numbers(text: str, most: int) -> frozenset[int]:
    return frozenset(range(0, most, int(text[2:] or 1)) if text[0] == "*" else map(int, text.split(",")))


def sparse(change: Change) -> set[Sparse]:
    """Expressions about the hours that the clock shows twice, or not at all, and those beside them."""
    moments = {change.at + change.before - 1, change.at + change.after, change.at + change.before - HOUR // 2}
    return {
        Sparse(minutes, hours or str(local % DAY // HOUR), local // DAY)
        for local in moments
        for minutes, hours in (("*/30", ""), ("*", ""), ("0,30", ""), ("15", "*/1"))
    }


def expected(change: Change, wanted: Sparse) -> list[int]:
    """The times near the change, by looking at every minute that the clock shows."""
    first, last = change.at - change.reach, change.at + change.reach
    before = wanted.shown(first + change.before, change.at + change.before)
    after = wanted.shown(change.at + change.after, last + change.after)
    if wanted.fixed:  # a time that comes twice counts once, and what is left out comes when that is over
        after = [local for local in after if local >= change.at + change.before]
        if wanted.shown(change.at + change.before, change.at + change.after):
            after.append(change.at + change.after)
    return sorted({*(local - change.before for local in before), *(local - change.after for local in after)})


@pytest.mark.promise("H14", "X25")
@pytest.mark.parametrize("group", range(GROUPS))
def test_next_count_and_latest_agree_with_the_minutes_that_clocks_show(group):
    looked_at = 0
    for change, zone in sorted(changes().items())[group::GROUPS]:
        after, until = (change.at - change.reach - 1) * 1000, (change.at + change.reach - 1) * 1000
        for wanted in sparse(change):
            trigger, found = Cron(wanted.text, tz=zone), []
            slot = trigger.next_slot(after)
            while slot is not None and slot <= until:
                found.append(slot // 1000)
                slot = trigger.next_slot(slot)
            where = (zone, wanted.text, EPOCH + timedelta(seconds=change.at))
            assert found == expected(change, wanted), where
            assert trigger.count_slots(after, until) == len(found), where
            assert trigger.latest_slot(after, until) == (found[-1] * 1000 if found else None), where
            looked_at += 1
    assert looked_at > 1000


@pytest.mark.promise("H14")
@pytest.mark.parametrize(
    ("expression", "zone", "day", "times"),
    [
        ("*/30 2 25 10 *", "Europe/Berlin", datetime(2026, 10, 24, tzinfo=UTC), 4),
        ("* 1 1 11 *", "America/New_York", datetime(2026, 10, 31, tzinfo=UTC), 120),
    ],
)
def test_the_hour_that_comes_twice_has_its_times_twice_also_on_the_only_day_of_the_year(expression, zone, day, times):
    trigger = Cron(expression, tz=zone)
    found = [moment for moment in trigger.upcoming(day, times + 1) if moment < day + timedelta(days=2)]
    assert len(found) == times
