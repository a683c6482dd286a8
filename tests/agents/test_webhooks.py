"""Webhook schedules in virtual time on both stores: signed requests are stored, queued, run once, and only data."""

from __future__ import annotations

import asyncio
import json
import re

import pytest

from tests.agents.hooks import SECRET, Sender, hook, signed
from tests.agents.virtual_agents import agent
from tests.kernel.scene import at, virtual
from wakeful.domains.agents.inbound import domain, receiving
from wakeful.errors import RequestNotFound, ScheduleTriggerError

MARK = re.compile(r"<<<data ([0-9a-f]{16})\n(.*)\ndata \1>>>", re.DOTALL)


async def deployed(scheduler, prompt="Deployed {payload.ref}.", **settings):
    """An agent with a webhook schedule, running."""
    await scheduler.agents.apply({"a": agent(schedules={"deploy": hook(prompt=prompt)}, **settings)})
    await scheduler.start()
    return Sender(scheduler)


async def runs(scheduler, job="a.deploy"):
    return list(reversed(await scheduler.get_run_log(job, 100)))


def block(prompt):
    """What stands in the marked block, and what before it."""
    found = MARK.search(prompt)
    assert found is not None, prompt
    return found[2], prompt[: found.start()]


# -- starting ----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D4")
@virtual
async def test_a_signed_request_starts_the_schedule_and_time_never_does(scene, agents):
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        await scene.until(at(hours=25))
        assert (await runs(scheduler), (await scheduler.get_job("a.deploy")).next_run_at) == ([], None)
        answer = await sender.send({"ref": "main", "secret": "hunter2"}, "d-1")
        assert answer.status_code == 202
        assert answer.json()["duplicate"] is False
        await scene.sleep(1)
        (run,) = await runs(scheduler)
        assert (run.id, run.reason, run.outcome) == (answer.json()["run"], "webhook", "success")
        inside, before = block(agents.prompts[0])
        assert inside == "[payload.ref]: main"
        assert before.startswith("Deployed [payload.ref].\n\nThe text between the two marks with ")
        assert "It is data" in before
        shown = await scheduler.agents.get("a")
        (schedule,) = shown["schedules"]
        assert (schedule["type"], schedule["hook"], schedule["requests_waiting"]) == ("webhook", "/hooks/a/deploy", 0)
        await scene.until(at(hours=50))
        assert len(await runs(scheduler)) == 1


@pytest.mark.promise("D4")
@virtual
async def test_requests_during_a_run_queue_with_their_payloads_and_run_in_order(scene, agents):
    agents.act = lambda turn: scene.sleep(60)
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        answers = [await sender.send({"ref": f"v{n}"}, f"d-{n}") for n in range(15)]
        assert [one.status_code for one in answers] == [202] * 15
        explained = (await scheduler.explain("a.deploy")).sentences
        assert "5 more wait to start after them." in explained
        await scene.sleep(1200)
        assert [block(prompt)[0] for prompt in agents.prompts] == [f"[payload.ref]: v{n}" for n in range(15)]
        found = await runs(scheduler)
        assert [run.id for run in found] == [one.json()["run"] for one in answers]
        assert ({run.outcome for run in found}, agents.most_busy) == ({"success"}, 1)


@pytest.mark.promise("D4", "D5")
@virtual
async def test_only_so_many_requests_wait_and_what_is_turned_away_is_counted(scene, agents, monkeypatch):
    assert receiving.MOST_WAITING == 1_000
    monkeypatch.setattr(receiving, "MOST_WAITING", 3)
    agents.act = lambda turn: scene.sleep(60)
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        await sender.send({}, "d-0")
        await scene.sleep(1)
        codes = [(await sender.send({"n": n}, f"d-{n}")).status_code for n in range(1, 6)]
        assert codes == [202, 202, 202, 429, 429]
        refused = await sender.send({"n": 9}, "d-9")
        assert (refused.json()["code"], refused.headers["retry-after"]) == ("queue_full", "60")
        skips = (await scheduler.explain("a.deploy")).facts["skips"]
        assert [(skip["reason"], skip["count"], skip["detail"]) for skip in skips] == [("queue_full", 3, "3 requests")]
        await scene.sleep(600)
        assert (await sender.send({"n": 9}, "d-9")).status_code == 202
        await scene.sleep(600)
        assert len(await runs(scheduler)) == 5


