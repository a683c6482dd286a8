"""How often PostgreSQL is asked and waited for on the way of an event: each time delays it."""

from __future__ import annotations

import asyncio

import pytest

from tests.service.real_time import real
from tests.store.postgres_server import postgres_url
from tests.store.test_postgres_round_trips import LOOK, transactions
from wakeful import Prepared, Scheduler, Workflow
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand
from wakeful.domains.workflows.publishing import NewEvent, publish
from wakeful.domains.workflows.tables import WorkflowVerbs

__all__ = ["transactions"]

#: What only one transaction on the way of an event has in a statement, and how many statements each may have.
WAY = {
    "publish": ("INSERT INTO workflow_actions", 9),
    "claim": ("INSERT INTO workflow_runs", 13),
    "settle": ("INSERT INTO run_details", 13),
}
CHECKPOINTS = {"prepared": 5, "in flight": 4, "mutated": 4, "committed": 11}


def flow():
    workflow = Workflow("flow")
    consumer = workflow.consumer("work", subscribes=["events"], publishes=["results"])

    @consumer.prepare
    async def prepare(ctx, state):
        found = await ctx.peek("events")
        return Prepared({"events": [event.id for event in found]}, [event.message_id for event in found])

    @consumer.mutate
    async def mutate(ctx, prepared):
        return len(prepared.data)

    @consumer.next
    async def next_(ctx, prepared, result):
        for name in prepared.data:
            await ctx.publish("results", message_id=name, payload=result.value)
        return {"last": prepared.data}

    return workflow


def has_ended(tx, name):
    row = tx.of(WorkflowVerbs).handler("flow", "work")
    return name in row.state and tx.jobs.state_of(row.job_id).run_id is None


async def work_through(scheduler, name):
    """Publish an event, and wait until its run is over."""
    given = ByHand("events", name, {})
    await scheduler.transact(lambda tx, context: publish_by_hand(tx, context, "flow", given, who="Ada"))
    while True:
        if await scheduler.read(lambda tx: has_ended(tx, name)):
            return
        await asyncio.sleep(0.005)


@pytest.mark.promise("K9")
@real
async def test_an_event_goes_its_way_in_seven_transactions_with_few_questions_each(transactions):
    async with Scheduler(postgres_url()) as scheduler:
        scheduler.add_workflow(flow())
        await scheduler.start()
        await work_through(scheduler, "first")
        done = len(transactions)
        await work_through(scheduler, "second")
        found = [[one for one in each if not one.startswith(LOOK)] for each in transactions[done:]]
    turns = [each for each in found if any("SELECT draining, held, " in one for one in each)]
    assert 0 < len(turns) <= 3, "the engine looks when something can start: after the publish and at the end of the run"
    # Once a second a node also looks for what others wrote, and once in a while it reports that it is alive.
    found = [
        each for each in found if any("workflow" in one for one in each) or any("run_details" in one for one in each)
    ]
    assert len(found) == 7, [" | ".join(each) for each in found]
    for name, (part, most) in WAY.items():
        (only,) = [each for each in found if any(part in one for one in each)]
        assert len(only) <= most, (name, only)
        found.remove(only)
    for each, (name, most) in zip(found, CHECKPOINTS.items(), strict=True):
        assert len(each) <= most, (name, each)


@pytest.mark.promise("K6")
@real
async def test_a_thousand_messages_are_published_with_few_questions(transactions):
    from wakeful.domains.workflows.publishing import NewEvent, publish

    async with Scheduler(postgres_url()) as scheduler:
        scheduler.add_workflow(flow())
        await scheduler.start()
        await scheduler.stop()
        done = len(transactions)
        messages = [NewEvent("events", f"m{number % 999}", "{}") for number in range(1000)]
        made = await scheduler.transact(lambda tx, context: publish(tx, context, "flow", messages))
        (only,) = [each for each in transactions[done:] if any("workflow_events" in one for one in each)]
        assert len(only) <= 10, only
        assert [one.new for one in made].count(False) == 1
        assert made[-1].event_id == made[0].event_id


@real
async def test_runs_that_start_and_end_together_take_no_more_questions_than_a_few(transactions):
    """As many as a transaction has for one, whatever the number of places: what is due at once is read at once."""
    places, count, done, over = 30, 90, [], asyncio.Event()
    workflow = Workflow("flow")

    @workflow.on("events", key=lambda event: event.payload, concurrency=places)
    async def work(ctx, event):
        done.append(await ctx.step("note", lambda: event.message_id))
        if len(done) == count:
            over.set()

    async with Scheduler(postgres_url()) as scheduler:
        scheduler.add_workflow(workflow)
        await scheduler.start()
        first = len(transactions)
        messages = [NewEvent("events", f"e{number}", str(number % places)) for number in range(count)]
        await scheduler.transact(lambda tx, context: publish(tx, context, "flow", messages))
        await over.wait()
        later = transactions[first:]
    assert sorted(done) == sorted(f"e{number}" for number in range(count))
    most = max(later, key=len)
    assert len(most) <= 2 * places, [" ".join(statement.split()[:8]) for statement in most]
