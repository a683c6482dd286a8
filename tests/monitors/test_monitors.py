"""Monitors in virtual time, on both stores: silence is an alert."""

from __future__ import annotations

import pytest

from tests.kernel.scene import at, virtual
from tests.monitors.pinged import DAILY, alerts, monitor, runs, state, watch
from wakeful import Cron, Every, InvalidJob, InvalidTrigger, Manual, Once, Ping, ScheduleTriggerError
from wakeful.domains.monitors import Report, ping, ping_key, rotate_key

pytestmark = pytest.mark.promise("X16")


@virtual
async def test_a_monitor_goes_from_new_to_up_to_late_to_down_and_up_again(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        assert await state(scheduler) == "new"
        await scene.until(at(2))
        await ping(scheduler, key)
        assert await state(scheduler) == "up"
        await scene.until(at(26, 30))
        assert await state(scheduler) == "late"
        assert await alerts(scheduler) == []
        await scene.until(at(27, 0, 1))
        found = await monitor(scheduler)
        assert (found["state"], found["down_since"]) == ("down", "2026-01-02T03:00:00Z")
        ((kind, message),) = await alerts(scheduler)
        assert kind == "down"
        assert message == ("offsite is down: no ping came, expected 2026-01-02 02:00 UTC with 1h of grace")
        await scene.until(at(52, 30))
        assert await alerts(scheduler) == [(kind, message)]  # more silence is the same incident
        explained = str(await scheduler.explain("offsite"))
        assert (
            "It is down. A ping is expected at 2026-01-04 04:00:00 UTC; one that reports success ends that."
            in explained
        )
        await ping(scheduler, key)
        assert await state(scheduler) == "up"
        assert await alerts(scheduler) == []
        assert [run.outcome for run in await runs(scheduler)] == ["success", "success"]
        facts = (await scheduler.explain("offsite")).facts
        assert [(skip["reason"], skip["count"]) for skip in facts["skips"]] == [("no_ping", 2)]


@virtual
async def test_a_monitor_that_is_never_pinged_is_down_after_its_first_period_and_grace(scene):
    async with scene.scheduler() as scheduler:
        await watch(scheduler, Ping(Every("1h"), grace="30m"))
        await scheduler.start()
        await scene.until(at(1, 29))
        assert await state(scheduler) == "late"
        await scene.until(at(1, 30, 1))
        assert await state(scheduler) == "down"
        await scene.until(at(8))
        assert len(await alerts(scheduler, open_only=False)) == 1


@virtual
async def test_a_monitor_with_cron_is_expected_at_its_times(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler, Ping(Cron("0 3 * * *"), grace="30m"))
        await scheduler.start()
        await scene.until(at(2, 59))
        await ping(scheduler, key)  # for nothing that is expected yet
        await scene.until(at(3, 30, 1))
        assert await state(scheduler) == "down"
        await ping(scheduler, key)
        await scene.until(at(27, 20))
        assert await state(scheduler) == "late"
        await ping(scheduler, key)
        found = await monitor(scheduler)
        assert (found["state"], found["expected_at"]) == ("up", "2026-01-03T03:00:00Z")
        assert (await scheduler.get_job("offsite")).missed == 1


@virtual
async def test_what_could_not_be_received_while_nothing_ran_is_not_silence(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key)
    await scene.until(at(24, 40))  # expected at 24:00, and down at 25:00
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.until(at(25, 30))
        assert await state(scheduler) == "late"
        assert "no ping could be received when it was expected" in str(await scheduler.explain("offsite"))
        await scene.until(at(25, 40, 1))
        assert await state(scheduler) == "down"
        await ping(scheduler, key)
    await scene.until(at(days=9))
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep("50m")
        assert await alerts(scheduler) == []
        await scene.sleep("11m")
        assert len(await alerts(scheduler)) == 1


@virtual
async def test_a_paused_monitor_takes_pings_and_is_never_down(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler, Ping(Every("1h"), grace="30m"))
        await scheduler.start()
        await scheduler.pause_job("offsite")
        await ping(scheduler, key, Report("fail"))
        await scene.until(at(6))
        assert (await state(scheduler), await alerts(scheduler)) == ("paused", [])
        await scheduler.resume_job("offsite")
        await scene.sleep("89m")
        assert await state(scheduler) == "late"
        await scene.sleep("2m")
        assert await state(scheduler) == "down"


@pytest.mark.parametrize("hours", [-30, 30])
@virtual
async def test_a_clock_that_was_set_makes_nothing_down(scene, hours):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key)
        await scene.sleep("1h")
        scene.step(hours=hours)
        await scene.sleep("30m")
        assert [kind for kind, _ in await alerts(scheduler) if kind == "down"] == []
        await scene.sleep("26h")
        assert await state(scheduler) == "down"


