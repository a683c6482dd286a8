"""A job that should have started and did not is an alert: one about a job, and one for all that an outage held up."""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3

import pytest

from tests.alerts.phones import Phone, with_phone
from tests.kernel.scene import at, virtual
from wakeful import Cron, Every, Manual, NewJob, Once, Ping
from wakeful.domains.alerts import configure
from wakeful.errors import StoreError
from wakeful.store.jobs import Jobs
from wakeful.store.schema_version import steps

pytestmark = pytest.mark.usefixtures("minutely_sweeps")


@pytest.mark.promise("X5")
@virtual
async def test_a_slot_that_passed_while_nothing_ran_is_one_alert_and_one_when_the_job_has_started(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("report", Cron("0 3 * * *", tz="UTC"))
        await scheduler.start()
        await scheduler.stop()
    await scene.until(at(4))
    async with with_phone(scene, phone) as scheduler:
        await scheduler.start()
        await scene.sleep("5m")
        await scheduler.stop()
    assert phone.events == [("missed", "opened"), ("missed", "closed")]
    assert phone.times[0] == at(4)
    opened, closed = phone.got
    assert (opened.job, opened.title) == ("report", "report: missed")
    assert "report was due at 2026-01-01 03:00 UTC and did not start within its grace of 5m" in opened.text
    assert "nothing could start from 2026-01-01 00:00 UTC to 2026-01-01 04:00 UTC" in opened.text
    assert "Next: it starts late, as soon as it can." in opened.text
    assert "wakeful explain report" in opened.text
    assert "report started." in closed.text
    assert len(scene.runs) == 1


@pytest.mark.promise("X5")
@pytest.mark.parametrize(("hours", "events"), [(1, [("missed", "opened")]), (0.03, [])])
@virtual
async def test_a_slot_that_is_let_go_is_missed_until_the_job_starts_again(scene, hours, events):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("report", Every("12h"), catch_up="skip")
        await scheduler.start()
        await scene.until(at(11, 59))
        await scheduler.stop()
    await scene.sleep(hours * 3600)
    async with with_phone(scene, phone) as scheduler:
        await scheduler.start()
        await scene.until(at(23, 50))
        assert (phone.events, len(scene.runs)) == (events, 0 if events else 1)
        await scene.until(at(24, 5))
        assert phone.events == [*events, *[("missed", "closed")] * len(events)]


@virtual
async def test_a_let_go_slot_is_missed_though_it_is_late_by_less_than_the_grace(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", grace="1h")
        await scheduler.add_job("report", Every("12h"), catch_up="skip")
        await scheduler.start()
        await scene.until(at(11, 59))
        await scheduler.stop()
    await scene.until(at(12, 2))
    async with with_phone(scene, phone) as scheduler:
        await scheduler.start()
        await scene.sleep(1)
        assert phone.events == [("missed", "opened")]
        assert "that time is skipped; it starts again at 2026-01-02 00:00 UTC." in phone.texts[0]


@pytest.mark.promise("X5")
@pytest.mark.parametrize("catch_up", ["once", "skip"])
@virtual
async def test_an_outage_with_a_thousand_jobs_is_one_message_and_one_when_all_have_started(scene, catch_up):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        new = [NewJob(f"job-{n:04}", Every("1h"), catch_up=catch_up) for n in range(1000)]
        await scheduler.add_jobs(new)
        await scheduler.start()
        await scheduler.stop()
    await scene.until(at(3, 30))
    async with with_phone(scene, phone) as scheduler:
        await scheduler.start()
        await scene.until(at(4, 10))
        assert phone.events == [("missed", "opened"), ("missed", "closed")]
        first = phone.got[0]
        assert first.title == "1000 jobs: missed"
        assert "1000 jobs were due and did not start within their grace of 5m" in first.text
        assert "job-0000, job-0001, job-0002, job-0003, job-0004 and 995 more" in first.text
        assert "The first was due at 2026-01-01 01:00 UTC." in first.text
        assert len(scene.runs) == (2000 if catch_up == "once" else 1000)


@pytest.mark.promise("X5")
@virtual
async def test_a_sleeping_machine_is_one_message(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_jobs([NewJob(f"job-{n}", Every("10m")) for n in range(5)])
        await scheduler.start()
        await scene.until(at(0, 5))
        scene.clock.elapse(6 * 3600)  # no engine ran in between
        await scene.sleep("3m")
        assert phone.events == [("missed", "opened"), ("missed", "closed")]
        assert "5 jobs were due" in phone.texts[0]
        assert "nothing could start from 2026-01-01 00:0" in phone.texts[0]


@pytest.mark.promise("X5")
@virtual
async def test_a_database_that_was_away_is_one_message(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_jobs([NewJob(f"job-{n}", Every("10m")) for n in range(5)])
        await scheduler.start()
        await scene.until(at(0, 5))
        write = scheduler._store.write

        async def away(*_, **__):
            raise StoreError("simulated: the database is away")

        scheduler._store.write = away
        await scene.until(at(1, 5))
        scheduler._store.write = write
        await scene.sleep("3m")
        assert phone.events == [("missed", "opened"), ("missed", "closed")]
        assert "5 jobs were due" in phone.texts[0]
        assert "The first was due at 2026-01-01 00:10 UTC." in phone.texts[0]


@virtual
async def test_a_job_that_waits_for_a_lane_is_missed_once_its_grace_has_passed(scene):
    phone = Phone(scene)

    async def hold(run):
        if run.job == "long":
            await asyncio.sleep(20 * 60)

    scene.act = hold
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", grace="5m")
        await scheduler.add_job("long", Manual(), lanes={"press": 1})
        await scheduler.add_job("short", Once(at(0, 1)), lanes={"press": 1})
        await scheduler.start()
        await scheduler.run_job("long")
        await scene.until(at(0, 5, 50))
        assert phone.events == []
        await scene.until(at(0, 8))
        assert phone.events == [("missed", "opened")]
        assert "short was due at 2026-01-01 00:01 UTC" in phone.texts[0]
        assert "the lane press is full" in phone.texts[0]
        await scene.until(at(0, 25))
        assert phone.events == [("missed", "opened"), ("missed", "closed")]


@virtual
async def test_many_that_wait_for_a_lane_are_one_incident(scene):
    phone = Phone(scene)

    async def hold(run):
        await asyncio.sleep(3600)

    scene.act = hold
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", cooldown="1d")
        await scheduler.add_jobs([NewJob(f"job-{n:02}", Once(at(0, 1)), lanes={"press": 1}) for n in range(30)])
        await scheduler.start()
        await scene.until(at(0, 40))
        assert phone.events == [("missed", "opened")]
        assert "29 jobs were due" in phone.texts[0]


@virtual
async def test_what_is_paused_or_removed_is_not_missed_any_more(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("report", Every("12h"), catch_up="skip")
        await scheduler.start()
        await scheduler.stop()
    await scene.until(at(13))
    async with with_phone(scene, phone) as scheduler:
        await scheduler.start()
        await scene.sleep("1m")
        await scheduler.pause_job("report")
        await scene.sleep("1m")
        assert phone.events == [("missed", "opened"), ("missed", "closed")]
        assert "the job was paused" in phone.texts[-1]


@pytest.mark.parametrize("restarted", [True, False])
@virtual
async def test_monitors_and_messages_that_were_due_meanwhile_are_not_missed_starts(scene, restarted):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("offsite", Ping(Every("1h"), grace="10m"))
        await scheduler.start()
        phone.error = RuntimeError("switched off")
        await scheduler.deliver("Good morning", to="phone")
        await scene.sleep("1s")
        phone.error = None
        if restarted:
            await scheduler.stop()
        scene.clock.elapse(6 * 3600)
        await scheduler.start()
        await scene.sleep("5m")
        alerts = await scheduler.list_alerts(open_only=False)
        assert (phone.texts, [alert.message for alert in alerts]) == (["Good morning"], [])


@virtual
async def test_a_restart_without_an_outage_is_no_alert(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("often", Every("1m"))
        await scheduler.start()
        await scene.until(at(0, 10, 30))
        await scheduler.stop()
        await scene.sleep("2m")
        await scheduler.start()
        await scene.sleep("10m")
        assert (phone.events, await scheduler.list_alerts()) == ([], [])


def test_looking_for_what_is_overdue_reads_nothing_else():
    """However many jobs are armed: only those that have been due for longer than the grace are read."""
    asked = []

    class Noting:
        def rows(self, sql, params=()):
            asked.append((sql, params))
            return [] if sql.startswith("SELECT s.") else [(0,)]

    jobs = Jobs(Noting())
    jobs.late(0, ["delivery"], 10)
    jobs.late_count(0, ["delivery"])
    assert len(asked) == 2
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for step in steps():
            connection.executescript(step.script)
        plans = [[row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", params)] for sql, params in asked]
    for plan in plans:
        assert "SEARCH s USING INDEX job_state_due (priority=? AND due_at>? AND due_at<?)" in plan
        assert not [line for line in plan if line.startswith("SCAN") and line.split()[1] != "p"]
