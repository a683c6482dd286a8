"""New versions under unfinished runs, and events that go from one workflow to another."""

from __future__ import annotations

import asyncio

import pytest

from tests.workflows.mailroom import virtual
from wakeful import Applied, Prepared, Workflow
from wakeful.domains.workflows.steps.known_names import calls_step
from wakeful.errors import ScheduleTriggerError
from wakeful.testing import WorkflowTest

FAILS = {"on_failure": "park", "retry": ["1h"] * 20}


class Versions:
    """Versions of a workflow with the steps that are asked for, and a ledger."""

    def __init__(self):
        self.ledger, self.broken = [], set()

    def do(self, what):
        if what in self.broken:
            raise ValueError(f"{what} is broken")
        self.ledger.append(what)
        return what

    def made(self, source, **options):
        """A workflow whose handler has this body."""
        workflow = Workflow("shop")
        names = {"do": self.do, "ledger": self.ledger}
        exec("async def ship(ctx, event):\n    " + source.replace("\n", "\n    "), names)  # noqa: S102 - our own
        workflow.on("orders", **{**FAILS, **options})(names["ship"])
        workflow.version = repr((source, options))
        return workflow


def step(name):
    return f'await ctx.step("{name}", do, "{name}")'


BEFORE = "\n".join([step("label"), step("mail")])


@pytest.mark.promise("X32")
@pytest.mark.parametrize(
    ("after", "missing"),
    [
        (step("post") + "\n" + step("mail"), "label"),  # renamed
        (step("mail"), "label"),  # removed
        ("pass", "label"),
    ],
)
def test_a_step_that_the_new_code_does_not_have_stops_its_event_alone(after, missing):
    life = Versions()
    life.broken.add("mail")
    with WorkflowTest(life.made(BEFORE, key=None, concurrency=2)) as test:
        test.publish("orders", message_id="old")
        assert life.ledger == ["label"]
        life.broken.clear()
        test.redeploy(life.made(after, concurrency=2))
        test.publish("orders", message_id="new")
        test.advance("2h")
        assert life.ledger.count("label") == 1
        assert life.ledger.count("post") == after.count("post") // 2, "of the new event alone"
        [parked] = test.parked()
        assert parked["message_id"] == "old"
        assert parked["error"].startswith(f"The step '{missing}' is stored, and this version of the code does not call")
        for way in ("workflow replay shop evt_", "--start-over", "workflow skip shop evt_"):
            assert way in parked["error"]
        assert {event["message_id"]: event["status"] for event in test.events("orders")}["new"] == "consumed"


@pytest.mark.promise("X32")
@pytest.mark.parametrize(
    "elsewhere",
    [
        'await ctx.publish("shipped", {"label": 1}, message_id=1)',
        'event.payload or {}.get("label")',
        "ledger.append(1)",  # the list has the name in it by then
        '"""Buy a label."""\n"label"',
    ],
)
def test_a_text_of_the_new_code_that_is_no_name_of_a_step_does_not_count_as_one(elsewhere):
    life = Versions()
    life.broken.add("mail")
    with WorkflowTest(life.made(BEFORE)) as test:
        test.publish("orders", message_id="old")
        test.redeploy(life.made("\n".join([step("post"), step("mail"), elsewhere])))
        test.advance("2h")
        assert life.ledger == ["label"]
        assert test.parked()[0]["error"].startswith("The step 'label' is stored")


@pytest.mark.promise("X32")
def test_steps_beside_each_other_are_not_missing_before_they_are_called_for():
    life, source = Versions(), "import asyncio\nawait asyncio.gather(*(ctx.step(f'{k}{k}', do, k) for k in 'abc'))"
    life.broken.add("b")
    with WorkflowTest(life.made(source)) as test:
        test.publish("orders", message_id="old")
        life.broken.clear()
        test.redeploy(life.made(f"{source}\n{step('end')}"))
        test.advance("2h")
        assert (life.ledger, test.parked()) == (["a", "c", "b", "end"], [])


@pytest.mark.promise("X32")
@pytest.mark.parametrize("way", ["go on", "start over", "skip"])
def test_a_person_chooses_how_the_event_goes_on(way):
    life = Versions()
    life.broken.add("mail")
    with WorkflowTest(life.made(BEFORE)) as test:
        test.publish("orders", message_id="old")
        life.broken.clear()
        test.redeploy(life.made(step("post") + "\n" + step("mail")))
        test.advance("2h")
        assert life.ledger == ["label"]
        if way == "skip":
            test.skip("old")
        else:
            test.replay("old", start_over=way == "start over")
        assert life.ledger == (["label"] if way == "skip" else ["label", "post", "mail"])
        assert [event["status"] for event in test.events("orders")] == ["skipped" if way == "skip" else "consumed"]
        names = [one["name"] for one in test.runs()[-1]["steps"]]
        assert names == {"go on": ["label", "mail", "post"], "start over": ["post", "mail"], "skip": names}[way]


