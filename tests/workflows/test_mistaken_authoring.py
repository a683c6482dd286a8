"""What authors write by mistake: a decorator, a state, a call that does not belong. The message says what to write."""

from __future__ import annotations

import re

import pytest

from tests.workflows.test_forgotten import consuming, outcome, producing
from wakeful import InvalidJob, LogicError, Prepared, Scheduler, TransientError, Workflow
from wakeful.testing import VirtualClock, WorkflowTest, run


@pytest.mark.promise("K15")
def test_a_coroutine_that_is_returned_instead_of_its_value_fails_the_run():
    async def fetch():
        return {"cursor": 1}

    async def poll(ctx, state):
        return fetch()

    assert outcome(producing(poll)) == ("failed:logic", "poll returned a coroutine: write `return await ...`.")


@pytest.mark.promise("K15")
def test_a_call_of_a_coroutine_or_a_value_says_what_to_write():
    async def post(number):
        return number

    async def started(ctx, state):
        await ctx.call(post(5))

    async def called(ctx, state):
        await ctx.call(max(1, 2))

    said = "ctx.call is given a function and its arguments, as in `await ctx.call(post, bill)`, not"
    status, error = outcome(producing(started))
    assert status == "failed:logic"
    assert error.startswith(f"{said} the coroutine of post(...)")
    assert outcome(producing(called)) == ("failed:logic", f"{said} 2.")


@pytest.mark.parametrize("phase", ["prepare", "mutate", "reconcile", "next"])
def test_a_decorator_with_parentheses_says_what_to_write(phase):
    consumer = Workflow("flow").consumer("sort", subscribes=["mail"])
    with pytest.raises(InvalidJob, match=rf"Write @sort\.{phase} without parentheses\."):
        getattr(consumer, phase)()
    with pytest.raises(InvalidJob, match=rf"@sort\.{phase} is put before a function, not 'mail'\."):
        getattr(consumer, phase)("mail")


def test_a_consumer_is_no_decorator_a_producer_has_its_trigger_and_on_its_topic():
    workflow = Workflow("flow")
    with pytest.raises(InvalidJob, match=r"sort is a consumer: put @sort\.prepare before the function"):

        @workflow.consumer("sort", subscribes=["mail"])
        async def sort(ctx, state): ...

    with pytest.raises(InvalidJob, match="A producer has a trigger with times"):

        @workflow.producer
        async def poll(ctx, state): ...

    with pytest.raises(InvalidJob, match=r'as in @workflow\.on\("orders"\)'):

        @workflow.on
        async def ship(ctx, event): ...

    with pytest.raises(InvalidJob, match="The name of a topic has 1 to 64 small letters"):
        workflow.on("Not a topic")


@pytest.mark.promise("K9")
def test_next_is_given_the_state_it_is_about_to_replace():
    async def asked(ctx, prepared, result, state):
        assert state == ctx.state
        return {"rounds": state.get("rounds", 0) + 1}

    async def by_name(ctx, prepared, result, *, state):
        return {"rounds": state.get("rounds", 0) + 1}

    async def from_ctx(ctx, prepared, result):
        return {"rounds": ctx.state.get("rounds", 0) + 1}

    async def own_default(ctx, prepared, result, step=1):
        return {"rounds": ctx.state.get("rounds", 0) + step}

    for next_ in (asked, by_name, from_ctx, own_default):
        with WorkflowTest(consuming(next=next_)) as test:
            test.publish("mail")
            test.fail_in("next", TransientError("busy"))
            test.publish("mail")
            test.advance("1h")
            assert test.state("sort")["rounds"] == 3, "when it was deployed, and for each mail"


def test_next_with_an_argument_that_nobody_gives_is_refused():
    async def next_(ctx, prepared, result, more): ...

    with pytest.raises(InvalidJob, match=r"sort\.next has the wrong arguments: .* or \(ctx, prepared, result, state\)"):
        WorkflowTest(consuming(next=next_))


