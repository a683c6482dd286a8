"""What failed and has not succeeded since, what did not arrive and what fails too often is not called well."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from wakeful import Cron, Every, Manual, NewJob, Once, Ping, Retention, TransientError, Wait
from wakeful.domains.delivery.connector import Permanent
from wakeful.kernel.rules.lately import fails_often
from wakeful.kernel.rules.lease_times import LeaseTimes
from wakeful.kernel.views import verdict_facts

pytestmark = pytest.mark.promise("X26")
HOURS = 3_600_000


@pytest.fixture(autouse=True)
def seldom(request):
    """Nodes beat seldom, which is no sign of trouble here."""
    if "scene" in request.fixturenames:
        lease = LeaseTimes(beat_ms=HOURS, lease_ms=4 * HOURS, stalled_ms=3 * HOURS, given_up_ms=5 * HOURS)
        scene = request.getfixturevalue("scene")
        scene.tuning = scene.tuning._replace(lease=lease)


def failing_at(*numbers):
    """Fails in the runs with these numbers, from 0 on, of a job."""
    made = {}

    async def act(run):
        number = made[run.job] = made.get(run.job, -1) + 1
        if number in numbers:
            raise TransientError("broken")

    return act


@virtual
async def test_a_weekly_job_that_failed_is_not_well_until_it_succeeds(scene):
    scene.act = failing_at(0)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("backup", Cron("0 1 * * 4"))  # the scene begins on a Thursday
        await scheduler.start()
        await scene.until(at(2, days=3))
        assert await scheduler.list_alerts() == [], "one failure is not worth a message"
        verdict = await scheduler.get_verdict()
        assert verdict == ("failing", "Failing: backup failed 3d 1h ago and has not succeeded since.")
        await scheduler.pause_job("backup")
        assert (await scheduler.get_verdict()).state == "quiet", "a person stopped it"
        await scheduler.resume_job("backup")
        assert (await scheduler.get_verdict()).state == "failing"
        await scene.until(at(2, days=7))
        assert (await scheduler.get_verdict()).well


@virtual
async def test_a_job_whose_last_run_did_not_report_its_end_is_not_well_until_one_does(scene):
    async def act(run):
        if len(scene.runs) == 1:
            raise Wait(at(2))

    scene.act = act
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("backup", Cron("0 1 * * 4"))
        await scheduler.start()
        await scene.until(at(1, 30))
        assert (await scheduler.get_verdict()).well, "it is on its way"
        await scene.until(at(2, days=3))
        verdict = await scheduler.get_verdict()
        assert verdict == ("failing", "Failing: backup ended as unknown 3d ago and has not succeeded since.")
        job = await scheduler.get_job("backup")
        assert (job.consecutive_errors, job.last_outcome, job.last_error) == (
            *(0, "unknown"),
            "no report of its end arrived before its deadline",
        )
        await scene.until(at(2, days=7))
        assert (await scheduler.get_verdict()).well


@virtual
async def test_a_job_that_is_being_tried_again_is_not_called_failing_yet(scene):
    scene.act = failing_at(0)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("6h"), retry=["1h"])
        await scheduler.start()
        await scene.until(at(6, 30))
        assert (await scheduler.get_verdict()).well
        await scene.until(at(7, 30))
        assert [run.attempt for run in scene.runs] == [1, 2]
        assert (await scheduler.get_verdict()).well


@virtual
async def test_a_job_of_which_every_other_run_fails_is_not_well(scene):
    scene.act = failing_at(*range(0, 1000, 2))
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("10m"), backoff=["1s"])
        await scheduler.start()
        await scene.until(at(3, 25))
        assert scene.runs[-1].slot == at(3, 20)
        verdict = await scheduler.get_verdict()
        assert verdict == ("failing", "Failing: a failed 5 of its last 10 runs.")


ENDS = {
    "never": ("." * 100, False),
    "every other": (".x.x", True),
    "every other, always": (".x" * 50, True),
    "an outage that is over": (".xxxxx....", False),
    "two of ten": (".x...x....", False),
    "three of ten, otherwise never": (".x..x..x.." + "." * 90, True),
    "three of ten, as usual": (".x..x..x.." * 10, False),
    "too few to say": (".x.", False),
}


@virtual
async def test_a_weekly_job_of_which_every_other_run_fails_is_not_well(scene):
    scene.act = failing_at(0, 2, 4)
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("backup", Cron("0 1 * * 4"))
        await scheduler.start()
        await scene.until(at(2, days=21))
        verdict = await scheduler.get_verdict()
        assert verdict == ("failing", "Failing: backup failed 2 of its last 4 runs.")


@pytest.mark.parametrize(("ends", "expected"), ENDS.values(), ids=ENDS)
def test_how_often_a_job_fails_is_judged_by_its_habit(ends, expected):
    assert fails_often([end == "x" for end in ends]) is expected


@virtual
async def test_the_rest_is_not_called_well_beside_what_was_only_acknowledged(scene):
    scene.act = failing_at(*range(1000))
    async with scene.scheduler() as scheduler:
        await scheduler.add_jobs([NewJob(name, Every("1h"), max_errors=1) for name in "ab"])
        await scheduler.start()
        await scene.until(at(1, 1))
        first, second = await scheduler.list_alerts()
        await scheduler.ack_alert(first.id)
        verdict = await scheduler.get_verdict()
        assert verdict.sentence == (
            f"One thing needs you: {second.message}. The rest is well but for 1 acknowledged alert."
        )


@virtual
async def test_a_paused_monitor_needs_nobody(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("watch", Ping(Every("1h"), grace="5m"), kind="monitor")
        await scheduler.add_job("a", Every("1h"))
        await scheduler.start()
        await scene.until(at(3, 30))
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["down"]
        assert (await scheduler.get_verdict()).state == "needs_you"
        await scheduler.pause_job("watch")
        assert (await scheduler.get_verdict()).well
        await scheduler.resume_job("watch")
        await scene.until(at(6, 30))
        assert (await scheduler.get_verdict()).state == "needs_you"


@virtual
async def test_the_next_start_is_found_behind_retries_of_jobs_that_have_no_times(scene):
    scene.act = failing_at(*range(1000))
    async with scene.scheduler() as scheduler:
        names = [f"hand{number}" for number in range(5)]
        await scheduler.add_jobs([NewJob(name, Manual(), retry=["2h"]) for name in names])
        await scheduler.add_job("tried", Every("1d", anchor=at(0)), retry=["20h"], max_errors=0)
        await scheduler.start()
        for name in names:
            await scheduler.run_job(name)
        await scene.sleep("1m")
        scene.act = None
        await scheduler.add_jobs([NewJob(f"timed{number}", Once(at(5))) for number in range(3)])
        verdict = await scheduler.get_verdict()
        assert verdict.sentence.endswith("; next in 4h 59m."), verdict


@virtual
async def test_what_failed_since_midnight_is_counted_whole_and_never_goes_down(scene, monkeypatch):
    monkeypatch.setattr(verdict_facts, "COUNTED", 20)
    scene.act = failing_at(*range(30))
    keep = Retention(runs_per_job=5, check_every=5)
    async with scene.scheduler(retention=keep) as scheduler:
        await scheduler.add_job("a", Every("10m"), backoff=["1s"], max_errors=0)
        await scheduler.add_job("b", Every("10m"), max_errors=5)
        await scheduler.start()
        seen = []
        for hour in range(1, 23):
            await scene.until(at(hour, 5))
            facts = await scheduler.read(lambda tx: verdict_facts.standing(tx, "UTC", scheduler._seen(), 10**9))
            assert facts.runs >= min(20, sum(run.due_at >= at(0) for run in scene.runs)) or facts.more_runs
            seen.append(facts.failed)
        assert len(await scheduler.get_run_log("a", limit=1000)) < 20, "some were pruned"
        assert seen == sorted(seen)
        assert seen[-1] == 30 + 5, "of both, of which one was disabled"
        await scene.until(at(1, days=1))
        facts = await scheduler.read(lambda tx: verdict_facts.standing(tx, "UTC", scheduler._seen(), 10**9))
        assert facts.failed == 0, "a new day"


@virtual
async def test_a_message_that_could_not_be_delivered_hides_no_failure_of_its_job(scene):
    async def refuse(_):
        raise Permanent("gone")

    scene.act = failing_at(0)
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("phone", refuse)
        await scheduler.add_job("backup", Every("7d"), deliver={"to": "phone", "on": "failure"})
        await scheduler.start()
        await scene.until(at(days=10))
        (alert,) = await scheduler.list_alerts()
        assert alert.kind == "delivery_failed"
        failed = "backup failed 3d ago and has not succeeded since"
        assert failed in (await scheduler.get_verdict()).sentence
        await scheduler.ack_alert(alert.id)
        assert f"Failing: {failed};" in (await scheduler.get_verdict()).sentence
        await scheduler.pause_job("backup")
        assert "1 message was not delivered" in (await scheduler.get_verdict()).sentence
