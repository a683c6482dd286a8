"""When jobs fire while nothing goes wrong: the grid, the floor, and the timer behind them."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every, Interval, NewJob, Once


@pytest.mark.promise("H1")
@pytest.mark.parametrize(
    ("anchor", "expected"),
    [
        (None, [at(1), at(2), at(3)]),
        (at(0, 20), [at(0, 20), at(1, 20), at(2, 20)]),
        (at(-10.5), [at(0, 30), at(1, 30), at(2, 30)]),
        (at(0), [at(1), at(2), at(3)]),
        (at(2, 59), [at(2, 59)]),
        (at(9), []),
    ],
)
@virtual
async def test_every_fires_on_the_grid_of_its_anchor_and_never_in_the_past(scene, anchor, expected):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scheduler.add_job("a", Every("1h", anchor=anchor))
        await scene.sleep("3h")
        assert scene.slots == expected
        assert scene.times == expected


@pytest.mark.promise("H1")
@virtual
async def test_a_long_run_does_not_move_the_grid(scene):
    async def act(run):
        await scene.sleep("7m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"))
        await scheduler.start()
        await scene.sleep("35m")
        assert scene.times == [at(0, 10), at(0, 20), at(0, 30)]


@pytest.mark.promise("H1", "H16")
@virtual
async def test_the_next_time_shown_is_the_time_it_fires(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(0, 20)))
        await scheduler.start()
        shown = []
        for _ in range(5):
            shown.append((await scheduler.get_job("a")).next_run_at)
            await scene.until(shown[-1])
        assert scene.times == shown


@pytest.mark.promise("D2")
@virtual
async def test_interval_counts_from_the_end_of_the_last_run(scene):
    async def act(run):
        await scene.sleep("3m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Interval("5m"))
        await scheduler.start()
        await scene.sleep("20m")
        assert scene.times == [at(0), at(0, 8), at(0, 16)]


@pytest.mark.promise("D2")
@virtual
async def test_interval_counts_from_the_end_of_a_manual_run_too(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Interval("10m"))
        await scheduler.start()
        await scene.sleep("4m")
        await scheduler.run_job("a")
        await scene.sleep("11m")
        assert scene.times == [at(0), at(0, 4), at(0, 14)]


@pytest.mark.promise("D2")
@virtual
async def test_an_overdue_interval_is_due_at_once_and_misses_nothing(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Interval("5m"))
        await scheduler.start()
        await scene.sleep("1m")
    await scene.sleep("3d")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1s")
        job = await scheduler.get_job("a")
        assert (scene.times[1:], job.missed) == ([at(0, 1, days=3)], 0)


@pytest.mark.promise("D2", "X9")
@virtual
async def test_jitter_only_delays_and_by_its_share_of_the_interval_at_most(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Interval("1h", jitter=10))
        await scheduler.start()
        await scene.sleep("3d")
        gaps = [later - earlier for earlier, later in zip(scene.times, scene.times[1:], strict=False)]
        assert len(gaps) > 60
        assert min(gaps) >= timedelta(hours=1)
        assert max(gaps) <= timedelta(minutes=66, seconds=1)
        assert len(set(gaps)) > 10


@pytest.mark.promise("X9")
@virtual
async def test_jitter_on_a_grid_never_comes_early_and_keeps_the_slots(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", jitter=10))
        await scheduler.start()
        await scene.sleep("50h")
        late = [time - slot for time, slot in zip(scene.times, scene.slots, strict=True)]
        assert scene.slots[:48] == [at(hour) for hour in range(1, 49)]
        assert min(late) >= timedelta(0)
        assert timedelta(0) < max(late) <= timedelta(minutes=6, seconds=1)


@pytest.mark.promise("X9")
@virtual
async def test_stagger_is_the_same_on_every_day_and_spreads_jobs(scene):
    async with scene.scheduler() as scheduler:
        names = [f"job{number}" for number in range(8)]
        await scheduler.add_jobs([NewJob(name, Cron("0 2 * * *", stagger="1h")) for name in names])
        await scheduler.start()
        await scene.sleep("2d")
        found = {}
        for run, time in zip(scene.runs, scene.times, strict=True):
            found.setdefault(run.job, set()).add(time - run.slot)
        assert sorted(found) == names
        assert all(len(delays) == 1 for delays in found.values())
        delays = [next(iter(delays)) for delays in found.values()]
        assert all(timedelta(0) <= delay < timedelta(hours=1) for delay in delays)
        assert len(set(delays)) > 4


@pytest.mark.promise("H3")
@pytest.mark.parametrize(
    "trigger", [Cron("* * * * * *"), Cron("*/3 * * * * *"), Every("3s"), Every("1s"), Every(0.001), Interval("1s")]
)
@virtual
async def test_starts_closer_than_ten_seconds_are_thinned_and_the_job_says_so(scene, trigger):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await scene.sleep("2m")
        gaps = [later - earlier for earlier, later in zip(scene.times, scene.times[1:], strict=False)]
        assert min(gaps) >= timedelta(seconds=10)
        assert len(scene.times) >= 10, "thinned, not stopped"
        assert any("10s" in note for note in (await scheduler.get_job("a")).notes)


@pytest.mark.promise("H3")
@virtual
async def test_a_job_at_the_floor_is_not_thinned_and_has_no_note(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10s"))
        await scheduler.start()
        await scene.sleep("1m")
        assert scene.times == [at(seconds=seconds) for seconds in range(10, 61, 10)]
        assert (await scheduler.get_job("a")).notes == []


@pytest.mark.promise("H5", "D11")
@virtual
async def test_the_loop_sleeps_a_minute_at_most_and_no_less_without_need(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("far", Once(at(days=300)))
        await scheduler.start()
        await scene.sleep("1s")
        before = scheduler.get_state()
        await scene.sleep("10h")
        after = scheduler.get_state()
        checks = after.check_count - before.check_count
        assert 600 <= checks <= 1300
        assert scene.now - after.last_check_at <= timedelta(seconds=60)


@pytest.mark.promise("H5")
@virtual
async def test_adding_updating_resuming_and_ending_wake_the_loop_at_once(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("17s")
        await scheduler.add_job("added", Once(scene.now + timedelta(seconds=3)))
        await scene.sleep("3s")
        assert scene.times == [at(seconds=20)]
        await scheduler.add_job("later", Once(at(9)))
        await scene.sleep("1s")
        await scheduler.update_job("later", trigger=Once(at(seconds=25)))
        await scene.sleep("5s")
        assert scene.times[1:] == [at(seconds=25)]
        await scheduler.add_job("paused", Once(at(seconds=30)))
        await scheduler.pause_job("paused")
        await scene.sleep("10s")
        await scheduler.resume_job("paused")
        await scene.sleep("1s")
        assert scene.times[2:] == [at(seconds=36)]


@pytest.mark.promise("H5")
@virtual
async def test_the_end_of_a_run_arms_the_next_one_at_once(scene):
    async def act(run):
        await scene.sleep("11s")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Interval("10s"))
        await scheduler.start()
        await scene.sleep("1m")
        assert scene.times == [at(seconds=seconds) for seconds in (0, 21, 42)]


@pytest.mark.promise("D3")
@pytest.mark.parametrize(
    ("shorthand", "first"),
    [
        ("@hourly", at(1)),
        ("@daily", at(days=1)),
        ("@weekly", at(days=3)),
        ("@monthly", at(days=31)),
        ("@yearly", at(days=365)),
    ],
)
@virtual
async def test_shorthands_fire_when_they_say(scene, shorthand, first):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Cron(shorthand))
        assert (await scheduler.get_job("a")).next_run_at == first


@pytest.mark.promise("X9")
@pytest.mark.parametrize(
    ("trigger", "expected"),
    [
        (Every("1h", until=at(3)), [at(1), at(2), at(3)]),
        (Every("1h", max_runs=2), [at(1), at(2)]),
        (Cron("0 */6 * * *", until=at(13)), [at(6), at(12)]),
        (Interval("2h", max_runs=3), [at(0), at(2), at(4)]),
    ],
)
@virtual
async def test_a_job_whose_trigger_has_ended_is_done_and_says_why(scene, trigger, expected):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await scene.sleep("1d")
        job = await scheduler.get_job("a")
        assert scene.times == expected
        assert (job.status, job.enabled, job.next_run_at, job.last_error) == ("done", False, None, None)
        assert any("finished" in note for note in job.notes)


@pytest.mark.promise("X9")
@virtual
async def test_manual_runs_do_not_use_up_max_runs(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", max_runs=2))
        await scheduler.start()
        for _ in range(3):
            await scheduler.run_job("a")
            await scene.sleep("1m")
        await scene.sleep("5h")
        assert [run.reason for run in scene.runs] == ["manual"] * 3 + ["schedule"] * 2


@pytest.mark.promise("X9")
@virtual
async def test_except_dates_have_no_slots_and_are_not_missed(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Cron("0 9 * * *", except_dates=["2026-01-02", "2026-01-03"]))
        await scheduler.start()
        await scene.sleep("5d")
        assert scene.times == [at(9), at(9, days=3), at(9, days=4)]
        assert (await scheduler.get_job("a")).missed == 0


@pytest.mark.promise("D5")
@virtual
async def test_closed_hours_are_a_reason_counted_once_per_slot(scene):
    hours = {"start": "09:00", "end": "12:00", "timezone": "UTC"}
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h", active_hours=hours))
        await scheduler.start()
        await scene.sleep("34h")
        assert scene.times == [at(9), at(10), at(11), at(33), at(34)]
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("a")).facts["skips"]}
        assert skips["outside_active_hours"] == 21
