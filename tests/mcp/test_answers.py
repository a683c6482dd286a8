"""Schedules that agents ask for are answered where people are: in a chat, over HTTP, and by what they do to the job."""

from __future__ import annotations

import pytest

from tests.agents.virtual_agents import agent
from tests.alerts.test_buttons import Chat, labels, pressed, with_chat
from tests.api.callers import Callers
from tests.kernel.scene import virtual
from tests.mcp.desks import Tools, in_a_run, questions
from wakeful.domains.alerts import configure

pytestmark = pytest.mark.promise("X6")

PING = {"when": "every day at 09:00", "url": "https://example.org/"}


@virtual
async def test_a_schedule_is_approved_and_another_rejected_with_the_buttons_of_a_chat(scene):
    chat = Chat(scene)
    async with with_chat(scene, chat) as scheduler:
        await configure(scheduler, to="bot")
        await scheduler.start()
        fox = Tools(scheduler, agents_request=True).by("fox", "agent")
        for name, label, status in (("one", "Approve", "idle"), ("two", "Reject", None)):
            await fox.ok("schedule", name=name, **PING)
            await scene.sleep(60)
            message = [one for one in chat.to("42") if labels(one) == ["Approve", "Reject"]][-1]
            assert f"fox asks to schedule {name}" in message.text
            await pressed(scheduler, message, label)
            job = await scheduler.get_job(name)
            assert (None if job is None else job.status) == status
        assert await questions(scheduler) == {}


@virtual
async def test_over_http_an_operator_answers_and_the_agent_cannot(scene):
    async with scene.scheduler() as scheduler, Callers(scheduler, agents_request=True) as callers:
        await scheduler.start()
        await callers.add("boss", "operator")
        await callers.add("fox", "agent")
        fox = Tools(scheduler, agents_request=True).by("fox", "agent")
        await fox.ok("schedule", name="one", **PING)
        (listed,) = (await callers.ask("boss", "GET /api/approvals")).json()["items"]
        assert listed["job"] == "one"
        run = listed["id"]
        for request, body in {
            f"POST /api/runs/{run}/approve": None,
            f"POST /api/runs/{run}/complete": {"outcome": "success"},
            "POST /api/jobs/one/resume": None,
            "POST /api/jobs/one/run": None,
            "DELETE /api/jobs/one": None,
        }.items():
            assert (await callers.ask("fox", request, body)).status_code in (403, 409), request
        patched = await callers.ask("fox", "PATCH /api/jobs/one", {"every": "2h"})
        assert (patched.status_code, "made over MCP" in patched.text) == (403, True)
        assert (await callers.ask("boss", f"POST /api/runs/{run}/approve")).status_code == 202
        assert (await callers.ask("boss", "GET /api/jobs/one")).json()["status"] == "idle"
        patched = await callers.ask("fox", "PATCH /api/jobs/one", {"every": "2h"})  # approved, and still so
        assert patched.status_code == 403
        assert (await callers.ask("boss", f"POST /api/runs/{run}/reject")).status_code == 409


@virtual
async def test_a_person_who_cancels_removes_or_resumes_has_answered(scene):
    async with scene.scheduler() as scheduler:
        await scheduler.start()
        fox = Tools(scheduler, agents_request=True).by("fox", "agent")
        for name in ("one", "two", "three"):
            await fox.ok("schedule", name=name, **PING)
        waiting = await questions(scheduler)
        await scheduler.cancel_run(waiting["one"][0])
        await scheduler.remove_job("two")
        await scheduler.resume_job("three")
        assert await questions(scheduler) == {}
        assert [job.name for job in await scheduler.list_jobs()] == ["three"]
        outcomes = [(await scheduler.get_run(run)).outcome for run, _ in waiting.values()]
        assert sorted(outcomes) == ["cancelled", "cancelled", "noop"]


@virtual
async def test_a_word_about_many_jobs_is_no_answer(scene, agents):
    async with agents.scheduler_with({"a": agent()}) as scheduler, Callers(scheduler) as callers:
        await scheduler.start()
        await callers.add("boss", "operator")
        tools = Tools(scheduler, agents)

        async def deed(by):
            await by.ok("schedule", name="prices", when="every day at 09:00", prompt="Look.")

        await in_a_run(scene, tools, "a", deed)
        ((name, (run, _)),) = (await questions(scheduler)).items()
        await scheduler.agents.pause("a")
        await scheduler.agents.resume("a")
        for what in ("run", "resume"):
            answer = (await callers.ask("boss", f"POST /api/jobs:{what}", {"all": True})).json()
            assert run in str(answer), answer
        assert list(await questions(scheduler)) == [name]
        assert (await scheduler.get_job(name)).status == "paused"
        assert [turn.schedule for turn in agents.turns if turn.schedule == "prices"] == []
        assert (await scheduler.get_job("a.wake")).status == "idle"
        named = await callers.ask("boss", "POST /api/jobs:resume", {"ids": [name]})
        assert named.status_code == 200, named.text
        assert await questions(scheduler) == {}
