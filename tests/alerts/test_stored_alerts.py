"""What is sent about an incident, and what is not: each rule by itself, in virtual time."""

from __future__ import annotations

import json

import pytest

from tests.alerts.phones import Phone, with_phone
from tests.alerts.test_dead_man import URL, Watcher
from tests.delivery.targets import stored
from tests.kernel.scene import at, virtual
from wakeful import Every, ids
from wakeful.domains.alerts import configure
from wakeful.domains.alerts.dead_man import DeadMan
from wakeful.kernel.engine.alerts import close_alert, open_alert, send_snoozed
from wakeful.store.records import NodeRow

pytestmark = pytest.mark.usefixtures("minutely_sweeps")
NIGHT = {"quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "UTC"}}


@pytest.mark.promise("X5")
@virtual
async def test_the_end_of_a_snooze_is_announced_within_the_cooldown_and_not_after_a_person_has_seen_it(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone", cooldown="1h")
        await scheduler.start()
        await scheduler.stop()

        def work(tx, context):
            for subject in ("one", "two"):
                open_alert(tx, context, "clock", subject, "It was set.")
            alerts = {alert.key: alert.id for alert in tx.alerts.all_open()}
            for number in alerts.values():
                tx.alerts.snooze(number, tx.now + 1_000)
            tx.alerts.ack(alerts["clock:two"], tx.now)
            tx.now += 2_000
            return [send_snoozed(tx, context, 9), send_snoozed(tx, context, 9)]

        assert await scheduler.transact(work) == [2, 0]
        assert len(await stored(scheduler)) == 3, "both when they opened, and one when its snooze was over"


@pytest.mark.promise("X5")
@virtual
async def test_that_an_urgent_incident_is_over_can_wait_for_the_morning(scene):
    phone = Phone(scene)
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("phone", phone, rules=NIGHT)
        await configure(scheduler, to="phone", urgent=["clock"])
        await scheduler.start()
        await scene.until(at(hours=23))
        await scheduler.transact(lambda tx, context: open_alert(tx, context, "clock", "x", "It was set."))
        await scene.sleep(5)
        await scheduler.transact(lambda tx, context: close_alert(tx, context, "clock", "x"))
        await scene.sleep(5)
        assert phone.events == [("clock", "opened")]
        assert [item["status"] for item in await stored(scheduler)] == ["sent", "held"]
        await scheduler.stop()


@pytest.mark.promise("X5")
@pytest.mark.parametrize("to", ["phone", "last"])
@pytest.mark.parametrize("about", ["connector", "job", "other"])
@virtual
async def test_no_message_goes_through_the_connector_it_is_about(scene, to, about):
    async with with_phone(scene, Phone(scene)) as scheduler:
        await configure(scheduler, to=to)
        await scheduler.start()
        await scheduler.stop()

        def work(tx, context):
            if about == "job":
                job = tx.jobs.by_name("delivery.phone")[0]
                open_alert(tx, context, "stuck", job.id, "It hangs.", job_id=job.id)
            else:
                name = "phone" if about == "connector" else "letter"
                open_alert(tx, context, "delivery_failed", name, "It failed.")

        await scheduler.transact(work)
        assert len(await stored(scheduler)) == (1 if about == "other" else 0)


@pytest.mark.promise("X5")
@virtual
async def test_the_second_call_that_fails_is_an_alert_and_one_of_a_node_that_lives_stays_open(scene):
    watcher = Watcher(scene)
    watcher.answer = 500
    async with scene.scheduler() as scheduler:
        scheduler.host.add_service(DeadMan(scheduler, URL, watcher))

        def others(tx, context):
            for number, name in ((1, "there"), (2, "gone")):
                stopped = None if name == "there" else tx.now
                tx.members.join(NodeRow(number, name, tx.now, tx.now, stopped, "{}"))
                open_alert(tx, context, "dead_man", name, f"Node {name} cannot call.")

        await scheduler.start()
        await scheduler.transact(others)
        await scene.sleep(31)
        assert len(watcher.times) == 2
        opened = [alert.key for alert in await scheduler.read(lambda tx: tx.alerts.open_of("dead_man"))]
        assert sorted(opened) == ["dead_man:gone", "dead_man:here", "dead_man:there"]
        watcher.answer = 200
        await scene.sleep(35)
        (left,) = await scheduler.read(lambda tx: tx.alerts.open_of("dead_man"))
        assert left.key == "dead_man:there"


@pytest.mark.promise("X20")
@virtual
async def test_a_message_about_a_run_names_that_run_and_not_the_last_one(scene):
    phone = Phone(scene)
    async with with_phone(scene, phone) as scheduler:
        await configure(scheduler, to="phone")
        await scheduler.add_job("backup", Every("20m"))
        await scheduler.start()
        await scene.sleep("25m")
        first = ids.decode((await scheduler.get_run_log("backup"))[0].id)[1]
        await scene.sleep("20m")

        def work(tx, context):
            job = tx.jobs.by_name("backup")[0]
            open_alert(tx, context, "failed", job.id, "It failed.", job_id=job.id, data=json.dumps({"run": first}))

        await scheduler.transact(work)
        await scene.sleep(5)
        assert phone.got[-1].data()["alert"]["run"] == ids.run_text(first)
        await scheduler.stop()