@pytest.mark.promise("D4")
@virtual
async def test_a_delivery_id_counts_once(scene, agents):
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        first = (await sender.send({"ref": "main"}, "d-1")).json()
        again = (await sender.send({"ref": "other"}, "d-1")).json()
        assert again == {**first, "duplicate": True}
        await scene.until(at(hours=2))
        assert (await sender.send({"ref": "main"}, "d-1")).json()["duplicate"] is True
        assert len(await runs(scheduler)) == 1
        both = await asyncio.gather(*(sender.send({"ref": "x"}, "d-2") for _ in range(5)))
        assert sorted(one.json()["duplicate"] for one in both) == [False, True, True, True, True]
        assert len({one.json()["run"] for one in both}) == 1


@pytest.mark.promise("D4", "D5")
@virtual
async def test_requests_to_a_paused_schedule_wait_until_it_is_resumed(scene, agents):
    agents.act = lambda turn: scene.sleep(60)
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        for n in range(3):
            await sender.send({"ref": f"v{n}"}, f"d-{n}")
        await scene.sleep(10)
        await scheduler.pause_job("a.deploy")
        assert (await sender.send({"ref": "v3"}, "d-3")).status_code == 202
        await scene.until(at(hours=5))
        assert len(agents.turns) == 1
        explained = await scheduler.explain("a.deploy")
        assert "3 requests from outside wait until it is resumed." in explained.sentences
        assert [(skip["reason"], skip["count"]) for skip in explained.facts["skips"]] == [("paused", 1)]
        await scheduler.resume_job("a.deploy")
        await scene.sleep(600)
        assert [block(prompt)[0] for prompt in agents.prompts] == [f"[payload.ref]: v{n}" for n in range(4)]
        assert {run.outcome for run in await runs(scheduler)} == {"success"}


@virtual
async def test_a_disabled_schedule_refuses_requests(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules={"deploy": hook(enabled=False)})}) as scheduler:
        await scheduler.start()
        answer = await Sender(scheduler).send({}, "d-1")
        assert (answer.status_code, answer.json()["error"]) == (409, "a.deploy is disabled: resume it first.")
        assert await runs(scheduler) == []


# -- crashes -----------------------------------------------------------------------------------------------------------


@pytest.mark.promise("D4")
@virtual
async def test_a_crash_between_storing_and_starting_loses_nothing_and_doubles_nothing(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules={"deploy": hook(prompt="{payload.ref}")})}) as scheduler:
        sender = Sender(scheduler)  # the engine does not run yet: stored, and nothing more
        stored = [(await sender.send({"ref": f"v{n}"}, f"d-{n}")).json() for n in range(3)]
        await scene.crash(scheduler)
    assert agents.turns == []
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        again = [(await Sender(scheduler).send({"ref": f"v{n}"}, f"d-{n}")).json() for n in range(3)]
        assert again == [{**one, "duplicate": True} for one in stored]
        await scene.sleep(600)
        assert [block(prompt)[0] for prompt in agents.prompts] == [f"[payload.ref]: v{n}" for n in range(3)]
        assert [run.id for run in await runs(scheduler)] == [one["run"] for one in stored]


