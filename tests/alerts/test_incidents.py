"""One incident is one message when it opens, at most one per cooldown while it goes on, and one when it is over."""

from __future__ import annotations

import asyncio

import pytest

from tests.alerts.phones import Phone, with_phone
from tests.delivery.targets import stored
from tests.kernel.scene import at, failing, virtual
from wakeful import Every, Manual, Once
from wakeful.domains.alerts import configure, snooze
from wakeful.errors import AlertNotFound, IntervalParseError, InvalidSetting, JobNotFound
from wakeful.kernel.engine.alerts import RULES, close_alert, open_alert

pytestmark = pytest.mark.usefixtures("minutely_sweeps")


def mended_after(failures):
    """An act that fails so often, and then no more."""
    left = [failures]

    async def act(_):
        left[0] -= 1
        if left[0] >= 0:
            raise RuntimeError("disk full")
        return "fine"

    return act


@pytest.mark.promise("X5", "X20")
@virtual
async def test_repeated_failures_are_announced_once_repeated_after_the_cooldown_and_closed_once(scene):
    phone = Phone(scene)
    scene.act = mended_after(8)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", cooldown="1h")
        await scheduler.add_job("backup", Every("20m"), max_errors=0, backoff=["10s"])
        await scheduler.start()
        await scene.sleep("4h")
        await scheduler.stop()
    # Failures at 0:20, 0:40, ... 2:40; it succeeds at 3:00.
    assert phone.events == [
        ("failing", "opened"),
        ("failing", "repeated"),
        ("failing", "repeated"),
        ("failing", "closed"),
    ]
    assert phone.times == [at(0, 40), at(1, 40), at(2, 40), at(3)]
    assert phone.titles == ["backup: failing", *["backup: failing again"] * 2, "backup: resolved (failing)"]
    first, last = phone.texts[0], phone.texts[-1]
    assert "This has happened 4 times since 2026-01-01 00:40 UTC." in phone.texts[1]
    assert "Open since 2026-01-01 00:40 UTC, for " in last
    for part in (
        "backup has failed 2 times in a row",
        "It runs: job",
        "2 times in a row; the last: disk full",
        "Failing since 2026-01-01 00:20 UTC.\n",
        "Next: it starts again at 2026-01-01 01:00 UTC.",
        "Look closer: wakeful explain backup",
    ):
        assert part in first
    assert (first.count("disk full"), first.count("in a row")) == (1, 1)
    assert "backup succeeded again." in last
    assert "for 140m" in last


@pytest.mark.parametrize(("after", "when"), [(1, at(1)), (3, at(3))])
@virtual
async def test_how_many_failures_in_a_row_make_an_alert_is_a_setting(scene, after, when):
    phone = Phone(scene)
    scene.act = failing()
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", after=after, cooldown="1d")
        await scheduler.add_job("backup", Every("1h"), max_errors=0)
        await scheduler.start()
        await scene.sleep("5h")
        assert (phone.events, phone.times) == ([("failing", "opened")], [when])


@pytest.mark.promise("X5")
@virtual
async def test_a_job_that_is_disabled_is_one_message_that_says_so_and_failing_is_not_over(scene):
    phone = Phone(scene)
    scene.act = failing("no space")
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("backup", Every("10m"), max_errors=3, backoff=["10s"])
        await scheduler.start()
        await scene.sleep("2h")
        assert phone.events == [("failing", "opened"), ("disabled", "opened")]
        assert "was disabled after 3 errors in a row" in phone.texts[-1]
        assert "Next: it is disabled and does not start again until wakeful resume backup." in phone.texts[-1]
        phone.clear()
        await scheduler.resume_job("backup")
        await scene.sleep(1)
        assert phone.events == [("disabled", "closed")]
        assert "This is over: the job was resumed." in phone.texts[0]


@virtual
async def test_a_one_shot_that_failed_is_announced(scene):
    phone = Phone(scene)
    scene.act = failing("no")
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("once", Once(at(0, 1)), retry=0)
        await scheduler.start()
        await scene.sleep("5m")
        assert ("failed", "opened") in phone.events
        assert "Next: it does not start again by itself." in phone.texts[0]


@virtual
async def test_a_run_past_its_limit_is_announced(scene):
    phone = Phone(scene)

    async def hang(_):
        await asyncio.Event().wait()

    scene.act = hang
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("slow", Manual(), timeout="10s")
        await scheduler.start()
        await scheduler.run_job("slow")
        await scene.sleep("1m")
        assert phone.events == [("stuck", "opened")]


@pytest.mark.promise("X5")
@virtual
async def test_a_run_past_its_limit_is_told_once_where_one_failure_is_enough(scene):
    phone = Phone(scene)

    async def hang(_):
        await asyncio.Event().wait()

    scene.act = hang
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", after=1)
        await scheduler.add_job("slow", Manual(), timeout="10s")
        await scheduler.start()
        await scheduler.run_job("slow")
        await scene.sleep("1m")
        assert phone.events == [("failing", "opened")]
        scene.act = None
        await scheduler.run_job("slow")
        await scene.sleep("1m")
        assert phone.events == [("failing", "opened"), ("failing", "closed")]


