"""Jobs that start after others: success, failure, any; circles refused."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import After, Defer, Every, InvalidJob, Manual, NewJob, Noop, Once, SchedulerError, Skip, TransientError


def ending(how):
    async def act(run):
        if run.job == "up" and how is not None:
            raise how

    return act


@pytest.mark.promise("X9")
@pytest.mark.parametrize(
    ("how", "started"),
    [
        (None, {"good", "always"}),
        (RuntimeError("no"), {"bad", "always"}),
        (Skip("no"), {"always"}),
    ],
    ids=["success", "error", "skipped"],
)
@virtual
async def test_what_follows_depends_on_how_the_first_ended(scene, how, started):
    scene.act = ending(how)
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs(
            [
                NewJob("good", After("up")),
                NewJob("bad", After("up", on="failure")),
                NewJob("always", After("up", on="any")),
                NewJob("up", Once(at(1))),
            ]
        )
        await scheduler.start()
        await scene.until(at(2))
        assert {run.job for run in scene.runs} == {"up"} | started
        first = scene.of("up")[0].id
        for run in scene.runs[1:]:
            found = await scheduler.get_run(run.id)
            assert (found.reason, found.caused_by, found.slot, found.started_at) == ("after", first, None, at(1))


@pytest.mark.promise("X9", "H10")
@virtual
async def test_a_timeout_is_a_failure_to_those_that_follow(scene):
    async def act(run):
        if run.job == "up":
            await scene.sleep("10h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("bad", After("up", on="failure")), NewJob("good", After("up"))])
        await scheduler.add_job("up", Once(at(1)), timeout="10m", retry=0)
        await scheduler.start()
        await scene.until(at(2))
        assert [(run.job, time) for run, time in zip(scene.runs, scene.times, strict=True)] == [
            ("up", at(1)), ("bad", at(1, 10)),
        ]  # fmt: skip


@pytest.mark.promise("X9", "H11")
@pytest.mark.parametrize(("on_crash", "started"), [("skip", ["bad", "always"]), ("recover", ["good", "always"])])
@virtual
async def test_a_crash_is_a_failure_to_those_that_follow_unless_its_slot_is_run_again(scene, on_crash, started):
    async def act(run):
        if run.job == "up" and run.attempt == 1:
            await scene.sleep("10h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs(
            [
                NewJob("bad", After("up", on="failure")),
                NewJob("good", After("up")),
                NewJob("always", After("up", on="any")),
                NewJob("up", Once(at(1)), on_crash=on_crash),
            ]
        )
        await scheduler.start()
        await scene.until(at(1, 10))
        await scene.crash(scheduler)
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        assert sorted(run.job for run in scene.runs if run.job != "up") == sorted(started)


@pytest.mark.promise("X9")
@virtual
async def test_a_chain_waits_for_the_last_attempt(scene):
    async def act(run):
        if run.job == "up" and run.attempt < 3:
            raise TransientError

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("up", Once(at(1))), NewJob("bad", After("up", on="failure"))])
        await scheduler.add_job("good", After("up"))
        await scheduler.start()
        await scene.until(at(2))
        assert [run.job for run in scene.runs] == ["up", "up", "up", "good"]


@pytest.mark.promise("X9")
@virtual
async def test_a_deferred_run_is_not_over_for_those_that_follow(scene):
    async def act(run):
        if run.job == "up" and run.attempt == 1:
            raise Defer(at(1, 30))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("up", Once(at(1))), NewJob("any", After("up", on="any"))])
        await scheduler.start()
        await scene.until(at(2))
        assert [(run.job, time) for run, time in zip(scene.runs, scene.times, strict=True)] == [
            ("up", at(1)), ("up", at(1, 30)), ("any", at(1, 30)),
        ]  # fmt: skip


@pytest.mark.promise("X9")
@virtual
async def test_chains_go_on_from_link_to_link_and_survive_a_restart(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("a", Every("1h")), NewJob("b", After("a")), NewJob("c", After("b"))])
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(2, 1))
        assert [run.job for run in scene.runs] == ["a", "b", "c"] * 2


@pytest.mark.promise("X9")
@pytest.mark.parametrize("by", ["name", "id"])
@virtual
async def test_circles_are_refused_and_nothing_is_stored(scene, by):
    async with scene.scheduler() as scheduler:
        a = await scheduler.add_job("a", Manual())
        b = await scheduler.add_job("b", After("a" if by == "name" else a))
        c = await scheduler.add_job("c", After("b" if by == "name" else b))
        with pytest.raises(InvalidJob, match="itself waits"):
            await scheduler.update_job("a", trigger=After("c" if by == "name" else c))
        assert (await scheduler.get_job("a")).trigger == Manual()
        with pytest.raises(SchedulerError):
            await scheduler.add_job("self", After("self"))
        assert await scheduler.get_job("self") is None


@pytest.mark.promise("X9")
@pytest.mark.parametrize("by", ["name", "id"])
@virtual
async def test_a_chain_holds_when_the_first_job_gets_another_name(scene, by):
    async with scene.scheduler() as scheduler:
        a = await scheduler.add_job("a", Manual())
        await scheduler.add_job("b", After("a" if by == "name" else a))
        await scheduler.update_job("a", name="renamed")
        await scheduler.start()
        await scheduler.run_job("renamed")
        await scene.sleep("1m")
        assert [run.job for run in scene.runs] == ["renamed", "b"]


@pytest.mark.promise("X9")
@virtual
async def test_a_paused_follower_is_not_started_and_the_reason_is_counted(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("a", Manual()), NewJob("b", After("a"))])
        await scheduler.start()
        await scheduler.pause_job("b")
        await scheduler.run_job("a")
        await scene.sleep("1m")
        await scheduler.resume_job("b")
        await scene.sleep("1m")
        assert [run.job for run in scene.runs] == ["a"]
        skips = {skip["reason"]: skip["count"] for skip in (await scheduler.explain("b")).facts["skips"]}
        assert skips == {"paused": 1}


@pytest.mark.promise("X9", "H9")
@virtual
async def test_a_follower_that_still_runs_starts_again_after_it_once(scene):
    async def act(run):
        if run.job == "slow":
            await scene.sleep("150s")

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("a", Every("1m")), NewJob("slow", After("a"))])
        await scheduler.start()
        await scene.until(at(0, 6, 1))
        assert scene.most_busy["slow"] == 1
        slow = [time for run, time in zip(scene.runs, scene.times, strict=True) if run.job == "slow"]
        assert slow == [at(0, 1), at(0, 3, 30), at(0, 6)]


@pytest.mark.promise("X9")
@virtual
async def test_noop_is_an_end_for_any_alone(scene):
    scene.act = ending(Noop("nothing"))
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("up", Manual()), NewJob("any", After("up", on="any"))])
        await scheduler.add_job("bad", After("up", on="failure"))
        await scheduler.start()
        await scheduler.run_job("up")
        await scene.sleep("1m")
        assert [run.job for run in scene.runs] == ["up", "any"]


@pytest.mark.promise("X9")
@virtual
async def test_a_retry_that_a_pause_ended_is_a_failure_to_those_that_follow(scene):
    scene.act = ending(RuntimeError("no"))
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("bad", After("up", on="failure")), NewJob("good", After("up"))])
        await scheduler.add_job("up", Every("6h", anchor=at(1)), retry={"delays": ["10m"], "on": "any"})
        await scheduler.start()
        await scene.until(at(1, 5))
        assert [run.job for run in scene.runs] == ["up"], "it is tried again"
        await scheduler.pause_job("up")
        await scene.until(at(2))
        assert [(run.job, time) for run, time in zip(scene.runs, scene.times, strict=True)] == [
            ("up", at(1)), ("bad", at(1, 5)),
        ]  # fmt: skip
