"""Pausing, resuming, changing and removing a job, whatever it is doing."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import ChangedSinceRead, Cron, Every, Interval, JobExists, JobNotFound, Manual, NewJob, Once, Wait
from wakeful.kernel.actions.runs import release_runs


def taking(scene, length):
    async def act(run):
        await scene.sleep(length)

    return act


@pytest.mark.promise("H16")
@virtual
async def test_pause_keeps_the_grid_and_resume_takes_the_next_slot(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 10))
        await scheduler.pause_job("a", note="holidays")
        job = await scheduler.get_job("a")
        assert (job.status, job.enabled, job.next_run_at) == ("paused", True, None)
        assert any("holidays" in note for note in job.notes)
        await scene.until(at(5, 30))
        await scheduler.resume_job("a")
        assert (await scheduler.get_job("a")).status == "idle"
        await scene.until(at(6, 30))
        assert scene.times == [at(1), at(6)]


@pytest.mark.promise("H16")
@virtual
async def test_a_pause_outlives_a_restart_and_a_declaration_in_code(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.pause_job("a")
    scheduler = scene.scheduler()
    scheduler.job(Every("30m"), name="a")(scene.handle)
    async with scheduler:
        await scheduler.start()
        await scene.sleep("3h")
        assert (await scheduler.get_job("a")).status == "paused"
        assert scene.runs == []


@pytest.mark.promise("H16")
@virtual
async def test_a_paused_job_may_be_run_by_hand_and_stays_paused(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scheduler.pause_job("a")
        await scheduler.run_job("a")
        await scene.sleep("3h")
        assert [run.reason for run in scene.runs] == ["manual"]
        assert (await scheduler.get_job("a")).status == "paused"


@pytest.mark.promise("H16")
@virtual
async def test_pausing_a_running_job_lets_the_run_finish(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 5))
        await scheduler.pause_job("a")
        assert (await scheduler.get_job("a")).status == "running"
        await scene.until(at(3))
        job = await scheduler.get_job("a")
        assert (job.status, job.last_outcome, len(scene.runs)) == ("paused", "success", 1)


@pytest.mark.promise("H16")
@virtual
async def test_a_job_paused_and_resumed_while_it_runs_goes_on_with_its_grid(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(1, 5))
        await scheduler.pause_job("a")
        await scheduler.resume_job("a")
        await scene.until(at(2, 1))
        assert scene.times == [at(1), at(2)]


@pytest.mark.promise("H16", "H13")
@virtual
async def test_a_once_that_expired_while_paused_runs_at_once_when_resumed(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(1)))
        await scheduler.start()
        await scheduler.pause_job("a")
        await scene.until(at(5))
        await scheduler.resume_job("a")
        await scene.sleep("1s")
        assert (scene.times, scene.slots) == ([at(5)], [at(1)])


@pytest.mark.promise("H16")
@virtual
async def test_pausing_a_job_that_waits_for_a_lane_gives_up_its_place(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(name, Once(at(0)), lanes={"one": 1}) for name in ("first", "paused", "third")])
        await scheduler.start()
        await scene.sleep("1m")
        await scheduler.pause_job("paused")
        await scene.sleep("1h")
        assert [run.job for run in scene.runs] == ["first", "third"]
        await scheduler.resume_job("paused")
        await scene.sleep("1m")
        assert [run.job for run in scene.runs] == ["first", "third", "paused"]


@pytest.mark.promise("H16", "C7")
@virtual
async def test_an_identical_update_moves_nothing_and_keeps_the_revision(scene):
    async with scene.scheduler() as scheduler:
        trigger, options = Every("1h"), {"payload": {"a": 1}, "timeout": "5m", "lanes": {"l": 2}, "retry": 1}
        await scheduler.add_job("a", trigger, **options)
        await scheduler.start()
        await scene.until(at(0, 40))
        before = (await scheduler.get_job("a")).to_dict()
        await scheduler.add_job("a", trigger, **options, if_exists="update")
        await scheduler.update_job("a", trigger=Every("1h"), payload={"a": 1}, timeout=300, retry=1)
        await scheduler.update_job("a")
        assert (await scheduler.get_job("a")).to_dict() == before
        await scene.until(at(1, 10))
        assert scene.times == [at(1)]


@pytest.mark.promise("H16", "C7")
@virtual
async def test_only_a_changed_trigger_moves_the_next_time(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), kind="job")
        await scheduler.start()
        await scene.until(at(0, 40))
        changed = await scheduler.update_job("a", payload={"b": 2}, timeout="9m", name="b", owner="me")
        assert (changed.revision, changed.next_run_at, changed.name, changed.owner) == (2, at(1), "b", "me")
        changed = await scheduler.update_job("b", trigger=Cron("50 * * * *"))
        assert (changed.revision, changed.next_run_at) == (3, at(0, 50))
        await scene.until(at(1, 55))
        assert scene.times == [at(0, 50), at(1, 50)]
        assert scene.runs[0].payload == {"b": 2}


@pytest.mark.promise("C7", "H16")
@virtual
async def test_a_run_in_progress_keeps_what_it_started_with_and_the_next_one_has_the_new(scene):
    seen = []

    async def act(run):
        await scene.sleep("10m")
        seen.append((run.payload, run.job))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), payload=1)
        await scheduler.start()
        await scene.until(at(1, 5))
        changed = await scheduler.update_job("a", payload=2, trigger=Every("20m", anchor=at(0)))
        assert changed.revision == 2
        await scene.until(at(1, 31))
        assert seen == [(1, "a"), (2, "a")]
        assert scene.times == [at(1), at(1, 20)]


@pytest.mark.promise("H16")
@virtual
async def test_a_write_against_an_old_revision_is_refused_and_changes_nothing(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.update_job("a", payload=1, revision=1)
        before = (await scheduler.get_job("a")).to_dict()
        for changes in ({"payload": 2}, {"enabled": False}, {"enabled": False, "payload": 2}):
            with pytest.raises(ChangedSinceRead):
                await scheduler.update_job("a", revision=1, **changes)
            assert (await scheduler.get_job("a")).to_dict() == before


@pytest.mark.promise("H16")
@virtual
async def test_any_option_can_be_changed_whatever_the_others_are(scene):
    odd = {"timeout": 1.5, "catch_up": {"within": 90.5}, "backoff": [0.25, "1m"], "retry": [0.5]}
    async with scene.scheduler() as scheduler:
        for name, value in odd.items():
            await scheduler.add_job(name, Every("1h"), **{name: value})
            await scheduler.update_job(name, max_errors=3)
            job = await scheduler.get_job(name)
            await scheduler.update_job(name, **job.options)
            assert (await scheduler.get_job(name)).options == job.options


@pytest.mark.promise("H16", "H17")
@virtual
async def test_a_job_that_waits_for_a_handler_runs_when_its_kind_is_changed_to_one_there_is(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(0)), kind="typo")
        await scheduler.add_job("b", Manual(), kind="typo")
        await scheduler.start()
        await scheduler.run_job("b")
        await scene.sleep("5m")
        assert scene.runs == []
        await scheduler.update_job("a", kind="job")
        await scheduler.update_job("b", kind="job")
        await scene.sleep("5m")
        assert sorted(run.job for run in scene.runs) == ["a", "b"]


@pytest.mark.promise("H16")
@virtual
async def test_a_job_that_waits_for_a_lane_runs_when_it_is_changed_to_need_none(scene):
    scene.act = taking(scene, "5h")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("busy", Once(at(0)), lanes={"one": 1}, timeout="6h")
        await scheduler.add_job("a", Once(at(0, 1)), lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(0, 2))
        await scheduler.update_job("a", lanes={})
        await scene.sleep("61s")
        assert [run.job for run in scene.runs] == ["busy", "a"]


@pytest.mark.promise("H16")
@virtual
async def test_switching_a_job_off_and_on_is_an_update(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        off = await scheduler.update_job("a", enabled=False)
        assert (off.enabled, off.status, off.next_run_at) == (False, "disabled", None)
        await scene.until(at(2, 30))
        on = await scheduler.update_job("a", enabled=True)
        assert (on.enabled, on.status, on.next_run_at) == (True, "idle", at(3))
        assert scene.runs == []


@pytest.mark.promise("H16")
@virtual
async def test_a_start_that_is_given_back_after_its_job_was_removed_is_cancelled_and_does_not_wait_for_ever(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Manual())
        await scheduler.start()
        run = await scheduler.run_job("a")
        await scene.sleep("1m")
        await scheduler.remove_job("a")
        await scheduler.transact(lambda tx, context: release_runs(tx, context, tx.runs.of_nodes([context.id])))
        released = await scheduler.get_run(run)
        assert (released.status, released.outcome, released.error) == ("done", "cancelled", "the job was removed")
        await scene.sleep("1h")
        assert (await scheduler.get_run(run)).outcome == "cancelled"


@pytest.mark.promise("H16")
@virtual
async def test_a_removed_job_is_gone_and_its_history_stays_under_its_name(scene):
    async with scene.scheduler() as scheduler:
        old = await scheduler.add_job("a", Every("1h"), payload="x")
        await scheduler.start()
        await scene.until(at(2, 30))
        await scheduler.remove_job("a")
        assert await scheduler.get_job("a") is None
        assert await scheduler.get_job(old) is None
        assert await scheduler.list_jobs() == []
        with pytest.raises(JobNotFound):
            await scheduler.remove_job("a")
        await scene.until(at(5))
        assert len(scene.runs) == 2
        for ref in ("a", old):
            assert [(run.job, run.slot) for run in await scheduler.get_run_log(ref)] == [("a", at(2)), ("a", at(1))]
            assert (await scheduler.get_run_stats(ref)).success == 2
        new = await scheduler.add_job("a", Every("1h"))
        assert new != old
        assert await scheduler.get_run_log("a") == []
        assert len(await scheduler.get_run_log(old)) == 2


@pytest.mark.promise("H16")
@virtual
async def test_removing_a_running_job_lets_the_run_finish(scene):
    scene.act = taking(scene, "10m")
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(1, 5))
        await scheduler.remove_job("a")
        await scheduler.add_job("a", Every("1h", anchor=at(1, 6)), lanes={"one": 1})
        await scene.until(at(1, 30))
        assert (await scheduler.get_run(scene.runs[0].id)).outcome == "success"
        assert scene.times == [at(1), at(1, 10)], "the new job of that name waited for the lane"


@pytest.mark.promise("H16")
@pytest.mark.parametrize("doing", ["queued", "parked", "waiting"])
@virtual
async def test_removing_a_job_that_waits_leaves_nothing_open(scene, doing):
    async def act(run):
        if doing == "waiting":
            raise Wait(until=at(2))
        await scene.sleep("1h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        if doing != "waiting":
            await scheduler.add_job("busy", Once(at(0)), lanes={"one": 1})
        await scheduler.add_job("a", Manual() if doing == "queued" else Once(at(0)), lanes={"one": 1})
        await scheduler.start()
        await scene.sleep("1s")
        if doing == "queued":
            await scheduler.run_job("a")
        await scene.sleep("1s")
        await scheduler.remove_job("a")
        await scene.until(at(3))
        outcomes = [run.outcome for run in await scheduler.get_run_log("a")]
        assert outcomes == {"queued": ["cancelled"], "parked": [], "waiting": ["unknown"]}[doing]
        summary = await scheduler.get_summary()
        assert (summary.open_runs, summary.parked) == (0, {})


@pytest.mark.promise("H16")
@virtual
async def test_names_can_be_changed_and_are_unique(scene):
    async with scene.scheduler() as scheduler:
        first = await scheduler.add_job("a", Every("1h"))
        await scheduler.add_job("b", Every("1h"))
        with pytest.raises(JobExists):
            await scheduler.update_job("a", name="b")
        await scheduler.update_job("a", name="c")
        assert await scheduler.get_job("a") is None
        assert (await scheduler.get_job("c")).id == first


@pytest.mark.promise("H16", "H8")
@virtual
async def test_a_new_trigger_ends_the_backoff_of_the_old(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1m"), backoff=["5h"])
        await scheduler.start()
        await scene.until(at(0, 2))
        await scheduler.update_job("a", trigger=Interval("10m"))
        await scene.until(at(0, 12))
        assert len(scene.runs) == 2


@virtual
async def test_why_a_job_is_paused_stays_known_when_its_trigger_changes(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1s"))
        await scheduler.pause_job("a", "until the move")
        await scheduler.update_job("a", trigger=Every("2h"))
        assert (await scheduler.get_job("a")).notes == ["paused: until the move"]
        await scheduler.resume_job("a")
        assert (await scheduler.get_job("a")).notes == []
