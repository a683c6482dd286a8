"""What prepare reads of its topics: however many events wait, and whatever becomes of them until they are reserved."""

from __future__ import annotations

import pytest

from tests.workflows.mailroom import publish, virtual
from wakeful import Interval, Prepared, Workflow
from wakeful.domains.workflows import input_actions
from wakeful.testing import WorkflowTest


def found_by(read, count=250, payload=lambda number: {"n": number}):
    """The message ids that a prepare finds which reads so many events as told; and the issue that this leads to."""
    workflow, seen = Workflow("flow"), []
    reader = workflow.consumer("reader", subscribes=["mail"])

    @workflow.producer(Interval("1d"), publishes=["mail"])
    async def poll(ctx, state):
        for number in range(count):
            await ctx.publish("mail", message_id=f"m{number}", payload=payload(number))

    @reader.prepare
    async def prepare(ctx, state):
        if await ctx.peek("mail", limit=1):
            seen[:] = [one.message_id for one in await read(ctx)]
        return Prepared()

    with WorkflowTest(workflow) as test:
        return seen, test.workflow()["issue"]


@pytest.mark.promise("K4", "K17")
def test_peek_says_when_there_is_more_and_reads_on_after_an_event():
    sizes, mores = [], []

    async def read(ctx):
        page = await ctx.peek("mail")
        found = list(page)
        while page.more:
            sizes.append(len(page))
            mores.append(page.more)
            page = await ctx.peek("mail", after=page[-1])
            found += page
        sizes.append(len(page))
        return found

    names, issue = found_by(read)
    assert issue is None
    assert names == [f"m{number}" for number in range(250)]
    assert (sizes, mores) == ([100, 100, 50], [True, True])


@pytest.mark.promise("K4")
def test_peek_reads_on_after_the_id_of_an_event():
    async def read(ctx):
        first = await ctx.peek("mail", limit=2)
        return await ctx.peek("mail", limit=2, after=first[1].id)

    assert found_by(read, count=5)[0] == ["m2", "m3"]


@pytest.mark.promise("K4", "K17")
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"message_id": "m240"}, ["m240"]),
        ({"message_id": ["m3", "m240", "unknown"]}, ["m3", "m240"]),
        ({"n": 240}, ["m240"]),
        ({"n": "240"}, []),
        ({"n": 240.0}, ["m240"]),
        ({"half": 7}, ["m14"]),
        ({"half": [7.5, 2**60]}, ["m15"]),
        ({"half": float("nan")}, []),
        ({"n": [7, 71, 249]}, ["m7", "m71", "m249"]),
        ({"who": 'Zoë "x"', "n": 12}, ["m12"]),
        ({"who": 'Zoë "x"', "n": 13}, []),
        ({"in": 5}, []),
        ({"none": None, "n": 2}, ["m2"]),
        ({"n": []}, []),
        ({"yes": True, "n": 4}, ["m4"]),
        ({"yes": 1, "n": 4}, []),
    ],
)
def test_peek_finds_events_by_message_id_and_by_keys_of_their_payload(where, expected):
    def payload(number):
        deep = {"in": number, "n": 240}
        half = number / 2
        return {
            "deep": deep,
            "n": number,
            "half": half,
            "who": 'Zoë "x"' if number == 12 else "Ada",
            "none": None,
            "yes": True,
        }

    names, issue = found_by(lambda ctx: ctx.peek("mail", where=where), payload=payload)
    assert (names, issue) == (expected, None)


@pytest.mark.promise("K4")
def test_a_page_of_events_chosen_by_a_key_is_full_although_others_lie_between():
    mores = []

    async def read(ctx):
        page = await ctx.peek("mail", limit=10, where={"even": True})
        mores.append(page.more)
        rest = await ctx.peek("mail", limit=200, where={"even": True}, after=page[-1])
        mores.append(rest.more)
        return [*page, *rest]

    names, _ = found_by(read, payload=lambda number: {"even": number % 2 == 0, "deep": {"even": True}})
    assert (len(names), mores) == (125, [True, False])


@pytest.mark.promise("K12", "K15")
@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"limit": 5000}, "peek reads at most 1000 events at once, not 5000: read on with `after`."),
        ({"after": 7}, "`after` is an event that peek found, or its id, not 7."),
        ({"after": "run_1"}, "`after` is an event that peek found, or its id, not 'run_1'."),
        ({"where": ["n"]}, "`where` maps message_id or keys of the payload to values, not ['n']."),
        ({"where": {"n": {"a": 1}}}, "`where` compares with texts, numbers, true, false and None, not {'a': 1}."),
        ({"where": {"n": [[1]]}}, "`where` compares with texts, numbers, true, false and None, not [1]."),
    ],
)
def test_what_peek_cannot_read_fails_the_run_and_says_so(given, says):
    names, issue = found_by(lambda ctx: ctx.peek("mail", **given), count=1)
    assert names == []
    assert says in issue["message"]


