"""Next fire times per second of one cron implementation, in a process of its own: `cron_rates LIBRARY SECONDS`."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo

MIX = [
    "* * * * *", "*/2 * * * *", "*/20 * * * *", "7 * * * *", "0 */3 * * *",
    "15,45 * * * *", "0 5 * * *", "40 2 * * *", "30 1 * * *", "5 0 * * 1",
    "0 8 * * 1-5", "*/30 9-18 * * 1-5", "10 7-21/2 * * *", "0 0 1 * *", "0 3 10,20 * *",
    "25 4 1 1 *", "0 12 * 6-8 *", "55 23 * * 0", "0 0 1 1,4,7,10 *", "20 6 15 * *",
]  # fmt: skip
START = datetime(2026, 1, 1, tzinfo=UTC)
STEPS = 200

Stepper = Callable[[], datetime]
Make = Callable[[str, tzinfo], Stepper]


def wakeful_next_after() -> Make:
    from wakeful import Cron

    def make(expression: str, zone: tzinfo) -> Stepper:
        trigger, at = Cron(expression, tz=str(zone)), START

        def step() -> datetime:
            nonlocal at
            found = trigger.next_after(at)
            assert found is not None
            at = found
            return at

        return step

    return make


def wakeful_upcoming() -> Make:
    """A list of times at once, as a calendar asks for them."""
    from wakeful import Cron

    def make(expression: str, zone: tzinfo) -> Stepper:
        trigger = Cron(expression, tz=str(zone))
        waiting: list[datetime] = []

        def step() -> datetime:
            if not waiting:
                waiting.extend(reversed(trigger.upcoming(START, STEPS)))
            return waiting.pop()

        return step

    return make


def cronsim() -> Make:
    from cronsim import CronSim

    def make(expression: str, zone: tzinfo) -> Stepper:
        return CronSim(expression, START.astimezone(zone)).__next__

    return make


def croniter() -> Make:
    from croniter import croniter as library

    def make(expression: str, zone: tzinfo) -> Stepper:
        iterator = library(expression, START.astimezone(zone))
        return lambda: iterator.get_next(datetime)

    return make


def apscheduler() -> Make:
    from apscheduler.triggers.cron import CronTrigger

    def make(expression: str, zone: tzinfo) -> Stepper:
        trigger, at = CronTrigger.from_crontab(expression, timezone=zone), START.astimezone(zone)

        def step() -> datetime:
            nonlocal at
            found = trigger.get_next_fire_time(at, at)
            at = found + timedelta(seconds=1)  # it answers at or after, the others strictly after
            return found

        return step

    return make


LIBRARIES = {
    "wakeful": wakeful_next_after,
    "wakeful-upcoming": wakeful_upcoming,
    "cronsim": cronsim,
    "croniter": croniter,
    "apscheduler": apscheduler,
}


def stepping(make: Make, zone: tzinfo, seconds: float) -> float:
    """Successive times a second, over all expressions in turn; making the objects is not timed."""
    count, spent = 0, 0.0
    while spent < seconds:
        steppers = [make(expression, zone) for expression in MIX]
        began = time.perf_counter()
        for _ in range(STEPS):
            for step in steppers:
                step()
        spent += time.perf_counter() - began
        count += STEPS * len(steppers)
    return count / spent


def parsing(make: Make, zone: tzinfo, seconds: float) -> float:
    """Expressions parsed and asked for their first time, a second."""
    count, began = 0, time.perf_counter()
    while time.perf_counter() - began < seconds:
        for expression in MIX:
            make(expression, zone)()
        count += len(MIX)
    return count / (time.perf_counter() - began)


def main() -> None:
    make, seconds = LIBRARIES[sys.argv[1]](), float(sys.argv[2])
    found = {}
    for name, zone in (("utc", ZoneInfo("UTC")), ("new_york", ZoneInfo("America/New_York"))):
        found[f"{name}_per_s"] = stepping(make, zone, seconds)
        if sys.argv[1] != "wakeful-upcoming":
            found[f"parse_{name}_per_s"] = parsing(make, zone, seconds / 2)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
