"""Messages are stored with what causes them, sent in order, retried on the ladder, and never lost."""

from __future__ import annotations

import asyncio
import re
from zoneinfo import ZoneInfo

import pytest

from tests.delivery.targets import Target, known, one, raising, refusing, sending_to, stored
from tests.kernel.scene import virtual
from wakeful import Every, Manual, Retention
from wakeful import clock as clocks
from wakeful.domains.delivery.connector import Permanent, Temporary, Unclear
from wakeful.domains.delivery.outbox import cancel
from wakeful.domains.delivery.views import delivery_number, explain_delivery
from wakeful.errors import ConnectorNotFound, InvalidJob, InvalidSetting

FIVE = [0, 5, 30, 150, 750]


@pytest.mark.promise("A8")
@virtual
async def test_a_failing_target_is_tried_five_times_on_the_ladder_and_the_message_is_kept_as_failed(scene):
    target = Target(scene)
    target.act = raising(RuntimeError("down"))
    async with sending_to(scene, target) as scheduler:
        target.mark()
        number = await scheduler.deliver("hello", to="phone", title="T")
        await scene.sleep("2h")
        assert target.times == FIVE
        assert {call[1] for call in target.calls} == {number}  # one id for every attempt
        found = await one(scheduler, number)
        assert (found["status"], found["attempts"], found["last_error"]) == ("failed", 5, "RuntimeError: down")
        assert [(item["ok"], item["error"]) for item in found["log"]] == [(False, "RuntimeError: down")] * 5
        (alert,) = await scheduler.list_alerts()
        assert alert.kind == "delivery_failed"
        assert "phone after 5 attempts: RuntimeError: down" in alert.message
        # A person sends it again, once the target is back.
        target.act = None
        target.mark()
        from wakeful.domains.delivery.outbox import requeue_all

        assert await scheduler.transact(lambda tx, context: requeue_all(tx, context, "failed")) == 1
        await scene.sleep(1)
        assert target.calls == [(0, number, "hello")]
        assert (await one(scheduler, number))["status"] == "sent"
        assert await scheduler.list_alerts() == []


@virtual
async def test_a_message_that_waits_can_be_cancelled_and_the_next_one_goes_out(scene):
    target = Target(scene)
    target.act = raising(RuntimeError("down"))
    async with sending_to(scene, target) as scheduler:
        first, second = [await scheduler.deliver(text, to="phone") for text in ("one", "two")]
        await scene.sleep(1)
        waits = await scheduler.read(lambda tx: explain_delivery(tx, delivery_number(first), ZoneInfo("Asia/Tokyo")))
        assert re.search(r"the next attempt is at 2\d{3}-\d\d-\d\d \d\d:\d\d\S* JST \(.*UTC\)\.$", waits.sentences[1])
        target.act = None
        row = await scheduler.transact(lambda tx, _: cancel(tx, delivery_number(first)))
        assert (row.status, row.last_error) == ("expired", "a person cancelled it")
        await scene.sleep("1h")
        assert [call[1] for call in target.calls] == [first, second]
        story = await scheduler.read(lambda tx: explain_delivery(tx, delivery_number(first)))
        assert story.sentences[1:] == ["It is not sent any more.", "Why: a person cancelled it."]
        assert (await one(scheduler, second))["status"] == "sent"
        assert (await scheduler.transact(lambda tx, _: cancel(tx, delivery_number(second)))).status == "sent"


@pytest.mark.parametrize(
    ("error", "times", "status"),
    [
        (Permanent("gone"), [0], "failed"),
        (Temporary("busy", retry_after=60), [0, 60, 120, 240, 840], "failed"),
        (Temporary("busy", retry_after=1), FIVE, "failed"),
        (Unclear("no answer"), FIVE, "failed"),
    ],
)
@virtual
async def test_what_a_connector_says_decides_when_it_is_tried_again(scene, error, times, status):
    target = Target(scene)
    target.act = raising(error)
    async with sending_to(scene, target) as scheduler:
        target.mark()
        number = await scheduler.deliver("hello", to="phone")
        await scene.sleep("2h")
        assert (target.times, (await one(scheduler, number))["status"]) == (times, status)


@virtual
async def test_a_target_that_hangs_is_given_up_after_thirty_seconds_as_unknown(scene):
    target = Target(scene)

    async def hang(_):
        await asyncio.Event().wait()

    target.act = hang
    async with sending_to(scene, target) as scheduler:
        target.mark()
        number = await scheduler.deliver("hello", to="phone")
        await scene.sleep(31)
        found = await one(scheduler, number)
        assert (found["status"], found["attempts"]) == ("unknown", 1)
        assert "may have arrived" in found["last_error"]
        assert [(item["ok"], item["ms"]) for item in found["log"]] == [(None, 30_000)]
        target.act = None
        await scene.sleep("1m")
        assert target.times == [0, 35]
        assert (await one(scheduler, number))["status"] == "sent"


