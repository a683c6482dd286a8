"""However a run ends: it is reported once, and the jobs that start after it start once."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, failing, virtual
from wakeful import After, Every, Manual, NewJob, Once, Wait
from wakeful.kernel.actions import pausing
from wakeful.kernel.actions.lookup import find_job
from wakeful.kernel.engine.ending import drop_runs
from wakeful.kernel.rules.outcome import ImpossibleTransition

pytestmark = pytest.mark.promise("X9", "A7")

RETRY = {"delays": ["10m"], "on": "any"}
FOLLOWERS = (
    NewJob("any", After("up", on="any")),
    NewJob("bad", After("up", on="failure")),
    NewJob("good", After("up")),
)


class Events:
    """The events about runs."""

    def __init__(self, scheduler):
        self.ends = []
        scheduler.subscribe(self._hear, "run")

    def _hear(self, event):
        if event.type == "finished":
            self.ends.append((event.data["run"], event.data["outcome"]))


def up_alone(act):
    """An act for the first job; those that follow just end."""

    async def chosen(run):
        return await act(run) if run.job == "up" else None

    return chosen


def followers(scene):
    return sorted(run.job for run in scene.runs if run.job != "up")


async def cancelled(scheduler, run):
    await scheduler.cancel_run(run)


async def paused(scheduler, _):
    await scheduler.pause_job("up")


async def disabled(scheduler, _):
    await scheduler.update_job("up", enabled=False)


async def removed(scheduler, _):
    await scheduler.remove_job("up")


async def paused_with_others(scheduler, _):
    def work(tx, context):
        pausing.pause_all(tx, context, [find_job(tx, "other"), find_job(tx, "up")], None)

    await scheduler.transact(work)


WAYS = [cancelled, paused, disabled, removed, paused_with_others]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@virtual
async def test_a_retry_that_is_called_off_is_reported_once_and_the_failure_before_it_starts_what_follows(scene, way):
    scene.act = up_alone(failing())
    async with scene.scheduler() as scheduler:
        events = Events(scheduler)
        await scheduler.add_jobs([NewJob("up", Once(at(1)), retry=RETRY), NewJob("other", Manual()), *FOLLOWERS])
        await scheduler.start()
        await scene.until(at(1, 1))
        retry, first = await scheduler.get_run_log("up")
        assert (retry.status, followers(scene)) == ("queued", []), "it is not over yet"
        await way(scheduler, retry.id)
        await scene.until(at(3))
        assert followers(scene) == ["any", "bad"]
        assert [end for end in events.ends if end[0] in (first.id, retry.id)] == [
            (first.id, "error"), (retry.id, "cancelled"),
        ]  # fmt: skip
        ended = await scheduler.get_run(retry.id)
        assert (ended.outcome, ended.started_at) == ("cancelled", None)
        for run in scene.runs[1:]:
            assert (await scheduler.get_run(run.id)).caused_by == retry.id


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
@virtual
async def test_a_start_that_never_was_is_no_failure_to_those_that_follow(scene, way):
    async def act(run):
        if run.job == "holder":
            await scene.sleep("2h")

    scene.act = act
    async with scene.scheduler() as scheduler:
        events = Events(scheduler)
        lane = {"press": 1}
        await scheduler.add_jobs([NewJob("first", Manual()), NewJob("up", After("first"), lanes=lane), *FOLLOWERS])
        await scheduler.add_jobs([NewJob("holder", Manual(), lanes=lane), NewJob("other", Manual())])
        await scheduler.start()
        await scheduler.run_job("holder")
        await scene.sleep("1s")
        await scheduler.run_job("first")
        await scene.sleep("1s")
        [waiting] = await scheduler.get_run_log("up")
        await way(scheduler, waiting.id)
        await scene.sleep("3h")
        assert [run.job for run in scene.runs] == ["holder", "first", "any"]
        assert [end for end in events.ends if end[0] == waiting.id] == [(waiting.id, "cancelled")]


@virtual
async def test_a_retry_that_a_new_slot_overtakes_is_reported_once_and_counts_as_the_failure_before_it(scene):
    async def act(run):
        if run.job == "holder":
            await scene.sleep("90m")
        elif run.job == "up" and run.slot == at(1):
            raise RuntimeError

    scene.act = act
    async with scene.scheduler() as scheduler:
        events = Events(scheduler)
        lane = {"press": 1}
        await scheduler.add_jobs([NewJob("up", Every("1h"), retry=RETRY, lanes=lane), *FOLLOWERS])
        await scheduler.add_job("holder", Once(at(1, 5)), lanes=lane)
        await scheduler.start()
        await scene.until(at(2, 50))
        runs = await scheduler.get_run_log("up")
        [retry] = [run for run in runs if run.reason == "retry"]
        assert (retry.outcome, retry.error) == ("cancelled", "a new slot came first")
        assert [end for end in events.ends if end[0] == retry.id] == [(retry.id, "cancelled")]
        assert followers(scene) == ["any", "any", "bad", "good", "holder"], "of the retry, and of the slot at two"


@virtual
async def test_a_run_without_a_report_is_reported_once_and_starts_what_follows_any_end(scene):
    async def act(run):
        return Wait(at(1, 30))

    scene.act = up_alone(act)
    async with scene.scheduler() as scheduler:
        events = Events(scheduler)
        await scheduler.add_jobs([NewJob("up", Once(at(1))), *FOLLOWERS])
        await scheduler.start()
        await scene.until(at(3))
        assert events.ends[0] == (scene.runs[0].id, "unknown")
        assert [end[0] for end in events.ends].count(scene.runs[0].id) == 1
        assert followers(scene) == ["any"]


@virtual
async def test_a_crash_that_is_not_run_again_is_reported_once_and_starts_what_follows_a_failure(scene):
    async def act(run):
        await scene.sleep("10h")

    scene.act = up_alone(act)
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("up", Once(at(1)), on_crash="skip"), *FOLLOWERS])
        await scheduler.start()
        await scene.until(at(1, 10))
        await scene.crash(scheduler)
    scheduler = scene.scheduler()
    events = Events(scheduler)
    async with scheduler:
        await scheduler.start()
        await scene.sleep("1h")
        assert [end for end in events.ends if end[0] == scene.runs[0].id] == [(scene.runs[0].id, "crashed")]
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("1h")
        assert followers(scene) == ["any", "bad"]


@virtual
async def test_jobs_paused_together_start_nothing_of_each_other(scene):
    """The end of what waited starts the jobs after it, but not one that is paused in the same moment."""
    scene.act = up_alone(failing())
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("up", Once(at(1)), retry=RETRY), *FOLLOWERS])
        await scheduler.start()
        await scene.until(at(1, 1))

        def pause(tx, context):
            pairs = [find_job(tx, name) for name in ("any", "up", "bad")]
            return pausing.pause_all(tx, context, pairs, None)

        assert await scheduler.transact(pause) == ["any", "up", "bad"]
        await scene.sleep("1h")
        assert followers(scene) == []
        assert await scheduler.read(lambda tx: tx.runs.all_open()) == []
        for name in ("any", "bad"):
            skips = (await scheduler.explain(name)).facts["skips"]
            assert [(skip["reason"], skip["count"]) for skip in skips] == [("paused", 1)]
            await scheduler.resume_job(name)
        await scheduler.resume_job("up")
        scene.act = None
        await scene.sleep("1h")
        assert followers(scene) == ["any", "good"], "as after any other success"


@virtual
async def test_jobs_resumed_together_lose_no_start_of_each_other(scene):
    """What was pending when a job was stopped ends with its resumption, and may start a job that is resumed with it."""
    scene.act = failing()
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob("up", Once(at(1)), retry=RETRY), *FOLLOWERS])
        await scheduler.start()
        await scheduler.run_job("bad")  # it has an error to forget
        await scene.until(at(1, 1))

        def stop(tx, context):  # as by an engine that disables the job while its retry waits
            _, state = find_job(tx, "up")
            tx.jobs.save([state._replace(enabled=0, due_at=None)])

        await scheduler.transact(stop)
        scene.act = None

        def resume(tx, context):
            pairs = [find_job(tx, name) for name in ("bad", "up")]
            return pausing.resume_all(tx, context, pairs)

        assert await scheduler.transact(resume) == {}
        for job, state in [await scheduler.read(lambda tx, name=name: find_job(tx, name)) for name in ("bad", "up")]:
            open_runs = await scheduler.read(lambda tx, job=job: tx.runs.open(job.id))
            assert state.queued == sum(run.status == "queued" for run in open_runs), job.name
        await scene.sleep("1h")
        assert len(scene.of("bad")) == 2, "the one by hand, and the one after the retry was called off"


@virtual
async def test_a_run_that_has_ended_does_not_end_again_and_nothing_of_the_attempt_is_stored(scene):
    async with scene.scheduler() as scheduler:
        events = Events(scheduler)
        await scheduler.add_job("up", Once(at(1)))
        await scheduler.add_jobs(FOLLOWERS)
        await scheduler.start()
        await scene.until(at(2))
        [before] = await scheduler.get_run_log("up")

        def again(tx, context):
            job, _ = find_job(tx, "up")
            drop_runs(tx, context, job, tx.runs.log(job.id, 1), "once more")

        with pytest.raises(ImpossibleTransition):
            await scheduler.transact(again)
        await scene.until(at(3))
        assert (await scheduler.get_run(before.id)).outcome == "success"
        assert (len(events.ends), followers(scene)) == (3, ["any", "good"])