@pytest.mark.parametrize("phase", ["prepare", "mutate", "next"])
def test_what_does_not_say_which_arguments_it_takes_is_refused(phase):
    with pytest.raises(InvalidJob, match=rf"sort\.{phase} has the wrong arguments"):
        WorkflowTest(consuming(**{phase: dict}))


@pytest.mark.promise("K9")
@pytest.mark.parametrize("state", [{5: "a"}, {"counts": [{True: 1}]}, {"a": {None: 1}}])
def test_state_whose_keys_would_come_back_as_others_fails_the_run(state):
    async def poll(ctx, _):
        return state

    status, error = outcome(producing(poll))
    assert status == "failed:logic"
    assert re.fullmatch(r"poll returns a state with the key (5|True|None), which would come back as a text: .*", error)


def test_a_mistake_that_wakeful_names_has_no_trace_through_wakeful(caplog):
    async def poll(ctx, state):
        return 5

    with WorkflowTest(producing(poll)) as test:
        shown = test._runner.run(test._scheduler.get_run(test.runs()[0]["id"]))
    assert shown.trace is None
    assert not [one for one in caplog.messages if "Traceback" in one]


def test_a_logic_error_that_the_author_raised_has_its_trace():
    async def poll(ctx, state):
        raise LogicError("no subject")

    with WorkflowTest(producing(poll)) as test:
        shown = test._runner.run(test._scheduler.get_run(test.runs()[0]["id"]))
    assert "test_mistaken_authoring.py" in shown.trace
    assert "running.py" not in shown.trace


@pytest.mark.promise("K6")
def test_a_payload_is_given_by_name_or_after_the_topic_as_where_people_publish():
    async def poll(ctx, state):
        await ctx.publish("mail", {"subject": "Hello"}, message_id="1")
        await ctx.publish("mail", message_id="2", payload={"subject": "Bye"})

    with WorkflowTest(producing(poll)) as test:
        assert [event["payload"]["subject"] for event in test.events("mail")] == ["Hello", "Bye"]


def test_a_second_workflow_of_the_same_name_is_warned_of_and_a_new_version_is_not(caplog):
    async def poll(ctx, state): ...

    async def main():
        async with Scheduler("sqlite://", clock=clock) as scheduler:
            first = producing(poll)
            scheduler.add_workflow(first)
            scheduler.add_workflow(first)
            assert caplog.messages == []
            scheduler.add_workflow(producing(poll))
            assert caplog.messages == ["two workflows are called flow, and only the last one is run: rename one"]
            await scheduler.start()
            await scheduler.add_workflow(producing(poll))
            assert len(caplog.messages) == 1

    clock = VirtualClock()
    run(main(), clock)


@pytest.mark.promise("K9")
def test_data_that_mutate_changed_in_place_is_noted_on_the_run(caplog):
    seen = []

    async def prepare(ctx, state):
        return Prepared({"mail": [one.id for one in await ctx.peek("mail")]}, {"rows": []})

    async def mutate(ctx, prepared):
        prepared.data["rows"].append(1)
        return prepared.data

    async def next_(ctx, prepared, result):
        seen.append((prepared.data, result.value))

    with WorkflowTest(consuming(prepare=prepare, mutate=mutate, next=next_)) as test:
        test.publish("mail")
        said = "mutate changed prepared.data, and next does not see that: return it, and use result.value"
        assert test.runs()[-1]["notes"] == [said]
        assert caplog.messages == [f"flow.sort: {said}"]
    assert seen[-1] == ({"rows": []}, {"rows": [1]})


@pytest.mark.promise("K15")
def test_a_call_that_does_not_belong_to_its_function_says_what_does():
    async def poll(ctx, state):
        await ctx.peek("mail")

    async def next_(ctx, prepared, result):
        await ctx.peek("mail")

    assert outcome(producing(poll)) == (
        "failed:logic",
        "ctx.peek is not allowed in a producer, which may use ctx.call and ctx.publish and ctx.register_input.",
    )
    assert outcome(consuming(next=next_)) == (
        "failed:logic",
        "ctx.peek is not allowed in next, which may use ctx.publish.",
    )
