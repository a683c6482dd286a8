"""What is taken out while it works, and works on: whatever is put back or settled, nothing begins beside it."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from tests.workflows.mailroom import publish, virtual
from tests.workflows.test_put_back import no_consumer, take_out
from tests.workflows.test_removed_handlers import begin, shown, without_append
from wakeful import Applied, ApprovalNeeded, NotApplied, ScheduleTriggerError, Workflow, ids
from wakeful.domains.workflows.deploying import remove_workflow
from wakeful.domains.workflows.threads import counted, current


def goes_on(room, name="a"):
    """A change that takes ten minutes and cannot be stopped."""

    async def post():
        await room.sleep("10m")
        room.ledger.append(name)

    async def act(ctx):
        await asyncio.shield(asyncio.ensure_future(ctx.call(post)))

    return act


async def cut_off(room, scheduler, part, phase="mutate"):
    """The workflow, or its consumer, is taken out while a call of it is at work; cancelled, that works on."""
    await begin(room, scheduler, {phase: goes_on(room)})
    if part == "workflow":
        await take_out(scheduler, part)
    else:
        await scheduler.add_workflow(no_consumer(room))
    await scheduler.cancel_run(ids.run_text((await room.attempts(scheduler))[-1].id))
    await room.sleep("10s")
    room.act = {}
    return (await room.attempts(scheduler))[-1]


@pytest.mark.promise("K7", "K10", "K11")
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_what_is_put_back_is_not_reconciled_before_its_thread_has_ended(room, part, restarts):
    scheduler = room.open()
    async with scheduler:
        attempt = await cut_off(room, scheduler, part)
        assert (await room.row(scheduler)).working_run == attempt.id
        assert (await shown(scheduler))["working"] is not None
        await scheduler.add_workflow(room.workflow())
        if restarts:
            await scheduler.stop()
            await scheduler.start()
        await room.sleep("5m")
        assert (room.phases().count("reconcile"), room.ledger) == (0, [])
        assert "is still at work" in str(await scheduler.explain("mailroom.append"))
        await room.sleep("10m")
        assert (room.phases().count("reconcile"), room.ledger) == (1, ["a"])
        assert await room.events(scheduler) == {"a": "consumed"}
        assert (await room.row(scheduler)).working_run is None


@pytest.mark.promise("K7", "K11")
@pytest.mark.parametrize("back", [False, True])
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_a_person_cannot_say_that_what_was_taken_out_did_not_happen_while_its_thread_works(room, part, back):
    room.reconciles = False
    async with room.open() as scheduler:
        await cut_off(room, scheduler, part)
        run = (await shown(scheduler))["issue"]["run"]
        if back:
            await scheduler.add_workflow(room.workflow())
        with pytest.raises(ScheduleTriggerError, match="wait until it has ended"):
            await scheduler.workflows.settle("mailroom", run, "did_not_happen")
        await room.sleep("15m")
        await scheduler.workflows.settle("mailroom", run, "happened")
        if not back:
            await scheduler.add_workflow(room.workflow())
        await room.sleep("1m")
        assert (room.ledger, (await shown(scheduler))["issue"]) == (["a"], None)


@pytest.mark.promise("K7", "K11")
@pytest.mark.parametrize("verdict", ["happened", "skip"])
@pytest.mark.parametrize("part", ["workflow", "handler"])
@virtual
async def test_what_a_person_settles_while_a_thread_works_goes_on_when_it_has_ended(room, part, verdict):
    room.reconciles = False
    async with room.open() as scheduler:
        await cut_off(room, scheduler, part)
        calls = len(room.calls)
        await scheduler.workflows.settle("mailroom", (await shown(scheduler))["issue"]["run"], verdict)
        await scheduler.add_workflow(room.workflow())
        await publish(scheduler, "b")
        await room.sleep("5m")
        assert (len(room.calls), room.ledger) == (calls, [])
        assert (await shown(scheduler))["working"] is not None
        await room.sleep("10m")
        assert room.ledger == ["a", "b"]
        assert set((await room.events(scheduler)).values()) == {"consumed"}


@pytest.mark.promise("K7")
@pytest.mark.parametrize("phase", ["prepare", "mutate"])
@virtual
async def test_a_handler_by_another_name_does_not_begin_beside_a_thread_of_the_one_before(room, phase):
    heard = []
    async with room.open() as scheduler:
        await cut_off(room, scheduler, "handler", phase)
        await publish(scheduler, "b")
        await scheduler.add_workflow(without_append(heard))
        await room.sleep("5m")
        assert heard == []
        await room.sleep("10m")
        if phase == "mutate":
            await scheduler.workflows.settle("mailroom", (await shown(scheduler))["issue"]["run"], "happened")
            await room.sleep("1m")
        assert heard == (["a", "b"] if phase == "prepare" else ["b"])


class Letters:
    """A handler with a step that takes ten minutes the first time, and cannot be stopped."""

    def __init__(self, room, **options):
        self._room, self._options = room, options
        self.sent, self._at_once, self.most_at_once = 0, 0, 0
        self.asks = False

    async def _send(self):
        """As in a thread: who waits for it may be cut off, and it goes on."""
        await asyncio.shield(asyncio.ensure_future(self._work(current())))

    async def _work(self, work):
        with counted(work):
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            await self._room.sleep("1s" if self.sent else "10m")
            self.sent += 1
            self._at_once -= 1

    def workflow(self, *, whole=True):
        workflow = Workflow("post")
        workflow.on("parcels")(self.ignore)
        if whole:
            workflow.on("letters", **self._options)(self.carry)
        return workflow

    async def ignore(self, ctx, event):
        pass

    async def carry(self, ctx, event):
        if self.asks and ctx.approved_by is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._send(), 1)
            raise ApprovalNeeded("May I?")
        await ctx.step("send", self._send, timeout="1h", reconcile=self._find_out)

    async def _find_out(self):
        self.most_at_once = max(self.most_at_once, self._at_once + 1)
        return Applied() if self.sent else NotApplied()

    async def status(self, scheduler):
        [event] = await scheduler.workflows.events("post", "letters")
        return event["status"]

    @contextlib.asynccontextmanager
    async def at_work(self):
        """A scheduler with a run of it that is sending the first letter; and that run."""
        async with self._room.scene.scheduler() as scheduler:
            scheduler.add_workflow(self.workflow())
            await scheduler.start()
            await scheduler.workflows.publish("post", "letters", None, message_id="a")
            await self._room.sleep("10s")
            yield scheduler, (await scheduler.workflows.runs("post"))[0]["id"]


@pytest.mark.promise("K11", "X32")
@pytest.mark.parametrize("ends", ["cancelled", "removed", "put back"])
@virtual
async def test_an_event_goes_on_once_the_thread_of_its_step_has_ended_whatever_became_of_its_handler(room, ends):
    letters = Letters(room)
    async with letters.at_work() as (scheduler, run):
        if ends != "cancelled":
            await scheduler.transact(lambda tx, context: remove_workflow(tx, context, "post"))
        if ends == "put back":
            await scheduler.add_workflow(letters.workflow())
        await scheduler.cancel_run(run)
        await room.sleep("10s")
        await scheduler.add_workflow(letters.workflow())
        await room.sleep("20m")
        assert letters.most_at_once == 1
        assert (await letters.status(scheduler), letters.sent) == ("consumed", 1)


@pytest.mark.promise("K11", "X32")
@virtual
async def test_a_parked_event_is_not_replayed_or_skipped_while_the_thread_of_its_removed_handler_works(room):
    letters = Letters(room)
    async with letters.at_work() as (scheduler, run):
        await scheduler.add_workflow(letters.workflow(whole=False))
        await scheduler.cancel_run(run)
        await room.sleep("10s")
        await scheduler.add_workflow(letters.workflow())
        [event] = await scheduler.workflows.events("post", "letters", status="parked")
        for start_over in (False, True):
            with pytest.raises(ScheduleTriggerError, match="still at work"):
                await scheduler.workflows.replay("post", event["id"], start_over=start_over)
            with pytest.raises(ScheduleTriggerError, match="still at work"):
                await scheduler.workflows.replay_parked("post", start_over=start_over)
        with pytest.raises(ScheduleTriggerError, match="still at work"):
            await scheduler.workflows.skip("post", event["id"], "not needed")
        await room.sleep("10m")
        await scheduler.workflows.replay("post", event["id"])
        await room.sleep("1m")
        assert letters.most_at_once == 1
        assert await letters.status(scheduler) == "consumed"


@pytest.mark.promise("K11", "X32")
@pytest.mark.parametrize("answer", ["approve", "reject"])
@virtual
async def test_what_a_person_answers_while_a_thread_of_the_run_works_is_done_once_that_has_ended(room, answer):
    letters = Letters(room)
    letters.asks = True
    async with letters.at_work() as (scheduler, run):
        await getattr(scheduler.workflows, answer)("post", run)
        if answer == "reject":
            letters.asks = False
            await scheduler.workflows.resume("post")
        await room.sleep("5m")
        assert (letters.most_at_once, letters.sent) == (1, 0)
        if answer == "approve":
            assert "is still at work" in str(await scheduler.explain("post.carry"))
        await room.sleep("20m")
        assert letters.most_at_once == 1
        assert (await letters.status(scheduler), letters.sent) == ("consumed", 2)
