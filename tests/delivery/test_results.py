"""Which results of jobs are sent, and that they are stored with the end of their run."""

from __future__ import annotations

import pytest

from tests.delivery.targets import Target, sending_to, stored
from tests.kernel.scene import at, failing, virtual
from wakeful import Manual, Noop, Skip, Wait


@pytest.mark.promise("A8")
@virtual
async def test_a_result_and_its_message_are_stored_together_and_both_are_shown(scene):
    target = Target(scene)

    async def act(run):
        return {"answer": 42}

    scene.act = act
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Manual(), kind="job", deliver="phone")
        run_id = await scheduler.run_job("a")
        await scene.sleep(1)
        run = await scheduler.get_run(run_id)
        (found,) = await stored(scheduler)
        assert run.to_dict()["deliveries"] == [
            {"id": found["id"], "connector": "phone", "status": "sent", "last_error": None}
        ]
        assert (found["kind"], found["run"], found["job"], found["outcome"]) == ("output", run_id, "a", "success")
        assert (found["title"], found["text"]) == ("a: success", '{\n  "answer": 42\n}')
        job = await scheduler.get_job("a")
        assert job.options == {"deliver": {"to": "phone", "on": "any"}}


@pytest.mark.parametrize(
    ("on", "texts"),
    [
        ("any", ["one", "one", "broken", "broken", "one", "two"]),
        ("success", ["one", "one", "one", "two"]),
        ("failure", ["broken", "broken"]),
        ("change", ["broken", "one", "two"]),
    ],
)
@virtual
async def test_a_job_says_which_of_its_results_are_sent(scene, on, texts):
    target = Target(scene)
    results = iter(["one", "one", RuntimeError("broken"), RuntimeError("broken"), Noop("nothing"), "one", "two"])

    async def act(_):
        found = next(results)
        if isinstance(found, Exception):
            raise found
        return found

    scene.act = act
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Manual(), kind="job", deliver={"to": "phone", "on": on})
        for _ in range(7):
            await scheduler.run_job("a")
            await scene.sleep(1)
        said = ["broken" if "Error: broken" in text else text for text in target.texts]
        assert said == texts


@virtual
async def test_a_failure_for_another_reason_is_a_change(scene):
    target = Target(scene)
    errors = iter(["broken", "broken", "worse"])

    async def act(_):
        raise RuntimeError(next(errors))

    scene.act = act
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Manual(), kind="job", deliver={"to": "phone", "on": "change"})
        for _ in range(3):
            await scheduler.run_job("a")
            await scene.sleep(1)
        assert [text.partition("Error: ")[2].partition("\n")[0] for text in target.texts] == ["broken", "worse"]


@virtual
async def test_a_failure_that_is_tried_again_is_sent_when_the_last_attempt_failed(scene):
    target = Target(scene)
    scene.act = failing("broken")
    async with sending_to(scene, target) as scheduler:
        target.mark()
        await scheduler.add_job("a", Manual(), kind="job", deliver="phone", retry=["30s", "1m"])
        await scheduler.run_job("a")
        await scene.sleep("1h")
        assert target.times == [90]


@pytest.mark.parametrize(
    ("ends", "sent"),
    [
        ("well", ["hello", "world"]),
        ("noop", ["hello", "world"]),
        ("raised noop", ["hello", "world"]),
        ("skipped", []),
        ("badly", []),
    ],
)
@virtual
async def test_what_a_handler_delivers_is_sent_only_if_its_run_ends_well(scene, ends, sent):
    target = Target(scene)

    async def act(run):
        run.deliver("hello", to="phone")
        await run.deliver("world", to="phone", title="T")
        if ends == "badly":
            raise RuntimeError("broken")
        if ends == "raised noop":
            raise Noop("nothing new")
        if ends == "skipped":
            raise Skip("not today")
        if ends == "noop":
            return Noop("nothing new")
        return None

    scene.act = act
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Manual(), kind="job")
        await scheduler.run_job("a")
        await scene.sleep(1)
        assert target.texts == sent


@pytest.mark.parametrize("how", ["raised", "returned"])
@pytest.mark.parametrize(
    ("ends", "sent"),
    [
        ({"output": {"ok": True}}, ["hello", "world"]),
        ({"error": "broken"}, []),
        (None, []),
    ],
    ids=["well", "badly", "never"],
)
@virtual
async def test_what_a_run_that_waits_has_delivered_is_sent_when_it_has_ended_well(scene, how, ends, sent):
    target = Target(scene)

    async def act(run):
        run.deliver("hello", to="phone")
        run.deliver("world", to="phone", title="T")
        if how == "raised":
            raise Wait(at(hours=1))
        return Wait(at(hours=1))

    scene.act = act
    async with sending_to(scene, target) as scheduler:
        await scheduler.add_job("a", Manual(), kind="job")
        number = await scheduler.run_job("a")
        await scene.sleep("1m")
        assert (await scheduler.get_run(number)).status == "waiting"
        assert await stored(scheduler) == []
    async with sending_to(scene, target) as scheduler:
        if ends is not None:
            await scheduler.complete_run(number, **ends)
        await scene.sleep("2h")
        assert target.texts == sent
        assert [(found["title"], found["run"]) for found in await stored(scheduler)] == [
            (title, number) for title in (None, "T") if sent
        ]
