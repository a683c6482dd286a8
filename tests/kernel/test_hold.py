"""A hold on everything: nothing is admitted while it stands, what waits goes on by the usual rules, on both stores."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import After, CannotUndo, Every, Manual, Once, ScheduleTriggerError
from wakeful.errors import NotAllowed
from wakeful.kernel.cluster.nodes import NOTHING_SEEN
from wakeful.kernel.context import Rights
from wakeful.kernel.kinds import Kind
from wakeful.kernel.rules.parking import HOLD
from wakeful.kernel.views.verdict_facts import standing
from wakeful.store.owners import Owned

ADA = Rights("ada", via="cli")


async def hold(scheduler, note=None, **how):
    return await scheduler.server_side.hold_all(note, ADA, **how)


async def release(scheduler):
    return await scheduler.server_side.release_all(ADA)


@pytest.mark.promise("X7")
@virtual
async def test_nothing_starts_while_everything_is_held_and_what_waits_goes_on_after(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("hourly", Every("1h"))
        await scheduler.add_job("once", Once(at(hours=2)))
        await scheduler.add_job("paused", Every("1h"))
        await scheduler.pause_job("paused")
        await scheduler.start()
        await scene.until(at(hours=1, minutes=30))
        assert [run.job for run in scene.runs] == ["hourly"]
        await hold(scheduler, "maintenance")
        await scene.until(at(hours=5, minutes=30))
        assert len(scene.runs) == 1
        held = await scheduler.get_job("hourly")
        assert (held.status, held.waiting_for) == ("idle", HOLD)
        assert (await scheduler.explain("hourly")).facts["skips"][0]["reason"] == "held"
        explained = str(await scheduler.explain("hourly"))
        paused = "everything is paused by ada since 2026-01-01 01:30 UTC (maintenance): nothing starts until"
        assert f"and waits: {paused} wakeful resume --all." in explained
        assert explained.lower().count("everything is paused") == 1
        facts = await scheduler.read(lambda tx: standing(tx, "UTC", NOTHING_SEEN, 0))
        assert facts.held == "by ada since 2026-01-01 01:30 UTC (maintenance)"
        assert await scheduler.list_alerts() == []  # nothing was expected to start
        await release(scheduler)
        await scene.until(at(hours=5, minutes=31))
        assert sorted(run.job for run in scene.runs[1:]) == ["hourly", "once"]  # the latest slot, once
        assert [run.slot for run in scene.of("hourly")] == [at(hours=1), at(hours=5)]
        await scene.until(at(hours=6, minutes=1))
        assert [run.slot for run in scene.of("hourly")][-1] == at(hours=6)  # the grid stays
        assert (await scheduler.get_job("paused")).status == "paused"
        assert (await scheduler.read(lambda tx: standing(tx, "UTC", NOTHING_SEEN, 0))).held is None


@pytest.mark.promise("X7")
@virtual
async def test_what_runs_finishes_and_what_follows_waits(scene):
    async def act(run):
        await scene.sleep(600)

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("first", Every("10h"))
        await scheduler.add_job("second", After("first"))
        await scheduler.start()
        await scene.until(at(hours=10, minutes=1))
        await hold(scheduler)
        await scene.until(at(hours=11))
        assert [run.outcome for run in await scheduler.get_run_log("first")] == ["success"]
        (queued,) = await scheduler.get_run_log("second")
        assert (queued.status, queued.outcome) == ("queued", None)
        await release(scheduler)
        await scene.until(at(hours=12))
        assert [run.job for run in scene.runs] == ["first", "second"]


@virtual
async def test_retries_wait_and_starts_by_hand_are_refused(scene):
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("job", Manual(), retry={"delays": ["1m"]})
        await scheduler.start()
        run = await scheduler.run_job("job")
        await scene.sleep(1)
        await hold(scheduler)
        with pytest.raises(ScheduleTriggerError, match="job cannot start: everything is paused by ada") as refused:
            await scheduler.run_job("job")
        assert refused.value.context == {"job": "job", "reason": "held"}
        await scene.sleep(600)
        assert len(scene.runs) == 1
        await release(scheduler)
        await scene.sleep(1)
        assert [run.reason for run in scene.runs] == ["manual", "retry"]
        assert run == scene.runs[0].id


@virtual
async def test_a_hold_outlives_the_server_and_what_a_crash_cut_off_waits(scene):
    async def act(run):
        await scene.sleep(3600)

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("job", Every("1h"))
        await scheduler.start()
        await scene.until(at(hours=1, minutes=1))
        await hold(scheduler)
        await scene.crash(scheduler)
    scene.act = None
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(hours=3))
        assert len(scene.runs) == 1
        assert await scheduler.list_alerts() == []
        await release(scheduler)
        await scene.sleep(1)
        assert [run.reason for run in scene.runs] == ["schedule", "recovery"]


@virtual
async def test_internal_kinds_go_on_unless_messages_are_held_too(scene):
    async with scene.scheduler("job", "inner", kinds=[Kind("inner", internal=True)]) as scheduler:
        await scheduler.add_job("inner", Every("1h"), kind="inner")
        await scheduler.start()
        await hold(scheduler)
        await scene.until(at(hours=2, minutes=30))
        assert len(scene.runs) == 2
        await hold(scheduler, messages=True)
        await scene.until(at(hours=4, minutes=30))
        assert len(scene.runs) == 2
        await release(scheduler)
        await scene.sleep(1)
        assert len(scene.runs) == 3


@pytest.mark.promise("X27")
@virtual
async def test_a_hold_and_its_end_can_be_undone(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("job", Every("1h"))
        await scheduler.start()
        held = await hold(scheduler)
        assert (await hold(scheduler)).action is None  # it stands already
        undone = await scheduler.server_side.undo(held.action, ADA)
        assert (undone.what, undone.restored) == ("pause_all", ["everything"])
        await scene.until(at(hours=1, minutes=1))
        assert len(scene.runs) == 1
        await hold(scheduler, "again")
        ended = await release(scheduler)
        assert (await scheduler.server_side.undo(ended.action, ADA)).what == "resume_all"
        await scene.until(at(hours=2, minutes=1))
        assert len(scene.runs) == 1
        assert (await scheduler.server_side.get_hold()).note == "again"
        assert (await release(scheduler)).action is not None
        assert (await release(scheduler)).action is None


@pytest.mark.promise("X27")
@virtual
async def test_a_hold_that_was_changed_since_is_not_undone(scene):
    async with scene.scheduler() as scheduler:
        first = await hold(scheduler)
        await hold(scheduler, "the disk is full")
        await hold(scheduler)  # who holds it again without a note leaves the one it has
        with pytest.raises(CannotUndo, match="everything was paused or resumed since: left as it is"):
            await scheduler.server_side.undo(first.action, ADA)
        assert (await scheduler.server_side.get_hold()).note == "the disk is full"


@virtual
async def test_who_sees_only_its_own_jobs_does_not_hold_everything(scene):
    async with scene.scheduler() as scheduler:
        with pytest.raises(NotAllowed, match="bob may only pause its own jobs"):
            await scheduler.server_side.hold_all(None, Rights("bob", Owned("bob")))
        with pytest.raises(NotAllowed, match="bob may only pause its own jobs"):
            await scheduler.server_side.release_all(Rights("bob", Owned("bob")))
        assert await scheduler.server_side.get_hold() is None


@pytest.mark.parametrize("undoes", [False, True])
@virtual
async def test_many_that_waited_are_put_back_in_steps(scene, monkeypatch, undoes):
    monkeypatch.setattr("wakeful.kernel.engine.lines.TOGETHER", 10)
    monkeypatch.setattr("wakeful.kernel.actions.holding.TOGETHER", 10)
    async with scene.scheduler() as scheduler:
        for number in range(35):
            await scheduler.add_job(f"job-{number}", Every("1h"))
        await scheduler.start()
        await scene.until(at(minutes=55))
        held = await hold(scheduler)
        await scene.until(at(hours=1, minutes=3))
        await (scheduler.server_side.undo(held.action, ADA) if undoes else release(scheduler))
        await scene.sleep(1)
        assert len(scene.runs) == 35


@virtual
async def test_what_came_due_without_a_server_is_not_missed_while_everything_is_held(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("job", Every("1h"))
        await hold(scheduler)
    await scene.until(at(hours=5, minutes=30))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(hours=7, minutes=30))
        assert await scheduler.list_alerts(open_only=False) == []
        assert scene.runs == []


@pytest.mark.parametrize("restarts", [False, True])
@virtual
async def test_who_ends_a_hold_and_dies_leaves_nothing_waiting(scene, monkeypatch, restarts):
    """Only the first step of the end is stored: the rest is put back by sweeps, and at a start."""
    monkeypatch.setattr("wakeful.kernel.engine.lines.TOGETHER", 10)
    async with scene.scheduler() as scheduler:
        for number in range(15):
            await scheduler.add_job(f"job-{number}", Every("1h"))
        await scheduler.start()
        await hold(scheduler)
        await scene.until(at(hours=1, minutes=1))
        if restarts:
            await scheduler.stop()
        await scheduler.transact(lambda tx, _: tx.nodes.hold(None))
        if restarts:
            await scheduler.start()
            await scene.sleep(5)
            assert len(scene.runs) == 10  # the first of them at once
        await scene.until(at(hours=1, minutes=29))
        assert len(scene.runs) == 15


@virtual
async def test_explain_gives_the_next_time_and_what_keeps_it_from_running_in_one_sentence(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("hourly", Every("1h"))
        await scheduler.add_job("hand", Manual())
        await scheduler.start()
        assert "It will run next at 2026-01-01 01:00:00 UTC." in str(await scheduler.explain("hourly"))
        await hold(scheduler, "maintenance")
        explained = str(await scheduler.explain("hourly"))
        paused = "everything is paused by ada since 2026-01-01 00:00 UTC (maintenance): nothing starts until"
        assert f"Its next time is 2026-01-01 01:00:00 UTC, but {paused} wakeful resume --all." in explained
        assert "will run" not in explained
        assert f"E{paused[1:]}" in str(await scheduler.explain("hand"))


@pytest.mark.promise("X7", "X9", "H4")
@pytest.mark.parametrize(
    ("catch_up", "starts"),
    [("once", [(at(5), "catch_up")]), ("skip", []), ({"within": "1h"}, [(at(5), "catch_up")]), ({"within": "10m"}, [])],
    ids=str,
)
@virtual
async def test_the_end_of_a_hold_obeys_catch_up_as_a_restart_does(scene, catch_up, starts):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("1h"), catch_up=catch_up)
        await scheduler.start()
        await scene.until(at(1, 30))
        await hold(scheduler)
        await scene.until(at(5, 30))
        await release(scheduler)
        await scene.until(at(5, 59))
        assert [(run.slot, run.reason) for run in scene.runs[1:]] == starts
        assert await scheduler.list_alerts() == [], "nothing was expected to start"
        await scene.until(at(6, 1))
        assert scene.runs[-1].slot == at(6)
        tally = (await scheduler.get_ledger("a", since=at(0))).total
        assert (tally.due, tally.unaccounted) == (6, 0)
        if not starts:
            assert tally.passed_over == {"held": 4}


@pytest.mark.promise("X7", "X9")
@virtual
async def test_what_a_hold_kept_waiting_obeys_catch_up_also_where_its_lane_is_full_then(scene):
    async def act(run):
        await scene.sleep("1m")

    scene.act = act
    async with scene.scheduler() as scheduler:
        for name, catch_up in (("a", "once"), ("b", "skip"), ("c", "once")):
            await scheduler.add_job(name, Every("1h"), catch_up=catch_up, lanes={"one": 1})
        await scheduler.start()
        await scene.until(at(1, 30))
        await hold(scheduler)
        await scene.until(at(5, 30))
        await release(scheduler)
        await scene.until(at(5, 59))
        assert [run.job for run in scene.runs[3:]] == ["a", "c"]


@pytest.mark.promise("X7", "X22")
@virtual
async def test_what_waited_longest_starts_first_when_a_hold_ends(scene):
    async with scene.scheduler() as scheduler:
        for name, minutes in (("third", 30), ("first", 10), ("second", 20)):
            await scheduler.add_job(name, Once(at(1, minutes)))
        await scheduler.start()
        await hold(scheduler)
        await scene.until(at(3))
        await release(scheduler)
        await scene.until(at(3, 1))
        assert [run.job for run in scene.runs] == ["first", "second", "third"]