@pytest.mark.promise("X5")
@virtual
async def test_a_run_that_waits_for_a_person_is_announced_and_the_answer_ends_it(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("deploy", Manual(), approval=True)
        await scheduler.start()
        run = await scheduler.run_job("deploy")
        await scene.sleep(1)
        assert phone.events == [("approval", "opened")]
        (message,) = phone.got
        assert (message.run, message.job, message.data()["alert"]["run"]) == (run, "deploy", run)
        assert f"wakeful approve {run}" in message.text
        await scheduler.approve_run(run, by="ann")
        await scene.sleep(1)
        assert phone.events == [("approval", "opened"), ("approval", "closed")]
        second = await scheduler.run_job("deploy")
        await scene.sleep(1)
        await scheduler.reject_run(second, by="ann", note="not today")
        await scene.sleep(1)
        assert phone.events[2:] == [("approval", "opened"), ("approval", "closed")]
        assert "not today" in phone.texts[-1]
        assert await scheduler.list_alerts() == []


@virtual
async def test_an_acknowledged_incident_is_not_repeated_and_still_ends_with_a_message(scene):
    phone = Phone(scene)
    scene.act = mended_after(5)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", cooldown="1h")
        await scheduler.add_job("backup", Every("1h"), max_errors=0)
        await scheduler.start()
        await scene.until(at(2, 30))
        (alert,) = await scheduler.list_alerts()
        await scheduler.ack_alert(alert.id)
        await scene.sleep("5h")
        assert phone.events == [("failing", "opened"), ("failing", "closed")]


@virtual
async def test_a_snoozed_incident_is_silent_until_then_and_announced_if_it_is_still_open(scene):
    phone = Phone(scene)
    scene.act = failing()
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", cooldown="1h")
        await scheduler.add_job("backup", Every("1h"), max_errors=0)
        await scheduler.start()
        await scene.until(at(2, 10))
        (alert,) = await scheduler.list_alerts()
        snoozed = await scheduler.transact(lambda tx, _: snooze(tx, [alert.id], "3h", scheduler.host.origin()))
        assert snoozed.alerts[0].snoozed_until == at(5, 10)
        phone.clear()
        await scene.until(at(5, 5))
        assert phone.events == []
        await scene.until(at(5, 15))
        assert phone.events == [("failing", "repeated")]
        assert (await scheduler.list_alerts())[0].snoozed_until is None


@virtual
async def test_a_snoozed_job_is_silent_about_what_it_has_yet_to_raise(scene):
    phone = Phone(scene)
    scene.act = failing()
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", cooldown="1h")
        await scheduler.add_job("backup", Every("1h"), max_errors=0)
        await scheduler.start()
        done = await scheduler.transact(lambda tx, _: snooze(tx, ["backup"], "150m", scheduler.host.origin()))
        assert done.alerts == []
        await scene.until(at(2, 20))
        assert phone.events == []
        assert [alert.kind for alert in await scheduler.list_alerts()] == ["failing"]
        await scene.until(at(2, 35))
        assert phone.events == [("failing", "opened")]


@virtual
async def test_what_cannot_be_snoozed_is_said_and_changes_nothing(scene):
    async with scene.scheduler() as scheduler:
        for ref, missing in (("alr_0000000000000", AlertNotFound), ("nonsense", JobNotFound)):
            with pytest.raises(missing):
                await scheduler.transact(lambda tx, _, ref=ref: snooze(tx, [ref], "1h", scheduler.host.origin()))
        await scheduler.add_job("a", Manual())
        for time, error in (("0s", IntervalParseError), ("400d", InvalidSetting)):
            with pytest.raises(error):
                await scheduler.transact(lambda tx, _, time=time: snooze(tx, ["a"], time, scheduler.host.origin()))
        with pytest.raises(InvalidSetting, match="There is no alert kind 'nope'"):
            await configure(scheduler, to=None, urgent=["nope"])
        with pytest.raises(InvalidSetting, match="after"):
            await configure(scheduler, to=None, after=0)
        job_id = (await scheduler.get_job("a"))._state.job_id
        kept = await scheduler.read(lambda tx: (tx.alerts.job_snoozed_until(job_id), tx.facts.get(RULES)))
        assert (kept, await scheduler.list_actions()) == ((None, None), [])


@pytest.mark.promise("X19")
@virtual
async def test_urgent_kinds_pass_quiet_hours_and_the_others_wait(scene):
    phone = Phone(scene)
    async with scene.scheduler() as scheduler:
        quiet = {"quiet_hours": {"start": "00:00", "end": "07:00", "digest": False, "timezone": "UTC"}}
        scheduler.connectors.register("phone", phone, rules=quiet)
        await configure(scheduler, to="phone", urgent=["disabled"])
        await scheduler.start()
        await scheduler.transact(lambda tx, context: open_alert(tx, context, "disabled", 1, "disabled"))
        await scheduler.transact(lambda tx, context: open_alert(tx, context, "clock", "back", "set back"))
        await scene.sleep("1h")
        assert phone.events == [("disabled", "opened")]
        await scene.until(at(7, 1))
        assert phone.events == [("disabled", "opened"), ("clock", "opened")]


@pytest.mark.promise("X5")
@virtual
async def test_an_alert_that_cannot_be_delivered_raises_no_alerts_without_end(scene):
    phone = Phone(scene)
    phone.error = RuntimeError("down")
    scene.act = failing()
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", cooldown="1d")
        await scheduler.add_job("backup", Every("1h"), max_errors=0)
        await scheduler.start()
        await scene.sleep("20h")
        kinds = sorted(alert.kind for alert in await scheduler.list_alerts())
        assert kinds == ["delivery_failed", "failing"]
        assert [item["title"] for item in await stored(scheduler)] == ["backup: failing"]
        phone.error = None
        await scene.sleep("1d")
        assert {alert.kind for alert in await scheduler.list_alerts()} == {"failing"}
        assert set(phone.titles) == {"backup: failing again"}


@virtual
async def test_a_connector_that_fails_is_reported_through_another(scene):
    phone, pager = Phone(scene), Phone(scene)
    phone.error = RuntimeError("down")
    async with with_phone(scene, phone) as scheduler:
        scheduler.connectors.register("pager", pager)
        await configure(scheduler, to="pager")
        await scheduler.start()
        await scheduler.deliver("hello", to="phone")
        await scene.sleep("2h")
        assert pager.events == [("delivery_failed", "opened")]
        phone.error = None
        await scheduler.deliver("again", to="phone")
        await scene.sleep("1m")
        assert pager.events == [("delivery_failed", "opened"), ("delivery_failed", "closed")]


@virtual
async def test_alerts_to_a_connector_that_is_not_there_wait_for_it(scene):
    phone = Phone(scene)
    async with scene.scheduler() as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.start()
        await scheduler.transact(lambda tx, context: open_alert(tx, context, "clock", "back", "set back"))
        await scene.sleep("1m")
        assert {alert.kind for alert in await scheduler.list_alerts()} == {"clock", "no_connector"}
        assert len(await stored(scheduler)) == 1
        scheduler.connectors.register("phone", phone)
        await scene.sleep("1m")
        assert phone.events == [("clock", "opened")]


@virtual
async def test_without_a_recipient_incidents_are_recorded_and_nothing_is_sent(scene):
    phone = Phone(scene)
    scene.act = failing()
    async with with_phone(scene, phone) as scheduler:
        await scheduler.add_job("backup", Every("1h"), max_errors=0)
        await scheduler.start()
        await scene.sleep("5h")
        assert (phone.got, [alert.kind for alert in await scheduler.list_alerts()]) == ([], ["failing"])


@pytest.mark.promise("X5")
@virtual
async def test_a_process_that_dies_between_opening_and_sending_loses_no_message_and_doubles_none(scene):
    phone = Phone(scene)
    stuck = asyncio.Event()

    async def hang(_):
        stuck.set()
        await asyncio.Event().wait()

    scheduler = scene.scheduler()
    await scheduler.open()
    scheduler.connectors.register("phone", hang)
    await configure(scheduler, to="phone")
    await scheduler.start()
    await scheduler.transact(lambda tx, context: open_alert(tx, context, "clock", "back", "set back"))
    await scheduler.transact(lambda tx, context: open_alert(tx, context, "dead_node", "a", "a is dead"))
    await stuck.wait()  # the first is being sent, the second is stored
    await scene.crash(scheduler)
    async with with_phone(scene, phone) as again:
        await again.start()
        await scene.sleep("1m")
        await again.transact(lambda tx, context: open_alert(tx, context, "clock", "back", "set back"))
        await again.transact(lambda tx, context: close_alert(tx, context, "clock", "back"))
        await again.transact(lambda tx, context: close_alert(tx, context, "clock", "back"))
        await scene.sleep("1m")
        assert phone.events == [("clock", "opened"), ("dead_node", "opened"), ("clock", "closed")]


@virtual
async def test_a_transaction_that_fails_stores_neither_the_incident_nor_its_message(scene):
    phone = Phone(scene)

    def work(tx, context):
        open_alert(tx, context, "clock", "back", "set back")
        raise RuntimeError("no")

    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.start()
        with pytest.raises(RuntimeError):
            await scheduler.transact(work)
        await scene.sleep("1m")
        assert (await scheduler.list_alerts(), await stored(scheduler), phone.got) == ([], [], [])
