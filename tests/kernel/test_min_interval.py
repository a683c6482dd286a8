"""How often a job made from outside may run: refused when written, passed over when it comes, never the operator's."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.kernel.scene import at, virtual
from wakeful import After, Cron, Every, Interval, InvalidJob, InvalidTrigger, Manual, NewJob, Once, Ping, Webhook
from wakeful.errors import TooOften
from wakeful.kernel.rules.policy import limit_words, refuse_too_often, too_often

HOUR = 3_600_000
MINUTE = 60_000


@pytest.mark.promise("C5")
@pytest.mark.parametrize(
    ("limit", "words"),
    [
        (HOUR, "Minimum interval is 60 minutes (1 hour)"),
        (90 * MINUTE, "Minimum interval is 90 minutes"),
        (2 * HOUR, "Minimum interval is 120 minutes (2 hours)"),
        (24 * HOUR, "Minimum interval is 1440 minutes (24 hours)"),
        (30 * MINUTE, "Minimum interval is 30 minutes"),
        (MINUTE, "Minimum interval is 1 minute"),
        (30_000, "Minimum interval is 30 seconds"),
        (90_000, "Minimum interval is 90 seconds"),
        (1_000, "Minimum interval is 1 second"),
        (1_500, "Minimum interval is 1.5 seconds"),
        (100_000 * HOUR, "Minimum interval is 6000000 minutes (100000 hours)"),
    ],
)
def test_the_text_follows_the_limit(limit, words):
    assert limit_words(limit) == words
    with pytest.raises(TooOften) as refused:
        refuse_too_often(Every(limit / 1000 - 0.5), limit)
    assert str(refused.value) == words
    assert (refused.value.status, refused.value.code) == (400, "min_interval")
    assert isinstance(refused.value, InvalidTrigger)


@pytest.mark.promise("C5")
@pytest.mark.parametrize(
    ("trigger", "refused"),
    [
        (Every("59m"), True),
        (Every("60m"), False),
        (Every("1h", jitter=10), False),  # jitter moves a start within its period, it adds none
        (Interval("3599s"), True),
        (Interval("1h"), False),
        (Interval("1h", jitter=10), False),
        (Cron("* * * * *"), True),
        (Cron("0 * * * *"), False),
        (Cron("@hourly"), False),
        (Cron("0,30 9 * * *"), True),
        (Cron("0,59 * * * *"), True),  # 59 past, and the next hour's 0
        (Cron("0 9 * * *"), False),
        (Cron("0,30 0 * * *"), True),
        (Cron("30 0,23 * * *"), False),  # 23:30 and the next day's 00:30
        (Cron("45 0,23 * * 1"), False),  # the two never meet across midnight on one weekday alone
        (Cron("0,59 0,23 * * *"), True),  # 23:59 and 00:00
        (Cron("0,59 0,23 1 * *"), True),  # within the hour
        (Cron("59 0,23 * * *"), False),
        (Cron("0 0 1,31 * *"), False),
        (Cron("*/50 * * * *"), True),  # 50 past, then 0: ten minutes
        (Cron("0 9 29 2 *"), False),
        (Cron("0,1 9 29 2 *"), True),  # a minute apart, if only every four years
        (Cron("0 0 9 * * *"), False),
        (Cron("0,30 0 9 * * *"), True),
        (Cron("30 59 8,9 * * *"), False),
        (Cron("0 1,3 * * *", tz="Europe/Berlin"), False),
        (Cron("30 1,2 * * *", tz="Europe/Berlin"), False),  # once a year the clock brings them half an hour together
        (Once(datetime(2026, 1, 1, tzinfo=UTC)), False),
        (After("other"), False),
        (Manual(), False),
        (Webhook(), False),
        (Ping(schedule=Every("5m")), False),  # it starts nothing
    ],
)
def test_the_closest_two_times_a_trigger_can_ever_have_decide(trigger, refused):
    assert too_often(trigger, HOUR) is refused
    assert not too_often(trigger, None)
    assert not too_often(trigger, 0)


@pytest.mark.promise("C5")
@pytest.mark.parametrize("trigger", [Every("30m"), Cron("*/30 * * * *"), Interval("30m")])
@virtual
async def test_a_bounded_job_below_the_minimum_is_passed_over_once_per_slot_and_says_so(scene, trigger):
    async with scene.scheduler(min_interval="1h") as scheduler:
        await scheduler.add_job("a", trigger, bounded=True, source="api")
        await scheduler.start()
        await scene.until(at(3, 1))
        assert scene.runs == []
        explained = await scheduler.explain("a")
        [skip] = explained.facts["skips"]
        assert skip["reason"] == "below_min_interval"
        assert skip["detail"] == "Minimum interval is 60 minutes (1 hour)"
        assert 6 <= skip["count"] <= 7  # one each half hour, whether the first is at once or not
        assert any("Minimum interval is 60 minutes (1 hour)" in line for line in explained.sentences)
        job = await scheduler.get_job("a")
        assert job.next_run_at > scene.now
        assert job.missed == 0
        assert job.enabled
        assert scheduler.get_state().check_count < 250  # it sleeps a minute at most, and does not spin


@virtual
async def test_an_interval_below_the_floor_is_passed_over_at_the_floors_pace(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Interval("1s"), bounded=True)
        await scheduler.start()
        await scene.sleep("60s")
        [skip] = (await scheduler.explain("a")).facts["skips"]
        assert skip["count"] <= 7


@pytest.mark.promise("C5")
@virtual
async def test_what_may_be_closer_than_the_minimum(scene):
    async with scene.scheduler(min_interval="1h") as scheduler:
        await scheduler.add_jobs([NewJob("trusted", Every("30m")), NewJob("slow", Every("1h"), bounded=True)])
        await scheduler.add_job("by-hand", Every("30m"), bounded=True)
        await scheduler.start()
        run_id = await scheduler.run_job("by-hand")
        await scene.sleep("10m")
        assert (await scheduler.get_run(run_id)).outcome == "success"
        await scene.until(at(2, 1))
        assert len(scene.of("trusted")) == 4
        assert len(scene.of("slow")) == 2
        assert len(scene.of("by-hand")) == 1


@virtual
async def test_without_a_minimum_nothing_is_passed_over(scene):
    async with scene.scheduler(min_interval=None) as scheduler:
        await scheduler.add_job("a", Every("30m"), bounded=True)
        await scheduler.start()
        await scene.until(at(1, 1))
        assert len(scene.runs) == 2


@pytest.mark.promise("C5")
@virtual
async def test_the_last_writer_of_the_trigger_sets_the_trust_in_it(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.add_job("a", Every("2h"), bounded=True)
        await scheduler.update_job("a", payload={"other": 1}, timeout="5m")
        assert (await scheduler.get_job("a")).options == {"bounded": True, "timeout": "5m"}
        await scheduler.update_job("a", trigger=Every("5m"))
        assert (await scheduler.get_job("a")).options == {"timeout": "5m"}
        await scheduler.update_job("a", trigger=Every("3h"), bounded=True)
        assert (await scheduler.get_job("a")).options["bounded"] is True
        with pytest.raises(InvalidJob, match="bounded is true or false"):
            await scheduler.update_job("a", bounded="yes")
