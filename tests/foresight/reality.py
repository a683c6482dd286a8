"""A random fleet, and what really happens to it: the tests' own driver of a real server in virtual time."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from wakeful import After, Cron, Every, Interval, NewJob, Once, Retention, Scheduler
from wakeful.clock import sleep
from wakeful.foresight.question import Setup, SimulationRequest
from wakeful.foresight.snapshot import take_snapshot
from wakeful.foresight.world import chance
from wakeful.store.runs import RunFilter
from wakeful.testing import VirtualClock, run
from wakeful.triggers.moments import from_ms, to_ms

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe")
#: Ordinary days, and days on which clocks change: in Berlin, New York and on Lord Howe, in spring and in autumn.
STARTS = [
    datetime(2026, 6, 1, 7, 3, tzinfo=UTC),
    datetime(2026, 3, 28, 18, 0, tzinfo=UTC),
    datetime(2026, 10, 24, 18, 0, tzinfo=UTC),
    datetime(2026, 3, 7, 20, 0, tzinfo=UTC),
    datetime(2026, 10, 31, 20, 0, tzinfo=UTC),
    datetime(2026, 4, 4, 2, 0, tzinfo=UTC),
]
HOUR = timedelta(hours=1)


class Fleet(NamedTuple):
    """Jobs, how long their runs take, how often they fail, and what befalls their server."""

    start: datetime
    days: float
    jobs: list[NewJob]
    took: dict[str, int]
    fail: dict[str, float]
    outages: list[tuple[int, int]]
    max_running: int | None

    @property
    def question(self) -> SimulationRequest:
        down = [f"{from_ms(begins).isoformat()}/{from_ms(ends).isoformat()}" for begins, ends in self.outages]
        return SimulationRequest(int(self.days * 86_400_000), None, 7, self.took, self.fail, down)

    @property
    def setup(self) -> Setup:
        return Setup("UTC", self.max_running, None)


def random_fleet(seed: int) -> Fleet:
    """A fleet that follows from its number."""
    rng = random.Random(f"fleet {seed}")
    start = STARTS[seed % len(STARTS)]
    names = [f"job-{number}" for number in range(rng.randint(3, 9))]
    triggers = [_coming(rng, start, names[:number]) for number in range(len(names))]
    jobs = [NewJob(name, trigger, kind="job", **_options(rng)) for name, trigger in zip(names, triggers, strict=True)]
    took = {name: rng.choice((0, 900, 1_000, 20_000, 61_000, 900_000, 4_000_000, 11_000_000)) for name in names}
    fail = {name: rng.choice((0.2, 0.5, 1.0)) for name in names if rng.random() < 0.3}
    outages = []
    if rng.random() < 0.6:
        begins = to_ms(start) + rng.randint(1, 30) * 3_600_000 + rng.choice((0, 1_234_567))
        outages = [(begins, begins + rng.choice((30_000, 600_000, 5_400_000, 20 * 3_600_000)))]
    return Fleet(start, 2.5, jobs, took, fail, outages, rng.choice((None, None, 1, 2, 3)))


def _coming(rng, start, earlier):
    """A trigger that has a time ahead: others are refused."""
    while True:
        trigger = _trigger(rng, start, earlier)
        if not trigger.timed or trigger.next_after(start + timedelta(seconds=1)) is not None:
            return trigger


def _trigger(rng, start, earlier):
    zone = rng.choice(ZONES)
    hours = {"active_hours": {"start": "08:00", "end": "19:30", "timezone": zone}} if rng.random() < 0.2 else {}
    until = {"until": start + rng.randint(3, 40) * HOUR} if rng.random() < 0.15 else {}
    most = {"max_runs": rng.randint(1, 9)} if rng.random() < 0.15 else {}
    more = {**hours, **until, **most, **({"stagger": "90s"} if rng.random() < 0.2 else {})}
    kind = rng.choice(("cron", "cron", "every", "every", "interval", "once", "after"))
    if kind == "after" and earlier:
        return After(rng.choice(earlier), rng.choice(("success", "failure", "any")))
    if kind == "cron":
        minute = rng.choice(("0", "30", "*/10", "7", "0,20", "*/7"))
        return Cron(f"{minute} {rng.choice(('*', '*', '2', '1-3', '*/2', '9,17'))} * * *", tz=zone, **more)
    if kind == "once":
        return Once(start + rng.randint(1, 50) * HOUR)
    length = rng.choice(("45s", "5m", "17m", "1h", "3h", "24h"))
    return Interval(length, **more) if kind == "interval" else Every(length, **more)


def _options(rng):
    options = {
        "overlap": rng.choice((None, "skip", "cancel_other")),
        "catch_up": rng.choice((None, "once", "skip")),
        "retry": rng.choice((None, None, ["30s", "5m"])),
        "lanes": rng.choice((None, None, {"narrow": 1}, {"wide": 2}, {"narrow": 1, "wide": 2})),
        "priority": rng.choice((None, None, 5, -5)),
        "timeout": rng.choice((None, None, "30m")),
    }
    return {name: value for name, value in options.items() if value is not None}


def stored(scene, fleet):
    """Store the fleet as it begins; its snapshot."""

    async def main():
        async with _scheduler(scene, fleet) as scheduler:
            await scheduler.add_jobs(fleet.jobs)
            return await scheduler.read(take_snapshot)

    scene.clock = VirtualClock(fleet.start)
    return run(main(), scene.clock)


def lived(scene, fleet, look=None):
    """Run the fleet for real, in virtual time, with handlers and outages of our own; its runs.

    `look` is awaited with the scheduler once that has started.
    """
    ends = to_ms(fleet.start) + int(fleet.days * 86_400_000)

    async def main():
        scheduler = _scheduler(scene, fleet)
        await scheduler.open()
        await scheduler.start()
        if look is not None:
            await look(scheduler)
        for begins, back in fleet.outages:
            await _until(scene, begins - 1)
            await scene.crash(scheduler)
            if back < ends:
                await _until(scene, back)
                scheduler = _scheduler(scene, fleet)
                await scheduler.open()
                await scheduler.start()
        await _until(scene, ends - 1)
        found = (
            await _runs(scene, fleet) if fleet.outages and fleet.outages[-1][1] >= ends else await runs_of(scheduler)
        )
        await scheduler.close()
        return found

    return run(main(), scene.clock)


def interrupted(scene, fleet, after_ms, meanwhile=None):
    """Run the fleet for a while before its time begins: it then, its snapshot, and its runs from then on.

    `meanwhile`: after how long, in milliseconds, what is done.
    """
    begins, snapshots = to_ms(fleet.start) + after_ms, []
    later = fleet._replace(
        start=from_ms(begins), outages=[(first + after_ms, last + after_ms) for first, last in fleet.outages]
    )

    async def look(scheduler):
        if meanwhile is not None:
            await _until(scene, to_ms(fleet.start) + meanwhile[0])
            await meanwhile[1](scheduler)
        await _until(scene, begins)
        snapshots.append(await scheduler.read(take_snapshot))

    stored(scene, fleet)
    runs = lived(scene, later, look)
    return later, snapshots[0], [one for one in runs if one[3] is None or one[3] > begins]


def _scheduler(scene, fleet):
    scheduler = Scheduler(
        scene.url,
        clock=scene.clock,
        timezone="UTC",
        node="here",
        seed=1,
        max_running=fleet.max_running,
        min_interval=None,
        tuning=scene.tuning,
        retention=Retention(runs_per_job=100_000),
    )

    async def handle(started):
        await sleep(fleet.took[started.job] / 1000)
        if chance(7, started) < fleet.fail.get(started.job, 0):
            raise RuntimeError("as was asked")

    scheduler.on_job_due("job", handle)
    return scheduler


async def _until(scene, moment):
    await scene.clock.sleep(scene.clock.until(moment))


async def _runs(scene, fleet):
    async with _scheduler(scene, fleet) as scheduler:
        return await runs_of(scheduler)


async def runs_of(scheduler):
    def look(tx):
        names = {placed.id: placed.name for placed in tx.slots.jobs()}
        rows = tx.runs.matching(RunFilter(limit=100_000))
        return [
            (names[row.job_id], row.slot, row.started_at, row.finished_at, row.outcome, row.reason)
            for row in rows
            if row.started_at is not None
        ]

    return sorted(await scheduler.read(look), key=_order)


def as_lived(runs):
    """Simulated runs in the same form."""
    found = [(one.job, one.slot, one.started_at, one.ended_at, one.outcome, one.reason) for one in runs]
    return sorted(found, key=_order)


def _order(one):
    return one[2], one[0], one[1] or 0
