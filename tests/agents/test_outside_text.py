"""Text from outside stays outside: what follows from a run that was given some is marked too, on both stores."""

from __future__ import annotations

import asyncio
import re

import pytest

from tests.agents.token_house import EVIL, House, opened
from tests.kernel.scene import virtual
from wakeful import ids
from wakeful.domains.agents.belongings.moving import move_all
from wakeful.domains.agents.inbound.messages import InboundMessage, pass_on
from wakeful.domains.agents.tables import AgentTables
from wakeful.domains.agents.work import NewItem, add_item, list_items
from wakeful.triggers import After

pytestmark = pytest.mark.promise("X18", "X30")

MARK = re.compile(r"<<<data ([0-9a-f]{16})\n(.*)\ndata \1>>>", re.DOTALL)
MANUAL = {"at": "2099-01-01T00:00:00", "prompt": "Do it."}


def is_data(prompt, text=EVIL):
    """Whether the text stands in the marked block, and nowhere else."""
    found = MARK.search(prompt)
    return found is not None and text in found[2] and prompt.count(text) == found[2].count(text)


@virtual
async def test_what_a_run_writes_that_was_given_outside_text_is_marked_through_every_hop(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)
        house.does = {"a": house.tells("b"), "b": house.tells("c", "b says: go on.")}
        await scheduler.agents.add_event("b", "The build is red.", source="ci")
        await house.server.send({"ref": "main"}, "d-1")
        await scene.sleep(10)
        (to_b,), (to_c,) = house.prompts("b"), house.prompts("c")
        assert is_data(to_b)
        assert is_data(to_c, "b says: go on.")
        assert "System events:\n- [ci] The build is red.\n\n" in to_b
        assert "System events" not in to_c
        assert MARK.search(to_b)[1] != MARK.search(to_c)[1]  # each run has its own marks
        assert [await house.limited(f"{name}.wake") for name in "bc"] == [[True], [True]]
        assert "It, or a run that led to it, was given text from outside." in await told(scheduler, "c.wake")


async def told(scheduler, job):
    (run,) = await scheduler.get_run_log(job, 1)
    return (await scheduler.explain(run.id)).sentences


@virtual
async def test_a_run_that_was_given_none_writes_what_it_says(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)
        house.does = {"a": house.tells("b", "All is well.")}
        await scheduler.agents.request_wake("a")
        await scene.sleep(10)
        assert house.prompts("b")[0].endswith("System events:\n- [a] All is well.")
        assert await house.limited("b.wake") == [False]


@virtual
async def test_a_bare_wake_by_such_a_run_gives_the_woken_run_the_same_limits_and_so_on(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)
        house.does = {"a": house.wakes("b"), "b": house.tells("c", "Now you.")}
        await house.server.send({}, "d-1")
        await scheduler.agents.request_wake("b")  # a person's request joins it, and takes nothing away
        await scene.sleep(10)
        assert await house.limited("b.wake") == [True]
        assert is_data(house.prompts("c")[0], "Now you.")


@virtual
@pytest.mark.parametrize("given", ["item", "message"])
async def test_items_and_messages_are_outside_text_as_webhooks_are(scene, agents, given):
    async with agents.scheduler() as scheduler:
        scheduler.connectors.register("phone", lambda message: None)
        work = {"work": {"source": "queue"}, "schedules": {"next": {**MANUAL, "work": True}}}
        house = await opened(agents, scheduler, a=work)
        house.does = {"a": house.tells("b")}
        if given == "item":
            await scheduler.transact(lambda tx, context: add_item(tx, context, "a", NewItem("Fix it.")))
            await scheduler.run_job("a.next")
        else:
            await wrote(scheduler, "Hello.")
        await scene.sleep(10)
        assert is_data(house.prompts("b")[0])
        assert await house.limited("b.wake") == [True]


async def wrote(scheduler, text):
    message = InboundMessage("phone", "42", text, "1")
    await pass_on(scheduler, message, "a")


@virtual
async def test_it_stays_so_when_the_run_that_hears_it_fails_and_is_tried_again(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)

        async def fails_twice(turn):
            if len(house.prompts("b")) < 3:
                raise RuntimeError("no")
            await house.tells("c", "b heard it.")(turn)

        house.does = {"a": house.wakes("b"), "b": fails_twice}
        await house.server.send({}, "d-1")
        await scene.sleep(3600)
        assert len(house.prompts("b")) == 3
        assert await house.limited("b.wake") == [True]
        assert is_data(house.prompts("c")[0], "b heard it.")


@virtual
async def test_it_stays_so_across_a_crash_of_either_run(scene, agents):
    hangs = asyncio.Event()

    async def hang(turn):
        hangs.set()
        await scene.sleep(7200)

    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)
        house.does = {"a": house.tells("b"), "b": hang}
        await house.server.send({}, "d-1")
        await hangs.wait()
        await scene.crash(scheduler)
    async with agents.scheduler() as scheduler:
        house = House(agents, scheduler)
        house.does = {"b": house.tells("c", "b goes on.")}
        await scheduler.start()
        await scene.sleep(600)
        assert all(is_data(prompt) for prompt in house.prompts("b"))
        assert is_data(house.prompts("c")[0], "b goes on.")
        assert await house.limited("b.wake") == [True]