@pytest.mark.promise("A8")
@virtual
async def test_a_process_that_dies_while_it_sends_leaves_an_unknown_attempt_that_is_made_again(scene):
    target = Target(scene)
    sending = asyncio.Event()

    async def hang(_):
        sending.set()
        await asyncio.Event().wait()

    target.act = hang
    scheduler = scene.scheduler()
    await scheduler.open()
    scheduler.connectors.register("phone", target)
    await scheduler.start()
    number = await scheduler.deliver("hello", to="phone")
    second = await scheduler.deliver("world", to="phone")
    await sending.wait()
    await scene.crash(scheduler)
    target.act = None
    async with scene.scheduler() as again:
        again.connectors.register("phone", target)
        await again.start()
        await scene.sleep("5h")
        found = await one(again, number)
        assert (found["status"], found["attempts"]) == ("sent", 2)
        first = found["log"][0]
        assert (first["ok"], first["ms"]) == (None, None)
        assert "the process ended while it was being sent: it may have arrived" in first["error"]
        assert target.texts == ["hello", "hello", "world"]
        assert [call[1] for call in target.calls] == [number, number, second]
        await again.stop()


@pytest.mark.promise("A9")
@virtual
async def test_pending_messages_are_tried_at_once_after_a_start_oldest_first(scene):
    target = refusing(scene)
    async with sending_to(scene, target) as scheduler:
        for number in range(3):
            await scheduler.deliver(f"m{number}", to="phone")
        await scene.sleep("3m")  # the first waits ten minutes for its fifth attempt
    target.act = None
    target.mark()
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("phone", target)
        fired = []

        async def act(run):
            fired.append((await known(scheduler))[0]["name"])

        scene.act = act
        await scheduler.add_job("a", Every("1h"), kind="job")
        await scheduler.start()
        await scene.sleep(1)
        assert target.texts == ["m0", "m1", "m2"]
        assert target.times == [0, 0, 0]
        await scene.sleep("1h")
        assert fired[:1] == ["phone"]  # connectors were there before anything fired
        await scheduler.stop()


@virtual
async def test_messages_older_than_their_age_expire(scene):
    target = refusing(scene)
    async with sending_to(scene, target, {"max_age": "1m", "attempts": 9}) as scheduler:
        await scheduler.deliver("old", to="phone")
        await scene.sleep("61s")
        assert [item["status"] for item in await stored(scheduler)] == ["expired"]
        target.act = None
        await scheduler.deliver("new", to="phone")
        await scene.sleep(1)
        assert [item["status"] for item in await stored(scheduler)] == ["expired", "sent"]


@virtual
async def test_a_message_that_names_no_connector_is_refused_and_changes_nothing(scene):
    async with scene.scheduler() as scheduler:
        scheduler.connectors.register("disk", Target(scene))
        await scheduler.start()
        with pytest.raises(ConnectorNotFound, match="There is no connector named 'phone': there are disk"):
            await scheduler.deliver("hello", to="phone")
        for bad in ("", "x" * 100_001, 5):
            with pytest.raises(InvalidJob, match="A message is a text"):
                await scheduler.deliver(bad, to="disk")
        for bad in ("last", "none", "Phone", "a b", ""):
            with pytest.raises(InvalidSetting, match="neither last nor none"):
                scheduler.connectors.register(bad, Target(scene))
        for bad in ({"rate": "fast"}, {"attempts": 0}, {"max_age": "soon"}, {"quiet_hours": {"start": "25:00"}}):
            with pytest.raises(InvalidSetting):
                scheduler.connectors.register("x", Target(scene), rules=bad)
        for bad in (5, {"on": "any"}, {"to": "phone", "on": "maybe"}, {"to": "phone", "when": 1}, "A B"):
            with pytest.raises(InvalidJob, match="deliver"):
                await scheduler.add_job("a", Manual(), kind="job", deliver=bad)
        assert await stored(scheduler) == []
        await scheduler.stop()


