"""A workflow for tests: mails come in, rows go out, and an outside ledger counts every change."""

from __future__ import annotations

import functools

from wakeful import Applied, Interval, NotApplied, Prepared, Unknown, Workflow, ids
from wakeful.domains.workflows import actions, checkpoints
from wakeful.domains.workflows.input_actions import ByHand, publish_by_hand
from wakeful.domains.workflows.tables import WorkflowVerbs
from wakeful.domains.workflows.topics.tables import Topics
from wakeful.testing import run


class Mailroom:
    """A producer `poll`, a consumer `append` of its mails, and what happened outside."""

    def __init__(self, scene):
        self.scene = scene
        self.mails = []  # what the producer finds: message ids
        self.ledger = []  # what mutate changed outside
        self.calls = []  # (when, phase) of every call
        self.act = {}  # phase -> async function of ctx that is called first
        self.after = {}  # phase -> the same, called last
        self.reconciles = True
        self.verdict = None  # what reconcile answers; None: what the ledger says
        self.wake_at = None
        self.batch = 10

    def __getattr__(self, name):
        return getattr(self.scene, name)

    async def _begin(self, phase, ctx):
        self.calls.append((ctx.now, phase))
        if phase in self.act:
            await self.act[phase](ctx)

    async def _end(self, phase, ctx):
        if phase in self.after:
            await self.after[phase](ctx)

    def workflow(self, **changes):
        workflow = Workflow("mailroom")

        @workflow.producer(Interval("5m"), publishes=["mail"], **changes.get("poll", {}))
        async def poll(ctx, state):
            await self._begin("poll", ctx)
            known = state.get("known", 0)
            for mail in self.mails[known:]:
                item = await ctx.register_input("imap", "mail", mail, title=f"Mail {mail}")
                await ctx.publish("mail", message_id=mail, payload={"n": mail}, input=item)
            await self._end("poll", ctx)
            return {"known": len(self.mails)}

        settings = {"subscribes": ["mail"], "publishes": ["rows"], **changes.get("append", {})}
        append = workflow.consumer("append", **settings)

        @append.prepare
        async def prepare(ctx, state):
            await self._begin("prepare", ctx)
            mails = await ctx.peek("mail", limit=self.batch)
            names = [mail.message_id for mail in mails]
            await self._end("prepare", ctx)
            return Prepared(
                {"mail": [mail.id for mail in mails]}, {"names": names}, self.wake_at, f"Add {len(mails)} rows"
            )

        @append.mutate
        async def mutate(ctx, prepared):
            await self._begin("mutate", ctx)
            self.ledger += prepared.data["names"]
            await self._end("mutate", ctx)
            return {"rows": len(prepared.data["names"])}

        if self.reconciles:

            @append.reconcile
            async def reconcile(ctx, prepared):
                await self._begin("reconcile", ctx)
                if self.verdict is not None:
                    return self.verdict
                done = set(prepared.data["names"]) <= set(self.ledger)
                return Applied({"rows": len(prepared.data["names"])}) if done else NotApplied()

        @append.next
        async def next_(ctx, prepared, result):
            await self._begin("next", ctx)
            if result.status != "none":
                await ctx.publish("rows", message_id="+".join(prepared.data["names"]), payload=result.value)
            await self._end("next", ctx)
            return {"status": result.status}

        return workflow

    def open(self, **changes):
        """A scheduler with this workflow."""
        scheduler = self.scene.scheduler()
        scheduler.add_workflow(self.workflow(**changes))
        return scheduler

    def phases(self):
        return [phase for _, phase in self.calls]

    # -- what is stored -----------------------------------------------------------------------------------------------

    async def row(self, scheduler):
        return await scheduler.read(lambda tx: tx.of(WorkflowVerbs).get("mailroom"))

    async def handler(self, scheduler, name="append"):
        return await scheduler.read(lambda tx: tx.of(WorkflowVerbs).handler("mailroom", name))

    async def attempts(self, scheduler, handler="append"):
        """Oldest first."""
        found = await scheduler.read(lambda tx: tx.of(WorkflowVerbs).runs("mailroom", 500, handler=handler))
        return found[::-1]

    async def events(self, scheduler, topic="mail"):
        """{message id: status}"""
        found = await scheduler.read(lambda tx: tx.of(Topics).matching("mailroom", topic, None, None, 500))
        return {event.message_id: event.status for event in reversed(found)}

    def found(self, tx, message_id, topic="mail"):
        """The id of the event of that message, as a list."""
        return [ids.encode("evt", number) for number in tx.of(Topics).known("mailroom", topic, [message_id]).values()]

    async def act_on(self, scheduler, action, *args, **kwargs):
        """One of the actions of people."""
        chosen = getattr(actions, action)
        return await scheduler.transact(lambda tx, context: chosen(tx, context, "mailroom", *args, **kwargs))


def virtual(test):
    """Run an async test, whose first argument is the room, in virtual time."""

    @functools.wraps(test)
    def wrapper(room, **others):
        run(test(room, **others), room.scene.clock)

    return wrapper


async def raising(error, times=1):
    raise error


def fails(error, times=1):
    """An act that raises the first so many times."""
    left = [times]

    async def act(ctx):
        if left[0]:
            left[0] -= 1
            raise error

    return act


def break_checkpoints(monkeypatch, error, *verbs):
    """A mistake of ours: storing what a run did raises this error."""

    def broken(*_):
        raise error

    for verb in verbs:
        monkeypatch.setattr(checkpoints, verb, broken)


UNKNOWN = Unknown()


async def publish(scheduler, message_id, payload=None):
    """What a person publishes by hand."""
    given = ByHand("mail", message_id, payload)
    return await scheduler.transact(lambda tx, context: publish_by_hand(tx, context, "mailroom", given, who="Ada"))
