"""History is kept by age and by number, and what is still needed is never deleted."""

from __future__ import annotations

import asyncio
import logging

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import Every, IntervalParseError, InvalidJob, Manual, NewJob, Once, Retention, Wait, ids
from wakeful.kernel.engine.long_output import log_path, remove_files, remove_older_files
from wakeful.kernel.loop import sweep
from wakeful.kernel.loop.sweep import Housekeeping
from wakeful.triggers import to_ms


@pytest.mark.promise("X11")
@virtual
async def test_runs_older_than_kept_are_deleted_and_the_last_one_stays(scene):
    async with scene.scheduler(retention=Retention(days=2)) as scheduler:
        await scheduler.add_job("often", Every("6h"))
        await scheduler.add_job("rare", Every("1d", max_runs=1))
        await scheduler.start()
        await scene.sleep("10d")
        log = await scheduler.get_run_log("often", limit=1000)
        assert 8 <= len(log) <= 10
        assert len(await scheduler.get_run_log("rare")) == 1
        assert (await scheduler.get_job("rare")).last_run_at == at(days=1)


@pytest.mark.promise("X11")
@virtual
async def test_no_more_runs_are_kept_than_said(scene):
    async with scene.scheduler(retention=Retention(runs_per_job=10)) as scheduler:
        await scheduler.add_job("a", Every("1m"))
        await scheduler.start()
        await scene.sleep("5h")
        log = await scheduler.get_run_log("a", limit=1000)
        assert 10 <= len(log) <= 120
        assert log[0].slot == at(5)


@pytest.mark.promise("X11")
@virtual
async def test_waiting_and_open_runs_and_what_they_continue_are_kept(scene):
    async def act(run):
        if run.job == "waits":
            raise Wait
        if run.job == "retried":
            raise ConnectionError

    scene.act = act
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_job("waits", Once(at(0)))
        await scheduler.add_job("retried", Manual(), retry=["5d"])
        await scheduler.start()
        first = await scheduler.run_job("retried")
        await scene.sleep("4d")
        assert (await scheduler.get_run_log("waits"))[0].status == "waiting"
        assert (await scheduler.get_run(first)).outcome == "error"
        await scene.sleep("2d")
        assert [run.attempt for run in scene.of("retried")] == [1, 2]


@pytest.mark.promise("X11")
@virtual
async def test_finished_one_shot_jobs_and_removed_jobs_are_forgotten_in_time(scene):
    async with scene.scheduler(retention=Retention(days=3)) as scheduler:
        await scheduler.add_job("done", Once(at(1)))
        await scheduler.add_job("removed", Manual())
        await scheduler.add_job("later", Once(at(days=30)))
        await scheduler.start()
        await scheduler.run_job("removed")
        await scene.until(at(2))
        await scheduler.remove_job("removed")
        await scene.until(at(days=2))
        assert await scheduler.get_job("done") is not None
        assert len(await scheduler.get_run_log("removed")) == 1
        await scene.until(at(days=5))
        assert [job.name for job in await scheduler.list_jobs()] == ["later"]
        assert await scheduler.get_run_log(limit=1000) == []


