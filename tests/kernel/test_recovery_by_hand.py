"""What a person started and a crash or a stop cut off is run again, and stands for no slot of the schedule."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every


async def opened(scene):
    scheduler = scene.scheduler()
    await scheduler.open()
    return scheduler


async def cut_off(scene, scheduler, how):
    if how == "crash":
        await scene.crash(scheduler)
    else:
        await scheduler.stop(wait_for_jobs=False)
        await scheduler.close()


async def _nightly_cut_off_with_a_start_by_hand(scene, how, **options):
    """A start by hand is under way at 1:50 and is cut off; nothing runs until 2:30, and the slot is that of 2:00."""

    async def act(run):
        if len(scene.runs) == 1:
            await scene.sleep("3h")

    scene.act = act
    scheduler = await opened(scene)
    await scheduler.add_job("backup", Cron("0 2 * * *"), timeout="5h", **options)
    await scheduler.start()
    await scene.until(at(1, 50))
    await scheduler.run_job("backup", {"only": "a part"})
    await scene.sleep("1m")
    await cut_off(scene, scheduler, how)
    await scene.until(at(2, 30))


@pytest.mark.promise("H4", "H11", "X14")
@pytest.mark.parametrize("how", ["crash", "stop"])
@virtual
async def test_recovering_a_start_by_hand_leaves_the_nightly_slot_to_be_caught_up(scene, how):
    await _nightly_cut_off_with_a_start_by_hand(scene, how)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(2, 40))
        began = [(run.slot, run.reason) for run in scene.runs]
        assert began == [(None, "manual"), (None, "recovery"), (at(2), "catch_up")]
        tally = (await scheduler.get_ledger("backup", since=at(0))).total
        assert (tally.due, tally.ran, tally.merged, tally.unaccounted) == (1, 1, 0, 0)


@pytest.mark.promise("H4", "X9")
@virtual
async def test_recovering_a_start_by_hand_starts_no_slot_that_catch_up_lets_go(scene):
    await _nightly_cut_off_with_a_start_by_hand(scene, "crash", catch_up="skip")
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(2, 40))
        assert [(run.slot, run.reason) for run in scene.runs] == [(None, "manual"), (None, "recovery")]
        tally = (await scheduler.get_ledger("backup", since=at(0))).total
        assert (tally.due, tally.missing, tally.unaccounted) == (1, 1, 0)


@pytest.mark.promise("H2", "H4", "X14")
@virtual
async def test_a_slot_that_came_while_a_start_by_hand_was_down_is_caught_up_also_after_the_clock_was_set_back(scene):
    async def act(run):
        if len(scene.runs) == 1:
            await scene.sleep("3h")

    scene.act = act
    scheduler = await opened(scene)
    await scheduler.add_job("backup", Cron("0 2 * * *"), timeout="5h")
    await scheduler.start()
    await scene.until(at(1, 50))
    await scheduler.run_job("backup")
    await scene.sleep("1m")
    scene.step(minutes=-30)
    await scene.sleep("2m")
    await scene.crash(scheduler)
    await scene.until(at(2, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(2, 40))
        assert [(run.slot, run.reason) for run in scene.runs[1:]] == [(None, "recovery"), (at(2), "catch_up")]


@pytest.mark.promise("H4", "H11", "X14")
@pytest.mark.parametrize("how", ["crash", "stop"])
@pytest.mark.parametrize("times", [1, 2])
@virtual
async def test_recovering_what_was_tried_again_by_hand_leaves_the_nightly_slot_to_be_caught_up(scene, how, times):
    """Last night's run failed; it is tried again by hand before the next slot, and cut off, once or twice."""

    async def act(run):
        if run.slot == at(2) and run.attempt == 1:
            raise ValueError("broken")
        if run.slot == at(2) and run.attempt <= 1 + times:
            await scene.sleep("3h")

    scene.act = act
    scheduler = await opened(scene)
    await scheduler.add_job("backup", Cron("0 2 * * *"), timeout="5h")
    await scheduler.start()
    await scene.until(at(25, 50))
    await scheduler.retry_run((await scheduler.get_run_log("backup"))[0].id)
    await scene.sleep("1m")
    await cut_off(scene, scheduler, how)
    if times == 2:
        scheduler = await opened(scene)
        await scheduler.start()
        await scene.sleep("1m")
        await cut_off(scene, scheduler, how)
    await scene.until(at(26, 30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(27))
        assert [run.slot for run in scene.runs] == [at(2)] * (2 + times) + [at(26)]
        tally = (await scheduler.get_ledger("backup", since=at(0))).total
        assert (tally.due, tally.ran, tally.merged, tally.unaccounted) == (2, 2, 0, 0)


@pytest.mark.promise("H6", "X31")
@pytest.mark.parametrize("works", [True, False])
@virtual
async def test_a_slot_that_was_put_off_starts_once_the_recovery_of_what_was_tried_again_by_hand_has_succeeded(
    scene, works
):
    async def act(run):
        if len(scene.runs) in (2, 3):
            await scene.sleep("3h")  # cut off
        if len(scene.runs) == 1 or not works:
            raise ValueError("broken")

    scene.act = act
    scheduler = await opened(scene)
    backoff = ["30s", "1m", "1h"]  # the recovery waits for the first, after two crashes; the slot, after three errors
    await scheduler.add_job("a", Every("20s", anchor=at()), timeout="5h", backoff=backoff, max_errors=0)
    await scheduler.start()
    await scene.until(at(0, 0, 30))
    await scheduler.retry_run((await scheduler.get_run_log("a"))[0].id)
    await scene.sleep("2s")
    for _ in range(2):
        await cut_off(scene, scheduler, "crash")
        scheduler = await opened(scene)
        await scheduler.start()
        await scene.sleep("2s")
    await scene.until(at(0, 1, 15))
    began = [(run.slot, run.reason) for run in scene.runs]
    first = at(0, 0, 20)
    assert began[:4] == [(first, "schedule"), (first, "manual"), (first, "recovery"), (first, "recovery")]
    job, facts = await scheduler.get_job("a"), (await scheduler.explain("a")).facts
    if works:
        assert began[4:] == [(at(0, 1), "schedule")]
        assert (job.next_run_at, facts["backoff_until"]) == (at(0, 1, 20), None)
        assert {skip["reason"]: skip["count"] for skip in facts["skips"]} == {"backing_off": 1}
    else:
        assert began[4:] == []
        assert (job.next_run_at > at(1), facts["backoff_until"] is not None) == (True, True)
    assert (await scheduler.get_ledger("a", since=at())).total.unaccounted == 0
    await scheduler.close()