@pytest.mark.promise("K4")
@virtual
async def test_every_store_finds_the_same(room):
    found = {}

    async def read(ctx):
        for name, how in {
            "name": {"where": {"message_id": ["b", "c"]}},
            "key": {"where": {"n": [1, 3], "in": {"NUL \0"}}},
            "after": {"where": {"n": [1, 3]}, "limit": 1},
        }.items():
            page = await ctx.peek("mail", **how)
            found[name] = [one.message_id for one in page], page.more

    room.act["prepare"] = read
    room.batch = 0
    async with room.open() as scheduler:
        await scheduler.start()
        for number, name in enumerate("abcd"):
            await publish(scheduler, name, {"n": number, "in": "NUL \0"})
        await room.sleep("1m")
    assert found == {"name": (["b", "c"], False), "key": (["b", "d"], False), "after": (["b"], True)}


# -- between peek and reserve -----------------------------------------------------------------------------------------


def remembering(room):
    """What mutate was given, by message id: the payloads that prepare read."""
    workflow = Workflow("mailroom")
    append, done = workflow.consumer("append", subscribes=["mail"]), {}

    @append.prepare
    async def prepare(ctx, state):
        mails = await ctx.peek("mail")
        room.calls.append((ctx.now, "prepare"))
        if "peeked" in room.act and mails:
            await room.act["peeked"](ctx)
        return Prepared({"mail": [mail.id for mail in mails]}, {mail.message_id: mail.payload for mail in mails})

    @append.mutate
    async def mutate(ctx, prepared):
        done.update(prepared.data)

    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    return scheduler, done


def once(room, action):
    """Do it between peek and reserve, the first time."""

    async def act(ctx):
        del room.act["peeked"]
        await action()

    room.act["peeked"] = act


@pytest.mark.promise("K6", "K9")
@virtual
async def test_a_payload_that_is_replaced_after_peek_is_read_again_and_not_lost(room):
    scheduler, done = remembering(room)
    async with scheduler:
        await scheduler.start()
        once(room, lambda: publish(scheduler, "a", {"n": 2}))
        await publish(scheduler, "a", {"n": 1})
        await room.sleep("10m")
        assert done == {"a": {"n": 2}}
        assert await room.events(scheduler) == {"a": "consumed"}
        assert {one.status for one in await room.attempts(scheduler)} == {"committed"}


@pytest.mark.promise("K6")
@virtual
async def test_an_event_that_changes_whenever_it_is_read_is_tried_again_later(room):
    scheduler, done = remembering(room)
    async with scheduler:
        await scheduler.start()
        times = []

        async def change(ctx):
            times.append(ctx.now)
            if len(times) < 8:
                await publish(scheduler, "a", {"n": len(times)})

        room.act["peeked"] = change
        await publish(scheduler, "a", {"n": 0})
        await room.sleep("10m")
        assert done == {"a": {"n": 7}}
        statuses = [one.status for one in await room.attempts(scheduler)]
        assert statuses[-2:] == ["paused:transient", "committed"]
        assert len(times) == 8


@pytest.mark.promise("K6", "K16")
@virtual
async def test_an_event_that_a_person_skips_after_peek_is_not_there(room):
    scheduler, done = remembering(room)
    async with scheduler:
        await scheduler.start()

        async def skip():
            [event] = await scheduler.read(lambda tx: room.found(tx, "a"))
            await scheduler.transact(
                lambda tx, context: input_actions.skip_event(
                    tx, context, "mailroom", event, reason="not this one", who="Ada"
                )
            )

        once(room, skip)
        await room.act_on(scheduler, "pause", who="Ada")
        await publish(scheduler, "a")
        await publish(scheduler, "b")
        await room.act_on(scheduler, "resume", who="Ada")
        await room.sleep("1m")
        assert await room.events(scheduler) == {"a": "skipped", "b": "consumed"}
        assert done == {"b": None}
        assert (await room.row(scheduler)).issue is None


@pytest.mark.promise("K4", "K6")
@virtual
async def test_a_pending_payload_that_is_replaced_wakes_the_consumer_that_had_declined_it(room):
    scheduler, done, prepares = *declining(room), room.calls
    async with scheduler:
        await scheduler.start()
        await publish(scheduler, "a", {"ready": False})
        await room.sleep("1m")
        before = len(prepares)
        await publish(scheduler, "a", {"ready": False})
        await room.sleep("1m")
        assert len(prepares) == before, "the same payload is nothing new"
        await publish(scheduler, "a", {"ready": True})
        await room.sleep("1s")
        assert done == ["a"]


@pytest.mark.promise("K4", "K6")
@virtual
async def test_a_payload_that_is_replaced_during_the_run_that_declines_it_is_looked_at_afterwards(room):
    scheduler, done = declining(room)
    async with scheduler:
        await scheduler.start()
        once(room, lambda: publish(scheduler, "a", {"ready": True}))
        await publish(scheduler, "a", {"ready": False})
        await room.sleep("1m")
        assert done == ["a"]


def declining(room):
    """A consumer that takes only what is ready."""
    workflow = Workflow("mailroom")
    append, done = workflow.consumer("append", subscribes=["mail"]), []

    @append.prepare
    async def prepare(ctx, state):
        room.calls.append((ctx.now, "prepare"))
        mails = await ctx.peek("mail")
        if "peeked" in room.act and mails:
            await room.act["peeked"](ctx)
        ready = [mail for mail in mails if mail.payload["ready"]]
        return Prepared({"mail": [mail.id for mail in ready]}, [mail.message_id for mail in ready])

    @append.mutate
    async def mutate(ctx, prepared):
        done.extend(prepared.data)

    scheduler = room.scene.scheduler()
    scheduler.add_workflow(workflow)
    return scheduler, done