@pytest.mark.promise("H2", "X11")
@virtual
async def test_pruning_does_not_let_a_slot_run_twice(scene):
    async with scene.scheduler(retention=Retention(days=1, runs_per_job=1)) as scheduler:
        await scheduler.add_job("a", Every("1h", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("49h")
        assert len(await scheduler.get_run_log("a", limit=1000)) < 40
        scene.step(minutes=-30)
        await scene.sleep("3h")
        assert len(scene.slots) == len(set(scene.slots))


@pytest.mark.promise("X11", "X24")
@pytest.mark.usefixtures("minutely_sweeps")
@virtual
async def test_a_crowd_that_grows_old_at_once_is_gone_minutes_later(scene):
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_jobs([NewJob(f"j{n}", Every("1d", anchor=at(0, 1))) for n in range(1500)])
        await scheduler.start()
        await scene.until(at(0, 5, days=1))  # four minutes since the first runs became old, and no longer the last
        assert len(scene.runs) == 3000
        assert await stored(scheduler) == 1500


async def stored(scheduler):
    return await scheduler._store.read(lambda tx: tx.tables.count("runs"))


def bites(scheduler):
    """How many runs each bite deletes, as they come."""
    sizes = []
    scheduler._engine.housekeeping.on_deleted = lambda run_ids: sizes.append(len(run_ids))
    return sizes


@pytest.mark.promise("X11")
@virtual
async def test_bites_are_small_and_become_smaller_where_they_take_long(scene, monkeypatch):
    monkeypatch.setattr(sweep, "BITE_US", 0)  # whatever it takes is long
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        sizes = bites(scheduler)
        await scheduler.add_jobs([NewJob(f"j{n}", Every("1d", anchor=at(0, 1))) for n in range(600)])
        await scheduler.start()
        await scene.until(at(2, days=2))
        assert sum(sizes) == 1200
        assert max(sizes) == sweep.SMALLEST_BITE


@pytest.mark.promise("X11")
@virtual
async def test_history_is_pruned_beside_any_number_of_long_runs(scene):
    async def act(run):
        if run.job.startswith("long"):
            await asyncio.Event().wait()

    scene.act = act
    async with scene.scheduler(retention=Retention(days=2)) as scheduler:
        await scheduler.add_jobs([NewJob(f"long{n}", Once(at(0)), timeout="20d") for n in range(100)])
        await scheduler.add_job("often", Every("6h"))
        await scheduler.start()
        await scene.sleep("10d")
        assert scheduler.running_count() == 100
        assert len(await scheduler.get_run_log("often", limit=1000)) <= 10


@pytest.mark.promise("X11")
@virtual
async def test_pruning_waits_while_due_jobs_wait_but_not_for_ever(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(f"j{n}", Every("1d", anchor=at(0, 1))) for n in range(10)])
        await scheduler.start()
        await scene.until(at(0, 0, days=2))
        await scheduler.stop()
        housekeeping = Housekeeping(scheduler._store, scene.clock, Retention(days=0))
        deleted = []
        housekeeping.on_deleted = deleted.extend
        await housekeeping.sweep(scheduler._engine.context)
        await housekeeping.prune(scheduler._engine.context, quiet=False)
        await scene.sleep("9s")
        await housekeeping.prune(scheduler._engine.context, quiet=False)
        assert deleted == []
        await scene.sleep("2s")
        await housekeeping.prune(scheduler._engine.context, quiet=False)
        assert len(deleted) == 10


@pytest.mark.promise("X11")
@virtual
async def test_a_removed_job_with_more_runs_than_a_bite_is_forgotten_with_all_of_them_and_their_files(
    scene, monkeypatch
):
    for name in ("SMALLEST_BITE", "FIRST_BITE", "LARGEST_BITE"):
        monkeypatch.setattr(sweep, name, 3)

    async def act(run):
        return "x" * 300_000

    scene.act = act
    async with scene.scheduler(retention=Retention(days=2)) as scheduler:
        await scheduler.add_job("removed", Every("1h"))
        await scheduler.add_job("done", Once(at(1)))
        await scheduler.start()
        await scene.until(at(10, 30))
        assert len(await scheduler.get_run_log("removed", limit=100)) == 10
        folder = scheduler._store.folder
        assert len(list(folder.iterdir())) == 11
        await scheduler.remove_job("removed")
        await scene.until(at(days=4))
        assert await stored(scheduler) == 0
        assert await scheduler._store.read(lambda tx: tx.tables.count("jobs")) == 0
        assert list(folder.iterdir()) == []


@pytest.mark.promise("X11")
@virtual
async def test_a_bite_that_was_full_says_that_there_may_be_more(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("a", Every("1m")), NewJob("b", Every("1h"))])
        await scheduler.start()
        await scene.until(at(0, 30, 30))
        await scheduler.stop()
        jobs = [ids.decode((await scheduler.get_job(name)).id)[1] for name in "ab"]
        keep, cursors = Retention(days=0, runs_per_job=5), sweep.NOTHING_LEFT._replace(records=True)

        async def bite(size):
            nonlocal cursors, jobs
            found = await scheduler.transact(
                lambda tx, context: sweep.prune(tx, context, keep, cursors, jobs, size=size)
            )
            cursors, jobs = found.cursors, list(found.crowded)
            return len(found.deleted), len(jobs), cursors.records

        await scene.sleep("1m")
        await scheduler.transact(lambda tx, _: tx.facts.put({"clock_steady": '{"since": 0, "distance": 0}'}))
        assert await bite(10) == (10, 2, True), "of the first job, which may have more, and of the other records"
        assert await bite(10) == (10, 2, True)
        left = await stored(scheduler)
        assert await bite(1000) == (left - 6, 0, False), "the last run is kept beside those"


@pytest.mark.promise("X11", "X24")
@virtual
async def test_several_jobs_with_more_runs_than_a_bite_are_all_pruned_to_what_is_kept(scene, monkeypatch):
    for name in ("SMALLEST_BITE", "FIRST_BITE", "LARGEST_BITE"):
        monkeypatch.setattr(sweep, name, 4)
    async with scene.scheduler(retention=Retention(runs_per_job=5, check_every=40)) as scheduler:
        await scheduler.add_jobs([NewJob(name, Every("1m", max_runs=40)) for name in "abc"])
        await scheduler.start()
        await scene.until(at(1, 30))
        assert [len(await scheduler.get_run_log(name, limit=100)) for name in "abc"] == [6, 6, 6], (
            "with the last of each"
        )


@pytest.mark.promise("X11", "X24")
@pytest.mark.parametrize("trigger", [Manual(), Every("2d", anchor=at(minutes=5))], ids=["never by time", "rarely"])
@virtual
async def test_runs_that_people_start_are_kept_by_number_too(scene, trigger):
    async with scene.scheduler(retention=Retention(runs_per_job=10, check_every=5)) as scheduler:
        await scheduler.add_job("a", trigger)
        await scheduler.start()
        await scene.sleep("10m")
        for _ in range(150):
            await scheduler.run_job("a")
            await scene.sleep("1m")
        await scene.sleep("20m")
        assert len(scene.runs) >= 150
        assert len(await scheduler.get_run_log("a", limit=500)) < 50