@virtual
async def test_a_rotated_key_opens_and_the_old_one_does_not(scene):
    async with scene.scheduler() as scheduler:
        old = await watch(scheduler)
        new = await rotate_key(scheduler, "offsite")
        assert new != old
        assert await ping(scheduler, old) is None
        assert await ping(scheduler, new) is not None
        await scheduler.add_job("other", Manual())
        with pytest.raises(InvalidJob, match="other is not a monitor: it has no key"):
            await rotate_key(scheduler, "other")
        assert await ping_key(scheduler, "other") is None


@virtual
async def test_the_key_of_a_removed_monitor_opens_nothing_and_its_alert_is_closed(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key, Report("fail"))
        await ping(scheduler, key, Report("start", rid="a"))
        await ping(scheduler, key, Report("start", rid="b"))
        await scheduler.remove_job("offsite")
        assert await alerts(scheduler) == []
        assert await ping(scheduler, key) is None
        await scene.sleep("2h")
        assert (await scheduler.get_summary()).open_runs == 0
        assert await alerts(scheduler) == []


@virtual
async def test_a_full_lane_does_not_delay_the_alarm(scene):
    async with scene.scheduler(max_running=1) as scheduler:
        scene.act = lambda _: scene.clock.sleep("48h")
        await scheduler.add_job("long", Once(at(0)), timeout="3d")
        await watch(scheduler)
        await scheduler.start()
        await scene.until(at(25, 0, 1))
        assert await state(scheduler) == "down"


@virtual
async def test_a_monitor_cannot_be_run_and_takes_only_what_makes_sense(scene):
    async with scene.scheduler() as scheduler:
        await watch(scheduler)
        with pytest.raises(ScheduleTriggerError, match="offsite is a monitor"):
            await scheduler.run_job("offsite")
        with pytest.raises(InvalidTrigger, match="when a ping is expected"):
            await scheduler.add_job("b", Ping())
        with pytest.raises(InvalidJob, match="A monitor has no payload"):
            await scheduler.add_job("b", DAILY, payload={"a": 1})
        with pytest.raises(InvalidJob, match="runs nothing here"):
            await scheduler.add_job("b", DAILY, kind="command", payload={"argv": ["true"]})
        with pytest.raises(InvalidJob, match="has a ping trigger"):
            await scheduler.update_job("offsite", trigger=Every("1h"))


@virtual
async def test_what_could_not_be_received_while_the_machine_slept_is_not_silence(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key)
        await scene.until(at(23))
        scene.clock.elapse(90 * 60)  # nothing ran, and both clocks went on
        await scene.until(at(25, 20))
        assert await state(scheduler) == "late"
        await scene.until(at(25, 31))
        assert await state(scheduler) == "down"


@virtual
async def test_an_edit_moves_the_deadline_and_keeps_the_key(scene):
    async with scene.scheduler() as scheduler:
        key = await watch(scheduler)
        await scheduler.start()
        await ping(scheduler, key)
        await scheduler.update_job("offsite", trigger=Ping(Every("6h"), grace="10m"))
        found = await monitor(scheduler)
        assert (found["expected_at"], found["deadline"]) == ("2026-01-01T06:00:00Z", "2026-01-01T06:10:00Z")
        assert await ping_key(scheduler, "offsite") == key
