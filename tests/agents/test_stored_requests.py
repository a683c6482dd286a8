"""What the store keeps of requests and chat messages: each rule by itself, in virtual time."""

from __future__ import annotations

import json

import pytest

from tests.agents.hooks import hook
from tests.agents.test_chat_schedules import Phone, write
from tests.agents.virtual_agents import agent
from tests.kernel.scene import virtual
from wakeful import ids
from wakeful.domains.agents.inbound.messages import InboundMessage
from wakeful.domains.agents.inbound.payloads import DEEPEST, values_in
from wakeful.domains.agents.inbound.receiving import Inbound, replay, request_text, take, take_request
from wakeful.domains.agents.inbound.tables import InboundRequests, RequestRow
from wakeful.domains.delivery.tables import Outbox
from wakeful.errors import ScheduleTriggerError
from wakeful.store.records import RunDetails, RunRow

HOOKS = {"deploy": hook(prompt="Deploy."), "build": hook(prompt="Build.")}


def given(delivery="d-1", body="{}"):
    return Inbound("webhook", delivery, {}, body)


@pytest.mark.promise("D4", "D5")
@pytest.mark.parametrize(
    ("changes", "due", "skips"),
    [
        ({}, 0, {}),
        ({"parked": "busy"}, None, {}),
        ({"run_id": 7}, None, {}),
        ({"paused": 1}, None, {"paused": 1}),
    ],
)
@virtual
async def test_a_request_to_a_job_that_cannot_start_waits_in_its_place(scene, agents, changes, due, skips):
    async with agents.scheduler_with({"a": agent(schedules=HOOKS)}) as scheduler:

        def work(tx, context):
            job, state = tx.jobs.by_name("a.deploy")
            tx.jobs.save([state._replace(due_at=None, **changes)])
            take(tx, context, tx.jobs.by_name("a.deploy"), given())
            after = tx.jobs.by_name("a.deploy")[1]
            found = {row.reason: row.times for row in tx.skips.of(job.id)}
            return None if after.due_at is None else after.due_at - tx.now, after.queued, found

        assert await scheduler.transact(work) == (due, 1, skips)


@pytest.mark.promise("D4")
@virtual
async def test_a_delivery_id_counts_for_its_own_schedule(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules=HOOKS)}) as scheduler:

        def work(tx, context):
            names = ("a.deploy", "a.build", "a.deploy")
            return [take(tx, context, tx.jobs.by_name(name), given()) for name in names]

        first, other, again = await scheduler.transact(work)
        assert [one.is_duplicate for one in (first, other, again)] == [False, False, True]
        assert (again.request_id, again.run_id) == (first.request_id, first.run_id)


@pytest.mark.promise("D4")
@virtual
async def test_a_run_by_time_works_on_no_request(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules=HOOKS)}) as scheduler:

        def work(tx, context):
            pair = tx.jobs.by_name("a.deploy")
            taken = take(tx, context, pair, given(body='{"ref": "main"}'))
            details = tx.runs.details(taken.run_id)
            found = []
            for reason in ("schedule", "catch_up", "webhook", "retry"):
                run = RunRow.queued(context.new_id(), pair[0], reason, tx.now)
                tx.runs.add([run])
                tx.runs.detail([RunDetails(run.id, payload=details.payload)])
                request = take_request(tx, pair[0], run)
                found.append(None if request is None else request["request"]["body"])
            return found

        assert await scheduler.transact(work) == [None, None, '{"ref": "main"}', '{"ref": "main"}']


@pytest.mark.promise("D4")
@virtual
async def test_a_run_whose_request_was_pruned_says_so_and_asks_no_agent(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules=HOOKS)}) as scheduler:

        def work(tx, context):
            taken = take(tx, context, tx.jobs.by_name("a.deploy"), given())
            tx.of(InboundRequests)._session.execute("DELETE FROM agent_requests")
            return ids.run_text(taken.run_id)

        run = await scheduler.transact(work)
        await scheduler.start()
        await scene.sleep("1m")
        found = await scheduler.get_run(run)
        assert (found.outcome, found.error) == (
            "error",
            "The request it was to work on was pruned: its content is gone.",
        )
        assert agents.turns == []


@pytest.mark.promise("D4")
@virtual
async def test_a_message_that_woke_its_agent_cannot_run_again(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler:

        def work(tx, context):
            job, _ = tx.jobs.by_name("a.wake")
            row = RequestRow(context.new_id(), job.id, "chat", None, None, 0, tx.now, "{}", "Hello")
            tx.of(InboundRequests).add(row)
            replay(tx, context, request_text(row.id))

        with pytest.raises(ScheduleTriggerError, match="cannot run again: no schedule took it"):
            await scheduler.transact(work)


@pytest.mark.promise("D4")
@virtual
async def test_a_message_starts_only_schedules_that_hear_its_connector_and_are_enabled(scene, agents):
    plan = {name: {"chat": {"connector": name}} for name in ("phone", "other")}
    async with agents.scheduler() as scheduler:
        Phone(scheduler)
        Phone(scheduler, "other")
        await scheduler.agents.apply({"a": agent(schedules=plan)})
        await scheduler.start()
        assert len(await write(scheduler, "Hello", number="1")) == 1
        await scene.sleep(5)
        assert [turn.schedule for turn in agents.turns] == ["phone"]
        touched = await scheduler.read(lambda tx: tx.of(Outbox).interactions())
        assert [(one.agent, one.connector, one.sender) for one in touched] == [("a", "phone", "42")]

        def disable(tx, _):
            _, state = tx.jobs.by_name("a.phone")
            tx.jobs.save([state._replace(enabled=0)])

        await scheduler.transact(disable)
        assert await write(scheduler, "Hello", number="2") == []


@pytest.mark.promise("D4")
def test_messages_of_two_connectors_with_the_same_number_are_two():
    numbers = [InboundMessage(name, "42", "Hello", "1").inbound().delivery_id for name in ("phone", "other")]
    assert numbers == ["phone:1", "other:1"]


@pytest.mark.promise("X18")
@pytest.mark.parametrize(("depth", "is_read"), [(DEEPEST, True), (DEEPEST + 1, False)])
def test_a_payload_is_read_so_deep_and_no_deeper(depth, is_read):
    value = "end"
    for _ in range(depth):
        value = {"a": value}
    found = values_in(json.dumps(value), "application/json")
    assert isinstance(found, dict) is is_read