@pytest.mark.promise("X32")
def test_steps_are_known_by_name_wherever_the_new_code_has_them():
    life = Versions()
    life.broken.add("mail")
    with WorkflowTest(life.made(BEFORE)) as test:
        test.publish("orders", message_id="old")
        life.broken.clear()
        test.redeploy(life.made("\n".join([step("check"), step("mail"), step("label"), step("end")])))
        test.advance("2h")
        assert life.ledger == ["label", "check", "mail", "end"]
        assert test.parked() == []


@pytest.mark.promise("X32")
def test_a_replayed_event_that_waits_for_its_turn_gets_it_when_new_code_gives_the_others_other_keys():
    done, mended = [], []

    def made(version, field):
        workflow = Workflow("shop")
        workflow.version = version

        @workflow.on("orders", key=lambda event: event.payload[field], on_failure="park", retry=[])
        async def ship(ctx, event):
            await asyncio.sleep(event.payload.get("s", 0))
            if event.payload.get("bad") and not mended:
                raise ValueError("bad")
            done.append(event.message_id)

        return workflow

    with WorkflowTest(made("1", "customer")) as test:
        test.publish("orders", {"customer": "b", "order": 1, "bad": True}, message_id="bad")
        assert [one["message_id"] for one in test.parked()] == ["bad"]
        test.pause()
        test.publish("orders", {"customer": "a", "order": 2, "s": 600}, message_id="long")
        test.publish("orders", {"customer": "b", "order": 3}, message_id="next")
        test.resume()
        mended.append(True)
        test.replay("bad")
        assert (done, test.parked()) == ([], [])
        test.redeploy(made("2", "order"))
        test.advance("1h")
        assert sorted(done) == ["bad", "long", "next"]


def test_a_handler_that_is_removed_leaves_what_it_had_begun_to_a_person():
    life = Versions()
    life.broken.add("mail")
    with WorkflowTest(life.made(BEFORE)) as test:
        test.publish("orders", message_id="begun")
        test.publish("orders", message_id="waits")
        other = Workflow("shop")
        other.on("elsewhere", name="other")(lambda ctx, event: None)
        test.redeploy(other)
        assert [(one["message_id"], one["error"]) for one in test.parked()] == [
            ("begun", "its handler was removed from the code")
        ]
        life.broken.clear()
        test.redeploy(life.made(BEFORE))
        test.replay()
        test.advance("1m")
        assert life.ledger == ["label", "label", "mail", "mail"]
        assert {event["status"] for event in test.events("orders")} == {"consumed"}


@pytest.mark.promise("X32")
@pytest.mark.parametrize("way", ["one", "all", "settled"])
def test_what_was_begun_by_a_handler_that_is_gone_stays_parked_until_it_is_back(way):
    life = Versions()
    life.broken.add("mail")
    with WorkflowTest(life.made(BEFORE)) as test:
        if way == "settled":
            life.broken.clear()
            test.crash_in("mail", after_commit=False)
        name = test.publish("orders", message_id="begun")
        test.advance("1m")
        issue = test.workflow()["issue"]
        other = Workflow("shop")
        other.on("elsewhere", name="other")(lambda ctx, event: None)
        test.redeploy(other)
        if way == "settled":
            test._act(test._scheduler.workflows.settle("shop", issue["run"], "happened"))
        else:
            with pytest.raises(ScheduleTriggerError, match=r"begun by shop.ship, which the deployed version does not"):
                test.replay(name if way == "one" else None)
        test.advance("1h")
        assert [one["message_id"] for one in test.parked()] == ["begun"]
        assert test.workflow()["status"] == "needs_attention"
        life.broken.clear()
        test.redeploy(life.made(BEFORE))
        test.replay()
        assert (life.ledger, test.parked()) == (["label", "mail"], [])


@pytest.mark.parametrize("on_failure", ["stop", "park"])
def test_what_a_cut_off_step_came_to_is_found_out_by_the_new_code(on_failure):
    life = Versions()
    source = 'await ctx.step("label", do, "label", reconcile={})'
    with WorkflowTest(life.made(source.format("None"), on_failure=on_failure)) as test:
        test.crash_in("label", after_commit=False)
        test.publish("orders", message_id="old")
        test.advance("1m")
        assert "not known whether the step 'label' happened" in test.workflow()["issue"]["message"]
        new = life.made(source.format("lambda what: found()"), on_failure=on_failure)
        new.handlers["ship"].run.__globals__["found"] = lambda: Applied("found")
        test.redeploy(new)
        test.replay()
        assert (life.ledger, test.workflow()["issue"]) == (["label"], None)
        assert [one["value"] for one in test.runs()[-1]["steps"]] == ["found"]


