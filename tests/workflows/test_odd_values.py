"""Values that nobody expects from a handler: a mistake of the author that says what is wrong, and never one of ours."""

from __future__ import annotations

import pytest

from wakeful import Prepared, Workflow
from wakeful.testing import WorkflowTest


class Unwritable:
    """As an object of a database session that is closed."""

    def __repr__(self) -> str:
        raise RuntimeError("the session is closed")


def nested():
    found: list[object] = []
    for _ in range(5_000):
        found = [found]
    return found


def issue_of(prepare=None, reconcile=None):
    """What a workflow has as its issue whose functions return this."""
    workflow = Workflow("flow")
    reader = workflow.consumer("reader", subscribes=["mail"])

    @reader.prepare
    async def choose(ctx, state):
        found = await ctx.peek("mail")
        if prepare is not None:
            return await prepare(ctx)
        return Prepared({"mail": [one.id for one in found]})

    @reader.mutate
    async def mutate(ctx, prepared):
        raise OSError("the line was cut")

    if reconcile is not None:

        @reader.reconcile
        async def ask(ctx, prepared):
            return reconcile()

    with WorkflowTest(workflow) as test:
        test.publish("mail")
        test.advance("20m")
        return test.workflow()["issue"]


@pytest.mark.promise("K12")
@pytest.mark.parametrize("odd", [Unwritable(), nested(), {"mail": [Unwritable()]}, {Unwritable(): []}])
@pytest.mark.parametrize("where", ["returned", "reserved"])
def test_a_value_that_cannot_be_written_down_is_a_mistake_of_the_author(odd, where):
    async def prepare(ctx):
        return odd if where == "returned" else Prepared(odd)

    issue = issue_of(prepare)
    assert issue["kind"] == "logic"
    assert ("prepare returns Prepared" if where == "returned" else "reserve") in issue["message"]


@pytest.mark.promise("K5")
@pytest.mark.parametrize("part", [{"title": Unwritable()}, {"wake_at": Unwritable()}])
def test_a_title_or_a_wake_time_that_cannot_be_written_down_stops_nothing(part):
    async def prepare(ctx):
        return Prepared(**part)

    assert issue_of(prepare) is None


@pytest.mark.promise("K11")
def test_an_answer_of_reconcile_that_cannot_be_written_down_is_none():
    issue = issue_of(reconcile=Unwritable)
    assert (issue["kind"], "not <Unwritable>" in issue["message"]) == ("reconciliation", True)


@pytest.mark.promise("K12")
@pytest.mark.parametrize("odd", ["\ud800", "\0", "", "x" * 2_000])
def test_what_cannot_be_a_message_id_is_not_found(odd):
    found = []

    async def prepare(ctx):
        found.append(len(await ctx.peek("mail", where={"message_id": [odd, "test-1"]})))
        return Prepared()

    assert (issue_of(prepare), found[-1]) == (None, 1)


@pytest.mark.promise("K12")
def test_more_message_ids_than_every_database_takes_are_refused_with_their_number():
    async def prepare(ctx):
        await ctx.peek("mail", where={"message_id": [str(number) for number in range(300_000)]})
        return Prepared()

    issue = issue_of(prepare)
    assert issue["kind"] == "logic"
    assert "`where` takes at most 10,000 message ids at once, not 300,000" in issue["message"]
