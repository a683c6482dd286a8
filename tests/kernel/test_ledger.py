"""Every slot is accounted for: what became of each, through pauses, edits, outages, overlaps and pruning."""

from __future__ import annotations

import asyncio

import pytest

from tests.kernel.scene import at, failing, virtual
from tests.kernel.tallying import HOURLY, tally
from wakeful import ApprovalNeeded, Cron, Every, InvalidSetting, JobNotFound, Once, Ping, Retention, SlotNotFound, ids
from wakeful.kernel.context import Rights
from wakeful.kernel.hooks import Refused
from wakeful.kernel.kinds import Kind
from wakeful.kernel.views.ledger import ledger_of_job
from wakeful.triggers.moments import to_ms


async def _fates(scheduler, hours, job="a"):
    return [(await scheduler.get_slot(job, at(hours=hour))).fate for hour in hours]


@pytest.mark.promise("X25")
@virtual
async def test_a_job_that_runs_on_time_has_nothing_but_runs(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("5h")
        found = await tally(scheduler)
        assert (found.due, found.ran) == (5, 5)
        job_id = scene.runs[0]._row.job_id
        assert await scheduler._store.read(lambda tx: tx.stretches.of_job(job_id)) == [], "its runs account for them"
        slot = await scheduler.get_slot("a", at(hours=3))
        assert (slot.fate, len(slot.runs)) == ("ran", 1)
        assert slot.sentence == "The slot 2026-01-01T03:00:00Z of a ran once; the last ended as success."
        assert (await scheduler.get_slot("a", at(hours=9))).fate == "ahead"
        with pytest.raises(SlotNotFound, match="The next one after that is 2026-01-01T04:00:00Z"):
            await scheduler.get_slot("a", at(hours=3, minutes=5))


@pytest.mark.promise("X25")
@virtual
async def test_what_passes_during_a_pause_is_counted_while_it_lasts_and_after(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("2h30m")
        await scheduler.pause_job("a")
        await scene.sleep("3h")
        assert (await tally(scheduler)).passed_over == {"paused": 3}
        await scheduler.resume_job("a")
        await scene.sleep("2h")
        found = await tally(scheduler)
        assert (found.due, found.ran, found.passed_over) == (7, 4, {"paused": 3})
        assert await _fates(scheduler, range(1, 8)) == ["ran", "ran", *["passed_over"] * 3, "ran", "ran"]


@pytest.mark.promise("X25", "X7")
@virtual
async def test_what_comes_due_while_everything_is_paused_waits_for_the_end_of_that(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("2h30m")
        await scheduler.server_side.hold_all(None, Rights("ada"))
        await scene.sleep("1h")
        assert (await tally(scheduler)).waiting == {"held": 1}
        slot = await scheduler.get_slot("a", at(hours=3))
        assert (slot.fate, "everything is paused" in slot.sentence) == ("waiting", True)
        await scheduler.server_side.release_all(Rights("ada"))
        await scene.sleep("1m")
        assert (await tally(scheduler)).waiting == {}


@pytest.mark.promise("X25")
@pytest.mark.parametrize(("catch_up", "expected"), [("once", (3, 0, 2)), ("skip", (2, 3, 0))])
@virtual
async def test_an_outage_merges_or_misses_what_came_meanwhile(scene, catch_up, expected):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY, catch_up=catch_up)
        await scheduler.start()
        await scene.sleep("1h30m")
    await scene.sleep("3h")
    async with scene.scheduler() as scheduler:
        assert (await tally(scheduler)).waiting == {"due": 3}
        await scheduler.start()
        await scene.sleep("1h")
        found = await tally(scheduler)
        assert (found.due, (found.ran, found.missing, found.merged)) == (5, expected)
        if catch_up == "once":
            slot = await scheduler.get_slot("a", at(hours=2))
            assert (slot.fate, slot.merged_into) == ("merged", at(hours=4))


@pytest.mark.promise("X25")
@virtual
async def test_slots_that_come_while_the_job_runs_wait_for_its_end_and_are_passed_over(scene):
    async def long(run):
        await asyncio.sleep(3.5 * 3600)

    async with scene.scheduler() as scheduler:
        scene.act = long
        await scheduler.add_job("a", HOURLY, timeout="9h")
        await scheduler.start()
        await scene.sleep("3h30m")
        found = await tally(scheduler)
        assert (found.due, found.running, found.waiting) == (3, 1, {"already_running": 2})
        await scene.sleep("1h15m")
        found = await tally(scheduler)
        assert (found.due, found.ran, found.passed_over) == (4, 1, {"already_running": 3})


@pytest.mark.promise("X25")
@virtual
async def test_errors_that_delay_a_job_are_why_its_slots_were_passed_over(scene):
    async with scene.scheduler() as scheduler:
        scene.act = failing()
        await scheduler.add_job("a", Every("1m", anchor=at(days=-1)), backoff=["5m"], max_errors=0)
        await scheduler.start()
        await scene.sleep("30m")
        found = await tally(scheduler)
        assert found.passed_over.keys() == {"backing_off"}
        assert found.due == 30
        assert (await tally(scheduler)).waiting.keys() <= {"backing_off"}
        await scene.sleep("2m30s")  # within a wait, with slots that have passed
        assert (await tally(scheduler)).waiting.keys() == {"backing_off"}


@pytest.mark.promise("X25", "D5")
@virtual
async def test_slots_that_waited_in_backoff_keep_that_reason_when_a_person_starts_the_job(scene):
    async with scene.scheduler() as scheduler:
        scene.act = failing()
        await scheduler.add_job("a", Every("1m", anchor=at(days=-1)), backoff=["10m"], max_errors=0)
        await scheduler.start()
        await scene.sleep("5m30s")
        assert (await tally(scheduler)).waiting == {"backing_off": 4}

        async def slow(run):
            await scene.sleep("2m")

        scene.act = slow
        await scheduler.run_job("a")
        await scene.sleep("70s")
        found = await tally(scheduler)
        assert (found.passed_over, found.waiting) == ({"backing_off": 4}, {"already_running": 1})
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert found.passed_over == {"backing_off": 4, "already_running": 2}
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("a")).facts["skips"]}
        assert skips == {"backing_off": 4, "already_running": 2}
        assert (found.due, found.ran) == (7, 1)
        await scene.sleep("1m")
        assert (await tally(scheduler)).running == 1  # the backoff is over