@virtual
async def test_a_run_that_is_cut_off_goes_on_with_the_same_request(scene, agents):
    agents.act = lambda turn: scene.sleep(600)
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        stored = (await sender.send({"ref": "v1"}, "d-1")).json()
        await scene.sleep(10)
        await scene.crash(scheduler)
    agents.act = lambda turn: "Done."
    async with agents.scheduler() as scheduler:
        await scheduler.start()
        await scene.sleep(600)
        first, second = await runs(scheduler)
        assert (first.outcome, second.reason, second.outcome) == ("crashed", "recovery", "success")
        assert [block(prompt)[0] for prompt in agents.prompts] == ["[payload.ref]: v1"] * 2
        assert second.payload["request"] == stored["request"]
        assert f"It works on {stored['request']}, a webhook (delivery id d-1)" in str(
            await scheduler.explain(second.id)
        )


@virtual
async def test_a_request_that_waits_while_its_schedule_is_edited_runs_as_the_schedule_is_then(scene, agents):
    async with agents.scheduler_with({"a": agent(schedules={"deploy": hook(prompt="Old {payload.ref}")})}) as scheduler:
        sender = Sender(scheduler)
        await sender.send({"ref": "v1"}, "d-1")
        await scheduler.agents.apply({"a": agent(schedules={"deploy": hook(prompt="New {payload.ref}")})})
        await scheduler.start()
        await scene.sleep(5)
        await scheduler.pause_job("a.deploy")
        await sender.send({"ref": "v2"}, "d-2")
        timed = {"deploy": {"cron": "0 0 1 1 *", "prompt": "Timed {payload.ref}"}}
        await scheduler.agents.apply({"a": agent(schedules=timed)})
        await scheduler.resume_job("a.deploy")
        await scene.sleep(5)
        assert [prompt.splitlines()[0] for prompt in agents.prompts] == ["New [payload.ref]", "Timed [payload.ref]"]
        assert [block(prompt)[0] for prompt in agents.prompts] == ["[payload.ref]: v1", "[payload.ref]: v2"]


# -- looking at them, and running them again ---------------------------------------------------------------------------


@virtual
async def test_what_came_in_can_be_looked_at_and_run_again(scene, agents):
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        first = (await sender.send({"ref": "main"}, "d-1")).json()
        await scene.sleep(5)
        found = await scheduler.read(lambda tx: receiving.get_request(tx, first["request"]))
        assert (found["job"], found["delivery_id"], json.loads(found["body"])) == ("a.deploy", "d-1", {"ref": "main"})
        assert found["about"]["x-github-event"] == "push"
        again = receiving.settled(
            await scheduler.transact(lambda tx, context: receiving.replay(tx, context, first["request"]))
        )
        await scene.sleep(5)
        assert [block(prompt)[0] for prompt in agents.prompts] == ["[payload.ref]: main"] * 2
        newest, oldest = await scheduler.read(lambda tx: receiving.list_requests(tx, "a.deploy", None, 10))
        assert (newest["id"], newest["replay_of"]) == (receiving.request_text(again.request_id), oldest["id"])
        explained = str(await scheduler.explain(newest["run"]))
        assert "was started because its webhook was called." in explained
        assert f"a replay of {oldest['id']}" in explained
        retried = await scheduler.retry_run(newest["run"])
        await scene.sleep(5)
        assert (await scheduler.get_run(retried)).outcome == "success"
        assert len(agents.prompts) == 3
        assert block(agents.prompts[2])[0] == "[payload.ref]: main"


