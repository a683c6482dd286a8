"""Incidents that end and open again: flapping, snoozes that end, and what a message says about its job."""

from __future__ import annotations

import pytest

from tests.alerts.phones import Phone, with_phone
from tests.alerts.test_incidents import mended_after
from tests.kernel.scene import failing, virtual
from tests.monitors.pinged import watch
from wakeful import Every
from wakeful.domains.alerts import configure, snooze
from wakeful.domains.monitors import ping

pytestmark = pytest.mark.usefixtures("minutely_sweeps")


@pytest.mark.promise("X16", "X20")
@virtual
async def test_a_message_about_a_monitor_says_what_is_expected_when_it_last_reported_and_what_is_next(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key)
        await scene.sleep("2d")
    assert phone.texts[0].splitlines() == [
        "offsite is down: no ping came, expected 2026-01-02 00:00 UTC with 1h of grace",
        "It is expected to report in every day, 1h of grace.",
        "It last reported in at 2026-01-01 00:00 UTC.",
        "Next: it counts as up again when it reports a success.",
        "Look closer: wakeful explain offsite",
    ]


def in_turns(failures, successes):
    """An act that fails so often, succeeds so often, and so on."""
    made = [-1]

    async def act(_):
        made[0] += 1
        if made[0] % (failures + successes) < failures:
            raise RuntimeError("disk full")

    return act


@pytest.mark.promise("X5")
@pytest.mark.parametrize("failures", [2, 5])
@virtual
async def test_a_job_that_fails_and_recovers_again_and_again_is_announced_as_flapping_and_its_end(scene, failures):
    phone = Phone(scene)
    scene.act = in_turns(failures, 1)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("backup", Every("1m"), max_errors=0, backoff=["1s"])
        await scheduler.start()
        await scene.sleep("4h")
        told = [("failing", "opened"), ("failing", "closed")] * 2 + [("flapping", "opened")]
        assert phone.events == told, "and no more, however long it goes on, and however often each time"
        assert phone.titles[-1] == "backup: flapping"
        assert "This comes and goes, 3 times within 1h: backup has failed 2 times in a row" in phone.texts[-1]
        assert "Look closer: wakeful explain backup" in phone.texts[-1]
        phone.clear()
        scene.act = None
        await scene.sleep("2h")
        assert phone.events == [("flapping", "closed")]
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("X5")
@virtual
async def test_a_snooze_that_ends_while_an_incident_flaps_announces_that_it_does_and_nothing_else(scene):
    phone = Phone(scene)
    scene.act = in_turns(5, 1)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("backup", Every("1m"), max_errors=0, backoff=["1s"])
        await scheduler.transact(lambda tx, _: snooze(tx, ["backup"], "30m", scheduler.host.origin()))
        await scheduler.start()
        await scene.sleep("2h")
        assert phone.events == [("flapping", "opened")]


@pytest.mark.promise("X5")
@virtual
async def test_what_flapped_and_then_stays_broken_is_announced(scene):
    phone = Phone(scene)
    scene.act = in_turns(2, 1)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("backup", Every("1m"), max_errors=0, backoff=["1s"])
        await scheduler.start()
        await scene.sleep("1h")
        phone.clear()
        scene.act = failing()
        await scene.sleep("65m")
        assert phone.events == [("failing", "opened")]
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["failing"]


@pytest.mark.promise("X20")
@virtual
async def test_a_message_that_is_sent_while_the_job_runs_says_so(scene):
    phone = Phone(scene)
    scene.act = failing()
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", after=1)
        await scheduler.add_job("backup", Every("1h"))
        await scheduler.transact(lambda tx, _: snooze(tx, ["backup"], "65m", scheduler.host.origin()))
        await scheduler.start()
        await scene.sleep("61m")

        async def long(_):
            await scene.sleep("2h")

        scene.act = long
        await scheduler.run_job("backup")
        await scene.sleep("10m")
        assert phone.events == [("failing", "opened")]
        assert "Next: a run of it is in progress." in phone.texts[0]


@pytest.mark.promise("X5", "X27")
@virtual
async def test_when_a_resume_is_undone_the_incident_goes_on_and_its_second_end_is_told_too(scene):
    phone = Phone(scene)
    scene.act = failing("no space")
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("backup", Every("1h"), max_errors=1)
        await scheduler.start()
        await scene.sleep("61m")
        assert phone.events == [("disabled", "opened")]
        for _ in range(2):
            phone.clear()
            await scheduler.resume_job("backup")
            await scene.sleep("1s")
            await scheduler.undo()
            await scene.sleep("1s")
            assert phone.events == [("disabled", "closed"), ("disabled", "repeated")]
            assert "does not start again until wakeful resume backup" in phone.texts[-1]
        phone.clear()
        await scheduler.resume_job("backup")
        await scene.sleep("1s")
        assert phone.events == [("disabled", "closed")]


@pytest.mark.promise("X5")
@pytest.mark.parametrize("after", [1, 2])
@virtual
async def test_one_failure_is_enough_where_the_settings_say_so_also_if_it_is_tried_again(scene, after):
    phone = Phone(scene)
    scene.act = mended_after(1)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", after=after)
        await scheduler.add_job("backup", Every("20m"), retry=["5m", "5m"])
        await scheduler.start()
        await scene.sleep("21m")
        opened = len(await scheduler.list_alerts())
        await scene.sleep("10m")
        await scheduler.stop()
    told = [("failing", "opened"), ("failing", "closed")] if after == 1 else []
    assert phone.events == told
    assert opened == (1 if after == 1 else 0)
    assert not told or "backup failed and is tried again: disk full" in phone.texts[0]
