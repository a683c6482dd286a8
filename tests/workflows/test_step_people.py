"""What people do about parked events, however many there are."""

from __future__ import annotations

import asyncio
import threading

import pytest

from tests.workflows.mailroom import virtual
from wakeful import NotFound, Scheduler, ScheduleTriggerError, TransientError, Workflow, ids
from wakeful.domains.workflows.publishing import NewEvent, publish
from wakeful.domains.workflows.steps.tables import PARKED, TaskRow, Tasks
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.explanation import explain_event
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.triggers.moments import spoken

MANY, KEYS = 1_050, 7


def post(ledger):
    workflow = Workflow("post")

    @workflow.on("letters", retry=[], on_failure="park", key=lambda event: event.payload % KEYS, concurrency=3)
    async def send(ctx, event):
        await ctx.step("send", ledger.append, event.payload)

    return workflow


def park_all(tx, context):
    """As if each had failed, without thousands of runs."""
    messages = [NewEvent("letters", f"m{number}", str(number)) for number in range(MANY)]
    publish(tx, context, "post", messages)
    events = tx.of(Tasks).unkeyed("post", "letters", 0, MANY)
    tx.of(Topics).reserve([event.id for event in events], 1)
    tasks = [
        TaskRow(
            event_id=event.id, workflow="post", handler="send", topic="letters", key=str(int(event.payload) % KEYS),
            seq=event.seq, revision=event.revision, status=PARKED, tries=2, run_id=1, error="closed", updated_at=tx.now,
        )
        for event in events
    ]  # fmt: skip
    tx.of(Tasks).add(tasks)
    return [int(event.payload) for event in events]


@pytest.mark.promise("X32")
@virtual
async def test_all_parked_events_are_replayed_in_their_order_however_many_there_are(room):
    ledger = []
    async with room.scene.scheduler() as scheduler:
        scheduler.add_workflow(post(ledger))
        await scheduler.start()
        await scheduler.workflows.pause("post")
        assert await scheduler.transact(park_all) == list(range(MANY))
        found = await scheduler.workflows.replay_parked("post")
        events = {one["id"]: one["payload"] for one in await scheduler.workflows.events("post", limit=10_000)}
        assert [events[one] for one in found] == list(range(MANY)), "all of them, the oldest first"
        counts = await scheduler.read(lambda tx: tx.of(Tasks).counts("post"))
        assert counts == {"ready": KEYS, "queued": MANY - KEYS}
        first = await scheduler.read(lambda tx: tx.of(Tasks).ready("post", "send", MANY))
        assert [events[ids.encode("evt", task.event_id)] for task in first] == list(range(KEYS)), (
            "of each key the oldest"
        )
        assert (await scheduler.workflows.get("post"))["parked"] == 0


@pytest.mark.promise("X32", "K16")
@virtual
async def test_a_parked_event_is_explained_and_the_id_of_its_message_leads_to_it(room):
    closed = [True]
    workflow = Workflow("post")

    @workflow.on("letters", retry=["1h"], on_failure="park", key=lambda event: event.payload)
    async def send(ctx, event):
        if closed:
            raise TransientError("closed on Sundays")

    async def said(ref):
        return (await scheduler.read(lambda tx: explain_event(tx, ref, spoken))).sentences[-1]

    async with room.scene.scheduler() as scheduler:
        scheduler.add_workflow(workflow)
        await scheduler.start()
        messages = [NewEvent("letters", f"m{number}", '"a"') for number in range(2)]
        await scheduler.transact(lambda tx, context: publish(tx, context, "post", messages))
        await room.sleep("1m")
        events = {one["message_id"]: one["id"] for one in await scheduler.workflows.events("post")}
        assert "failed (closed on Sundays), and it is tried again at " in await said(events["m0"])
        assert await said(events["m1"]) == "It waits for an earlier event with the key '\"a\"'."
        await room.sleep("3h")
        parked = await said(events["m0"])
        assert parked.startswith("It is parked: send failed 2 times, last in run_")
        assert f"(closed on Sundays). It waits for a person: wakeful workflow replay post {events['m0']}, or" in parked
        with pytest.raises(NotFound, match=f"'m0' is the id of a message.* the column EVENT: {events['m0']}"):
            await scheduler.workflows.replay("post", "m0")
        closed.clear()
        await scheduler.workflows.replay("post", events["m0"])
        await room.sleep("1m")
        assert " consumed it at " in await said(events["m0"])


async def eventually(ask, met):
    async with asyncio.timeout(60):
        while not met(found := await ask()):  # noqa: ASYNC110 - only the store knows
            await asyncio.sleep(0.02)
        return found


