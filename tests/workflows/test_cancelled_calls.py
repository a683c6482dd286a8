"""A `ctx.call` that is cancelled: it decides the run, unless the function fails with what it was cancelled for."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from wakeful import Prepared, Workflow
from wakeful.testing import WorkflowTest


async def never_begun(ctx):
    """As where the time left for it is over before it starts."""
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(ctx.call(asyncio.sleep, 0), 0)


async def cancelled_task(ctx):
    task = asyncio.create_task(ctx.call(asyncio.sleep, 0))
    task.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await task


async def beside_a_mistake(ctx):
    async def stumble():
        raise KeyError("subject")

    async with asyncio.TaskGroup() as group:
        group.create_task(ctx.call(asyncio.sleep, 30))
        group.create_task(stumble())


def with_act(phase, act):
    workflow = Workflow("letters")
    send = workflow.consumer("send", subscribes=["letters"])

    @send.prepare
    async def prepare(ctx, state):
        found = await ctx.peek("letters")
        if phase == "prepare" and found:
            await act(ctx)
        return Prepared({"letters": [one.id for one in found]})

    @send.mutate
    async def mutate(ctx, prepared):
        if phase == "mutate":
            await act(ctx)

    return workflow


@pytest.mark.promise("K12")
@pytest.mark.parametrize("act", [never_begun, cancelled_task])
@pytest.mark.parametrize(
    ("phase", "kind", "left"), [("prepare", "transient", "pending"), ("mutate", "reconciliation", "reserved")]
)
def test_a_call_that_is_cancelled_before_it_begins_decides_like_one_that_fails(act, phase, kind, left):
    with WorkflowTest(with_act(phase, act)) as test:
        test.publish("letters")
        issue = test.workflow()["issue"]
        assert issue["kind"] == kind
        assert "a ctx.call was cancelled before it had ended" in issue["message"]
        assert [one["status"] for one in test.events("letters")] == [left]


@pytest.mark.promise("K12")
@pytest.mark.parametrize(("phase", "kind"), [("prepare", "logic"), ("mutate", "reconciliation")])
def test_the_mistake_for_which_a_task_group_cancelled_a_call_is_what_failed(phase, kind):
    with WorkflowTest(with_act(phase, beside_a_mistake)) as test:
        test.publish("letters")
        issue = test.workflow()["issue"]
        assert issue["kind"] == kind
        assert "KeyError('subject')" in issue["message"] or "KeyError: 'subject'" in issue["message"]
        assert "was cancelled" not in issue["message"]
        assert "stumble" in issue["trace"]