@pytest.mark.promise("X11")
@virtual
async def test_what_is_open_about_a_job_is_over_once_it_is_forgotten(scene):
    scene.act = failing()
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scene.until(at(2))
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["failed"]
        await scene.until(at(days=3))
        assert await scheduler.get_job("a") is None
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("X11")
def test_a_file_that_cannot_be_removed_keeps_no_other_and_is_reported_once(tmp_path, caplog):
    files = [log_path(tmp_path, ids.run_text(n)) for n in range(1, 6)]
    for path in files[2:]:
        path.write_text("said")
    for path in files[:2]:
        path.mkdir()
    with caplog.at_level(logging.WARNING, "wakeful.engine"):
        remove_files(tmp_path, list(range(1, 6)))
    assert [path.exists() for path in files] == [True, True, False, False, False]
    [record] = caplog.records
    assert "cannot remove files of runs that are no longer on record" in record.getMessage()


@pytest.mark.promise("X11")
@virtual
async def test_of_events_and_actions_no_more_are_kept_than_said(scene):
    keep = Retention(events=40, records=20)
    async with scene.scheduler(retention=keep) as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        for number in range(60):
            await scheduler.pause_job("a", note=str(number))
            await scheduler.resume_job("a")
        await scene.sleep("5m")

        async def kept():
            return await scheduler._store.read(lambda tx: (tx.tables.count("events"), tx.tables.count("actions")))

        await scene.sleep("8m")
        events, actions = await kept()
        assert events <= 45
        assert actions == 120, "what may be taken back is kept"
        await scene.sleep("20m")
        events, actions = await kept()
        assert (events <= 45, actions) == (True, 20)
        newest = await scheduler._store.read(lambda tx: tx.events.ids())
        assert newest[1] >= 120, "the newest stay"


@pytest.mark.promise("X11")
@virtual
async def test_a_job_says_how_long_and_how_many_of_its_own_runs_are_kept(scene):
    async with scene.scheduler(retention=Retention(days=4)) as scheduler:
        await scheduler.add_job("few", Every("6h"), retention={"runs": 3})
        await scheduler.add_job("short", Every("6h"), retention={"age": "1d"})
        await scheduler.add_job("long", Every("6h"), retention={"age": "8d"})
        await scheduler.add_job("usual", Every("6h"))
        await scheduler.start()
        await scene.sleep("12d")
        kept = {name: len(await scheduler.get_run_log(name, limit=1000)) for name in ("few", "short", "long", "usual")}
        assert kept["few"] == 3
        assert 4 <= kept["short"] <= 5
        assert 32 <= kept["long"] <= 34
        assert 16 <= kept["usual"] <= 18


@pytest.mark.promise("X11")
@virtual
async def test_what_a_job_says_about_its_runs_is_applied_after_each_of_them(scene):
    async with scene.scheduler(retention=Retention(days=4)) as scheduler:
        await scheduler.add_job("few", Manual(), retention={"runs": 2})
        await scheduler.add_job("new", Manual(), retention={"age": "1s", "runs": 5})
        await scheduler.start()
        await scene.sleep("7h")  # from then on the clock is believed about the age of things
        for _ in range(4):
            for name in ("few", "new"):
                await scheduler.run_job(name)
            await scene.sleep("3s")
        assert len(await scheduler.get_run_log("few")) == 2
        assert len(await scheduler.get_run_log("new")) == 1


@pytest.mark.promise("X11")
@virtual
async def test_a_run_without_a_server_leaves_as_many_runs_as_its_job_says(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("few", Manual(), retention={"runs": 2})
        for _ in range(4):
            await scheduler.run_here("few")
        assert len(await scheduler.get_run_log("few")) == 2


@pytest.mark.parametrize("given", [{}, 7, "7d", {"age": "soon"}, {"runs": 0}, {"days": 3}, {"age": 5, "runs": -1}])
@virtual
async def test_a_retention_that_says_nothing_clear_is_refused(scene, given):
    async with scene.scheduler() as scheduler:
        with pytest.raises((InvalidJob, IntervalParseError)):
            await scheduler.add_job("a", Manual(), retention=given)


def test_files_of_output_may_be_kept_for_less_time_than_their_runs(tmp_path):
    numbers = {name: ids.first_id_at(to_ms(at(days=day))) for name, day in (("old", 1), ("open", 2), ("new", 5))}
    for number in numbers.values():
        log_path(tmp_path, ids.run_text(number)).write_text("printed")
    (tmp_path / "notes.log").write_text("mine")
    remove_older_files(tmp_path, ids.first_id_at(to_ms(at(days=4))), {numbers["open"]})
    left = {path.stem for path in tmp_path.iterdir()}
    assert left == {"notes", ids.run_text(numbers["open"]), ids.run_text(numbers["new"])}
