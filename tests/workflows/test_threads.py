"""A thread that was cut off works on: until it has ended, nothing is asked and nothing of its workflow starts."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import threading

import pytest

from tests.service.real_time import TO_BEGIN_S, make, real
from tests.waiting import eventually
from tests.workflows.mailroom import publish as publish_mail
from tests.workflows.mailroom import virtual
from wakeful import (
    Applied,
    ApprovalNeeded,
    Interval,
    NotApplied,
    Prepared,
    Scheduler,
    ScheduleTriggerError,
    TransientError,
    Workflow,
    ids,
)
from wakeful.domains.workflows import actions
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.threads import Work, is_left
from wakeful.domains.workflows.views import workflow_view
from wakeful.testing import WorkflowTest

TOGETHER = ("to_thread", "executor", "ctx.call", "def")
PATIENCE_S = 120


class Bank:
    """A bank that takes its time: each payment waits for the gate, whatever becomes of who asked for it."""

    def __init__(self):
        self.paid = []
        self.asked = []  # what reconcile found
        self.begun = threading.Event()
        self.gate = threading.Event()
        self.at_once = 0  # payments that are being made
        self.most_at_once = 0

    def pay(self, bill):
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        self.begun.set()
        self.gate.wait(PATIENCE_S)
        self.paid.append(bill)
        self.at_once -= 1

    def workflow(self, way, timeout, *, reconciles=True):
        workflow = Workflow("bank")
        pay = workflow.consumer("pay", subscribes=["bills"], timeout=timeout)

        @pay.prepare
        async def prepare(ctx, state):
            bills = await ctx.peek("bills", limit=1)
            return Prepared({"bills": [bill.id for bill in bills]}, [bill.message_id for bill in bills])

        async def mutate(ctx, prepared):
            [bill] = prepared.data
            if way == "to_thread":
                await asyncio.to_thread(self.pay, bill)
            elif way == "executor":
                await asyncio.get_running_loop().run_in_executor(None, functools.partial(self.pay, bill))
            else:
                await ctx.call(self.pay, bill)

        def mutate_here(ctx, prepared):
            [bill] = prepared.data
            ctx.call(self.pay, bill)

        pay.mutate(mutate_here if way == "def" else mutate)

        if reconciles:

            @pay.reconcile
            async def reconcile(ctx, prepared):
                self.asked.append(list(self.paid))
                return Applied() if set(prepared.data) <= set(self.paid) else NotApplied()

        return workflow


async def until(ask, good):
    """The first answer that is good."""
    async with asyncio.timeout(PATIENCE_S):
        while not good(found := await ask()):  # noqa: ASYNC110 - what is stored has no event
            await asyncio.sleep(0.005)
    return found


async def publish(scheduler, bill):
    given = ByHand("bills", bill, None)
    await scheduler.transact(lambda tx, context: publish_by_hand(tx, context, "bank", given, who="Ada"))


async def begun(scheduler, bank, bill="1"):
    """Publish a bill; the run that is paying it."""
    await publish(scheduler, bill)
    await asyncio.get_running_loop().run_in_executor(None, bank.begun.wait, PATIENCE_S)
    return await until(functools.partial(newest, scheduler), lambda run: run.mutation == "in_flight")


async def newest(scheduler):
    return (await scheduler.read(lambda tx: tx.of(WorkflowVerbs).runs("bank", 1)))[0]


async def row(scheduler):
    return await scheduler.read(lambda tx: tx.of(WorkflowVerbs).get("bank"))


@pytest.mark.promise("K11")
@pytest.mark.parametrize("way", TOGETHER)
@pytest.mark.parametrize("ends", ["timeout", "cancel"])
@real
async def test_nothing_is_reconciled_before_the_thread_of_a_mutation_has_ended(tmp_path, way, ends):
    bank = Bank()
    async with make(tmp_path) as scheduler:
        scheduler.add_workflow(bank.workflow(way, TO_BEGIN_S if ends == "timeout" else 60))
        await scheduler.start()
        run = await begun(scheduler, bank)
        if ends == "cancel":
            await scheduler.cancel_run(ids.run_text(run.id))
        found = await until(functools.partial(row, scheduler), lambda found: found.issue == "reconciliation")
        assert (found.working_run, bank.asked, bank.paid) == (run.id, [], [])
        job = await until(lambda: scheduler.get_job("bank.pay"), lambda job: job.status == "idle")
        assert (bank.asked, bank.paid, job.status) == ([], [], "idle")
        bank.gate.set()
        await until(functools.partial(row, scheduler), lambda found: found.issue is None)
        assert (bank.asked, bank.paid, bank.most_at_once) == ([["1"]], ["1"], 1)
        assert (await row(scheduler)).working_run is None


@pytest.mark.promise("K7", "K13")
@real
async def test_nothing_of_a_workflow_starts_while_a_thread_of_its_last_run_works(tmp_path):
    """Also a phase that changes nothing outside: two calls of a workflow never overlap."""
    gate, calls = threading.Event(), []
    workflow = Workflow("bank")

    @workflow.producer(Interval("1h"), timeout=TO_BEGIN_S)
    def poll(ctx, state):
        calls.append(ctx.run_id)
        gate.wait(PATIENCE_S)

    async with make(tmp_path) as scheduler:
        scheduler.add_workflow(workflow)
        await scheduler.start()
        found = await until(functools.partial(row, scheduler), lambda found: found.issue == "transient")
        assert found.working_run is not None
        issue = (await scheduler.workflows.get("bank"))["issue"]
        assert issue["message"].startswith("Trying again when its thread or program has ended: ")
        await scheduler.transact(lambda tx, context: actions.resume(tx, context, "bank", who="Ada"))
        shown = await scheduler.read(lambda tx: workflow_view(tx, "bank"))
        assert (shown["working"]["run"], shown["status"]) == (calls[0], "running")
        with pytest.raises(ScheduleTriggerError, match="still at work"):
            await scheduler.run_job("bank.poll")
        assert "still at work" in str(await scheduler.explain("bank.poll"))
        assert len(calls) == 1
        gate.set()
        await until(functools.partial(row, scheduler), lambda found: found.issue is None)
        assert len(calls) == 2
        assert (await scheduler.read(lambda tx: workflow_view(tx, "bank")))["working"] is None


@pytest.mark.promise("K11")
@real
async def test_a_person_cannot_say_that_a_change_did_not_happen_while_its_thread_works(tmp_path):
    bank = Bank()
    async with make(tmp_path) as scheduler:
        scheduler.add_workflow(bank.workflow("to_thread", TO_BEGIN_S, reconciles=False))
        await scheduler.start()
        run = ids.run_text((await begun(scheduler, bank)).id)
        await until(functools.partial(row, scheduler), lambda found: found.issue == "reconciliation")

        def settle(verdict):
            return scheduler.transact(lambda tx, ctx: actions.settle(tx, ctx, "bank", run, verdict, who="Ada"))

        with pytest.raises(ScheduleTriggerError, match="wait until it has ended"):
            await settle("did_not_happen")
        bank.gate.set()
        await until(functools.partial(row, scheduler), lambda found: found.working_run is None)
        await settle("happened")
        await until(functools.partial(row, scheduler), lambda found: found.issue is None)
        assert bank.paid == ["1"]


@pytest.mark.promise("K11", "K12")
@real
async def test_a_mutation_that_returns_before_its_thread_has_ended_is_uncertain(tmp_path):
    bank = Bank()
    workflow = bank.workflow("to_thread", 60)
    pay = workflow.handlers["pay"]

    async def mutate(ctx, prepared):
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.to_thread(bank.pay, prepared.data[0]), 0.01)

    pay.on_mutate = mutate
    async with make(tmp_path) as scheduler:
        scheduler.add_workflow(workflow)
        await scheduler.start()
        await begun(scheduler, bank)
        await until(functools.partial(row, scheduler), lambda found: found.issue == "reconciliation")
        assert bank.asked == []
        bank.gate.set()
        await until(functools.partial(row, scheduler), lambda found: found.issue is None)
        assert (bank.asked, bank.paid) == ([["1"]], ["1"])


@pytest.mark.promise("K11", "K12")
@pytest.mark.parametrize("error", [TransientError("busy"), ApprovalNeeded("Pay it?"), PermissionError("no")])
@real
async def test_a_mutation_that_fails_while_its_thread_works_is_uncertain_whatever_it_raises(tmp_path, error):
    bank = Bank()
    workflow = bank.workflow("to_thread", 60)

    def check():
        bank.begun.wait(PATIENCE_S)
        raise error

    async def mutate(ctx, prepared):
        await asyncio.gather(asyncio.to_thread(bank.pay, prepared.data[0]), asyncio.to_thread(check))

    workflow.handlers["pay"].on_mutate = mutate
    async with make(tmp_path) as scheduler:
        scheduler.add_workflow(workflow)
        await scheduler.start()
        await publish(scheduler, "1")
        await until(functools.partial(row, scheduler), lambda found: found.issue is not None)
        run = await newest(scheduler)
        assert (run.status, run.mutation, run.refused) == ("paused:reconciliation", "in_flight", 0)
        assert run.failure == ("approval" if isinstance(error, PermissionError) else "transient")
        assert bank.asked == []
        bank.gate.set()
        await until(functools.partial(row, scheduler), lambda found: found.issue is None)
        assert (bank.asked, bank.paid) == ([["1"]], ["1"])


@pytest.mark.promise("K11")
@virtual
async def test_a_call_that_is_shielded_from_its_cancellation_is_waited_for(room):
    room.mails = ["a"]

    async def post():
        await room.sleep("3m")
        room.ledger.append("a")

    async def mutate(ctx):
        await asyncio.shield(asyncio.ensure_future(ctx.call(post)))

    room.act["mutate"] = mutate
    async with room.open(append={"timeout": "1m"}) as scheduler:
        await scheduler.start()
        await room.sleep("2m")
        assert (room.phases().count("reconcile"), room.ledger) == (0, [])
        [alert] = [alert for alert in await scheduler.list_alerts() if alert.kind == "workflow"]
        assert "a thread or program of it does not end" in alert.message
        await room.sleep("2m")
        assert (room.phases().count("reconcile"), room.ledger) == (1, ["a"])
        assert await room.events(scheduler) == {"a": "consumed"}
        assert await scheduler.list_alerts() == []


@pytest.mark.promise("K11")
@pytest.mark.usefixtures("minutely_sweeps")
@virtual
async def test_other_nodes_wait_for_a_thread_of_a_living_node_and_not_for_one_of_a_node_that_is_gone(room):
    if room.url.startswith("sqlite"):
        return  # one process at a time: what another left is over
    other = Scheduler(room.url, clock=room.clock, node="there", seed=99, tuning=room.tuning)
    async with room.open() as scheduler:
        await scheduler.start()
        await room.sleep("1s")
        await other.open()
        await other.start()

        def cut_off_there(tx, context):
            node = tx.nodes.named("there").id
            tx.of(WorkflowVerbs).change("mailroom", tx.now, working_run=1, working_node=node, working_since=tx.now)

        await scheduler.transact(cut_off_there)
        await publish_mail(scheduler, "a")
        await room.sleep("3m")
        assert room.ledger == []
        assert "is still at work" in str(await scheduler.explain("mailroom.append"))
        await other.close()
        await room.sleep("3m")
        assert room.ledger == ["a"]
        assert (await room.row(scheduler)).working_run is None


@pytest.mark.promise("K11")
@real
async def test_a_thread_that_does_not_come_back_is_not_waited_for_at_the_end_and_is_over_after_a_restart(tmp_path):
    bank = Bank()
    async with make(tmp_path) as scheduler:
        scheduler.add_workflow(bank.workflow("to_thread", TO_BEGIN_S))
        await scheduler.start()
        run = await begun(scheduler, bank)
        await until(functools.partial(row, scheduler), lambda found: found.working_run is not None)
    assert is_left(run.id)
    bank.gate.set()
    await asyncio.to_thread(eventually, lambda: is_left(run.id), lambda found: not found)
    async with make(tmp_path) as scheduler:
        scheduler.add_workflow(bank.workflow("to_thread", TO_BEGIN_S))
        await scheduler.start()
        await until(functools.partial(row, scheduler), lambda found: found.issue is None)
        assert (bank.asked, bank.paid) == ([["1"]], ["1"])


def test_a_thread_that_has_not_begun_when_its_call_is_over_never_begins():
    work, seen = Work(1), []
    assert work.begin()
    assert work.leave(lambda: lambda: seen.append("ended"))
    assert not work.begin()
    assert is_left(1)
    work.end()
    assert (seen, is_left(1)) == (["ended"], False)


@pytest.mark.promise("X12")
def test_plain_functions_use_ctx_without_await_also_in_virtual_time():
    workflow, paid = Workflow("shop"), []

    @workflow.producer(Interval("1h"), publishes=["bills"])
    def poll(ctx, state):
        item = ctx.register_input("mail", "bill", "1", title="A bill")
        ctx.publish("bills", message_id=ctx.now.isoformat(), payload=10, input=item)
        return {"seen": state.get("seen", 0) + 1}

    pay = workflow.consumer("pay", subscribes=["bills"])

    @pay.prepare
    def prepare(ctx, state):
        bills = ctx.peek("bills")
        return Prepared({"bills": [bill.id for bill in bills]}, [bill.payload for bill in bills])

    @pay.mutate
    def mutate(ctx, prepared):
        ctx.call(paid.extend, prepared.data)

    with WorkflowTest(workflow) as test:
        test.fail_in("mutate", TransientError("busy"))
        test.advance("2h")
        assert (paid, test.state("poll")) == ([10, 10, 10], {"seen": 3})
        assert {event["status"] for event in test.events("bills")} == {"consumed"}


@pytest.mark.promise("K12", "K15")
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (lambda ctx: ctx.peek("rows"), "does not subscribe"),
        (lambda ctx: ctx.publish("rows", message_id="1"), "not allowed in prepare"),
        (lambda ctx: ctx.call(int, "x"), "invalid literal"),
    ],
)
def test_a_plain_function_may_do_only_what_belongs_to_its_phase(wrong, said):
    workflow = Workflow("shop")
    pay = workflow.consumer("pay", subscribes=["bills"])

    @pay.prepare
    def prepare(ctx, state):
        with contextlib.suppress(Exception):
            wrong(ctx)
        return Prepared()

    with WorkflowTest(workflow) as test:
        issue = test.workflow()["issue"]
        assert issue["kind"] == "logic"
        assert said in issue["message"]