async def helper(ctx):
    await ctx.step("helped", print)


LISTED = ["first", "second"]


async def handler(ctx, event):
    await helper(ctx)
    for name in LISTED:
        await ctx.step(name, print)
    for number in range(3):
        await ctx.step(f"send-{number}", print)


async def other_handler(ctx, event):
    """Buy."""
    label = await ctx.step("buy", print, event.payload["order"])
    await ctx.publish("shipped", {"label": label}, message_id=1)


def test_names_of_steps_are_found_in_the_code_that_a_handler_uses():
    assert calls_step(other_handler, "buy")
    assert not any(calls_step(other_handler, name) for name in ("label", "order", "shipped", "Buy."))
    assert calls_step(handler, "helped")
    assert calls_step(handler, "send-7")
    assert calls_step(handler, "second")
    assert not calls_step(handler, "help")
    assert not calls_step(handler, "sent-7")


# -- from one workflow to another --------------------------------------------------------------------------------------


def books(ledger, **options):
    workflow = Workflow("books")

    @workflow.on("entries", **{"on_failure": "park", **options})
    async def enter(ctx, event):
        await ctx.step("enter", ledger.append, event.payload)

    return workflow


def shop(topic="books.entries", **options):
    workflow = Workflow("shop")

    @workflow.on("orders", **{"on_failure": "park", "publishes": ["books.entries", "shipped"], **options})
    async def ship(ctx, event):
        await ctx.publish(topic, event.payload, message_id=event.message_id)

    return workflow


@pytest.mark.promise("X32")
@virtual
async def test_a_workflow_publishes_into_a_topic_of_another_one(room):
    ledger = []
    async with room.scene.scheduler() as scheduler:
        scheduler.add_workflow(books(ledger))
        scheduler.add_workflow(shop())
        await scheduler.start()
        for number in (1, 2, 2):
            await scheduler.workflows.publish("shop", "orders", number, message_id=str(number))
        await room.sleep("1m")
        assert ledger == [1, 2]
        found = await scheduler.workflows.events("books", "entries")
        assert {event["message_id"]: event["status"] for event in found} == {"1": "consumed", "2": "consumed"}
        [handler] = (await scheduler.workflows.get("shop"))["handlers"]
        assert handler["publishes"] == ["books.entries", "shipped"]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"topic": "books.other"}, "which it does not name in `publishes`"),
        ({"publishes": None}, "which it does not name in `publishes`"),
        ({"topic": "nowhere.entries", "publishes": ["nowhere.entries"]}, "There is no workflow 'nowhere'"),
        ({"topic": "books.nothing", "publishes": ["books.nothing"]}, "books has no topic 'nothing'. It has: entries."),
    ],
)
@virtual
async def test_what_cannot_be_published_elsewhere_is_said(room, given, said):
    async with room.scene.scheduler() as scheduler:
        scheduler.add_workflow(books([]))
        scheduler.add_workflow(shop(**given))
        await scheduler.start()
        await scheduler.workflows.publish("shop", "orders", 1, message_id="1")
        await room.sleep("1m")
        [parked] = await scheduler.workflows.events("shop", status="parked")
        assert said in parked["error"]


@pytest.mark.promise("X32")
@pytest.mark.parametrize("through", ["steps", "consumer"])
@virtual
async def test_workflows_that_publish_into_each_other_come_to_an_end(room, through):
    seen = []

    def player(name, other):
        workflow = Workflow(name)

        @workflow.on(
            "balls", publishes=[f"{other}.balls" if through == "steps" else f"{other}.inbox"], on_failure="park"
        )
        async def hit(ctx, event):
            seen.append(name)
            target = f"{other}.balls" if through == "steps" else f"{other}.inbox"
            await ctx.publish(target, message_id=f"{event.message_id}+")

        if through == "consumer":
            passes = workflow.consumer("passes", subscribes=["inbox"], publishes=["balls"])

            @passes.prepare
            async def prepare(ctx, state):
                found = await ctx.peek("inbox", limit=1)
                return Prepared({"inbox": [one.id for one in found]}, [one.message_id for one in found])

            @passes.next
            async def next_(ctx, prepared, result):
                for one in prepared.data:
                    await ctx.publish("balls", message_id=one)

        return workflow

    async with room.scene.scheduler() as scheduler:
        scheduler.add_workflow(player("ping", "pong"))
        scheduler.add_workflow(player("pong", "ping"))
        await scheduler.start()
        await scheduler.workflows.publish("ping", "balls", message_id="ball")
        await room.sleep("1h")
        assert len(seen) == 21
        parked = await scheduler.workflows.events("ping", status="parked")
        assert ["must come to an end" in one["error"] for one in parked] == [True]