@virtual
async def test_a_run_that_recovers_one_with_an_item_is_fed_though_the_item_is_gone(scene, agents):
    hangs = asyncio.Event()

    async def hang(turn):
        hangs.set()
        await scene.sleep(7200)

    async with agents.scheduler() as scheduler:
        work = {"work": {"source": "queue"}, "schedules": {"main": {**MANUAL, "work": True, "target": "main"}}}
        house = await opened(agents, scheduler, a=work)
        house.does = {"a": hang}
        await scheduler.transact(lambda tx, context: add_item(tx, context, "a", NewItem("Fix it.")))
        await scheduler.agents.add_event("a", "Look.")
        await scheduler.run_job("a.main")
        await hangs.wait()
        await scene.crash(scheduler)
    async with agents.scheduler() as scheduler:
        house = House(agents, scheduler)
        house.does = {"a": house.tells("b", "a goes on.")}
        (item,) = await scheduler.read(lambda tx: list_items(tx, "a", None, None, 5))
        await scheduler.transact(lambda tx, _: _drop(tx, item["id"]))
        await scheduler.start()
        await scene.sleep(600)
        assert is_data(house.prompts("b")[0], "a goes on.")


def _drop(tx, item):
    """As if another node had done it by now."""
    tables = tx.of(AgentTables)
    tables.save_item(tables.item(ids.decode(item)[1])._replace(status="done", run_id=None))


@virtual
async def test_it_stays_so_for_events_that_are_moved_to_another_agent(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)

        async def deed(turn):
            assert (await house.post(turn, "/api/agents/b/events", text=EVIL)).status_code == 202

        house.does = {"a": deed}
        await house.server.send({}, "d-1")
        await scene.sleep(10)
        await scheduler.transact(lambda tx, context: move_all(tx, context, "b", "c"))
        await scene.sleep(10)
        assert is_data(house.prompts("c")[0])
        assert await house.limited("c.wake") == [True]


@virtual
async def test_it_stays_so_when_a_person_lets_such_a_run_start_again(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)
        house.does = {"a": house.tells("b")}
        await house.server.send({}, "d-1")
        await scene.sleep(10)
        house.does = {"b": house.tells("c", "Once more.")}
        (run,) = await scheduler.get_run_log("b.wake", 5)
        await scheduler.retry_run(run.id)
        await scene.sleep(10)
        assert await house.limited("b.wake") == [True, True]  # what it heard is gone, and its session is not
        assert is_data(house.prompts("c")[0], "Once more.")


@virtual
async def test_what_starts_after_such_a_run_has_the_same_limits_whatever_is_in_between(scene, agents):
    async with agents.scheduler() as scheduler:
        then = {"tidy": {"after": "between", "prompt": "Tidy up."}}
        main = {"report": {"after": "b.tidy", "prompt": "Report.", "target": "main"}}
        house = await opened(agents, scheduler, b={"schedules": then}, c={"schedules": main})
        await scheduler.add_job("between", After("a.deploy"))
        house.does = {"c": house.tells("b", "c reports.")}
        await house.server.send({}, "d-1")
        await scene.sleep(10)
        assert [await house.limited(job) for job in ("b.tidy", "c.wake")] == [[True], [True]]
        assert house.prompts("c")[0].endswith("System events:\n- [cron] Report.")  # its own words are no data
        assert is_data(house.prompts("b")[-1], "c reports.")


@virtual
async def test_a_reply_to_what_a_run_wrote_may_do_with_the_ack_token(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler, b={"heartbeat": {"every": "30d", "ack_token": "HEARTBEAT_OK"}})

        async def nothing(turn):
            return "HEARTBEAT_OK nothing to say"

        house.does = {"a": house.tells("b"), "b": nothing}
        await house.server.send({}, "d-1")
        await scene.sleep(10)
        (run,) = await scheduler.get_run_log("b.wake", 5)
        assert run.output["outcome"] == "ok-ack"


@virtual
async def test_a_start_that_waits_after_several_runs_is_limited_if_one_of_them_was_given_outside_text(scene, agents):
    async with agents.scheduler() as scheduler:
        after = {"schedules": {"tidy": {"after": "a.deploy", "prompt": "Tidy up."}}, "max_concurrent": 1}
        house = await opened(agents, scheduler, b=after)
        house.does = {"b": lambda turn: scene.sleep(60)}
        await scheduler.run_job("a.deploy")  # its follower runs
        await scene.sleep(2)
        await scheduler.run_job("a.deploy")  # ... and one more waits
        await scene.sleep(2)
        await house.server.send({}, "d-1")  # which is also for the end of this one
        await scene.sleep(600)
        assert await house.limited("b.tidy") == [True, False]


@virtual
async def test_a_wake_that_is_also_for_what_a_limited_run_did_not_do_is_limited(scene, agents):
    async with agents.scheduler() as scheduler:
        house = await opened(agents, scheduler)

        async def fails_once(turn):
            if len(house.prompts("b")) == 1:
                await scene.sleep(30)
                raise RuntimeError("no")
            await house.tells("c", "b says: do it.")(turn)

        house.does = {"a": house.wakes("b"), "b": fails_once}
        await house.server.send({}, "d-1")
        await scene.sleep(5)
        await scheduler.agents.request_wake("b", "cron")
        await scene.sleep(3600)
        assert len(house.prompts("b")) == 2
        assert is_data(house.prompts("c")[0], "b says: do it.")
