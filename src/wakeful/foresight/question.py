"""What a simulation is asked: how long, from when, with which assumptions and which faults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any, NamedTuple

from wakeful.errors import IntervalParseError, InvalidSetting, NotFound
from wakeful.spelling import did_you_mean
from wakeful.triggers.durations import interval_ms
from wakeful.triggers.moments import LAST_SECOND, from_ms, to_ms
from wakeful.triggers.zones import place_named, zone

WEEK_MS = 7 * 86_400_000
MOST_MS = 366 * 86_400_000
MOST_NODES = 100
MOST_STEP_MS = 7 * 86_400_000  # of the clock, all settings together: back is time that is simulated again
MOST_FAULTS = 100  # outages, and settings of the clock, that are given
_HOURS = re.compile(r"(\d\d):(\d\d)-(\d\d):(\d\d)")
NEXT_CHANGE = "dst"


class Outage(NamedTuple):
    """From when to when nothing runs; without a day, at these times of every day."""

    begins: int
    ends: int


class ClockChange(NamedTuple):
    """By how much the clock is set, and when."""

    at: int
    by: int


class SimulationRequest(NamedTuple):
    """What to simulate."""

    for_ms: int = WEEK_MS
    begins: int | None = None  # else now
    seed: int = 1
    assume: Mapping[str, int] = {}  # by name of a job: how long its runs take, in milliseconds
    fail: Mapping[str, float] = {}  # by name of a job: how many of its runs fail, from 0 to 1
    down: Sequence[str] = ()  # outages, as they were given
    clock: Sequence[str] = ()  # settings of the clock, as they were given
    nodes: int = 1
    most_runs: int | None = None  # it ends when so many runs have ended


class Setup(NamedTuple):
    """The settings of the server that is simulated."""

    zone: str = "UTC"
    max_running: int | None = None
    min_interval: float | None = 3_600.0  # seconds
    job_defaults: Mapping[str, Any] = {}
    labels: frozenset[str] = frozenset()


class Faults(NamedTuple):
    """What befalls the server, by time."""

    outages: Sequence[Outage] = ()
    steps: Sequence[ClockChange] = ()


def checked(question: SimulationRequest) -> SimulationRequest:
    """The question; InvalidSetting where it cannot be answered."""
    if not 0 < question.for_ms <= MOST_MS:
        raise InvalidSetting("The time to simulate is more than nothing and at most 366 days.")
    if not 1 <= question.nodes <= MOST_NODES:
        raise InvalidSetting(f"nodes is a number from 1 to {MOST_NODES}, not {question.nodes}.")
    for name, given in (("down", question.down), ("clock", question.clock)):
        if len(given) > MOST_FAULTS:
            raise InvalidSetting(f"{name} can be given {MOST_FAULTS} times at most.")
    return question


def read_assumed(given: Iterable[str]) -> dict[str, int]:
    """`NAME=30s`, several times, as milliseconds by name."""
    found = {}
    for one in given:
        name, sign, value = one.rpartition("=")
        try:
            found[name] = interval_ms(value)
        except IntervalParseError as error:
            raise InvalidSetting(f"assume is NAME=DURATION, such as report=30s, not {one!r:.80}.") from error
        if not sign or not name:
            raise InvalidSetting(f"assume is NAME=DURATION, such as report=30s, not {one!r:.80}.")
    return found


def read_failing(given: Iterable[str]) -> dict[str, float]:
    """`NAME=0.1`, several times, as shares by name."""
    found = {}
    for one in given:
        name, _, value = one.rpartition("=")
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if not name or not 0 <= share <= 1:
            raise InvalidSetting(f"fail is NAME=SHARE with a share from 0 to 1, such as report=0.1, not {one!r:.80}.")
        found[name] = share
    return found


def refuse_unknown(question: SimulationRequest, names: Iterable[str]) -> None:
    """NotFound for an assumption about a job that is not there."""
    known = set(names)
    for name in (*question.assume, *question.fail):
        if name not in known:
            hint = did_you_mean(name, known)
            raise NotFound(f"There is no job named {name!r:.80} to assume something about.{hint}")


def faults_of(question: SimulationRequest, begins: int, zone_name: str) -> Faults:
    """The outages and settings of the clock within the simulated time."""
    ends, place = begins + question.for_ms, place_of(zone_name)
    outages = [one for text in question.down for one in _outages(text, begins, ends, place)]
    steps = [_step(text, place) for text in question.clock if text != NEXT_CHANGE]
    if sum(abs(one.by) for one in steps) > MOST_STEP_MS:
        raise InvalidSetting(f"clock is set by at most {MOST_STEP_MS // 86_400_000}d in all: give smaller steps.")
    return Faults(_merged(outages), sorted(one for one in steps if begins <= one.at < ends))


def place_of(zone_name: str) -> tzinfo:
    """The zone of that name."""
    return place_named(zone_name) or UTC


def _outages(text: str, begins: int, ends: int, place: tzinfo) -> Iterable[Outage]:
    daily = _HOURS.fullmatch(text)
    if daily is not None:
        return _daily(daily.groups(), text, begins, ends, place)
    first, sign, last = text.partition("/")
    if not sign:
        raise InvalidSetting(f"down is HH:MM-HH:MM, for every day, or TIME/TIME, for once, not {text!r:.80}.")
    outage = Outage(_moment(first, place), _moment(last, place))
    if outage.ends <= outage.begins:
        raise InvalidSetting(f"down ends after it begins: {text!r:.80} does not.")
    return [outage] if outage.begins < ends and outage.ends > begins else []


def _daily(parts: Sequence[str], text: str, begins: int, ends: int, place: tzinfo) -> Iterable[Outage]:
    try:
        first, last = time(int(parts[0]), int(parts[1])), time(int(parts[2]), int(parts[3]))
    except ValueError as error:
        raise InvalidSetting(f"down is HH:MM-HH:MM with times of a day, not {text!r:.80}.") from error
    if first == last:
        raise InvalidSetting(f"down ends after it begins: {text!r:.80} does not.")
    day, stop = from_ms(begins).astimezone(place).date() - timedelta(days=1), from_ms(ends).astimezone(place).date()
    while day <= stop:
        until = day if last > first else day + timedelta(days=1)
        outage = Outage(_at(day, first, place), _at(until, last, place))
        if outage.begins < ends and outage.ends > begins:
            yield outage
        day += timedelta(days=1)


def _at(day: date, clock: time, place: tzinfo) -> int:
    return to_ms(datetime.combine(day, clock, place))


def _merged(outages: Sequence[Outage]) -> list[Outage]:
    found: list[Outage] = []
    for one in sorted(outages):
        if found and one.begins <= found[-1].ends:
            found[-1] = Outage(found[-1].begins, max(found[-1].ends, one.ends))
        else:
            found.append(one)
    return found


def _step(text: str, place: tzinfo) -> ClockChange:
    at, equals, by = text.rpartition("=")
    message = f"clock is {NEXT_CHANGE}, or TIME=+DURATION or TIME=-DURATION, not {text!r:.80}."
    if not equals:
        raise InvalidSetting(message)
    sign = -1 if by.startswith("-") else 1
    try:
        return ClockChange(_moment(at, place), sign * interval_ms(by.lstrip("+-")))
    except IntervalParseError as error:
        raise InvalidSetting(message) from error


def _moment(text: str, place: tzinfo) -> int:
    try:
        given = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidSetting(f"{text!r:.80} is not a time such as 2026-12-24T18:00.") from error
    return to_ms(given if given.tzinfo is not None else given.replace(tzinfo=place))


def before_next_change(now: int, zone_name: str) -> int:
    """A day before the clocks of a zone change next; InvalidSetting where they do not."""
    second = now // 1000
    for _ in range(4):  # segments are found in parts: the end of one may be no change
        _, end, offset, _ = zone(zone_name).segment(second)
        if end >= LAST_SECOND:
            break
        if zone(zone_name).segment(end)[2] != offset:
            return max(now, (end - 86_400) * 1000)
        second = end
    raise InvalidSetting(f"The clocks of {zone_name} do not change: name a time with --from instead.")