@pytest.mark.promise("X32")
def test_a_thread_that_is_still_at_work_keeps_its_event_parked_and_no_other(tmp_path):
    over, done, workflow = threading.Event(), [], Workflow("post")

    def send(letter):
        if letter == "slow":
            over.wait(60)
        elif letter not in done:
            done.append(letter)
            raise ValueError("not yet")
        done.append(letter)

    @workflow.on("letters", retry=[], on_failure="park")
    async def carry(ctx, event):
        await ctx.step("send", send, event.payload, timeout="1s")

    async def main():
        async with Scheduler(f"sqlite:///{tmp_path}/wakeful.db") as scheduler:
            scheduler.add_workflow(workflow)
            await scheduler.start()
            for letter in ("slow", "other"):
                await scheduler.workflows.publish("post", "letters", letter, message_id=letter)
            parked = await eventually(
                lambda: scheduler.workflows.events("post", status="parked"), lambda found: len(found) > 1
            )
            assert {one["message_id"] for one in parked} == {"slow", "other"}
            assert len(await scheduler.workflows.replay_parked("post")) == 1
            await eventually(lambda: scheduler.workflows.events("post", status="consumed"), bool)
            assert done == ["other", "other"]
            with pytest.raises(ScheduleTriggerError, match="still at work"):
                await scheduler.workflows.replay_parked("post")
            over.set()

    asyncio.run(main())


@pytest.mark.promise("X32")
@virtual
async def test_a_person_may_settle_a_step_long_after_its_run_is_no_longer_kept(room):
    ledger, workflow = [], Workflow("post")

    @workflow.on("letters", retry=[], on_failure="park")
    async def send(ctx, event):
        await ctx.step("send", asyncio.sleep, 0 if ledger else 60, timeout="1s")
        ledger.append(event.payload)

    async with room.scene.scheduler() as scheduler:
        scheduler.add_workflow(workflow)
        await scheduler.start()
        await scheduler.workflows.publish("post", "letters", 1, message_id="1")
        await room.sleep("1m")
        [parked] = await scheduler.workflows.events("post", status="parked")
        number = ids.number_of("run", parked["run"])

        def prune(tx, _):
            tx.runs.delete([number])
            tx.of(WorkflowVerbs).forget_runs([number])
            return tx.of(WorkflowVerbs).prune_runs(number + 1, 100)

        await scheduler.transact(prune)
        await scheduler.workflows.settle("post", parked["run"], "happened")
        await room.sleep("1m")
        assert ledger == [1]
        assert await scheduler.transact(prune) >= 0
        assert await scheduler.read(lambda tx: tx.of(WorkflowVerbs).run(number)) is None, "nothing needs it any more"


@pytest.mark.promise("X32")
@virtual
async def test_an_event_that_waits_to_be_settled_is_not_replayed_and_no_replay_is_offered(room):
    ledger, workflow, broken = [], Workflow("post"), [True]

    @workflow.on("letters", retry=[], on_failure="park")
    async def send(ctx, event):
        if event.payload == "bad" and broken:
            raise ValueError("no address")
        await ctx.step("send", asyncio.sleep, 60 if event.payload == "slow" else 0, timeout="1s")
        ledger.append(event.payload)

    async with room.scene.scheduler() as scheduler:
        scheduler.add_workflow(workflow)
        await scheduler.start()
        await scheduler.workflows.publish("post", "letters", "slow", message_id="1")
        await room.sleep("1m")
        [parked] = await scheduler.workflows.events("post", status="parked")
        issue = (await scheduler.workflows.get("post"))["issue"]
        assert (issue["kind"], issue["actions"], issue["run"]) == ("parked", ["parked", "settle"], parked["run"])
        explained = (await scheduler.read(lambda tx: explain_event(tx, parked["id"], spoken))).sentences[-1]
        assert f"workflow settle post {parked['run']}" in explained
        assert "replay" not in explained + issue["message"]
        said = f"{parked['id']} cannot be replayed yet. It is not known whether the step 'send' happened .* settle post"
        with pytest.raises(ScheduleTriggerError, match=said):
            await scheduler.workflows.replay("post", parked["id"])
        with pytest.raises(ScheduleTriggerError, match=said):
            await scheduler.workflows.replay_parked("post")
        await scheduler.workflows.publish("post", "letters", "bad", message_id="2")
        await room.sleep("1m")
        assert (await scheduler.workflows.get("post"))["issue"]["actions"] == ["parked", "replay"]
        broken.clear()
        assert len(await scheduler.workflows.replay_parked("post")) == 1, "the one that can go on"
        await room.sleep("1m")
        assert ledger == ["bad"]
        assert (await scheduler.workflows.get("post"))["issue"]["actions"] == ["parked", "settle"]
        await scheduler.workflows.settle("post", parked["run"], "happened")
        await room.sleep("1m")
        assert ledger == ["bad", "slow"]