@pytest.mark.promise("X25")
@virtual
async def test_an_edit_accounts_for_the_old_times_and_begins_with_the_new(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("2h30m")
        await scheduler.pause_job("a")
        await scene.sleep("2h")
        await scheduler.update_job("a", trigger=Every("30m", anchor=at(days=-30)))
        await scheduler.resume_job("a")
        await scene.sleep("1h")
        found = await tally(scheduler)
        assert (found.due, found.ran, found.passed_over) == (6, 4, {"paused": 2})
        await scheduler.update_job("a", trigger=Cron("0 12 * * *"))
        await scene.sleep("1d")
        assert (await tally(scheduler)).due == 7


@pytest.mark.promise("X25")
@virtual
async def test_a_job_that_is_over_or_has_no_grid_is_due_as_often_as_it_ran(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("few", Every("1h", max_runs=2))
        await scheduler.add_job("once", Once(at(hours=1)))
        await scheduler.add_job("old", Once(at(days=-1)))
        await scheduler.start()
        await scene.sleep("5h")
        assert [(await tally(scheduler, name)).due for name in ("few", "once", "old")] == [2, 1, 1]
        assert (await scheduler.get_slot("few", at(hours=4))).fate == "over"


@pytest.mark.promise("X25")
@virtual
async def test_sums_and_single_slots_outlive_the_runs(scene, minutely_sweeps):
    async def long_at_times(run):
        if run.slot.minute % 3 == 0:
            await asyncio.sleep(90)

    async with scene.scheduler(retention=Retention(runs_per_job=10, check_every=5)) as scheduler:
        scene.act = long_at_times
        await scheduler.add_job("a", Every("1m", anchor=at(days=-30)))
        await scheduler.start()
        await scene.sleep("5h30s")
        found = await tally(scheduler)
        assert (found.due, found.ran, found.running, found.passed_over) == (300, 200, 1, {"already_running": 99})
        assert len(await scheduler.get_run_log("a", limit=500)) < 20, "nothing was pruned, nothing is proved"
        fates = [(await scheduler.get_slot("a", at(minutes=minute))).fate for minute in range(1, 300)]
        assert fates == ["passed_over" if minute % 3 == 1 and minute > 3 else "ran" for minute in range(1, 300)]
        kept = await scheduler._store.read(lambda tx: tx.stretches.of_job(scene.runs[0]._row.job_id))
        assert len(kept) <= 2 * 9, "a few rows a day"


@pytest.mark.promise("X25")
@virtual
async def test_a_ledger_refuses_what_it_does_not_understand(scene):
    async with scene.scheduler() as scheduler:
        with pytest.raises(JobNotFound):
            await scheduler.get_ledger("nothing")
        with pytest.raises(InvalidSetting, match="a duration such as 7d"):
            await scheduler.get_ledger(since="yesterday")
        assert (await scheduler.get_ledger()).total.due == 0


@pytest.mark.promise("X25")
@virtual
async def test_a_monitor_is_due_as_often_as_its_ping_did_not_come(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("m", Ping(Cron("0 * * * *"), grace="10m"))
        await scheduler.start()
        await scene.sleep("3h30m")
        found = await tally(scheduler, "m")
        assert (found.due, found.passed_over) == (3, {"no_ping": 3})
        slot = await scheduler.get_slot("m", at(hours=2))
        assert (slot.why, slot.sentence) == (
            "no_ping",
            "The slot 2026-01-01T02:00:00Z of m was passed over: no ping came in time.",
        )


@pytest.mark.promise("X25")
@virtual
async def test_what_a_pause_passed_over_is_due_again_when_the_pause_is_undone(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("1h55m")
        await scheduler.pause_job("a")
        await scene.sleep("8m")
        assert (await tally(scheduler)).passed_over == {"paused": 1}
        await scheduler.undo()
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert (found.due, found.ran, found.passed_over) == (2, 2, {})


@pytest.mark.promise("X25")
@virtual
async def test_a_slot_whose_run_waits_for_a_person_is_running(scene):
    async def ask(_):
        raise ApprovalNeeded("May I?")

    scene.act = ask
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("1h1m")
        found = await tally(scheduler)
        assert (found.due, found.ran, found.running) == (1, 0, 1)


@pytest.mark.promise("X25")
@virtual
async def test_no_slot_of_a_removed_job_is_due_after_its_removal(scene):
    async with scene.scheduler() as scheduler:
        job = await scheduler.add_job("a", HOURLY)
        await scheduler.start()
        await scene.sleep("2h30m")
        await scheduler.remove_job("a")
        await scene.sleep("3h")

        def ledger(tx):
            found = tx.jobs.by_id(ids.decode(job)[1])
            return ledger_of_job(tx, *found, 0).total

        found = await scheduler.read(ledger)
        assert (found.due, found.ran, found.unaccounted) == (2, 2, 0)


@pytest.mark.promise("X25")
@virtual
async def test_no_slot_is_due_once_a_job_has_run_as_often_as_it_may_though_it_is_tried_again(scene):
    async with scene.scheduler() as scheduler:
        scene.act = failing()
        await scheduler.add_job("a", Every("7m"), kind="job", retry=["6m", "6m"], max_errors=0)
        await scheduler.update_job("a", trigger=Every("7m", anchor=at(minutes=-7), max_runs=1))
        await scheduler.start()
        await scene.sleep("16m")
        await scheduler.pause_job("a")
        await scene.sleep("5m")
        found = await tally(scheduler)
        assert (found.due, found.ran) == (1, 1)


@pytest.mark.promise("X25")
@virtual
async def test_a_one_shot_that_was_refused_and_is_resumed_is_one_slot_whose_latest_fate_counts(scene):
    def admit(tx, context, job, state):
        return Refused("closed", "the shop is closed") if tx.now < to_ms(at(hours=2)) else None

    async with scene.scheduler(kinds=[Kind("job", admit=admit)]) as scheduler:
        await scheduler.add_job("a", Once(at(hours=1)), kind="job")
        await scheduler.start()
        await scene.sleep("3h")
        assert (await tally(scheduler)).passed_over == {"closed": 1}
        await scheduler.update_job("a", enabled=False)
        assert (await tally(scheduler)).passed_over == {"closed": 1}
        await scheduler.server_side.hold_all(None, Rights("ada"))
        await scheduler.resume_job("a")
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert (found.due, found.waiting, await _fates(scheduler, [1])) == (1, {"held": 1}, ["waiting"])
        await scheduler.undo()
        found = await tally(scheduler)
        assert (found.due, found.passed_over, await _fates(scheduler, [1])) == (1, {"closed": 1}, ["passed_over"])
        await scheduler.resume_job("a")
        await scheduler.server_side.release_all(Rights("ada"))
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert (found.due, found.ran, await _fates(scheduler, [1])) == (1, 1, ["ran"])


@pytest.mark.promise("X25")
@pytest.mark.parametrize("stop", ["over", "paused"])
@virtual
async def test_a_stopped_one_shot_that_is_given_a_grid_counts_that_from_then_on(scene, stop):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Once(at(hours=1)))
        if stop == "paused":
            await scheduler.pause_job("a")
        await scheduler.start()
        await scene.sleep("5h30m")
        before = await tally(scheduler)
        await scheduler.update_job("a", trigger=HOURLY)
        assert await tally(scheduler) == before
        await scheduler.resume_job("a")
    await scene.sleep("3h")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert (found.due, found.merged) == (4, 2)
        assert (found.ran, found.passed_over) == ((2, {}) if stop == "over" else (1, {"paused": 1}))


@pytest.mark.promise("X25")
@virtual
async def test_what_an_undo_makes_due_again_leaves_the_slots_of_earlier_times_alone(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", HOURLY)
        await scheduler.pause_job("a")
        await scheduler.start()
        await scene.sleep("4h30m")
        await scheduler.server_side.hold_all(None, Rights("ada"))
        await scheduler.update_job("a", trigger=Once(at(hours=1, minutes=30)))
        await scheduler.resume_job("a")
        await scheduler.pause_job("a")
        await scheduler.undo()
        await scene.sleep("1m")
        found = await tally(scheduler)
        assert (found.due, found.waiting, found.passed_over) == (5, {"held": 1}, {"paused": 4})
