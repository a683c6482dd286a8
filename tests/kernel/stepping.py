"""A life with a clock that is stepped, and what must hold at its end; for each kind of trigger and way of stepping."""

from __future__ import annotations

from datetime import timedelta

from tests.kernel.scene import at, settled_slots
from wakeful import Cron, Every, Interval

HOURLY = {
    "every": Every("1h", anchor=at(days=-30)),
    "cron": Cron("0 * * * *"),
    "interval": Interval("1h"),
}
MINUTELY = {"minutely": Every("1m", anchor=at(days=-30)), "cron minutely": Cron("* * * * *")}
STEPS = {
    "a day forward": [{"days": 1}],
    "a day back": [{"days": -1}],
    "ten minutes forward": [{"minutes": 10}],
    "ten minutes back": [{"minutes": -10}],
    "ten minutes forward and back": [{"minutes": 10}, {"minutes": -10}],
    "ten minutes back and forward": [{"minutes": -10}, {"minutes": 10}],
    "a day forward and back": [{"days": 1}, {"days": -1}],
    "a day back and forward": [{"days": -1}, {"days": 1}],
}


async def live_through(scene, scheduler, steps, wait):
    for step in steps:
        await scene.sleep(wait)
        scene.step(**step)
    await scene.sleep("2h")


async def step_through(scene, trigger, steps, wait):
    """No slot twice, no job lost, no storm."""
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await live_through(scene, scheduler, steps, wait)
        slots = settled_slots(scene.runs)
        if trigger.type != "interval":
            assert len(slots) == len(set(slots)), "a slot was run twice"
        period = timedelta(minutes=1) if trigger in MINUTELY.values() else timedelta(hours=1)
        elapsed = timedelta(hours=2) + len(steps) * timedelta(minutes=185 if wait == "185m" else 180)
        assert len(scene.runs) <= elapsed / period + 1 + len(steps), "a storm"
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled, job.consecutive_errors) == ("idle", True, 0)
        assert job.next_run_at is not None
        assert scene.now < job.next_run_at <= scene.now + period + timedelta(minutes=11), (
            "lost until the old time returns"
        )
        assert await clock_steps(scheduler) == len(steps)
        assert any(alert.kind == "clock" for alert in await scheduler.list_alerts())


async def clock_steps(scheduler):
    """How many steps of the clock the store has on record."""
    noted = await scheduler.read(lambda tx: tx.facts.of(["clock_steps"]))
    return int(noted.get("clock_steps", "0"))
