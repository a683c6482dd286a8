"""After any time offline: one catch-up, and the rest counted."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every, Interval, Once


async def away(scene, trigger, span, **options):
    """A job that lived an hour, then nothing ran for that long; the scheduler that finds it."""
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger, **options)
        await scheduler.start()
        await scene.until(at(1, 0, 30))
    scene.runs.clear()
    scene.times.clear()
    await scene.sleep(span)
    return scene.scheduler()


WEEK = [
    ("hourly", Every("1h"), at(days=7, hours=1), 167),
    ("every minute", Every("1m"), at(days=7, hours=1), 7 * 24 * 60 - 1),
    ("daily by cron", Cron("0 0 * * *"), at(days=7), 6),
    ("cron every minute", Cron("* * * * *"), at(days=7, hours=1), 7 * 24 * 60 - 1),
    ("monthly", Cron("0 0 1 * *"), None, 0),
    ("interval", Interval("1h"), at(2), 0),
]


@pytest.mark.promise("H4", "H11")
@pytest.mark.parametrize(("trigger", "slot", "missed"), [row[1:] for row in WEEK], ids=[row[0] for row in WEEK])
@virtual
async def test_after_a_week_offline_a_job_catches_up_once_with_an_exact_count(scene, trigger, slot, missed):
    async with await away(scene, trigger, "7d") as scheduler:
        await scheduler.start()
        await scene.sleep("10s")
        assert [run.slot for run in scene.runs] == ([slot] if slot is not None else [])
        assert (await scheduler.get_job("a")).missed == missed


@pytest.mark.promise("H4", "X9")
@pytest.mark.parametrize(
    ("catch_up", "span", "reasons", "missed"),
    [
        ("once", "3h", ["catch_up"], 2),
        ("skip", "3h", [], 3),
        ({"within": "2h"}, "3h", ["catch_up"], 2),
        ({"within": "20s"}, "3h", [], 3),
        ({"within": "31s"}, "3h", ["catch_up"], 2),
    ],
)
@virtual
async def test_the_catch_up_policy_decides_about_the_latest_missed_slot(scene, catch_up, span, reasons, missed):
    async with await away(scene, Every("1h"), span, catch_up=catch_up) as scheduler:
        await scheduler.start()
        await scene.sleep("10s")
        job = await scheduler.get_job("a")
        assert [run.reason for run in scene.runs] == reasons
        assert (job.missed, job.next_run_at) == (missed, at(5))
        await scene.until(at(5))
        assert scene.runs[-1].slot == at(5)


@pytest.mark.promise("H4")
@virtual
async def test_the_missed_count_grows_over_several_absences_and_is_explained(scene):
    async with await away(scene, Every("1h"), "4h") as scheduler:
        await scheduler.start()
        await scene.sleep("10m")
    await scene.sleep("3h")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert (await scheduler.get_job("a")).missed == 3 + 2
        assert "5 scheduled times" in str(await scheduler.explain("a"))


@pytest.mark.promise("H4")
@virtual
async def test_a_start_a_moment_late_is_no_miss_and_no_catch_up(scene):
    async with await away(scene, Every("1h"), "3570s") as scheduler:
        await scene.sleep("20s")
        await scheduler.start()
        await scene.sleep("1s")
        assert [(run.slot, run.reason) for run in scene.runs] == [(at(2), "schedule")]
        assert (await scheduler.get_job("a")).missed == 0


@pytest.mark.promise("H4")
@virtual
async def test_nothing_is_missed_while_paused_or_disabled(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scheduler.add_job("paused", Every("1h"))
        await scheduler.add_job("off", Every("1h"))
        await scheduler.pause_job("paused")
        await scheduler.update_job("off", enabled=False)
        await scene.sleep("5h")
        await scheduler.resume_job("paused")
        await scheduler.resume_job("off")
        await scene.sleep("1m")
        for name in ("paused", "off"):
            job = await scheduler.get_job(name)
            assert (job.missed, job.next_run_at) == (0, at(6))
        assert scene.runs == []


@pytest.mark.promise("H4", "H13")
@pytest.mark.parametrize("catch_up", ["once", {"within": "30d"}])
@virtual
async def test_a_missed_once_runs_once_after_the_restart(scene, catch_up):
    async with await away(scene, Once(at(30)), "7d", catch_up=catch_up) as scheduler:
        await scheduler.start()
        await scene.sleep("1d")
        assert [run.slot for run in scene.runs] == [at(30)]


@pytest.mark.promise("H4", "H11")
@virtual
async def test_external_triggers_are_never_caught_up(scene):
    from wakeful import After, Manual, Webhook

    async with scene.scheduler() as scheduler:
        for trigger in (Manual(), Webhook(), After("other")):
            await scheduler.add_job(trigger.type, trigger)
        await scheduler.start()
    await scene.sleep("7d")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1d")
        assert scene.runs == []
        assert [(job.next_run_at, job.missed) for job in await scheduler.list_jobs()] == [(None, 0)] * 3


@pytest.mark.promise("H4", "H11")
@virtual
async def test_slots_that_pass_between_a_crash_and_the_restart_are_counted_as_missed(scene):
    async def act(run):
        await scene.sleep("1h" if len(scene.runs) == 1 else 1)

    scene.act = act
    scheduler = scene.scheduler()
    await scheduler.open()
    await scheduler.add_job("a", Every("1h"))
    await scheduler.start()
    await scene.until(at(1, 0, 30))
    await scene.crash(scheduler)
    await scene.until(at(3, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        job = await scheduler.get_job("a")
        assert [(run.slot, run.reason) for run in scene.runs] == [(at(1), "schedule"), (at(1), "recovery")]
        assert (job.next_run_at, job.missed) == (at(4), 2)


@pytest.mark.promise("H4", "H15")
@virtual
async def test_slots_that_pass_while_a_cut_off_run_waits_for_the_next_start_are_counted(scene):
    async def act(run):
        await scene.sleep("1h" if len(scene.runs) == 1 else 1)

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 0, 30))
    await scene.until(at(3, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        job = await scheduler.get_job("a")
        assert [(run.slot, run.reason) for run in scene.runs] == [(at(1), "schedule"), (at(1), "recovery")]
        assert (job.next_run_at, job.missed) == (at(4), 2)