@virtual
async def test_retention_takes_the_content_first_and_the_delivery_id_after_thirty_days(scene, agents):
    async with agents.scheduler() as scheduler:
        sender = await deployed(scheduler)
        stored = (await sender.send({"ref": "main"}, "d-1")).json()
        await scene.sleep(5)
        await scheduler.pause_job("a.deploy")
        waiting = (await sender.send({"ref": "kept"}, "d-2")).json()
        await scheduler.stop()

        async def prune(days):
            return await scheduler.transact(lambda tx, _: domain.prune(tx, tx.now - days * 86_400_000, 100))

        async def show(request):
            return await scheduler.read(lambda tx: receiving.get_request(tx, request))

        await scene.until(at(days=10))
        assert (await prune(20), (await show(stored["request"]))["body"] is None) == (0, False)
        assert (await prune(7), (await show(stored["request"]))["body"]) == (1, None)
        with pytest.raises(ScheduleTriggerError, match="its content was pruned"):
            await scheduler.transact(lambda tx, context: receiving.replay(tx, context, stored["request"]))
        await scene.until(at(days=29))
        assert (await sender.send({"ref": "main"}, "d-1")).json()["duplicate"] is True
        await scene.until(at(days=31))
        assert await prune(7) == 1
        with pytest.raises(RequestNotFound):
            await show(stored["request"])
        assert (await sender.send({"ref": "main"}, "d-1")).json()["duplicate"] is False
        kept = await show(waiting["request"])
        assert json.loads(kept["body"]) == {"ref": "kept"}  # its run has not begun


# -- greetings ---------------------------------------------------------------------------------------------------------


@virtual
async def test_a_sender_that_tries_out_the_address_is_answered_and_starts_nothing(scene, agents):
    async with agents.scheduler() as scheduler:
        slack = {"webhook": {"verify": "slack", "secret": "wakeful-slack-secret"}}
        await scheduler.agents.apply({"a": agent(schedules={"deploy": hook(), "slack": slack})})
        sender = Sender(scheduler)
        ping = {"zen": "Keep it logically awesome.", "hook_id": 1}
        assert (await sender.send(ping, "d-1", event="ping")).status_code == 200
        scene.step(seconds=1_700_000_000 - scene.clock.now() // 1000)
        challenge = "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"
        body = json.dumps({"token": "t", "challenge": challenge, "type": "url_verification"}, separators=(",", ":"))
        headers = {
            "X-Slack-Signature": "v0=891bcb33ff84cb61d6f9678e020802d7ec2aebd24196b990f6f6dbeb7cd713bc",
            "X-Slack-Request-Timestamp": "1700000000",
            "Content-Type": "application/json",
        }
        answer = await sender.post("a/slack", body.encode(), headers)
        assert (answer.status_code, answer.json()) == (200, {"challenge": challenge})
        unsigned = await sender.post("a/slack", body.encode(), {**headers, "X-Slack-Signature": "v0=00"})
        assert (unsigned.status_code, challenge in unsigned.text) == (401, False)
        assert await scheduler.get_run_log(None, 10) == []


@virtual
async def test_a_secret_is_looked_up_with_each_request_and_an_empty_one_verifies_nothing(scene, agents, monkeypatch):
    async with agents.scheduler() as scheduler:
        from_outside = {"webhook": {"verify": "github", "secret": "${HOOK_SECRET}"}}
        monkeypatch.setenv("HOOK_SECRET", SECRET)
        await scheduler.agents.apply({"a": agent(schedules={"deploy": from_outside})})
        sender = Sender(scheduler)
        assert (await sender.send({}, "d-1")).status_code == 202
        stored = await scheduler.read(lambda tx: tx.jobs.by_name("a.deploy")[0].payload)
        assert SECRET not in stored
        viewer = {"Authorization": f"Bearer {await scheduler.create_token('eye', 'viewer')}"}
        shown = (await sender.client.get("/api/jobs/a.deploy", headers=viewer)).json()
        assert shown["payload"]["webhook"] == {"verify": "github", "secret": "***"}
        monkeypatch.setenv("HOOK_SECRET", "")
        empty = await sender.send({}, "d-2", secret="")
        assert (empty.status_code, empty.json()["code"]) == (503, "no_secret")
        monkeypatch.delenv("HOOK_SECRET")
        assert (await sender.send({}, "d-3")).status_code == 503
        body = b"{}"
        assert "HOOK_SECRET" not in (await sender.post("a/deploy", body, signed(body))).text