@virtual
async def test_only_the_connectors_own_job_sends_through_it(scene):
    target = refusing(scene)
    async with sending_to(scene, target) as scheduler:
        with pytest.raises(InvalidJob, match="made with their connector"):
            await scheduler.add_job("bad", Manual(), kind="delivery")
        await scheduler.add_job("mine", Manual(), kind="delivery", payload={"connector": "phone"})
        target.mark()
        await scheduler.deliver("hello", to="phone")
        await scene.sleep(1)
        for _ in range(3):
            await scheduler.run_job("mine")
            await scene.sleep(1)
        assert target.times == [0]

        async def slow(_):
            await clocks.sleep(20)

        target.act = slow
        await scene.sleep(3)  # its own job tries again
        await scheduler.run_job("mine")
        await scene.sleep(1)
        assert len(target.calls) == 2
        assert [item["status"] for item in await stored(scheduler)] == ["sending"]
        await scene.sleep("1m")
        assert [job.name for job in await scheduler.list_jobs()] == []
        assert [job.name for job in await scheduler.list_jobs(internal=True)] == ["delivery.phone", "mine"]


@virtual
async def test_a_node_without_a_connector_leaves_its_messages_to_one_that_has_it(scene):
    target = Target(scene)
    async with sending_to(scene, target):
        pass  # from now on its job is known
    async with scene.scheduler() as without:
        without.connectors.register("disk", Target(scene))
        await without.start()
        await without.deliver("hello", to="phone")
        await scene.sleep("2h")
        assert target.calls == []
        assert [item["status"] for item in await stored(without)] == ["pending"]
        assert "no_node" in [alert.kind for alert in await without.list_alerts()]
        await without.stop()
    async with sending_to(scene, target):
        await scene.sleep(1)
        assert target.texts == ["hello"]


@virtual
async def test_finished_messages_are_pruned_and_waiting_ones_never(scene):
    target = Target(scene)
    async with scene.scheduler(retention=Retention(days=1)) as scheduler:
        scheduler.connectors.register("phone", target)
        await scheduler.start()
        await scheduler.deliver("old", to="phone")
        await scheduler.add_job("a", Manual(), kind="job", deliver="nobody")
        await scheduler.run_job("a")
        await scene.sleep("30h")
        assert [item["connector"] for item in await stored(scheduler)] == ["nobody"]
        await scheduler.stop()


@pytest.mark.promise("A9")
@virtual
async def test_one_run_sends_for_a_minute_and_leaves_the_rest_to_the_next(scene):
    target = Target(scene)

    async def slow(_):
        await clocks.sleep(25)

    target.act = slow
    async with sending_to(scene, target) as scheduler:
        await scene.sleep(1)
        target.mark()
        for number in range(5):
            await scheduler.deliver(f"m{number}", to="phone")
        await scene.sleep("5m")
        assert target.times == [0, 25, 50, 75, 100]
        runs = await scheduler.get_run_log("delivery.phone")
        sent = [run.output["sent"] for run in runs if run.outcome == "success"]
        assert sent == [2, 3]  # the newest first


@pytest.mark.promise("A8")
@virtual
async def test_a_message_that_waited_for_a_paused_job_is_sent_when_it_is_resumed(scene):
    target = Target(scene)
    async with sending_to(scene, target) as scheduler:
        await scheduler.deliver("before", to="phone")
        await scene.sleep("1m")
        await scheduler.pause_job("delivery.phone")
        target.mark()
        await scheduler.deliver("hello", to="phone")
        await scene.sleep("10m")
        assert target.calls == []
        target.mark()
        await scheduler.resume_job("delivery.phone")
        await scene.sleep(1)
        assert target.times == [0]


@pytest.mark.promise("A8")
@virtual
async def test_a_clock_that_is_set_back_delays_no_message(scene):
    target = Target(scene)
    async with sending_to(scene, target, {"rate": "1/m"}) as scheduler:
        await scene.sleep("1h")
        target.act = raising(RuntimeError("down"))
        await scheduler.deliver("hello", to="phone")
        await scene.sleep(1)
        assert len(target.calls) == 1
        target.act = None
        target.mark()
        before = scene.clock.boot()
        scene.step(hours=-5)
        await scene.sleep("3m")  # within a minute the step is noticed
        assert [call[2] for call in target.calls] == ["hello"]
        assert scene.clock.boot() - before < 200_000


@pytest.mark.promise("X11")
@virtual
async def test_messages_may_be_kept_for_another_time_than_runs(scene):
    target = Target(scene)
    async with scene.scheduler(retention=Retention(days=9, message_days=2)) as scheduler:
        scheduler.connectors.register("phone", target)
        await scheduler.add_job("a", Every("12h"), kind="job", deliver="phone")
        await scheduler.start()
        await scene.sleep("8d")
        assert len(await scheduler.get_run_log("a", limit=100)) == 16
        assert len(await stored(scheduler)) <= 6
        await scheduler.stop()
