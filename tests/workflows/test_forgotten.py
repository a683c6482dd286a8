"""What authors forget: an `await`, returning the state, an object for it. The run fails, and says what to write."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re

import pytest

from wakeful import Interval, LogicError, Prepared, TransientError, Workflow
from wakeful.testing import WorkflowTest


def producing(act):
    """A workflow whose producer `poll` is that function."""
    workflow = Workflow("flow")
    workflow.producer(Interval("1h"), name="poll", publishes=["mail"])(act)
    return workflow


def consuming(**phases):
    """A workflow whose consumer `sort` has these functions; prepare takes everything if none is given."""
    workflow = Workflow("flow")
    sort = workflow.consumer("sort", subscribes=["mail"], publishes=["sorted"])

    async def prepare(ctx, state):
        return Prepared({"mail": [one.id for one in await ctx.peek("mail")]})

    for phase, function in {"prepare": prepare, **phases}.items():
        getattr(sort, phase)(function)
    return workflow


def outcome(workflow):
    """(status, error) of the last run."""
    with WorkflowTest(workflow) as test:
        if "sort" in workflow.handlers:
            test.publish("mail", message_id="1")
        test.advance("1s")
        assert test.events("sorted" if "sort" in workflow.handlers else "mail") == []
        return test.runs()[-1]["workflow_status"], without_line(test.runs()[-1]["error"])


def without_line(message):
    """The message; the line that made the call is checked by one test."""
    return re.sub(r" \(test_forgotten\.py, line \d+\)", "", message)


@pytest.mark.promise("K15")
def test_a_publish_that_is_not_awaited_fails_the_run():
    async def poll(ctx, state):
        ctx.publish("mail", message_id="1")

    async def next_(ctx, prepared, result):
        ctx.publish("sorted", message_id="1")

    assert outcome(producing(poll)) == (
        "failed:logic",
        "poll called ctx.publish without await: write `await ctx.publish(...)`.",
    )
    assert outcome(consuming(next=next_)) == (
        "failed:logic",
        "next of sort called ctx.publish without await: write `await ctx.publish(...)`.",
    )


def test_the_line_without_await_is_named():
    async def poll(ctx, state):
        ctx.publish("mail", message_id="1")

    line = poll.__code__.co_firstlineno + 1
    with WorkflowTest(producing(poll)) as test:
        assert f"ctx.publish (test_forgotten.py, line {line}) without await" in test.workflow()["issue"]["message"]


def test_a_step_without_await_is_named_with_its_line_and_is_not_done():
    workflow, done = Workflow("flow"), []

    @workflow.on("mail", on_failure="park")
    async def sort(ctx, event):
        ctx.step("first", done.append, 1)
        await ctx.step("second", done.append, 2)

    line = sort.__code__.co_firstlineno + 2
    with WorkflowTest(workflow) as test:
        test.publish("mail")
        assert test.parked()[0]["error"].startswith(f"sort called ctx.step (test_forgotten.py, line {line}) without")
        assert done == [2]


@pytest.mark.promise("K15")
@pytest.mark.parametrize(
    "use", [list, len, lambda found: found[0], lambda found: found.copy(), lambda _: None, lambda found: not found]
)
def test_a_peek_that_is_not_awaited_fails_the_run_with_what_to_write_whatever_is_done_with_it(use):
    async def prepare(ctx, state):
        use(ctx.peek("mail"))
        return Prepared()

    assert outcome(consuming(prepare=prepare)) == (
        "failed:logic",
        "prepare of sort called ctx.peek without await: write `await ctx.peek(...)`.",
    )


def test_an_error_of_another_kind_is_not_hidden_by_a_forgotten_await():
    async def poll(ctx, state):
        ctx.publish("mail", message_id="1")
        raise TransientError("the mail server is busy")

    assert outcome(producing(poll)) == ("paused:transient", "the mail server is busy")


def test_calls_may_be_awaited_together_or_as_tasks():
    async def poll(ctx, state):
        first = asyncio.create_task(ctx.publish("mail", message_id="1"))
        await asyncio.gather(*(ctx.publish("mail", message_id=str(number)) for number in range(2, 300)))
        await first

    with WorkflowTest(producing(poll)) as test:
        assert len(test.events("mail")) == 299


@pytest.mark.promise("K15")
def test_a_call_that_is_still_going_on_when_its_function_returns_fails_the_run():
    tasks = []

    async def poll(ctx, state):
        tasks.append(asyncio.create_task(ctx.call(asyncio.sleep, 60)))
        await asyncio.sleep(1)

    workflow = producing(poll)
    with WorkflowTest(workflow) as test:
        test.advance("5m")
        assert (test.runs()[-1]["workflow_status"], without_line(test.runs()[-1]["error"])) == (
            "failed:logic",
            "poll returned before ctx.call had ended: await the task that runs it.",
        )


@pytest.mark.promise("K15")
def test_a_publish_after_the_function_returned_is_refused_and_logged(caplog):
    tasks = []

    async def later(ctx):
        await asyncio.sleep(10)
        with contextlib.suppress(Exception):
            await ctx.publish("mail", message_id="1")

    async def poll(ctx, state):
        tasks.append(asyncio.create_task(later(ctx)))

    with WorkflowTest(producing(poll)) as test, caplog.at_level(logging.ERROR):
        test.advance("1m")
        assert test.events("mail") == []
    assert "ctx.publish was called after poll had returned, and did nothing: await every task that uses ctx." in (
        caplog.messages
    )


@pytest.mark.promise("K15")
def test_a_publish_after_the_function_returned_that_nobody_awaits_is_logged(caplog):
    def late(ctx):
        ctx.publish("mail", message_id="1").close()

    async def poll(ctx, state):
        asyncio.get_running_loop().call_later(10, late, ctx)

    with WorkflowTest(producing(poll)) as test, caplog.at_level(logging.ERROR):
        test.advance("1m")
        assert test.events("mail") == []
    said = "ctx.publish was called after poll had returned, and did nothing: await every task that uses ctx."
    assert caplog.messages == [said]


@pytest.mark.promise("K15")
def test_what_a_thread_asks_of_ctx_after_its_plain_function_returned_is_refused_and_logged(caplog):
    left = []

    def poll(ctx, state):
        left.append(ctx)

    with WorkflowTest(producing(poll)) as test, caplog.at_level(logging.ERROR):
        test.advance("1m")
        with pytest.raises(LogicError, match="after its function had returned"):
            left[0].publish("mail", message_id="1")
    assert caplog.messages == ["ctx was used after its function had returned or was cut off, and did nothing."]


def test_objects_that_are_called_like_async_functions_are_handlers():
    class Doubled:
        async def __call__(self, ctx, prepared):
            return 2 * len(prepared.reserve["mail"])

    async def next_(ctx, prepared, result):
        return {"result": result.value}

    with WorkflowTest(consuming(mutate=Doubled(), next=next_)) as test:
        test.publish("mail")
        assert test.state("sort") == {"result": 2}


@pytest.mark.promise("K9")
def test_state_that_was_changed_in_place_and_not_returned_fails_the_run():
    async def poll(ctx, state):
        state["cursor"] = 1

    async def deep(ctx, state):
        ctx.state.setdefault("seen", []).append(1)

    async def prepare(ctx, state):
        state["cursor"] = 1
        return Prepared()

    async def next_(ctx, prepared, result, state):
        state["cursor"] = 1

    said = "changed its state and did not return it: write `return state`."
    assert outcome(producing(poll)) == ("failed:logic", f"poll {said}")
    assert outcome(producing(deep)) == ("failed:logic", f"poll {said}")
    assert outcome(consuming(next=next_)) == ("failed:logic", f"next of sort {said}")
    assert outcome(consuming(prepare=prepare)) == (
        "failed:logic",
        "prepare of sort changed the state, and that is not stored: return the new state from next.",
    )


@pytest.mark.promise("K9")
def test_state_that_was_changed_in_place_and_returned_is_stored():
    async def poll(ctx, state):
        state["cursor"] = state.get("cursor", 0) + 1
        return state

    with WorkflowTest(producing(poll)) as test:
        test.advance("2h")
        assert test.state("poll") == {"cursor": 3}


@pytest.mark.promise("K9")
@pytest.mark.parametrize("given", [[1], "done", 5, True, 0, ""])
def test_state_that_is_no_object_fails_the_run(given):
    async def poll(ctx, state):
        return given

    async def next_(ctx, prepared, result):
        return given

    said = f"returns its state, an object such as {{'cursor': 17}}, or None to keep it, not {given!r}."
    assert outcome(producing(poll)) == ("failed:logic", f"poll {said}")
    assert outcome(consuming(next=next_)) == ("failed:logic", f"next of sort {said}")
